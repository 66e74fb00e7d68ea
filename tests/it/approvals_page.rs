//! Calls that somebody else allows, on the page: who may decide, for which call it is good, and that clients wait for it.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, TOKEN,
    agent::ERAS,
    console::{Browser, Page},
    eventually,
    gateway::lab_server,
    scene::Scene,
    wire::Events,
};

const BEN: &str = "test-token-of-ben";
const IDA: &str = "test-token-of-ida";
const EVE: &str = "test-token-of-eve";
const UMA: &str = "test-token-of-uma";

/// Ana, whose agent is under the rule; Ben, an admin; Uma, an admin of other paths; Ida, who is none; and Eve, an admin of another
/// tenant.
fn config(audit: &Path, rule: &str) -> String {
    let token = |name: &str, tenant: &str, token: &str, more: &str| {
        format!("[[auth.tokens]]\nname = \"{name}\"\ntenant = \"{tenant}\"\ntoken = \"{token}\"\n{more}\n")
    };
    let all = "permissions = [\"read\", \"write\", \"execute\", \"admin\"]";
    format!(
        "[audit]\nfile = \"{}\"\n{}[[tenants]]\nname = \"team\"\n[[tenants.approvals]]\ncode = '^\\s*!'\n{rule}\n[[tenants]]\n\
         name = \"other\"\n[[tenants.approvals]]\ncode = '^\\s*!'\n{}{}{}{}{}",
        audit.display(),
        lab_server("lab"),
        token("ana", "team", TOKEN, all),
        token("ben", "team", BEN, "permissions = [\"read\", \"admin\"]"),
        token(
            "uma",
            "team",
            UMA,
            "permissions = [\"read\", \"admin\"]\npaths = [\"elsewhere/**\"]"
        ),
        token("ida", "team", IDA, "permissions = [\"read\", \"write\", \"execute\"]"),
        token("eve", "other", EVE, all),
    )
}

struct Asked {
    scene: Scene,
    audit: tempfile::TempDir,
}

impl Asked {
    async fn set(rule: &str) -> Self {
        let audit = tempfile::tempdir().expect("a folder");
        let config = config(&audit.path().join("audit.jsonl"), rule);
        let scene = Scene::notebook(&["x = 1"]).configured(&config).set().await;
        Self { scene, audit }
    }

    async fn browser(&self, token: &str) -> Browser {
        Browser::logged_in(&self.scene.gateway.url(""), token).await
    }

    async fn agent(&self, era: Era, capabilities: Value) -> Agent {
        Agent::able_to(capabilities, &self.scene.gateway.url("/mcp"), TOKEN, era).await
    }

    fn run(&self, file: &str) -> Value {
        json!({ "path": self.scene.path, "code": format!("!touch {file}") })
    }

    fn has(&self, file: &str) -> bool {
        self.scene.folder.has(file)
    }

    /// Rows of the audit for a tool and a principal, as `decision`, `outcome` and `approval`.
    async fn audited(&self, tool: &str, principal: &str, count: usize) -> Vec<Value> {
        eventually("the audit", async || {
            let text = std::fs::read_to_string(self.audit.path().join("audit.jsonl")).ok()?;
            let rows = text
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            let rows = rows.filter(|row| row["tool"] == tool && row["principal"] == principal);
            let rows: Vec<Value> = rows
                .map(|row| json!([row["decision"], row["outcome"], row["approval"]]))
                .collect();
            (rows.len() == count).then_some(rows)
        })
        .await
    }
}

/// The id of the only call that a page has a form for.
fn id_in(page: &Page) -> String {
    page.form("console/decide").fields["id"].clone()
}

async fn decide(browser: &Browser, id: &str, decision: &str) -> Page {
    let page = browser.get("/console").await;
    let form = page.form("console/logout");
    browser
        .post("/console/decide", &form.with(&[("id", id), ("decision", decision)]))
        .await
}

