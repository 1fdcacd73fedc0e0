//! See `portcullis_fuzz::text_views`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz::text_views(data));
