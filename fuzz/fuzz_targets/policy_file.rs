//! See `portcullis_fuzz::policy_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz::policy_file(data));
