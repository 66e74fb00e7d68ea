//! The record of every call and other access: in the log, the store and a file.

use std::{fs, path::Path};

use serde_json::{Value, json};
use store::file_url;
use test_postgres::TestDatabase;

use crate::support::{
    Agent, Era, Gateway,
    agent::ERAS,
    command::{run, run_beside},
    eventually,
    gateway::lab_server,
    running::{Home, Running},
    wire::{get, send},
};

const CONFIG: &str = r#"
[[tenants]]
name = "research"
[[auth.tokens]]
name = "ana"
tenant = "research"
token = "token-of-ana"
permissions = ["read", "write"]
paths = ["mine/**"]
"#;

/// Starts a gateway that logs records.
async fn audited(home: &Home) -> Running {
    let file = home.path("gateway.toml");
    let config = format!("store.url = \"sqlite::memory:\"\n{}{CONFIG}", lab_server("lab"));
    fs::write(&file, config).unwrap();
    let mut command = home.serve();
    command.arg("--config").arg(&file);
    command.env("JMG__TELEMETRY__LOG_LEVEL", "info,audit=debug");
    command.env("JMG__TELEMETRY__LOG_FORMAT", "json");
    Running::start(command).await
}

#[tokio::test]
async fn every_call_is_recorded_with_who_made_it_and_whether_it_was_let() {
    let home = Home::new();
    let gateway = audited(&home).await;
    for (past, era) in ERAS.into_iter().enumerate() {
        let agent = Agent::connect_to(gateway.url(), "token-of-ana", era).await;
        agent.call("list_servers", json!({})).await.ok();
        agent.call("run_code", json!({ "code": "'a secret'" })).await.error();
        // However a model spells it.
        let theirs = json!({ "server": "lab", "notebookPath": "theirs/x.ipynb" });
        agent.call("read_nb_cells", theirs).await.error();
        let found = eventually("the records", async || {
            let records = records(&gateway.log());
            (records.len() == 3 * (past + 1)).then(|| records[3 * past..].to_vec())
        })
        .await;
        let told: Vec<_> = found
            .iter()
            .map(|record| [&record["tool"], &record["decision"], &record["rule"], &record["path"]])
            .collect();
        assert_eq!(
            json!(told),
            json!([
                ["list_servers", "allowed", null, null],
                ["run_code", "denied", "execute", null],
                ["read_nb_cells", "denied", "paths", "theirs/x.ipynb"],
            ]),
            "{era:?}"
        );
        for record in &found {
            assert_eq!(
                (&record["principal"], &record["tenant"]),
                (&json!("token:ana"), &json!("research"))
            );
            assert_eq!(record["address"], "127.0.0.1");
            assert!(
                record["request_id"].as_str().is_some_and(|id| !id.is_empty()),
                "{record}"
            );
        }
    }
    assert!(!gateway.logged("a secret"));
}

#[tokio::test]
async fn tools_that_a_connection_does_not_have_are_recorded_as_denied() {
    let home = Home::new();
    let gateway = audited(&home).await;
    let url = format!("{}?toolsets=notebook&readonly=true", gateway.url());
    for (past, era) in ERAS.into_iter().enumerate() {
        let agent = Agent::connect_to(&url, "token-of-ana", era).await;
        let path = json!({ "path": "mine/x.ipynb" });
        agent.call("list_documents", json!({ "path": "mine" })).await.error();
        agent.call("delete_nb_cells", path.clone()).await.error();
        let unknown = json!({ "name": "x".repeat(200), "arguments": path });
        let answer = agent.request("tools/call", unknown).await;
        assert!(answer["error"]["message"].is_string(), "{answer}");
        let found = eventually("the records", async || {
            let records = records(&gateway.log());
            (records.len() == 3 * (past + 1)).then(|| records[3 * past..].to_vec())
        })
        .await;
        let told: Vec<_> = found
            .iter()
            .map(|record| {
                assert_eq!(
                    (&record["principal"], &record["decision"], &record["outcome"]),
                    (&json!("token:ana"), &json!("denied"), &json!("Failed"))
                );
                [&record["tool"], &record["rule"], &record["path"]]
            })
            .collect();
        assert_eq!(
            json!(told),
            json!([
                ["list_documents", "toolset", "mine"],
                ["delete_nb_cells", "readonly", "mine/x.ipynb"],
                ["x".repeat(100), "unknown", "mine/x.ipynb"],
            ]),
            "{era:?}"
        );
    }
}

