//! The official conformance suite against the production transport stack, with the fixtures it asks for.

#[expect(
    clippy::unused_self,
    reason = "tools are methods, whether they need the handler or not"
)]
mod handler;

use std::{fs, path::Path};

use axum::{Router, extract::Request, middleware::map_request};
use http::{HeaderValue, header::AUTHORIZATION};
use serde_json::Value;

use self::handler::{ConformanceHandler, SharedState};
use crate::support::{Gateway, TOKEN, node::node};

const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";

#[tokio::test]
async fn full_marks_for_2025_11_25() {
    full_marks("2025-11-25", 33).await;
}

#[tokio::test]
async fn full_marks_for_2026_07_28() {
    full_marks("2026-07-28", 50).await;
}

/// The suite's exit code forgives warnings and scenarios that it does not score; its reports do not.
async fn full_marks(revision: &str, least_scenarios: usize) {
    let shared = SharedState::default();
    let gateway = Gateway::around("", move || ConformanceHandler::new(shared.clone()), with_token).await;
    let reports = tempfile::tempdir().expect("a folder for reports");
    let output = node(SUITE)
        .args([
            "server",
            "--url",
            &gateway.url("/mcp"),
            "--requirements",
            revision,
            "-o",
        ])
        .arg(reports.path())
        .output()
        .await
        .expect("node runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let checks = read(reports.path());
    assert!(
        checks.scenarios >= least_scenarios,
        "{} scenarios ran, {least_scenarios} should have: {said}{}",
        checks.scenarios,
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        checks.wrong.is_empty(),
        "{} checks of {revision} are not passed:\n{}",
        checks.wrong.len(),
        checks.wrong.join("\n")
    );
    assert!(output.status.success(), "{said}");
}

/// The suite sends no token.
fn with_token(router: Router) -> Router {
    router.layer(map_request(async |mut request: Request| {
        let token = HeaderValue::try_from(format!("Bearer {TOKEN}")).expect("a header");
        request.headers_mut().insert(AUTHORIZATION, token);
        request
    }))
}

struct Checks {
    scenarios: usize,
    wrong: Vec<String>,
}

/// Reads the report that each scenario leaves in a folder of its own.
fn read(reports: &Path) -> Checks {
    let mut checks = Checks {
        scenarios: 0,
        wrong: Vec::new(),
    };
    for folder in fs::read_dir(reports).expect("reports").flatten() {
        let Ok(report) = fs::read(folder.path().join("checks.json")) else {
            continue;
        };
        checks.scenarios += 1;
        let scenario = folder.file_name().display().to_string();
        let report: Vec<Value> = serde_json::from_slice(&report).expect("a list of checks");
        let wrong = report
            .iter()
            .filter(|check| check["status"] == "FAILURE" || check["status"] == "WARNING");
        checks.wrong.extend(wrong.map(|check| explained(&scenario, check)));
    }
    checks
}

fn explained(scenario: &str, check: &Value) -> String {
    let text = |key: &str| check[key].as_str().unwrap_or_default();
    format!(
        "{scenario}: {} {}: {} {} {}",
        text("status"),
        text("id"),
        text("description"),
        text("errorMessage"),
        check["details"]
    )
}
