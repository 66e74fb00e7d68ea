//! The binary: hands the arguments to the library and exits with its code.

fn main() -> std::process::ExitCode {
    jupyter_mcp_gateway::cli::main()
}
