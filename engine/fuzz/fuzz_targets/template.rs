//! Templates: any text compiles or is refused with a place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prony_engine::properties;

fuzz_target!(|data: &str| {
    properties::template(data);
});
