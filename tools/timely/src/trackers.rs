//! Tracker mode: real trackers of Timely on random graphs, with random changes of the counts.

use serde_json::{json, Value};
use timely::order::Product;
use timely::progress::frontier::Antichain;
use timely::progress::{Location, Source, Target};

use crate::maxplus::Tick;
use crate::poset::Stage;
use crate::random::Random;
use crate::rounds::{Change, Rounds};
use crate::times::Written;
use crate::topology::{Node, Topology};

/// One record for a seed; the seed also chooses the kind of time.
pub fn record(seed: u64) -> Value {
    match seed % 7 {
        0 => typed::<u64>(seed),
        1 => typed::<Product<u64, u64>>(seed),
        2 => typed::<Product<u32, u32>>(seed),
        3 => typed::<Product<Product<u64, u32>, u32>>(seed),
        4 => typed::<Tick>(seed),
        5 => typed::<Product<Tick, u64>>(seed),
        _ => typed::<Product<u64, Stage>>(seed),
    }
}

fn typed<T: Written>(seed: u64) -> Value {
    let mut random = Random::new(seed);
    let mut topology = random_topology::<T>(&mut random);
    while !topology.every_cycle_advances() {
        slow_one_path(&mut topology, &mut random);
    }
    let mut rounds = Rounds::new(&topology);
    let places = topology.locations();
    let mut initial: Vec<Change<T>> = Vec::new();
    for _ in 0..1 + random.index(6) {
        initial.push((places[random.index(places.len())], T::random_time(&mut random, 4), 1 + random.below(3) as i64));
    }
    rounds.propagate(&initial);
    for _ in 0..4 + random.index(12) {
        let changes = random_changes(&rounds, &places, &mut random);
        rounds.propagate(&changes);
    }
    json!({
        "mode": "tracker", "name": format!("tracker-{seed}"), "seed": seed, "workers": 1, "worker": 0,
        "graph": topology.written(), "rounds": rounds.written, "observed": [],
    })
}

fn random_topology<T: Written>(random: &mut Random) -> Topology<T> {
    let idle_percent = random.below(100);
    let mut nodes = vec![Node { name: "scope".into(), inputs: 0, outputs: 0, paths: Vec::new() }];
    for _ in 0..1 + random.index(7) {
        let (inputs, outputs) = (random.index(4), random.index(4));
        let mut paths = Vec::new();
        for input in 0..inputs {
            for output in 0..outputs {
                if random.chance(75) {
                    let summaries = (0..1 + random.index(3)).map(|_| random_summary::<T>(random, idle_percent));
                    paths.push((input, output, summaries.collect::<Vec<_>>().into_iter().collect::<Antichain<_>>()));
                }
            }
        }
        nodes.push(Node { name: "node".into(), inputs, outputs, paths });
    }
    // A last node with both kinds of ports: no graph is without locations.
    let identity = Antichain::from_elem(T::Summary::default());
    nodes.push(Node { name: "node".into(), inputs: 1, outputs: 1, paths: vec![(0, 0, identity)] });
    let sources: Vec<_> =
        (0..nodes.len()).flat_map(|n| (0..nodes[n].outputs).map(move |p| Source::new(n, p))).collect();
    let targets: Vec<_> = (0..nodes.len()).flat_map(|n| (0..nodes[n].inputs).map(move |p| Target::new(n, p))).collect();
    let mut edges: Vec<(Source, Target)> = Vec::new();
    for target in targets {
        for _ in 0..if random.chance(15) { 2 } else { 1 } {
            let edge = (sources[random.index(sources.len())], target);
            if random.chance(85) && !edges.contains(&edge) {
                edges.push(edge);
            }
        }
    }
    Topology { nodes, edges }
}

/// Lets some path inside some node advance time; done often enough, every cycle does.
fn slow_one_path<T: Written>(topology: &mut Topology<T>, random: &mut Random) {
    let node = random.index(topology.nodes.len());
    let paths = &mut topology.nodes[node].paths;
    if !paths.is_empty() {
        let summary = T::random_summary(random, 4);
        if T::advances(&summary) {
            let path = random.index(paths.len());
            paths[path].2 = Antichain::from_elem(summary);
        }
    }
}

fn random_summary<T: Written>(random: &mut Random, idle_percent: u64) -> T::Summary {
    if random.chance(idle_percent) {
        T::Summary::default()
    } else {
        T::random_summary(random, 4)
    }
}

/// Legal changes: drops, additions at or above the frontier, downgrades, and counts that go below zero for a while.
fn random_changes<T: Written>(rounds: &Rounds<T>, places: &[Location], random: &mut Random) -> Vec<Change<T>> {
    let mut changes = Vec::new();
    let drop_percent = random.below(101);
    for _ in 0..random.index(7) {
        let place = places[random.index(places.len())];
        let frontier = rounds.frontier(place);
        if frontier.is_empty() {
            continue;
        }
        let held: Vec<_> = rounds.times(place).into_iter().filter(|time| rounds.count(place, time) != 0).collect();
        if !held.is_empty() && random.chance(drop_percent) {
            let time = held[random.index(held.len())].clone();
            let count = rounds.count(place, &time);
            if rounds.is_announced(place, &time) {
                let part = if random.chance(70) { -count } else { -count.signum() };
                changes.push((place, time, part));
            }
        }
        if random.chance(100 - drop_percent) {
            let summary = T::random_summary(random, 4);
            let base = frontier[random.index(frontier.len())].clone();
            let time = timely::progress::PathSummary::results_in(&summary, &base).expect("small times do not overflow");
            let count = 1 + random.below(3) as i64;
            changes.push((place, time, if random.chance(20) { -count } else { count }));
        }
    }
    changes
}
