//! See `portcullis_fuzz::tool_rules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz::tool_rules(data));