fn records(log: &str) -> Vec<Value> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["target"] == "audit").collect()
}

/// The lines of an audit file.
fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

fn narrow(row: &Value) -> Value {
    json!([row["tool"], row["decision"], row["rule"], row["path"], row["outcome"]])
}

#[tokio::test]
async fn logins_resources_and_prompts_are_recorded_beside_calls_and_an_operator_reads_all_of_it() {
    let (folder, database) = (tempfile::tempdir().unwrap(), TestDatabase::create());
    for url in [file_url(&folder.path().join("gateway.db")), database.url()] {
        let (file, config) = (folder.path().join("audit.jsonl"), folder.path().join("gateway.toml"));
        let _ = fs::remove_file(&file);
        let text = format!(
            "[store]\nurl = {url:?}\n[audit]\nfile = {:?}\nrequired = true\n{}{CONFIG}",
            file.display().to_string(),
            lab_server("lab")
        );
        fs::write(&config, &text).unwrap();
        let gateway = Gateway::configured(&text).await;
        for (token, status) in [("", 401), ("not-a-token-of-anybody", 401)] {
            let request = reqwest::Client::new().post(gateway.url("/mcp")).body("{}");
            let request = match token {
                "" => request,
                token => request.bearer_auth(token),
            };
            assert_eq!(send(request).await.status.as_u16(), status);
        }
        let agent = Agent::with_token(&gateway, "token-of-ana", Era::Legacy).await;
        agent.read("notebook://list").await;
        agent.cannot_read("file:///documents/lab/theirs/x.md").await;
        agent.cannot_read("file:///documents/elsewhere/x.md").await;
        let subscribe = json!({ "uri": "file:///documents/lab/theirs/x.md" });
        assert!(agent.request("resources/subscribe", subscribe).await["error"].is_object());
        let prompt = agent.request("prompts/get", json!({ "name": "no-such-prompt" })).await;
        assert!(prompt["error"].is_object(), "{prompt}");
        let read = json!({ "path": "theirs/x.ipynb" });
        agent.call("read_nb_cells", read).await.error();
        let expected = json!([
            ["login", "deny", "token_missing", null, "failed"],
            ["login", "deny", "token_unknown", null, "failed"],
            ["resources/read", "allow", null, "notebook://list", "completed"],
            [
                "resources/read",
                "deny",
                "paths",
                "file:///documents/lab/theirs/x.md",
                "failed"
            ],
            [
                "resources/read",
                "deny",
                "server",
                "file:///documents/elsewhere/x.md",
                "failed"
            ],
            [
                "resources/subscribe",
                "deny",
                "paths",
                "file:///documents/lab/theirs/x.md",
                "failed"
            ],
            ["prompts/get", "allow", null, null, "failed"],
            ["read_nb_cells", "deny", "paths", "theirs/x.ipynb", "failed"],
        ]);
        let written = eventually("the lines", async || {
            let lines = lines(&file);
            (lines.len() == 8).then_some(lines)
        })
        .await;
        assert_eq!(json!(written.iter().map(narrow).collect::<Vec<_>>()), expected);
        assert!(
            written[0]["principal"].is_null() && written[0]["address"] == "127.0.0.1",
            "{}",
            written[0]
        );
        assert_eq!(written[2]["principal"], "token:ana");
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            !text.contains("not-a-token") && !text.contains("token-of-ana"),
            "{text}"
        );

        is_read_beside_the_gateway(&config, &written).await;
        gateway.drain().start();
        gateway.gone().await;
    }
}

