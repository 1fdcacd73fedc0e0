//! See `portcullis_fuzz::validators`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz::validators(data));
