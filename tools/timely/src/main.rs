//! Writes, as JSON lines, what the progress tracking of real Timely Dataflow did.
//!
//! `clew-timely trackers FIRST COUNT` drives trackers on random graphs, one line per seed.
//! `clew-timely programs NAME WORKERS SEED` runs one program, one line per worker and scope.
//! `clew-timely list` names the programs.

mod capture;
mod maxplus;
mod poset;
mod programs;
mod random;
mod rounds;
mod scopes;
mod times;
mod topology;
mod trackers;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["trackers", first, count] => {
            let (first, count): (u64, u64) = (number(first), number(count));
            for seed in first..first + count {
                println!("{}", trackers::record(seed));
            }
        }
        ["programs", name, workers, seed] => {
            for line in programs::run(name, number(workers) as usize, number(seed)) {
                println!("{line}");
            }
        }
        ["list"] => {
            for program in programs::all() {
                println!("{}\t{}", program.name, program.about);
            }
        }
        _ => {
            eprintln!("usage: clew-timely list | trackers FIRST COUNT | programs NAME WORKERS SEED");
            std::process::exit(2);
        }
    }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("expected a number, found {word:?}"))
}