#[tokio::test]
async fn an_admin_decides_and_nobody_else() {
    for era in ERAS {
        let asked = Asked::set("").await;
        let agent = asked.agent(era, json!({})).await;
        let told = agent.call("run_code", asked.run("allowed")).await.error();
        assert!(
            told.contains("input_required") && told.contains("It waits as request") && told.contains("\"team\""),
            "{told}"
        );
        let ben = asked.browser(BEN).await;
        let page = ben.get("/console").await;
        for shown in [
            "run_code",
            "run.ipynb</span>",
            "!touch allowed",
            "approvals[0]: code that matches",
            "token:ana",
        ] {
            assert!(page.shows(shown), "{era:?} no {shown}: {}", page.html);
        }
        let id = id_in(&page);
        assert!(told.contains(&id), "{id}: {told}");

        // The token of the agent decides nothing for itself, though it is an admin's, and whatever it sends.
        let own = asked.browser(TOKEN).await;
        let page = own.get("/console").await;
        assert!(
            page.shows("about which it cannot decide") && !page.shows("Allow once"),
            "{}",
            page.html
        );
        let refused = decide(&own, &id, "allow").await;
        assert!(refused.shows("cannot decide about its calls"), "{}", refused.html);
        // For others there is no such call.
        for token in [IDA, UMA, EVE] {
            let other = asked.browser(token).await;
            let page = other.get("/console").await;
            assert!(
                !page.shows("!touch") && !page.shows("Waiting for approval"),
                "{token}: {}",
                page.html
            );
            let refused = decide(&other, &id, "allow").await;
            assert!(refused.shows("does not wait any more"), "{token}: {}", refused.html);
        }
        let unclear = decide(&ben, &id, "maybe").await;
        assert!(unclear.shows("nothing was decided"), "{}", unclear.html);
        assert!(!asked.has("allowed"));

        let page = ben.get("/console").await;
        let allowed = ben.submit(&page, "console/decide", &[("decision", "allow")]).await;
        assert!(allowed.shows("Allowed run_code of ana, once"), "{}", allowed.html);
        let late = decide(&ben, &id, "refuse").await;
        assert!(late.shows("does not wait any more"), "{}", late.html);
        // It is good for the call that was shown, and for one.
        agent.call("run_code", asked.run("other")).await.error();
        assert!(!asked.has("other"));
        let ran = agent.call("run_code", asked.run("allowed")).await.ok();
        assert_eq!(ran["status"], "completed", "{ran}");
        assert!(asked.has("allowed"));
        let again = agent.call("run_code", asked.run("allowed")).await.error();
        assert!(again.contains("input_required"), "{again}");

        let rows = asked.audited("run_code", "token:ana", 4).await;
        let waits = json!(["deny", "unanswered", "approvals[0]: a person is to be asked"]);
        let ran = json!(["allow", "completed", "approvals[0]: allowed by token:ben on the page"]);
        assert_eq!(json!(rows), json!([waits, waits, ran, waits]));
        let rows = asked.audited("console_approval", "token:ben", 1).await;
        let decided = json!(["allow", "completed", "approvals[0]: allowed run_code of token:ana"]);
        assert_eq!(json!(rows), json!([decided]));
        let rows = asked.audited("console_approval", "token:ana", 1).await;
        assert_eq!(json!(rows), json!([["deny", "failed", null]]));
    }
}

#[tokio::test]
async fn what_is_refused_stays_so() {
    let asked = Asked::set("").await;
    let agent = asked.agent(Era::Modern, json!({})).await;
    agent.call("run_code", asked.run("refused")).await.error();
    let ben = asked.browser(BEN).await;
    let page = ben.get("/console").await;
    let refused = ben.submit(&page, "console/decide", &[("decision", "refuse")]).await;
    assert!(refused.shows("Refused run_code of ana"), "{}", refused.html);
    let told = agent.call("run_code", asked.run("refused")).await.error();
    assert!(
        told.contains("ben did not allow this") && told.contains("nothing was run"),
        "{told}"
    );
    // A client that says that its person allows it comes too late.
    let asking = asked.agent(Era::Legacy, json!({ "elicitation": {} })).await;
    let told = asking.call("run_code", asked.run("refused")).await.error();
    assert!(told.contains("ben did not allow this"), "{told}");
    assert!(!asked.has("refused") && asked.scene.kernels().await.is_empty());
    assert!(
        !ben.get("/console").await.shows("Waiting for approval"),
        "nobody is asked again"
    );
}

#[tokio::test]
async fn a_call_that_is_made_again_waits_for_the_decision() {
    let asked = Asked::set("").await;
    let agent = asked.agent(Era::Legacy, json!({})).await;
    let insert =
        json!({ "path": asked.scene.path, "position": -1, "cells": [{ "content": "!touch allowed" }], "exec": true });
    agent.call("insert_nb_cells", insert.clone()).await.error();
    let ben = asked.browser(BEN).await;
    let page = ben.get("/console").await;
    let deciding = async {
        assert_eq!(
            asked.scene.human.sources(),
            ["x = 1"],
            "nothing is changed while it waits"
        );
        ben.submit(&page, "console/decide", &[("decision", "allow")]).await
    };
    let (ran, _) = tokio::join!(agent.call("insert_nb_cells", insert), deciding);
    assert_eq!(ran.ok()["status"], "completed");
    assert!(asked.has("allowed"));
    asked.scene.sees(&["x = 1", "!touch allowed"]).await;
}

