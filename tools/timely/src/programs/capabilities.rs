//! Programs about capabilities: held back, downgraded, kept in sets, used for delayed notifications.

use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::{Exchange as ByKey, Pipeline};
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::vec::Delay;
use timely::dataflow::operators::{Capability, CapabilitySet, Concat, Exchange, Input, Operator};
use timely::progress::frontier::AntichainRef;
use timely::worker::Worker;

use super::{drive, moves, program, Program};
use crate::capture::Observe;

type Output = CapacityContainerBuilder<Vec<u64>>;

pub const ALL: &[Program] = &[
    program("held-back", "an operator holds its first capability until its input is five ahead", held_back),
    program("downgraded", "an operator keeps one capability and downgrades it behind its input", downgraded),
    program("capability-set", "a set of capabilities that follows the frontier", capability_set),
    program("source", "a source that downgrades its own capability and stops", generator),
    program("two-sources", "sources with steps of different size, concatenated", two_sources),
    program("notified", "records leave when their time is complete", notified),
    program("notified-later", "notifications for later times than the records that ask for them", notified_later),
    program("notified-both", "notifications when two inputs are both complete", notified_both),
    program("delayed", "each record is delayed by its own value", delayed),
    program("delayed-batch", "times are rounded up to the next multiple of four", delayed_batch),
];

fn held_back(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let held = stream.unary_frontier::<Output, _, _, _>(Pipeline, "HeldBack", |first, _| {
            let mut first = Some(first);
            move |(input, frontier), output| {
                input.for_each(|time, data| output.session(&time).give_container(data));
                if !frontier.less_than(&5) {
                    first = None;
                }
                if let Some(capability) = &first {
                    output.session(capability).give(1);
                }
            }
        });
        held.observe().exchange(|x| *x).observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn downgraded(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let kept = stream.unary_frontier::<Output, _, _, _>(ByKey::new(|x: &u64| *x), "Downgraded", |first, _| {
            let mut kept: Option<Capability<u64>> = Some(first);
            move |(input, frontier), output| {
                input.for_each(|time, data| output.session(&time).give_container(data));
                match (frontier.frontier().first(), &mut kept) {
                    (Some(time), Some(capability)) => {
                        capability.downgrade(&(*time).saturating_sub(1).max(*capability.time()))
                    }
                    _ => kept = None,
                }
            }
        });
        kept.observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn capability_set(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let followed = stream.unary_frontier::<Output, _, _, _>(Pipeline, "Follows", |first, _| {
            let mut held = CapabilitySet::from_elem(first);
            let mut stash: Vec<(u64, u64)> = Vec::new();
            move |(input, frontier), output| {
                input.for_each(|time, data| stash.extend(data.drain(..).map(|x| (*time.time(), x))));
                stash.sort_unstable();
                let complete = stash.partition_point(|(time, _)| !frontier.less_equal(time));
                for (time, x) in stash.drain(..complete) {
                    output.session(&held.delayed(&time)).give(x);
                }
                let behind: Vec<u64> = stash.iter().map(|(time, _)| *time).min().into_iter().collect();
                let frontier = frontier.frontier();
                let next = behind.into_iter().chain(frontier.iter().copied()).min();
                held.downgrade(AntichainRef::new(next.as_slice()).iter());
            }
        });
        followed.observe().exchange(|x| *x).observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn counting(
    scope: timely::dataflow::Scope<'_, u64>,
    step: u64,
    end: u64,
) -> timely::dataflow::Stream<'_, u64, Vec<u64>> {
    source::<_, Output, _, _>(scope, "Counting", move |first, info| {
        let activator = scope.activator_for(info.address);
        let mut held = Some(first);
        move |output| {
            if let Some(capability) = &mut held {
                let now = *capability.time();
                output.session(&capability).give(now);
                if now + step > end {
                    held = None;
                } else {
                    capability.downgrade(&(now + step));
                    activator.activate();
                }
            }
        }
    })
}

fn generator(worker: &mut Worker, _seed: u64) {
    worker.dataflow::<u64, _, _>(|scope| {
        counting(scope, 1, 8).observe().exchange(|x| *x).observe();
    });
}

fn two_sources(worker: &mut Worker, _seed: u64) {
    worker.dataflow::<u64, _, _>(|scope| {
        let (slow, quick) = (counting(scope, 1, 9), counting(scope, 4, 30));
        slow.exchange(|x| *x).observe().concat(quick.observe()).observe();
    });
}

fn notified(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let sums =
            stream.unary_notify::<Output, _, _>(ByKey::new(|x: &u64| *x), "Sums", None, move |input, output, asked| {
                input.for_each(|time, _data| asked.notify_at(time.retain(output.output_index())));
                asked.for_each(|time, count, _| output.session(&time).give(count));
            });
        sums.observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn notified_later(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        let late = stream.unary_notify::<Output, _, _>(Pipeline, "Later", Some(2), move |input, output, asked| {
            input.for_each(|time, data| {
                for x in data.drain(..) {
                    asked.notify_at(time.delayed(&(time.time() + x % 7), output.output_index()));
                }
            });
            asked.for_each(|time, count, asked| {
                output.session(&time).give(count);
                if *time.time() % 3 == 0 {
                    asked.notify_at(time.delayed(&(time.time() + 1)));
                }
            });
        });
        late.observe().exchange(|x| *x).observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn notified_both(worker: &mut Worker, seed: u64) {
    let inputs = worker.dataflow::<u64, _, _>(|scope| {
        let (one, left) = scope.new_input::<Vec<u64>>();
        let (two, right) = scope.new_input::<Vec<u64>>();
        let both = left.binary_notify::<_, Output, _, _, _>(
            right,
            Pipeline,
            ByKey::new(|x: &u64| *x),
            "Both",
            None,
            move |left, right, output, asked| {
                left.for_each(|time, _| asked.notify_at(time.retain(output.output_index())));
                right.for_each(|time, _| asked.notify_at(time.retain(output.output_index())));
                asked.for_each(|time, count, _| output.session(&time).give(count));
            },
        );
        both.observe();
        vec![one, two]
    });
    let mut random = moves(worker, seed);
    drive(worker, inputs, &mut random);
}

fn delayed(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        stream.delay(|x, time| time + x % 6).observe().exchange(|x| *x).observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}

fn delayed_batch(worker: &mut Worker, seed: u64) {
    let input = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        stream.exchange(|x| *x).delay_batch(|time| time.div_ceil(4) * 4).observe();
        input
    });
    let mut random = moves(worker, seed);
    drive(worker, vec![input], &mut random);
}
