//! A dataflow graph as Timely's tracker sees it: nodes with ports, paths inside nodes, edges between them.

use std::collections::BTreeMap;

use serde_json::{json, Value};
use timely::progress::frontier::Antichain;
use timely::progress::reachability::{Builder, Tracker};
use timely::progress::{Location, Port, Source, Target};

use crate::times::Written;

pub struct Node<T: Written> {
    pub name: String,
    pub inputs: usize,
    pub outputs: usize,
    /// From an input to an output, with the incomparable summaries of the paths between them.
    pub paths: Vec<(usize, usize, Antichain<T::Summary>)>,
}

/// Node 0 stands for the enclosing scope, as in Timely.
pub struct Topology<T: Written> {
    pub nodes: Vec<Node<T>>,
    pub edges: Vec<(Source, Target)>,
}

impl<T: Written> Topology<T> {
    /// Every port: one location of the vector file each.
    pub fn locations(&self) -> Vec<Location> {
        let mut all = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            all.extend((0..node.inputs).map(|port| Location::new_target(index, port)));
            all.extend((0..node.outputs).map(|port| Location::new_source(index, port)));
        }
        all
    }

    pub fn name(&self, location: Location) -> String {
        let node = &self.nodes[location.node].name;
        match location.port {
            Port::Target(port) => format!("{}:{node}.in{port}", location.node),
            Port::Source(port) => format!("{}:{node}.out{port}", location.node),
        }
    }

    /// A real tracker of Timely for this graph.
    pub fn tracker(&self) -> Tracker<T> {
        let mut builder = Builder::<T>::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let connectivity = (0..node.inputs)
                .map(|input| {
                    let paths = node.paths.iter().filter(|path| path.0 == input);
                    paths.map(|path| (path.1, path.2.clone())).collect()
                })
                .collect();
            builder.add_node(index, node.inputs, node.outputs, connectivity);
        }
        for (source, target) in &self.edges {
            builder.add_edge(*source, *target);
        }
        builder.build(None).0
    }

    /// The graph as a vector file writes it; an edge of Timely does not change a time.
    pub fn written(&self) -> Value {
        let mut edges = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            for (input, output, summaries) in &node.paths {
                let from = self.name(Location::new_target(index, *input));
                let to = self.name(Location::new_source(index, *output));
                edges.push(json!([from, to, summaries.iter().map(T::summary).collect::<Vec<_>>()]));
            }
        }
        for (source, target) in &self.edges {
            let (from, to) = (self.name(Location::from(*source)), self.name(Location::from(*target)));
            edges.push(json!([from, to, [T::summary(&T::Summary::default())]]));
        }
        let locations: Vec<_> = self.locations().iter().map(|location| self.name(*location)).collect();
        json!({"domain": T::domain(), "locations": locations, "edges": edges})
    }

    /// Does every cycle advance time? Counts down the locations that only paths which do not advance lead to.
    pub fn every_cycle_advances(&self) -> bool {
        let mut idle: Vec<(Location, Location)> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            for (input, output, summaries) in &node.paths {
                if !summaries.iter().all(T::advances) {
                    idle.push((Location::new_target(index, *input), Location::new_source(index, *output)));
                }
            }
        }
        idle.extend(self.edges.iter().map(|(source, target)| (Location::from(*source), Location::from(*target))));
        let mut entering: BTreeMap<Location, usize> = self.locations().into_iter().map(|place| (place, 0)).collect();
        for (_, to) in &idle {
            *entering.get_mut(to).unwrap() += 1;
        }
        let mut free: Vec<_> = entering.iter().filter(|(_, count)| **count == 0).map(|(place, _)| *place).collect();
        let mut freed = 0;
        while let Some(place) = free.pop() {
            freed += 1;
            for (_, to) in idle.iter().filter(|(from, _)| *from == place) {
                let count = entering.get_mut(to).unwrap();
                *count -= 1;
                if *count == 0 {
                    free.push(*to);
                }
            }
        }
        freed == entering.len()
    }
}
