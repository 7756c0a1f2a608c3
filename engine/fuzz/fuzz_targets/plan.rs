//! Plans: any line is read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prony_engine::properties;

fuzz_target!(|data: &str| {
    properties::plan(data);
});
