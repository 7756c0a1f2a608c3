//! Chunked bodies: no bytes panic, and no way to cut them makes another body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prony_engine::properties;

fuzz_target!(|data: &[u8]| {
    let (cuts, message) = properties::with_cuts(data);
    properties::chunked(message, &cuts);
});
