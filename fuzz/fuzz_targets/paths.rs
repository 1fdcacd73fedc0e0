//! See `portcullis_fuzz::paths`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz::paths(data));
