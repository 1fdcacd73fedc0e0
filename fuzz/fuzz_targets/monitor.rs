//! See `portcullis_fuzz::monitor`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz::monitor(data));
