//! Programs about inputs: several, idle, out of order, closed at different times.

use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::core::UnorderedInput;
use timely::dataflow::operators::vec::{Filter, Map};
use timely::dataflow::operators::{Concat, Exchange, Input, Probe};
use timely::dataflow::ProbeHandle;
use timely::order::Product;
use timely::worker::Worker;

use super::{drive, moves, program, Program};
use crate::capture::Observe;

pub const ALL: &[Program] = &[
    program("chain", "one input, map and filter, a probe that the input waits for", chain),
    program("exchange", "records move between workers by their value", exchange),
    program("two-inputs", "two inputs are concatenated and closed at different times", two_inputs),
    program("three-inputs", "three inputs, each observed alone and together", three_inputs),
    program("idle-input", "an input that never sends and jumps far ahead, beside a busy one", idle_input),
    program("closed-at-once", "one input is closed before the first step", closed_at_once),
    program("one-worker-feeds", "only worker 0 has data; the others close at once", one_worker_feeds),
    program("unordered", "several capabilities of one input, used and dropped out of order", unordered),
    program("unordered-product", "an unordered input with incomparable product times", unordered_product),
    program("two-dataflows", "two dataflows in one worker, one feeding slower than the other", two_dataflows),
];

fn chain(worker: &mut Worker, _seed: u64) {
    let probe = ProbeHandle::new();
    let mut input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        stream.map(|x| x + 1).observe().filter(|x| x % 2 == 0).probe_with(&probe).observe();
        input
    });
    for round in 0..6 {
        input.send(round);
        input.advance_to(round + 1);
        worker.step_while(|| probe.less_than(input.time()));
    }
}

fn exchange(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        stream.exchange(|x| *x).observe().map(|x| x * 7).exchange(|x| *x).observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn two_inputs(worker: &mut Worker, seed: u64) {
    let inputs = worker.dataflow::<u64, _, _>(|scope| {
        let (one, left) = scope.new_input::<Vec<u64>>();
        let (two, right) = scope.new_input::<Vec<u64>>();
        left.concat(right).observe();
        vec![one, two]
    });
    let mut random = moves(worker, seed);
    drive(worker, inputs, &mut random);
}

fn three_inputs(worker: &mut Worker, seed: u64) {
    let inputs = worker.dataflow::<u64, _, _>(|scope| {
        let (one, first) = scope.new_input::<Vec<u64>>();
        let (two, second) = scope.new_input::<Vec<u64>>();
        let (three, third) = scope.new_input::<Vec<u64>>();
        let both = first.observe().concat(second.observe()).observe();
        third.observe().exchange(|x| *x).concat(both).observe();
        vec![one, two, three]
    });
    let mut random = moves(worker, seed);
    drive(worker, inputs, &mut random);
}

fn idle_input(worker: &mut Worker, seed: u64) {
    let (busy, mut idle) = worker.dataflow::<u64, _, _>(|scope| {
        let (busy, left) = scope.new_input::<Vec<u64>>();
        let (idle, right) = scope.new_input::<Vec<u64>>();
        left.concat(right.observe()).observe();
        (busy, idle)
    });
    idle.advance_to(1_000_000_000_000);
    let mut random = moves(worker, seed);
    drive(worker, vec![busy], &mut random);
    for _ in 0..5 {
        worker.step();
    }
}

fn closed_at_once(worker: &mut Worker, seed: u64) {
    let (open, closed) = worker.dataflow::<u64, _, _>(|scope| {
        let (open, left) = scope.new_input::<Vec<u64>>();
        let (closed, right) = scope.new_input::<Vec<u64>>();
        right.observe().exchange(|x| *x).concat(left).observe();
        (open, closed)
    });
    closed.close();
    let mut random = moves(worker, seed);
    drive(worker, vec![open], &mut random);
}

fn one_worker_feeds(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        stream.observe().exchange(|x| *x).observe();
        input
    });
    let mut random = moves(worker, seed);
    if worker.index() == 0 {
        drive(worker, vec![input], &mut random);
    }
}

fn unordered(worker: &mut Worker, seed: u64) {
    let (mut input, first) = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_unordered_input::<CapacityContainerBuilder<Vec<u64>>>();
        stream.exchange(|x| *x).observe();
        input
    });
    let mut random = moves(worker, seed);
    let mut held: Vec<_> = [9, 2, 5, 2, 7, 0].into_iter().map(|time| first.delayed(&time)).collect();
    drop(first);
    while !held.is_empty() {
        let chosen = random.index(held.len());
        input.activate().session(&held[chosen]).give(random.below(10));
        match random.below(3) {
            0 => drop(held.swap_remove(chosen)),
            1 => {
                let later = held[chosen].time() + random.below(4);
                held[chosen].downgrade(&later);
            }
            _ => {}
        }
        for _ in 0..random.below(3) {
            worker.step();
        }
    }
}

fn unordered_product(worker: &mut Worker, seed: u64) {
    let (mut input, first) = worker.dataflow::<u64, _, _>(|scope| {
        scope.iterative::<u64, _, _>(|inner| {
            let (input, stream) = inner.new_unordered_input::<CapacityContainerBuilder<Vec<u64>>>();
            stream.observe().exchange(|x| *x).observe();
            input
        })
    });
    let mut random = moves(worker, seed);
    let mut held: Vec<_> = (0..4).map(|x| first.delayed(&Product::new(x, 3 - x))).collect();
    drop(first);
    while !held.is_empty() {
        let chosen = random.index(held.len());
        input.activate().session(&held[chosen]).give(random.below(10));
        let time = *held[chosen].time();
        match random.below(4) {
            0 => drop(held.swap_remove(chosen)),
            1 => held[chosen].downgrade(&Product::new(time.outer + random.below(3), time.inner)),
            2 => held[chosen].downgrade(&Product::new(time.outer, time.inner + random.below(3))),
            _ => {}
        }
        for _ in 0..random.below(3) {
            worker.step();
        }
    }
}

fn two_dataflows(worker: &mut Worker, seed: u64) {
    let build = |worker: &mut Worker| {
        worker.dataflow::<u64, _, _>(|scope| {
            let (input, stream) = scope.new_input::<Vec<u64>>();
            stream.exchange(|x| *x).observe();
            input
        })
    };
    let inputs = vec![build(worker), build(worker)];
    let mut random = moves(worker, seed);
    drive(worker, inputs, &mut random);
}
