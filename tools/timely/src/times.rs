//! Times and path summaries as the vector files write them: numbers, and lists of two for products.

use serde_json::{json, Value};
use timely::order::Product;
use timely::progress::Timestamp;

use crate::random::Random;

/// A timestamp of Timely that the vector files have a domain for.
pub trait Written: Timestamp {
    /// The domain as vectors/README.md names it.
    fn domain() -> Value;
    fn time(&self) -> Value;
    fn summary(summary: &Self::Summary) -> Value;
    /// Does a path with this summary advance every time? Only such paths may close a cycle.
    fn advances(summary: &Self::Summary) -> bool;
    fn random_time(random: &mut Random, bound: u64) -> Self;
    fn random_summary(random: &mut Random, bound: u64) -> Self::Summary;
}

macro_rules! written_integers {
    ($($integer:ty),*) => ($(
        impl Written for $integer {
            fn domain() -> Value { json!("int") }
            fn time(&self) -> Value { json!(self) }
            fn summary(summary: &Self) -> Value { json!(summary) }
            fn advances(summary: &Self) -> bool { *summary > 0 }
            fn random_time(random: &mut Random, bound: u64) -> Self { random.below(bound) as $integer }
            fn random_summary(random: &mut Random, bound: u64) -> Self { random.below(bound) as $integer }
        }
    )*)
}

written_integers!(u32, u64, usize);

impl<Outer: Written, Inner: Written> Written for Product<Outer, Inner> {
    fn domain() -> Value {
        json!(["prod", Outer::domain(), Inner::domain()])
    }
    fn time(&self) -> Value {
        json!([self.outer.time(), self.inner.time()])
    }
    fn summary(summary: &Self::Summary) -> Value {
        json!([Outer::summary(&summary.outer), Inner::summary(&summary.inner)])
    }
    fn advances(summary: &Self::Summary) -> bool {
        Outer::advances(&summary.outer) || Inner::advances(&summary.inner)
    }
    fn random_time(random: &mut Random, bound: u64) -> Self {
        Product::new(Outer::random_time(random, bound), Inner::random_time(random, bound))
    }
    fn random_summary(random: &mut Random, bound: u64) -> Self::Summary {
        Product::new(Outer::random_summary(random, bound), Inner::random_summary(random, bound))
    }
}
