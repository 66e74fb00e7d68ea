//! The binary as a person runs it.

use std::process::{Command, Output};

use super::deadline::note_wait;

pub fn gateway_command() -> Command {
    note_wait("the gateway's command");
    let mut command = Command::new(env!("CARGO_BIN_EXE_jupyter-mcp-gateway"));
    // A developer's own variables must not leak into what is tested.
    for (name, _) in std::env::vars() {
        if ["JMG__", "JUPYTER", "OTEL_"].iter().any(|own| name.starts_with(own)) {
            command.env_remove(name);
        }
    }
    command
}

pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

pub fn run(arguments: &[&str]) -> Ended {
    ended(gateway_command().args(arguments).output().expect("the binary runs"))
}

/// The same beside gateways of the test, which go on meanwhile: one that is stopped in the middle of a transaction would keep
/// the database to itself.
pub async fn run_beside(arguments: &[&str]) -> Ended {
    let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
    let ran = tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run(&arguments)
    });
    ran.await.expect("the command")
}

pub fn ended(output: Output) -> Ended {
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