#[tokio::test]
async fn a_call_with_two_questions_takes_both_decisions() {
    let asked = Asked::set("[[tenants.approvals]]\ntools = [\"run_code\"]").await;
    let agent = asked.agent(Era::Modern, json!({})).await;
    let ben = asked.browser(BEN).await;
    for rule in ["approvals[1]", "approvals[0]"] {
        let told = agent.call("run_code", asked.run("allowed")).await.error();
        assert!(told.contains(rule), "{told}");
        let page = ben.get("/console").await;
        ben.submit(&page, "console/decide", &[("decision", "allow")]).await;
        assert!(!asked.has("allowed"));
    }
    agent.call("run_code", asked.run("allowed")).await.ok();
    assert!(asked.has("allowed"));
    let again = agent.call("run_code", asked.run("allowed")).await.error();
    assert!(again.contains("approvals[1]"), "{again}");
}

#[tokio::test]
async fn whoever_decides_first_has_decided() {
    let asked = Asked::set("").await;
    let agent = asked.agent(Era::Legacy, json!({ "elicitation": {} })).await;
    let call = |number, file: &str| {
        agent.start(
            number,
            "tools/call",
            json!({ "name": "run_code", "arguments": asked.run(file) }),
        )
    };
    let ben = asked.browser(BEN).await;
    // The page, while the client asks.
    let mut events = Events::new(call(7, "by-page").await);
    let (_, question) = events.next_message().await.expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let page = ben.get("/console").await;
    ben.submit(&page, "console/decide", &[("decision", "allow")]).await;
    let answered = eventually("a result", async || {
        let (_, message) = events.next_message().await?;
        (!message["result"].is_null()).then_some(message)
    })
    .await;
    assert_eq!(
        answered["result"]["structuredContent"]["status"], "completed",
        "{answered}"
    );
    assert!(asked.has("by-page"));
    // The client, after which the page has nothing to decide.
    let mut events = Events::new(call(8, "by-client").await);
    let (_, question) = events.next_message().await.expect("a question");
    let id = id_in(&ben.get("/console").await);
    let yes = json!({ "action": "accept", "content": { "allow": true } });
    agent
        .send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": yes }))
        .await;
    let (_, answered) = events.next_message().await.expect("a result");
    assert_eq!(
        answered["result"]["structuredContent"]["status"], "completed",
        "{answered}"
    );
    let late = decide(&ben, &id, "refuse").await;
    assert!(late.shows("does not wait any more"), "{}", late.html);
}

#[tokio::test]
async fn where_others_decide_no_client_is_asked() {
    let asked = Asked::set("decided_by = \"others\"").await;
    for era in ERAS {
        let file = format!("allowed-{era:?}");
        let agent = asked.agent(era, json!({ "elicitation": { "form": {} } })).await;
        let told = agent.call("run_code", asked.run(&file)).await.error();
        assert!(told.contains("It waits as request"), "{told}");
        let ben = asked.browser(BEN).await;
        let page = ben.get("/console").await;
        ben.submit(&page, "console/decide", &[("decision", "allow")]).await;
        agent.call("run_code", asked.run(&file)).await.ok();
        assert!(asked.has(&file));
    }
}

#[tokio::test]
async fn what_waits_is_bounded_and_goes_with_its_token() {
    let asked = Asked::set("").await;
    let agent = asked.agent(Era::Modern, json!({})).await;
    for number in 0..10 {
        let told = agent.call("run_code", asked.run(&format!("f{number}"))).await.error();
        assert!(told.contains("It waits as request"), "{told}");
    }
    let told = agent.call("run_code", asked.run("too-much")).await.error();
    assert!(told.contains("10 calls of yours wait for a person already"), "{told}");
    let ben = asked.browser(BEN).await;
    let page = ben.get("/console").await;
    assert_eq!(page.html.matches("!touch f").count(), 10);
    assert!(!page.shows("too-much"));
    // Refused ones do not wait.
    ben.submit(&page, "console/decide", &[("decision", "refuse")]).await;
    let told = agent.call("run_code", asked.run("too-much")).await.error();
    assert!(told.contains("It waits as request"), "{told}");
}
