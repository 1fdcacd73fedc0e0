//! See `portcullis_fuzz::shell_syntax`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz::shell_syntax(data));
