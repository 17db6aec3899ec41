//! Listens to the logs of one Timely worker: graph, summaries, count changes, rounds, frontiers seen by operators.

use std::any::type_name;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Operator;
use timely::dataflow::Stream;
use timely::logging::{OperatesSummaryEvent, TimelyEvent};
use timely::progress::reachability::logging::TrackerEvent;
use timely::progress::Timestamp;
use timely::worker::Worker;
use timely::Container;

use crate::scopes;
use crate::times::Written;

/// What happened, with Timely's own clock: all logs of a worker share it, so they can be put in one order.
pub type Log<E> = Vec<(Duration, E)>;
type Shared<E> = Rc<RefCell<Log<E>>>;
type Builder<E> = CapacityContainerBuilder<Log<E>>;

/// An operator, by its address, was run and its first input had this frontier.
#[derive(Clone, Debug)]
pub struct Seen<T> {
    pub address: Vec<usize>,
    pub frontier: Vec<T>,
}

/// The logs that depend on the kind of time.
#[derive(Clone)]
pub struct Typed<T: Timestamp> {
    pub summaries: Log<OperatesSummaryEvent<T::Summary>>,
    pub changes: Log<TrackerEvent<T>>,
    pub seen: Log<Seen<T>>,
}

type Finish = Box<dyn FnOnce(&Log<TimelyEvent>) -> Vec<Value>>;

/// The open logs of one worker.
pub struct Capture {
    events: Shared<TimelyEvent>,
    finish: Vec<Finish>,
}

impl Capture {
    pub fn new(worker: &Worker) -> Self {
        let events = Shared::default();
        listen::<TimelyEvent>(worker, "timely", &events);
        Capture { events, finish: Vec::new() }
    }

    /// Also listens to the scopes whose times are of type `T`; to be called before the dataflow is built.
    pub fn with<T: Written>(mut self, worker: &Worker) -> Self {
        let (summaries, changes, seen) = (Shared::default(), Shared::default(), Shared::default());
        let time = type_name::<T>();
        listen::<OperatesSummaryEvent<T::Summary>>(worker, &format!("timely/summary/{time}"), &summaries);
        listen::<TrackerEvent<T>>(worker, &format!("timely/reachability/{time}"), &changes);
        listen::<Seen<T>>(worker, &format!("clew/seen/{time}"), &seen);
        self.finish.push(Box::new(move |events| {
            scopes::records::<T>(
                events,
                &Typed { summaries: summaries.take(), changes: changes.take(), seen: seen.take() },
            )
        }));
        self
    }

    /// One record per scope; the dataflows must be complete.
    pub fn records(self, worker: &Worker) -> Vec<Value> {
        assert!(!worker.has_dataflows(), "the records of a program are made when its dataflows are complete");
        worker.log_register().expect("this worker has a clock").flush();
        let events = self.events.take();
        self.finish.into_iter().flat_map(|finish| finish(&events)).collect()
    }
}

fn listen<E: Clone + 'static>(worker: &Worker, name: &str, log: &Shared<E>) {
    let log = Rc::clone(log);
    let mut register = worker.log_register().expect("this worker has a clock");
    register.insert::<Builder<E>, _>(name, move |_, batch| {
        if let Some(batch) = batch {
            log.borrow_mut().append(batch);
        }
    });
}

/// Passes a stream on unchanged and writes down, whenever it is run, the frontier that Timely presents to it.
pub trait Observe {
    fn observe(self) -> Self;
}

impl<'scope, T: Timestamp, C: Container> Observe for Stream<'scope, T, C> {
    fn observe(self) -> Self {
        let log = self.scope().worker().logger_for::<Builder<Seen<T>>>(&format!("clew/seen/{}", type_name::<T>()));
        let log = log.unwrap_or_else(|| panic!("no log for the times {}: add it to capture_all", type_name::<T>()));
        self.unary_frontier::<CapacityContainerBuilder<C>, _, _, _>(Pipeline, "Observe", move |_, info| {
            let address = info.address.to_vec();
            move |(input, frontier), output| {
                log.log(Seen { address: address.clone(), frontier: frontier.frontier().to_vec() });
                input.for_each(|capability, data| output.session(&capability).give_container(data));
            }
        })
    }
}
