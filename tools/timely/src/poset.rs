//! A timestamp of our own with few values and no chain: a finite partial order, with tables for summaries.

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use timely::order::PartialOrder;
use timely::progress::timestamp::PathSummary;
use timely::progress::Timestamp;

use crate::random::Random;
use crate::times::Written;

/// The elements, in an order that agrees with "at most": Timely works on the least by this order first.
const NAMES: [&str; 6] = ["start", "left", "right", "both", "other", "end"];
/// Which element directly precedes which.
const PAIRS: [(u8, u8); 7] = [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5)];

#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Stage(u8);

/// The image of every element; monotone, and never below the element itself.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
pub struct Table([u8; NAMES.len()]);

impl PartialOrder for Stage {
    fn less_equal(&self, other: &Self) -> bool {
        self == other || PAIRS.iter().any(|(low, high)| *low == self.0 && Stage(*high).less_equal(other))
    }
}

impl PartialOrder for Table {
    fn less_equal(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(one, two)| Stage(*one).less_equal(&Stage(*two)))
    }
}

impl Default for Table {
    fn default() -> Self {
        Table(std::array::from_fn(|element| element as u8))
    }
}

impl PathSummary<Stage> for Table {
    fn results_in(&self, time: &Stage) -> Option<Stage> {
        Some(Stage(self.0[time.0 as usize]))
    }
    fn followed_by(&self, next: &Self) -> Option<Self> {
        Some(Table(self.0.map(|image| next.0[image as usize])))
    }
}

impl Timestamp for Stage {
    type Summary = Table;
    fn minimum() -> Self {
        Stage(0)
    }
}

impl Written for Stage {
    fn domain() -> Value {
        json!(["poset", NAMES, PAIRS.map(|(low, high)| [NAMES[low as usize], NAMES[high as usize]])])
    }
    fn time(&self) -> Value {
        json!(NAMES[self.0 as usize])
    }
    fn summary(summary: &Table) -> Value {
        json!(summary.0.map(|image| NAMES[image as usize]))
    }
    /// There is a last element, and no table can move it.
    fn advances(_: &Table) -> bool {
        false
    }
    fn random_time(random: &mut Random, _: u64) -> Self {
        Stage(random.index(NAMES.len()) as u8)
    }
    fn random_summary(random: &mut Random, _: u64) -> Table {
        loop {
            let drawn: [u8; NAMES.len()] = std::array::from_fn(|element| {
                let above = (0..NAMES.len() as u8).filter(|image| Stage(element as u8).less_equal(&Stage(*image)));
                let above: Vec<u8> = above.collect();
                above[random.index(above.len())]
            });
            let image = |element: u8| Stage(drawn[element as usize]);
            if PAIRS.iter().all(|(low, high)| image(*low).less_equal(&image(*high))) {
                return Table(drawn);
            }
        }
    }
}
