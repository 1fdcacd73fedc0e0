//! See `portcullis_fuzz::rule_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz::rule_file(data));
