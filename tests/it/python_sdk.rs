//! The official Python client against the gateway, in both eras. What the session does and asserts
//! is in `python/session.py`; what must stand on disk afterwards is asserted here.

use tokio::process::Command;

use crate::support::{Gateway, TOKEN, eventually, lab, lab::venv};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/python/session.py");

#[tokio::test]
async fn a_session_in_the_legacy_era() {
    session("legacy").await;
}

#[tokio::test]
async fn a_session_in_the_modern_era() {
    session("auto").await;
}

async fn session(mode: &str) {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let output = Command::new(venv().python())
        .arg(SCRIPT)
        .args([mode, &gateway.url("/mcp"), TOKEN, &folder.name, lab().url()])
        // The same whatever the machine's locale is.
        .env("PYTHONUTF8", "1")
        .kill_on_drop(true)
        .output()
        .await
        .expect("python runs");
    let (said, failed) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}{failed}");
    assert!(said.contains("tools called over"), "{said}");
    // Jupyter empties a file before it writes it anew.
    eventually("the text is on disk", async || {
        (folder.read("notes ü.md") == "# second\n\nmore é\n").then_some(())
    })
    .await;
    assert!(folder.has("Größe und 图/a b é🎉.ipynb"));
    assert!(!folder.has("copy ü.md") && !folder.has("moved ü.md"));
}
