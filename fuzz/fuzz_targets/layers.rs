//! See `portcullis_fuzz::layers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz::layers(data));
