//! A JupyterLab of the gateway's own: a private Python environment made on
//! first use, and one server process that never outlives the gateway. Knows
//! nothing of MCP, of the gateway's configuration or of other Jupyter servers.
//!
//! Everything here blocks. Call it in `spawn_blocking`, or from a thread.

mod child;
mod command;
mod output;
mod pip;
mod process;
mod python;
mod tree;
mod venv;

use sha2::{Digest, Sha256};

pub use self::process::{Lab, LabError, LabLog, LabOptions};
pub(super) use self::venv::state_dir;
pub use self::venv::{Venv, VenvError, VenvHost, VenvSpec};

/// The folder beside the environments for what is not theirs.
const STATE: &str = "state";

/// Enough of a SHA-256 to tell directories apart, short enough to read.
fn fingerprint(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    hex(&hash.finalize()[..6])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
