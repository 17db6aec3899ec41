//! Programs about operators: branches and joins, broadcasts, empty ones, several outputs, summaries of one's own.

use std::collections::HashMap;

use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::{Exchange as ByKey, Pipeline};
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::operator::empty;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::vec::{Branch, BranchWhen, Broadcast, Map, Partition};
use timely::dataflow::operators::{Concat, Concatenate, Enter, Exchange, Input, Leave, Operator, Reclock};
use timely::dataflow::{Scope, Stream};
use timely::order::Product;
use timely::progress::frontier::Antichain;
use timely::progress::Timestamp;
use timely::worker::Worker;

use super::{drive, moves, program, Program};
use crate::capture::Observe;
use crate::maxplus::{MaxPlus, Tick};

pub const ALL: &[Program] = &[
    program("diamond", "a branch by value, one arm exchanged, joined again", diamond),
    program("branch-when", "a branch by time; each arm observed", branch_when),
    program("partition", "three parts, concatenated in another order", partition),
    program("broadcast", "every record goes to every worker", broadcast),
    program("hash-join", "a join of two inputs by key", hash_join),
    program("empty", "streams that never carry anything, and an output that nobody reads", empties),
    program("reclock", "records wait until a clock stream reaches their time", reclock),
    program("two-outputs", "an operator whose outputs depend on different inputs, with different delays", two_outputs),
    program("antichain-summaries", "an operator with two incomparable summaries on one path", antichain_summaries),
    program("max-plus", "times with summaries of our own that do not commute", max_plus),
];

