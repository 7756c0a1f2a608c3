//! Frames of a client of HTTP/2: no bytes panic, and no way to cut them makes a server hear others.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prony_h2::properties;

/// The client's SETTINGS, without which nothing more is read.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

fuzz_target!(|data: &[u8]| {
    let (first, rest) = data.split_first().unwrap_or((&0, &[]));
    let cuts = vec![usize::from(*first) + 1; rest.len() / (usize::from(*first) + 1) + 1];
    properties::server_reads(&[SETTINGS, rest].concat(), &cuts);
});
