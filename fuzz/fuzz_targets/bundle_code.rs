//! See `portcullis_fuzz::bundle_code`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz::bundle_code(data));
