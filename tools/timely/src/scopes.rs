//! Turns the logs of a worker into one record per scope: its graph, its rounds of propagation, the frontiers seen.
//!
//! Timely does not log when a round begins, but each scope runs exactly one round when it is set up and one whenever
//! it is scheduled, and that is logged. Within a round it logs the changes at targets at most once, then those at
//! sources at most once; anything else means that this understanding is out of date, and stops the run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{json, Value};
use timely::logging::{StartStop, TimelyEvent};
use timely::progress::reachability::logging::TrackerEvent;
use timely::progress::{Location, Port, Source, Target};

use crate::capture::{Log, Typed};
use crate::rounds::{Change, Rounds};
use crate::times::Written;
use crate::topology::{Node, Topology};

pub fn records<T: Written>(events: &Log<TimelyEvent>, typed: &Typed<T>) -> Vec<Value> {
    let trackers: BTreeSet<usize> = typed.changes.iter().map(|(_, event)| tracker(event)).collect();
    trackers.into_iter().map(|id| record(id, events, typed)).collect()
}

fn record<T: Written>(id: usize, events: &Log<TimelyEvent>, typed: &Typed<T>) -> Value {
    let (address, name) = operator(id, events);
    let starts = starts(id, events);
    let live = live_rounds(id, &starts, typed);
    let topology = topology(&address, events, typed, &live);
    let mut rounds = Rounds::new(&topology);
    // What the parent scope announced when this scope first ran belongs to the initial state: Timely sets up a scope
    // before it knows the frontiers of its inputs.
    let (first, rest): (Vec<_>, Vec<_>) =
        live.get(&1).into_iter().flatten().cloned().partition(|change| is_scope_input(change.0));
    let mut initial = live.get(&0).cloned().unwrap_or_default();
    initial.extend(first);
    rounds.propagate(&initial);
    let mut written_as = BTreeMap::from([(0, 0)]);
    let mut unannounced = 0;
    for (number, changes) in live.iter().filter(|(number, _)| **number > 0) {
        let changes = if *number == 1 { &rest } else { changes };
        unannounced += changes.iter().filter(|(at, time, _)| !rounds.is_announced(*at, time)).count();
        rounds.propagate(changes);
        written_as.insert(*number, rounds.written.len() - 1);
    }
    let mut observed = BTreeSet::new();
    for (when, seen) in &typed.seen {
        if seen.address[..seen.address.len() - 1] == address[..] {
            let place = topology.name(Location::new_target(*seen.address.last().unwrap(), 0));
            let round = written_as.range(..=round_of(*when, &starts)).next_back().unwrap().1;
            let mut frontier = seen.frontier.clone();
            frontier.sort();
            observed.insert((*round, place, frontier));
        }
    }
    let observed: Vec<_> = observed
        .into_iter()
        .map(|(round, place, frontier)| json!([round, place, frontier.iter().map(T::time).collect::<Vec<_>>()]))
        .collect();
    json!({
        "mode": "program", "scope": {"address": address, "name": name}, "graph": topology.written(),
        "rounds": rounds.written, "observed": observed, "unannounced": unannounced,
    })
}

fn tracker<T>(event: &TrackerEvent<T>) -> usize {
    match event {
        TrackerEvent::SourceUpdate(update) => update.tracker_id,
        TrackerEvent::TargetUpdate(update) => update.tracker_id,
    }
}

fn operator(id: usize, events: &Log<TimelyEvent>) -> (Vec<usize>, String) {
    let found = events.iter().find_map(|(_, event)| match event {
        TimelyEvent::Operates(operates) if operates.id == id => Some((operates.addr.clone(), operates.name.clone())),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("Timely logged changes of scope {id} but not its creation"))
}

fn starts(id: usize, events: &Log<TimelyEvent>) -> Vec<Duration> {
    let starts = events.iter().filter_map(|(when, event)| match event {
        TimelyEvent::Schedule(schedule) if schedule.id == id && schedule.start_stop == StartStop::Start => Some(*when),
        _ => None,
    });
    starts.collect()
}

/// 0 is the round of the set-up, n the round at the n-th time that the scope was scheduled.
fn round_of(when: Duration, starts: &[Duration]) -> usize {
    assert!(starts.binary_search(&when).is_err(), "two events at one instant of the clock: run again");
    starts.partition_point(|start| *start < when)
}

fn is_scope_input(location: Location) -> bool {
    location.node == 0 && matches!(location.port, Port::Source(_))
}

fn live_rounds<T: Written>(id: usize, starts: &[Duration], typed: &Typed<T>) -> BTreeMap<usize, Vec<Change<T>>> {
    let mut rounds: BTreeMap<usize, Vec<Change<T>>> = BTreeMap::new();
    let mut last = (0, 0);
    for (when, event) in typed.changes.iter().filter(|(_, event)| tracker(event) == id) {
        let (part, updates) = match event {
            TrackerEvent::TargetUpdate(update) => (1, &update.updates),
            TrackerEvent::SourceUpdate(update) => (2, &update.updates),
        };
        let number = round_of(*when, starts);
        assert!((number, part) > last, "scope {id} propagated twice in its round {number}");
        last = (number, part);
        let place = |node, port| match part {
            1 => Location::new_target(node, port),
            _ => Location::new_source(node, port),
        };
        let changes = updates.iter().map(|(node, port, time, count)| (place(*node, *port), time.clone(), *count));
        rounds.entry(number).or_default().extend(changes);
    }
    rounds
}

/// The graph of a scope. Timely does not log how many outputs an operator has: every output that anything mentions counts.
fn topology<T: Written>(
    address: &[usize],
    events: &Log<TimelyEvent>,
    typed: &Typed<T>,
    live: &BTreeMap<usize, Vec<Change<T>>>,
) -> Topology<T> {
    let mut nodes = vec![Node { name: "scope".into(), inputs: 0, outputs: 0, paths: Vec::new() }];
    let mut edges = Vec::new();
    let mut children = BTreeMap::new();
    for (_, event) in events {
        match event {
            TimelyEvent::Operates(operates)
                if operates.addr.split_last().is_some_and(|(_, scope)| scope == address) =>
            {
                children.insert(*operates.addr.last().unwrap(), operates.clone());
            }
            TimelyEvent::Channels(channel) if channel.scope_addr == address => {
                let (source, target) = (channel.source, channel.target);
                edges.push((Source::new(source.0, source.1), Target::new(target.0, target.1)));
            }
            _ => {}
        }
    }
    for (index, child) in children {
        assert_eq!(index, nodes.len(), "the operators of a scope are numbered without gaps");
        let summary = typed.summaries.iter().find(|(_, event)| event.id == child.id);
        let summary = &summary.unwrap_or_else(|| panic!("Timely did not log the summary of {child:?}")).1.summary;
        let mut paths = Vec::new();
        for (input, outputs) in summary.iter().enumerate() {
            paths.extend(outputs.iter_ports().map(|(output, summaries)| (input, output, summaries.clone())));
        }
        let outputs = paths.iter().map(|path| path.1 + 1).max().unwrap_or(0);
        nodes.push(Node { name: child.name, inputs: summary.len(), outputs, paths });
    }
    let mentioned = edges.iter().flat_map(|(source, target)| [Location::from(*source), Location::from(*target)]);
    for location in mentioned.chain(live.values().flatten().map(|change| change.0)) {
        let node = &mut nodes[location.node];
        match location.port {
            Port::Target(port) => node.inputs = node.inputs.max(port + 1),
            Port::Source(port) => node.outputs = node.outputs.max(port + 1),
        }
    }
    Topology { nodes, edges }
}
