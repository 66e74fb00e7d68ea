#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jupyter_mcp_gateway::fuzzing::oauth(data));
