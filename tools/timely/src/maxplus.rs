//! A timestamp of our own with summaries that do not commute: t becomes max(t + plus, floor).

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use timely::order::{PartialOrder, TotalOrder};
use timely::progress::timestamp::{PathSummary, Refines};
use timely::progress::Timestamp;

use crate::random::Random;
use crate::times::Written;

#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Tick(pub u64);

/// `floor` is never below `plus`, the image of time 0: so equal functions are equal values.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
pub struct MaxPlus {
    plus: u64,
    floor: u64,
}

impl MaxPlus {
    pub fn new(plus: u64, floor: u64) -> Self {
        MaxPlus { plus, floor: floor.max(plus) }
    }
}

impl PartialOrder for Tick {
    fn less_equal(&self, other: &Self) -> bool {
        self.0 <= other.0
    }
}

impl TotalOrder for Tick {}

/// Pointwise: for large times `plus` decides, for time 0 `floor`.
impl PartialOrder for MaxPlus {
    fn less_equal(&self, other: &Self) -> bool {
        self.plus <= other.plus && self.floor <= other.floor
    }
}

impl PathSummary<Tick> for MaxPlus {
    fn results_in(&self, time: &Tick) -> Option<Tick> {
        time.0.checked_add(self.plus).map(|moved| Tick(moved.max(self.floor)))
    }
    fn followed_by(&self, next: &Self) -> Option<Self> {
        let floor = self.floor.checked_add(next.plus)?.max(next.floor);
        Some(MaxPlus::new(self.plus.checked_add(next.plus)?, floor))
    }
}

impl Timestamp for Tick {
    type Summary = MaxPlus;
    fn minimum() -> Self {
        Tick(0)
    }
}

impl Refines<()> for Tick {
    fn to_inner(_: ()) -> Self {
        Tick(0)
    }
    fn to_outer(self) {}
    fn summarize(_: MaxPlus) {}
}

impl Written for Tick {
    fn domain() -> Value {
        json!("maxplus")
    }
    fn time(&self) -> Value {
        json!(self.0)
    }
    fn summary(summary: &MaxPlus) -> Value {
        json!([summary.plus, summary.floor])
    }
    fn advances(summary: &MaxPlus) -> bool {
        summary.plus > 0
    }
    fn random_time(random: &mut Random, bound: u64) -> Self {
        Tick(random.below(bound))
    }
    fn random_summary(random: &mut Random, bound: u64) -> MaxPlus {
        MaxPlus::new(random.below(bound), random.below(2 * bound))
    }
}
