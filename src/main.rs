//! The binary: hands the arguments to the library and exits with its code.

/// Gives memory back to the system after sessions have closed, which glibc's does not, and takes less
/// time to serve it.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    jupyter_mcp_gateway::cli::main()
}
