//! Program mode: dataflow programs that real Timely workers run while their logs are captured.

mod capabilities;
mod generated;
mod inputs;
mod loops;
mod operators;
mod scoped;

use std::time::Duration;

use serde_json::json;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::InputHandle;
use timely::order::Product;
use timely::worker::{ProgressMode, Worker};
use timely::{CommunicationConfig, Config, WorkerConfig};

use crate::capture::Capture;
use crate::maxplus::Tick;
use crate::random::Random;

pub struct Program {
    pub name: &'static str,
    pub about: &'static str,
    run: fn(&mut Worker, u64),
}

const fn program(name: &'static str, about: &'static str, run: fn(&mut Worker, u64)) -> Program {
    Program { name, about, run }
}

pub fn all() -> impl Iterator<Item = &'static Program> {
    [inputs::ALL, operators::ALL, capabilities::ALL, loops::ALL, scoped::ALL, generated::ALL].into_iter().flatten()
}

/// Runs a program on so many worker threads; the seed decides how its inputs move and when progress is broadcast.
pub fn run(name: &str, workers: usize, seed: u64) -> Vec<String> {
    let program = all().find(|program| program.name == name);
    let program = program.unwrap_or_else(|| panic!("no program is called {name:?}: `clew-timely list` names them"));
    let mode = if seed & 1 == 0 { ProgressMode::Demand } else { ProgressMode::Eager };
    let communication = match workers {
        1 => CommunicationConfig::Thread,
        _ => CommunicationConfig::Process(workers),
    };
    let config = Config { communication, worker: WorkerConfig::default().progress_mode(mode) };
    let guards = timely::execute(config, move |worker| {
        let capture = capture_all(worker);
        (program.run)(worker, seed);
        while worker.has_dataflows() {
            worker.step_or_park(Some(Duration::from_millis(1)));
        }
        capture.records(worker)
    });
    let mut lines = Vec::new();
    for (worker, result) in guards.expect("Timely starts its workers").join().into_iter().enumerate() {
        for mut record in result.expect("the worker ran to its end") {
            record["name"] = json!(program.name);
            record["workers"] = json!(workers);
            record["worker"] = json!(worker);
            record["seed"] = json!(seed);
            lines.push(record.to_string());
        }
    }
    lines
}

fn capture_all(worker: &Worker) -> Capture {
    Capture::new(worker)
        .with::<u64>(worker)
        .with::<Product<u64, u64>>(worker)
        .with::<Product<u64, u32>>(worker)
        .with::<Product<Product<u64, u64>, u64>>(worker)
        .with::<Tick>(worker)
        .with::<Product<Tick, u64>>(worker)
}

pub type Numbers = InputHandle<u64, CapacityContainerBuilder<Vec<u64>>>;

/// How a worker moves its inputs: each worker of a run in its own way.
pub fn moves(worker: &Worker, seed: u64) -> Random {
    Random::new(seed.wrapping_mul(31).wrapping_add(worker.index() as u64 + 1))
}

/// Sends, advances and closes the inputs in a random order, with steps of the worker in between.
pub fn drive(worker: &mut Worker, inputs: Vec<Numbers>, random: &mut Random) {
    let mut open: Vec<(Numbers, u64)> = inputs.into_iter().map(|input| (input, 3 + random.below(4))).collect();
    while !open.is_empty() {
        let chosen = random.index(open.len());
        let (input, left) = &mut open[chosen];
        for _ in 0..random.below(3) {
            input.send(random.below(40));
        }
        if random.chance(60) {
            let next = input.time() + 1 + random.below(3);
            input.advance_to(next);
            *left -= 1;
        }
        if *left == 0 {
            open.swap_remove(chosen).0.close();
        }
        for _ in 0..random.below(4) {
            worker.step();
        }
    }
}
