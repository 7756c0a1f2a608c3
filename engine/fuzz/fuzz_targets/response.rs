//! Responses: no bytes panic, and no way to cut them makes another response.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prony_engine::properties;

fuzz_target!(|data: &[u8]| {
    let (cuts, message) = properties::with_cuts(data);
    let head_request = data.first().is_some_and(|first| first & 0x80 != 0);
    properties::response(message, &cuts, head_request);
});
