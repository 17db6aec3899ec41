//! Feeds rounds of count changes to a real tracker and writes down what it computed after each.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{json, Map, Value};
use timely::progress::reachability::{PortInformation, Tracker};
use timely::progress::{Location, Port};

use crate::times::Written;
use crate::topology::Topology;

/// A change of the count of one pointstamp.
pub type Change<T> = (Location, T, i64);

pub struct Rounds<'a, T: Written> {
    topology: &'a Topology<T>,
    tracker: Tracker<T>,
    times: BTreeMap<Location, BTreeSet<T>>,
    pub written: Vec<Value>,
}

impl<'a, T: Written> Rounds<'a, T> {
    pub fn new(topology: &'a Topology<T>) -> Self {
        let times = topology.locations().into_iter().map(|location| (location, BTreeSet::new())).collect();
        Rounds { topology, tracker: topology.tracker(), times, written: Vec::new() }
    }

    fn port(&self, location: Location) -> &PortInformation<T> {
        let node = self.tracker.node_state(location.node);
        match location.port {
            Port::Target(port) => &node.targets[port],
            Port::Source(port) => &node.sources[port],
        }
    }

    /// The frontier that Timely computed at the end of the last round.
    pub fn frontier(&self, location: Location) -> Vec<T> {
        self.port(location).implications.frontier().to_vec()
    }

    pub fn count(&self, location: Location, time: &T) -> i64 {
        self.port(location).pointstamps.count_for(time)
    }

    /// The times that were ever counted at a location, in a fixed order.
    pub fn times(&self, location: Location) -> Vec<T> {
        self.times[&location].iter().cloned().collect()
    }

    /// May the count of this pointstamp change? Only if its time can still appear at its location.
    pub fn is_announced(&self, location: Location, time: &T) -> bool {
        self.port(location).implications.less_equal(time)
    }

    /// One complete round of Timely's propagation.
    pub fn propagate(&mut self, changes: &[Change<T>]) {
        for (location, time, count) in changes {
            self.times.get_mut(location).unwrap().insert(time.clone());
            self.tracker.update(*location, time.clone(), *count);
        }
        self.tracker.propagate_all();
        let (mut frontiers, mut pointstamps) = (Map::new(), Map::new());
        for location in self.topology.locations() {
            let name = self.topology.name(location);
            let frontier: Vec<_> = self.frontier(location).iter().map(T::time).collect();
            let counts = self.times[&location].iter().map(|time| (time, self.count(location, time)));
            let counts: Vec<_> = counts.filter(|(_, n)| *n != 0).map(|(time, n)| json!([time.time(), n])).collect();
            frontiers.insert(name.clone(), json!(frontier));
            pointstamps.insert(name, json!(counts));
        }
        let changes: Vec<_> =
            changes.iter().map(|(at, time, n)| json!([self.topology.name(*at), time.time(), n])).collect();
        self.written.push(json!({"changes": changes, "frontiers": frontiers, "pointstamps": pointstamps}));
    }
}
