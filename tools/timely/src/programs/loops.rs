//! Programs with cycles: in the outermost scope, in iterative scopes, nested, several in one scope.

use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::{Exchange as ByKey, Pipeline};
use timely::dataflow::operators::vec::{Branch, BranchWhen, Filter, Map};
use timely::dataflow::operators::{Concat, Concatenate, ConnectLoop, Enter, Exchange, Feedback, Input, Leave};
use timely::dataflow::operators::{LoopVariable, Operator};
use timely::order::Product;
use timely::worker::Worker;

use super::{drive, moves, program, Program};
use crate::capture::Observe;

pub const ALL: &[Program] = &[
    program("feedback", "a cycle in the outermost scope", feedback),
    program("feedback-three", "a cycle that advances time by three", feedback_three),
    program("barrier", "a cycle without data: only notifications move", barrier),
    program("ping-pong", "records go round between the workers", ping_pong),
    program("iterate", "a loop with product times", iterate),
    program("iterate-limited", "a loop that every record leaves after three rounds", iterate_limited),
    program("nested-loops", "a loop inside a loop", nested_loops),
    program("two-cycles", "two cycles in one scope that advance different coordinates", two_cycles),
    program("search", "breadth-first search over a small graph, from several starts", search),
    program("loop-notified", "notifications inside a loop", loop_notified),
];

fn halved(x: u64) -> Option<u64> {
    if x > 1 {
        Some(x / 2)
    } else {
        None
    }
}

fn feedback(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let (handle, cycle) = scope.feedback::<Vec<u64>>(1);
        stream.concat(cycle).observe().exchange(|x| *x).flat_map(halved).observe().connect_loop(handle);
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn feedback_three(worker: &mut Worker, seed: u64) {
    let inputs = worker.dataflow::<u64, _, _>(|scope| {
        let (one, left) = scope.new_input::<Vec<u64>>();
        let (two, right) = scope.new_input::<Vec<u64>>();
        let (handle, cycle) = scope.feedback::<Vec<u64>>(3);
        let round = scope.concatenate([left, cycle, right]).observe();
        let (back, out) = round.branch(|_, x| *x <= 1);
        back.map(|x| x / 3).observe().connect_loop(handle);
        out.observe();
        vec![one, two]
    });
    let mut random = moves(worker, seed);
    drive(worker, inputs, &mut random);
}

fn barrier(worker: &mut Worker, _seed: u64) {
    worker.dataflow::<u64, _, _>(|scope| {
        let (handle, cycle) = scope.feedback::<Vec<u64>>(1);
        let ticks = cycle.unary_notify::<CapacityContainerBuilder<Vec<u64>>, _, _>(
            Pipeline,
            "Barrier",
            Some(0),
            move |_, _, asked| {
                while let Some((time, _)) = asked.next() {
                    let next = *time.time() + 1;
                    if next < 12 {
                        asked.notify_at(time.delayed(&next));
                    }
                }
            },
        );
        ticks.observe().connect_loop(handle);
    });
}

fn ping_pong(worker: &mut Worker, _seed: u64) {
    let mut input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let (handle, cycle) = scope.feedback::<Vec<u64>>(1);
        let round = stream.concat(cycle).exchange(|x| *x).observe();
        round.map(|x| x + 1).filter(|x| *x < 12).connect_loop(handle);
        input
    });
    input.send(worker.index() as u64);
}

fn iterate(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let result = scope.iterative::<u64, _, _>(|inner| {
            let (handle, cycle) = inner.loop_variable::<Vec<u64>>(1);
            let round = stream.enter(inner).concat(cycle).observe().exchange(|x| *x);
            let (done, more) = round.branch(|_, x| *x > 1);
            more.map(|x| if x % 2 == 0 { x / 2 } else { x - 1 }).observe().connect_loop(handle);
            done.leave(scope)
        });
        result.observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn iterate_limited(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let result = scope.iterative::<u32, _, _>(|inner| {
            let (handle, cycle) = inner.loop_variable::<Vec<u64>>(1);
            let (back, out) = stream.enter(inner).concat(cycle).observe().branch_when(|time| time.inner >= 3);
            back.exchange(|x| *x).observe().connect_loop(handle);
            out.observe().leave(scope)
        });
        result.observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn nested_loops(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let result = scope.iterative::<u64, _, _>(|middle| {
            let (outer_handle, outer_cycle) = middle.loop_variable::<Vec<u64>>(1);
            let round = stream.enter(middle).concat(outer_cycle).observe();
            let settled = middle.iterative::<u64, _, _>(|inner| {
                let (handle, cycle) = inner.loop_variable::<Vec<u64>>(1);
                let (settled, more) = round.enter(inner).concat(cycle).observe().branch(|_, x| x % 4 != 0);
                more.map(|x| x + 1).exchange(|x| *x).observe().connect_loop(handle);
                settled.leave(middle)
            });
            let (back, out) = settled.observe().branch(|_, x| *x < 8);
            back.map(|x| x / 2).observe().connect_loop(outer_handle);
            out.leave(scope)
        });
        result.observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn two_cycles(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        scope.iterative::<u64, _, _>(|inner| {
            let (wide_handle, wide) = inner.feedback::<Vec<u64>>(Product::new(1, 0));
            let (deep_handle, deep) = inner.feedback::<Vec<u64>>(Product::new(0, 2));
            let round = inner.concatenate([stream.enter(inner), wide, deep]).observe();
            let (odd, even) = round.flat_map(halved).branch(|_, x| x % 2 == 0);
            odd.observe().connect_loop(wide_handle);
            even.exchange(|x| *x).observe().connect_loop(deep_handle);
        });
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

/// Nodes 0..40 in a ring with chords: from node x to x + 1 and 3 x; a record is a node that was reached.
fn search(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        scope.iterative::<u64, _, _>(|inner| {
            let (handle, cycle) = inner.loop_variable::<Vec<u64>>(1);
            let reached = stream.enter(inner).concat(cycle);
            let fresh = reached.unary_notify::<CapacityContainerBuilder<Vec<u64>>, _, _>(
                ByKey::new(|x: &u64| *x),
                "Fresh",
                None,
                {
                    let (mut known, mut waiting) = (std::collections::HashSet::new(), Vec::new());
                    move |input, output, asked| {
                        input.for_each(|time, data| {
                            waiting.extend(data.drain(..).map(|x| (*time.time(), x)));
                            asked.notify_at(time.retain(output.output_index()));
                        });
                        asked.for_each(|time, _, _| {
                            let mut session = output.session(&time);
                            waiting.retain(|(when, x)| {
                                if when == time.time() && known.insert(*x) {
                                    session.give(*x);
                                }
                                when != time.time()
                            });
                        });
                    }
                },
            );
            fresh.observe().flat_map(|x| [(x + 1) % 40, x * 3 % 40]).observe().connect_loop(handle);
        });
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn loop_notified(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let result = scope.iterative::<u64, _, _>(|inner| {
            let (handle, cycle) = inner.loop_variable::<Vec<u64>>(1);
            let counts = stream.enter(inner).concat(cycle).unary_notify::<CapacityContainerBuilder<Vec<u64>>, _, _>(
                ByKey::new(|x: &u64| *x),
                "Counts",
                None,
                move |input, output, asked| {
                    input.for_each(|time, _| asked.notify_at(time.retain(output.output_index())));
                    asked.for_each(|time, count, _| output.session(&time).give(count));
                },
            );
            let (back, out) = counts.observe().branch_when(|time| time.inner > 4);
            back.connect_loop(handle);
            out.leave(scope)
        });
        result.observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}