fn diamond(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let (odd, even) = stream.branch(|_, x| x % 2 == 0);
        odd.exchange(|x| *x).observe().concat(even.map(|x| x / 2)).observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn branch_when(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let (early, late) = stream.branch_when(|time| *time > 4);
        early.observe();
        late.exchange(|x| *x).observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn partition(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let mut parts = stream.partition(3, |x: u64| (x % 3, x));
        parts.rotate_left(1);
        scope.concatenate(parts.into_iter().map(Observe::observe)).exchange(|x| *x).observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn broadcast(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        stream.clone().broadcast().observe().concat(stream).observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn hash_join(worker: &mut Worker, seed: u64) {
    let inputs = worker.dataflow::<u64, _, _>(|scope| {
        let (one, left) = scope.new_input::<Vec<u64>>();
        let (two, right) = scope.new_input::<Vec<u64>>();
        let (by_left, by_right) = (ByKey::new(|x: &u64| x % 5), ByKey::new(|x: &u64| x % 5));
        let joined = left.binary_frontier::<_, CapacityContainerBuilder<Vec<u64>>, _, _, _, _>(
            right,
            by_left,
            by_right,
            "Join",
            |_, _| {
                let mut sides = [HashMap::<u64, Vec<u64>>::new(), HashMap::new()];
                move |(left, _), (right, _), output| {
                    left.for_each(|time, data| {
                        let mut session = output.session(&time);
                        for x in data.drain(..) {
                            sides[0].entry(x % 5).or_default().push(x);
                            session.give_iterator(sides[1].get(&(x % 5)).into_iter().flatten().map(|y| x + y));
                        }
                    });
                    right.for_each(|time, data| {
                        let mut session = output.session(&time);
                        for y in data.drain(..) {
                            sides[1].entry(y % 5).or_default().push(y);
                            session.give_iterator(sides[0].get(&(y % 5)).into_iter().flatten().map(|x| x + y));
                        }
                    });
                }
            },
        );
        joined.observe();
        vec![one, two]
    });
    let mut random = moves(worker, seed);
    drive(worker, inputs, &mut random);
}

fn empties(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let nothing = empty::<_, Vec<u64>>(scope);
        nothing.clone().observe().concat(stream.clone()).observe();
        let _unread = nothing.map(|x| x + 1);
        stream.filter_all().observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

/// Swallows every record: what follows sees only frontiers.
trait FilterAll {
    fn filter_all(self) -> Self;
}

impl<T: Timestamp> FilterAll for Stream<'_, T, Vec<u64>> {
    fn filter_all(self) -> Self {
        self.flat_map(|_| None)
    }
}

fn reclock(worker: &mut Worker, seed: u64) {
    let inputs = worker.dataflow::<u64, _, _>(|scope| {
        let (one, stream) = scope.new_input::<Vec<u64>>();
        let (two, clock) = scope.new_input::<Vec<u64>>();
        stream.reclock(clock.map(|_| ())).observe();
        vec![one, two]
    });
    let mut random = moves(worker, seed);
    drive(worker, inputs, &mut random);
}

/// Output 0 follows both inputs, the second one three later; output 1 follows only the first one, one later.
fn two_outputs(worker: &mut Worker, seed: u64) {
    let inputs = worker.dataflow::<u64, _, _>(|scope| {
        let (one, left) = scope.new_input::<Vec<u64>>();
        let (two, right) = scope.new_input::<Vec<u64>>();
        let mut builder = OperatorBuilder::new("TwoOutputs".to_owned(), scope);
        let mut left = builder.new_input_connection(left, Pipeline, []);
        let mut right = builder.new_input_connection(right, ByKey::new(|x: &u64| *x), []);
        let (near, near_stream) =
            builder.new_output_connection::<Vec<u64>, _>([(0, Antichain::from_elem(0)), (1, Antichain::from_elem(3))]);
        let (far, far_stream) = builder.new_output_connection::<Vec<u64>, _>([(0, Antichain::from_elem(1))]);
        let (mut near, mut far) = (OutputBuilder::from(near), OutputBuilder::from(far));
        builder.build(move |_| {
            move |_| {
                let (mut near, mut far) = (near.activate(), far.activate());
                left.for_each(|time, data: &mut Vec<u64>| {
                    far.session(&time.delayed(&(time.time() + 1), 1)).give_iterator(data.iter().copied());
                    near.session(&time.delayed(time.time(), 0)).give_iterator(data.drain(..));
                });
                right.for_each(|time, data: &mut Vec<u64>| {
                    near.session(&time.delayed(&(time.time() + 3), 0)).give_iterator(data.drain(..));
                });
            }
        });
        near_stream.observe();
        far_stream.observe();
        vec![one, two]
    });
    let mut random = moves(worker, seed);
    drive(worker, inputs, &mut random);
}

fn antichain_summaries(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        scope.iterative::<u64, _, _>(|inner| {
            let ways = [Product::new(1, 0), Product::new(0, 2)];
            let entered = stream.enter(inner);
            later(inner, later(inner, entered, ways).observe(), ways).observe().leave(scope)
        });
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

/// Each record leaves one of two ways later: even ones the first, odd ones the second.
fn later<'scope>(
    scope: Scope<'scope, Product<u64, u64>>,
    stream: Stream<'scope, Product<u64, u64>, Vec<u64>>,
    ways: [Product<u64, u64>; 2],
) -> Stream<'scope, Product<u64, u64>, Vec<u64>> {
    let mut builder = OperatorBuilder::new("Later".to_owned(), scope);
    let mut input = builder.new_input_connection(stream, Pipeline, []);
    let (output, result) =
        builder.new_output_connection::<Vec<u64>, _>([(0, ways.into_iter().collect::<Antichain<_>>())]);
    let mut output = OutputBuilder::from(output);
    builder.build(move |_| {
        move |_| {
            let mut output = output.activate();
            input.for_each(|time, data: &mut Vec<u64>| {
                for x in data.drain(..) {
                    let way = ways[(x % 2) as usize];
                    let moved = Product::new(time.time().outer + way.outer, time.time().inner + way.inner);
                    output.session(&time.delayed(&moved, 0)).give(x);
                }
            });
        }
    });
    result
}

fn max_plus(worker: &mut Worker, seed: u64) {
    use timely::dataflow::operators::{ConnectLoop, Feedback};
    let mut input = worker.dataflow::<Tick, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let (handle, cycle) = scope.feedback::<Vec<u64>>(MaxPlus::new(2, 6));
        let together = stream.concat(cycle).observe();
        together.flat_map(|x| if x > 1 { Some(x / 2) } else { None }).observe().connect_loop(handle);
        input
    });
    let mut random = moves(worker, seed);
    for _ in 0..5 {
        input.send(random.below(30));
        let next = Tick(input.time().0 + 1 + random.below(3));
        input.advance_to(next);
        for _ in 0..random.below(5) {
            worker.step();
        }
    }
}
