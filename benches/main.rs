//! Costs of the gateway: `overhead` per call beside a bare rmcp server, `rooms` beside a bare client of
//! Jupyter's shared documents, `executions` beside a bare line to a kernel, `fairness` to
//! one tenant beside another that floods, `identity` to know who calls, and `memory` of the binary.
//!
//! `cargo bench` runs all; `cargo bench -- modern` only what has the word in its name. `BENCH_ROUNDS`
//! sets how often each pair is measured. Absolute numbers belong to the machine and the moment: only
//! the ratios of one run say something about the gateway.

#![expect(
    clippy::expect_used,
    reason = "a measurement that cannot be made should say so and stop"
)]

mod bare;
mod executions;
mod fairness;
mod gateway;
mod identity;
mod memory;
mod overhead;
mod process;
mod rooms;
mod wire;

/// The JupyterLab of the tests.
#[path = "../tests/it/support/lab.rs"]
#[expect(dead_code, unreachable_pub, reason = "the tests use all of it, and from elsewhere")]
mod lab;

/// As the binary's, for both sides of a comparison.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    if rooms::is_bare_child() {
        return rooms::run_bare_child();
    }
    let filter: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let wanted = |name: &str| filter.is_empty() || filter.iter().any(|word| name.contains(word.as_str()));
    overhead::run(&wanted);
    rooms::run(&wanted);
    executions::run(&wanted);
    fairness::run(&wanted);
    identity::run(&wanted);
    if wanted("memory") {
        memory::run();
    }
}
