//! See `portcullis_fuzz::rules_import`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz::rules_import(data));
