//! What the gateway costs: `overhead` per call beside a bare rmcp server, and `memory` of the binary.
//!
//! `cargo bench` runs both; `cargo bench -- modern` only what has the word in its name. `BENCH_ROUNDS`
//! sets how often each pair is measured. Absolute numbers belong to the machine and the moment: only
//! the ratios of one run say something about the gateway.

#![expect(
    clippy::expect_used,
    reason = "a measurement that cannot be made should say so and stop"
)]

mod bare;
mod memory;
mod overhead;
mod wire;

/// As the binary's, for both sides of a comparison.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    let filter: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let wanted = |name: &str| filter.is_empty() || filter.iter().any(|word| name.contains(word.as_str()));
    overhead::run(&wanted);
    if wanted("memory") {
        memory::run();
    }
}
