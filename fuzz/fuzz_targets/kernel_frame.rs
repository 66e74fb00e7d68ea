#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jupyter_client::fuzzing::kernel_frame(data));