/// The command shows the same as the file, while the gateway runs.
async fn is_read_beside_the_gateway(config: &Path, written: &[Value]) {
    let audit = async |more: &[&str]| {
        let mut arguments = vec!["audit", "--config", config.to_str().unwrap()];
        arguments.extend(more);
        let ended = run_beside(&arguments).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    };
    let told = eventually("the rows", async || {
        let told = audit(&["--json"]).await;
        (told.lines().count() == 8).then_some(told)
    })
    .await;
    let mut rows: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.sort_by_key(|row| written.iter().position(|line| line["request_id"] == row["request_id"]));
    assert_eq!(rows, *written, "the same as in the file");
    assert_eq!(audit(&["--path", "theirs/x.ipynb"]).await.lines().count(), 1);
    assert_eq!(
        audit(&["--principal", "token:ana", "--since", "1h"])
            .await
            .lines()
            .count(),
        6
    );
    assert_eq!(audit(&["--since", "2099-01-01"]).await, "");
    let line = audit(&["--path", "theirs/x.ipynb"]).await;
    assert!(
        line.contains(" deny failed token:ana read_nb_cells path=theirs/x.ipynb rule=paths "),
        "{line}"
    );
}

#[test]
fn an_audit_that_cannot_be_read_or_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("gateway.toml");
    let ended_with = |text: &str, arguments: &[&str]| {
        fs::write(&config, text).unwrap();
        let mut all = vec![arguments[0], "--config", config.to_str().unwrap()];
        all.extend(&arguments[1..]);
        let ended = run(&all);
        (ended.code, ended.stderr)
    };
    let database = file_url(&folder.path().join("none.db"));
    let (code, told) = ended_with(&format!("store.url = {database:?}"), &["audit"]);
    assert!(code == Some(70) && told.contains("does not exist"), "{told}");
    let (code, told) = ended_with("store.url = \"sqlite::memory:\"", &["audit"]);
    assert!(code == Some(70) && told.contains("in memory"), "{told}");
    let (code, told) = ended_with("", &["audit", "--since", "yesterday"]);
    assert!(code == Some(2) && told.contains("expected a date"), "{told}");
    let nowhere = "store.url = \"sqlite::memory:\"\nhttp.listen = \"127.0.0.1:0\"\naudit.file = \"/proc/none/audit\"\n\
                   [[servers]]\nname = \"a\"\nurl = \"http://127.0.0.1:9/\"\n";
    let (code, told) = ended_with(nowhere, &["serve"]);
    assert!(
        code == Some(64) && told.contains("audit.file: /proc/none/audit cannot be appended to"),
        "{told}"
    );
}

#[tokio::test]
async fn where_records_are_required_no_call_is_made_while_they_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let (file, target) = (folder.path().join("audit"), folder.path().join("target"));
    std::os::unix::fs::symlink("/dev/full", &file).unwrap();
    for (required, is_refused) in [(true, true), (false, false)] {
        let _ = fs::remove_file(&file);
        std::os::unix::fs::symlink("/dev/full", &file).unwrap();
        let settings = format!(
            "[audit]\nfile = {:?}\nrequired = {required}",
            file.display().to_string()
        );
        let gateway = Gateway::with(&settings).await;
        let agent = Agent::connect(&gateway, Era::Modern).await;
        // What finds the disk full first is answered, and its record waits.
        agent.call("list_servers", json!({})).await.ok();
        if !is_refused {
            agent.call("list_servers", json!({})).await.ok();
            continue;
        }
        let told = eventually("a refusal", async || {
            let answer = agent.call("list_servers", json!({})).await;
            answer.is_error.then(|| answer.error())
        })
        .await;
        assert!(
            told.contains("audit log cannot be written") && told.contains("nothing was done"),
            "{told}"
        );
        let told = agent
            .request("resources/read", json!({ "uri": "notebook://list" }))
            .await;
        assert!(told.to_string().contains("audit log cannot be written"), "{told}");
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(&target, &file).unwrap();
        eventually("calls again", async || {
            (!agent.call("list_servers", json!({})).await.is_error).then_some(())
        })
        .await;
        let lines = eventually("all of the records", async || {
            let lines = lines(&target);
            let denied = lines
                .iter()
                .any(|line| line["rule"] == "audit" && line["tool"] == "resources/read");
            denied.then_some(lines)
        })
        .await;
        assert_eq!(
            narrow(&lines[0]),
            json!(["list_servers", "allow", null, null, "completed"])
        );
        let metrics = get(&gateway, "/metrics").await.text;
        assert!(metrics.contains("table=\"audit_file\""), "{metrics}");
    }
}
