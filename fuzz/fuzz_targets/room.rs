#![no_main]

// What yrs panics over is caught where it is decoded; the hook of the fuzzer would end the process before.
libfuzzer_sys::fuzz_target!(
    init: std::panic::set_hook(Box::new(|_| {})),
    |data: &[u8]| live_document::fuzzing::room(data)
);
