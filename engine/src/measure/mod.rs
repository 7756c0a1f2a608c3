//! What happened, as counters and histograms: recorded per thread, cut into segments at agreed
//! instants, added up elsewhere. It knows no sockets, HTTP, formats or clocks.

/// Declares figures that are added up field by field, or by the rule behind `=`.
macro_rules! sums {
    (@add $mine:expr, $theirs:expr) => { $crate::measure::Sum::add(&mut $mine, &$theirs) };
    (@add $mine:expr, $theirs:expr, $rule:expr) => { $rule(&mut $mine, &$theirs) };
    ($(#[$about:meta])* $name:ident {
        $($(#[$doc:meta])* $field:ident: $kind:ty $(= $rule:expr)?,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default)]
        pub struct $name { $($(#[$doc])* pub $field: $kind,)* }

        impl $crate::measure::Sum for $name {
            fn add(&mut self, other: &Self) {
                $(sums!(@add self.$field, other.$field $(, $rule)?);)*
            }
        }
    };
}

pub mod addresses;
pub mod bodies;
pub mod connections;
pub mod counters;
pub mod edges;
pub mod gaps;
pub mod histogram;
pub mod http2;
pub mod interval;
pub mod opened;
pub mod rates;
pub mod receive_delay;
pub mod recorder;
pub mod responses;
pub mod running;
pub mod schedule;
pub mod scheduled;
pub mod segment;
pub mod slowest;
pub mod steps;
pub mod uniformity;
pub mod urls;
pub mod user_time;

use std::collections::BTreeMap;

/// Figures of two spans of time, or of two threads, become one.
pub trait Sum {
    fn add(&mut self, other: &Self);
}

macro_rules! sum_of_numbers {
    ($($kind:ty),*) => { $(impl Sum for $kind {
        fn add(&mut self, other: &Self) {
            *self += other;
        }
    })* };
}

sum_of_numbers!(u64, u128, i128);

impl<K: Ord + Clone> Sum for BTreeMap<K, u64> {
    fn add(&mut self, other: &Self) {
        for (key, count) in other {
            *self.entry(key.clone()).or_default() += count;
        }
    }
}

/// Place by place; those that one of them lacks count as nothing.
impl<T: Sum + Default> Sum for Vec<T> {
    fn add(&mut self, other: &Self) {
        if self.len() < other.len() {
            self.resize_with(other.len(), T::default);
        }
        for (mine, theirs) in self.iter_mut().zip(other) {
            mine.add(theirs);
        }
    }
}

impl<T: Sum + Default> Sum for Option<Box<T>> {
    fn add(&mut self, other: &Self) {
        if let Some(theirs) = other {
            self.get_or_insert_default().add(theirs);
        }
    }
}
