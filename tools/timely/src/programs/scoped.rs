//! Programs with scopes that are not loops: regions, several doors, loops inside regions and regions inside loops.

use timely::dataflow::operators::vec::{Branch, Delay, Map};
use timely::dataflow::operators::{Concat, ConnectLoop, Enter, Exchange, Input, Leave, LoopVariable};
use timely::worker::Worker;

use super::{drive, moves, program, Program};
use crate::capture::Observe;

pub const ALL: &[Program] = &[
    program("region", "operators grouped in a region", region),
    program("passage", "a stream that enters a scope and leaves it at once", passage),
    program("two-doors", "a region with two inputs and two outputs that cross", two_doors),
    program("deep-regions", "three regions inside each other", deep_regions),
    program("loop-in-region", "a loop inside a region", loop_in_region),
    program("region-in-loop", "a region inside a loop, with delayed records", region_in_loop),
];

fn region(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        scope.region(|inner| stream.enter(inner).observe().exchange(|x| *x).observe().leave(scope)).observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn passage(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        scope.iterative::<u64, _, _>(|inner| stream.enter(inner).leave(scope)).observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn two_doors(worker: &mut Worker, seed: u64) {
    let inputs = worker.dataflow::<u64, _, _>(|scope| {
        let (one, left) = scope.new_input::<Vec<u64>>();
        let (two, right) = scope.new_input::<Vec<u64>>();
        let (first, second) = scope.region(|inner| {
            let (left, right) = (left.enter(inner), right.enter(inner).observe());
            let mixed = left.clone().concat(right.delay(|x, time| time + x % 3)).observe();
            (mixed.leave(scope), left.exchange(|x| *x).leave(scope))
        });
        second.observe();
        first.observe();
        vec![one, two]
    });
    let mut random = moves(worker, seed);
    drive(worker, inputs, &mut random);
}

fn deep_regions(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let out = scope.region(|first| {
            let stream = stream.enter(first);
            let out = first.region(|second| {
                let stream = stream.enter(second).observe();
                let out = second.region(|third| stream.enter(third).exchange(|x| *x).observe().leave(second));
                out.leave(first)
            });
            out.leave(scope)
        });
        out.observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn loop_in_region(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let out = scope.region(|region| {
            let stream = stream.enter(region);
            let out = region.iterative::<u64, _, _>(|inner| {
                let (handle, cycle) = inner.loop_variable::<Vec<u64>>(2);
                let (done, more) = stream.enter(inner).concat(cycle).observe().branch(|_, x| *x > 3);
                more.map(|x| x / 2).exchange(|x| *x).connect_loop(handle);
                done.leave(region)
            });
            out.observe().leave(scope)
        });
        out.observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn region_in_loop(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let out = scope.iterative::<u64, _, _>(|inner| {
            let (handle, cycle) = inner.loop_variable::<Vec<u64>>(1);
            let round = stream.enter(inner).concat(cycle).observe();
            let moved = inner.region(|region| {
                let delayed = round.enter(region).delay(|x, time| {
                    let mut later = *time;
                    later.inner += x % 2;
                    later
                });
                delayed.exchange(|x| *x).observe().leave(inner)
            });
            let (done, more) = moved.observe().branch(|_, x| *x > 2);
            more.map(|x| x - 2).connect_loop(handle);
            done.leave(scope)
        });
        out.observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}
