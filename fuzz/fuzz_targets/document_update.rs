#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| live_document::fuzzing::update(data));
