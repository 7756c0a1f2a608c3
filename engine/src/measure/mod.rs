//! What happened, as counters and histograms: recorded per thread, cut into segments at agreed
//! instants, added up elsewhere. Nothing here knows of sockets, HTTP or output formats, and no
//! clock is read here: times come in.

/// Adds up the fields of these names.
macro_rules! add_fields {
    ($to:expr, $from:expr; $($field:ident),* $(,)?) => { $($to.$field += $from.$field;)* };
}

pub mod addresses;
pub mod bodies;
pub mod counters;
pub mod edges;
pub mod gaps;
pub mod histogram;
pub mod http2;
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
pub mod user_time;
