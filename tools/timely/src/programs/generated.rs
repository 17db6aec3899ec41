//! Programs drawn from their seed: random graphs of operators, loops and regions, the same on every worker.

use timely::dataflow::operators::vec::{Branch, Delay, Map};
use timely::dataflow::operators::{Concat, ConnectLoop, Enter, Exchange, Feedback, Input, Leave};
use timely::dataflow::{Scope, Stream};
use timely::order::Product;
use timely::worker::Worker;

use super::{drive, moves, program, Program};
use crate::capture::Observe;
use crate::random::Random;

pub const ALL: &[Program] = &[program("generated", "a random graph of operators, loops and regions", generated)];

type Streams<'scope> = Vec<Stream<'scope, u64, Vec<u64>>>;

fn generated(worker: &mut Worker, seed: u64) {
    let mut shape = Random::new(seed);
    let inputs = worker.dataflow::<u64, _, _>(|scope| {
        let (mut inputs, mut streams): (Vec<_>, Streams) = (Vec::new(), Vec::new());
        for _ in 0..1 + shape.below(3) {
            let (input, stream) = scope.new_input::<Vec<u64>>();
            inputs.push(input);
            streams.push(stream);
        }
        for _ in 0..4 + shape.below(8) {
            extend(scope, &mut streams, &mut shape);
        }
        for stream in streams {
            stream.observe();
        }
        inputs
    });
    let mut random = moves(worker, seed);
    drive(worker, inputs, &mut random);
}

/// Adds one operator, loop or region; a stream that is taken may stay for others to take.
fn extend<'scope>(scope: Scope<'scope, u64>, streams: &mut Streams<'scope>, shape: &mut Random) {
    let chosen = shape.index(streams.len());
    let stream = if shape.chance(40) { streams[chosen].clone() } else { streams.swap_remove(chosen) };
    let amount = shape.below(4);
    match shape.below(9) {
        0 => streams.push(stream.map(move |x| x + amount)),
        1 => streams.push(stream.exchange(move |x| x + amount)),
        2 => streams.push(stream.delay(move |x, time| time + (x + amount) % 5)),
        3 => {
            let (left, right) = stream.branch(move |_, x| x % 4 < amount);
            streams.extend([left, right]);
        }
        4 if !streams.is_empty() => {
            let other = shape.index(streams.len());
            let other = streams.swap_remove(other);
            streams.push(stream.concat(other));
        }
        5 => {
            let (handle, cycle) = scope.feedback::<Vec<u64>>(1 + amount);
            let (back, out) = stream.concat(cycle).observe().branch(|_, x| *x < 6);
            back.map(|x| x / 2).exchange(|x| *x).connect_loop(handle);
            streams.push(out);
        }
        6 => {
            let advance = Product::new(amount / 2, 1 + amount % 2);
            streams.push(scope.iterative::<u64, _, _>(|inner| {
                let (handle, cycle) = inner.feedback::<Vec<u64>>(advance);
                let (back, out) = stream.enter(inner).concat(cycle).observe().branch(|_, x| *x < 3);
                back.map(|x| x - 3).exchange(|x| *x).observe().connect_loop(handle);
                out.leave(scope)
            }));
        }
        7 => streams.push(scope.region(|inner| stream.enter(inner).observe().map(|x| x).leave(scope))),
        _ => streams.push(stream.observe()),
    }
}
