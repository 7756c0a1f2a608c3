//! Header blocks of HTTP/2: no bytes panic or unfold beyond their limit, and what was read can be
//! written again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| prony_h2::properties::header_block(data));
