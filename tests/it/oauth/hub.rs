//! Logins at a real JupyterHub, of which the gateway is a service: people work in their own servers with the token that the
//! Hub gives for them.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

use super::{Browser, Site};
use crate::support::{
    Agent, Era, Gateway, TIMEOUT, Watcher,
    agent::ERAS,
    hub::{HubUser, hub},
    lab::venv,
    node::node_script,
    own_lab::free_port,
    within,
};

/// What a service of the Hub needs to use people's servers and to start them.
const SCOPES: [&str; 3] = ["access:servers!user", "read:servers!user", "servers!user"];

/// A gateway that is a service of the Hub.
async fn site(more: &str) -> Site {
    let hub = hub().await;
    let port = free_port();
    let (client_id, secret) = hub
        .service(&format!("http://127.0.0.1:{port}/oauth/callback"), &SCOPES)
        .await;
    let config = format!(
        "http.public_url = \"http://127.0.0.1:{port}\"\nstore.url = \"sqlite::memory:\"\n{}\n{more}\n\
         [auth.oauth]\nenabled = true\nclient_id = \"{client_id}\"\nclient_secret_env = \"SECRET\"\n",
        hub.config(&format!(
            "cache_ttl = \"1s\"\nrequired_scope = \"access:services!service={}\"",
            client_id.trim_start_matches("service-")
        ))
    );
    Site::new(Gateway::on_port(port, &config, &[("SECRET", &secret)]).await)
}

async fn agent(site: &Site, tokens: &Value, era: Era) -> Agent {
    let token = tokens["access_token"].as_str().expect("a token");
    Agent::connect_to(&site.url("/mcp?toolsets=all"), token, era).await
}

async fn servers(agent: &Agent) -> Vec<String> {
    let listed = agent.call("list_servers", json!({})).await.ok();
    let servers = listed["servers"].as_array().expect("servers").iter();
    servers
        .map(|server| server["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn people_of_a_hub_work_in_their_own_servers_and_see_nothing_of_each_other() {
    let (hub, site) = (hub().await, site("").await);
    let (ana, bob) = (hub.user("ana").await, hub.user("bob").await);
    let [(_, anas), (_, bobs)] = [site.tokens(&ana.name).await, site.tokens(&bob.name).await];
    let (anas_agent, bobs_agent) = (
        agent(&site, &anas, Era::Legacy).await,
        agent(&site, &bobs, Era::Modern).await,
    );
    assert_eq!(servers(&anas_agent).await, std::slice::from_ref(&ana.name));
    assert_eq!(servers(&bobs_agent).await, std::slice::from_ref(&bob.name));

    let started = anas_agent
        .call("start_server", json!({ "server": ana.name }))
        .await
        .ok();
    assert_eq!(started["state"], "running", "{started}");
    anas_agent
        .call("create_notebook", json!({ "path": "work.ipynb" }))
        .await
        .ok();
    let cells = json!([{ "type": "code", "content": "import os\nos.environ['JUPYTERHUB_USER']" }]);
    let inserted = json!({ "path": "work.ipynb", "position": 0, "cells": cells, "exec": true });
    let ran = anas_agent.call("insert_nb_cells", inserted).await;
    assert!(
        ran.texts.concat().contains(&format!("'{}'", ana.name)),
        "{:?}",
        ran.texts
    );
    anas_agent
        .call("save_document", json!({ "path": "work.ipynb" }))
        .await
        .ok();
    assert!(ana.home().join("work.ipynb").is_file());
    let executions = anas_agent.call("list_executions", json!({})).await.ok();
    let execution = executions["executions"][0]["execution_id"].clone();

    for (tool, mut arguments) in [
        ("read_nb_cells", json!({ "path": "work.ipynb" })),
        ("get_document_history", json!({ "path": "work.ipynb" })),
        ("start_server", json!({})),
    ] {
        arguments["server"] = ana.name.as_str().into();
        let refused = bobs_agent.call(tool, arguments).await.error();
        assert!(refused.contains("unknown server"), "{tool}: {refused}");
    }
    let known = json!({ "execution_id": execution });
    bobs_agent.call("get_execution", known.clone()).await.error();
    for tool in [
        "list_executions",
        "query_nb_sessions",
        "get_user_activity",
        "get_online_users",
    ] {
        let told = bobs_agent.call(tool, json!({})).await.ok().to_string();
        assert!(
            !told.contains(&ana.name) && !told.contains("work.ipynb"),
            "{tool}: {told}"
        );
    }

    // She is the same by a token that she has made herself.
    let own = Agent::connect_to(&site.url("/mcp?toolsets=all"), &ana.token, Era::Modern).await;
    own.call("get_execution", known).await.ok();
    assert_eq!(servers(&own).await, std::slice::from_ref(&ana.name));
}

async fn works(mut client: Command) {
    let (hub, site) = (hub().await, site("").await);
    let user = hub.user("pia").await;
    client.arg(site.url("/mcp")).arg(&user.name).arg("hub");
    let output = within(TIMEOUT, "the client", client.output()).await.expect("it runs");
    let (said, failed) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success() && said.contains("worked"), "{said}{failed}");
    assert!(user.home().join("work.ipynb").is_file());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_logs_in_at_a_hub_and_works_there() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/python/login.py");
    let mut python = Command::new(venv().python());
    python.arg(script).env("PYTHONUTF8", "1").kill_on_drop(true);
    works(python).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_logs_in_at_a_hub_and_works_there() {
    works(node_script("provider/login.mjs")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whom_the_hub_does_not_know_any_more_is_cut_off_and_not_refreshed() {
    let (hub, site) = (hub().await, site("").await);
    let endings: [(&str, Era); 2] = [("revoked", Era::Legacy), ("removed", Era::Modern)];
    for (how, era) in endings {
        let user = hub.user("rex").await;
        let (client, tokens) = site.tokens(&user.name).await;
        let (status, tokens) = site.refresh(&client, &tokens).await;
        assert_eq!(status, 200, "{tokens}");
        let stream = Watcher::start(&agent(&site, &tokens, era).await, era, &[]).await;
        end(&user, how).await;
        timeout(Duration::from_secs(10), stream.ended())
            .await
            .expect("the stream ends");
        assert_eq!(site.status_of(&tokens).await, 401);
        let (status, answer) = site.refresh(&client, &tokens).await;
        assert_eq!(
            (status.as_u16(), answer["error"].as_str()),
            (400, Some("invalid_grant")),
            "{answer}"
        );
    }
}

async fn end(user: &HubUser, how: &str) {
    match how {
        "revoked" => user.revoke_logins().await,
        _ => user.remove().await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_what_they_allow_and_the_page_of_the_gateway() {
    let (hub, site) = (hub().await, site("").await);
    let client = site.client().await;
    let user = hub.user("mia").await;
    let consent = Browser::new()
        .log_in(&site.authorize_url(&client, &[]), &user.name)
        .await
        .shown();
    assert!(
        consent.html.contains(&user.name) && consent.html.contains("jupyter:execute"),
        "{}",
        consent.html
    );
    assert!(
        !consent.html.contains("jupyter:admin"),
        "not among auth.jupyterhub.permissions"
    );
    for query in ["?state=x&code=y", "?error=access_denied&state=x"] {
        let shown = Browser::new()
            .open(&site.url(&format!("/oauth/callback{query}")))
            .await
            .shown();
        assert_eq!(shown.status, 400, "{query}");
    }
    let page = Browser::new();
    let shown = page.log_in(&site.url("/oauth/login"), &user.name).await.shown();
    assert_eq!(shown.status, 200, "{}", shown.html);
    let console = page.open(&site.url("/console")).await.shown();
    assert!(console.html.contains("console/logout"), "{}", console.html);
    let front = Browser::new().open(&site.url("/")).await.shown();
    assert!(front.html.contains("Log in with JupyterHub"), "{}", front.html);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_the_hub_ends_when_its_time_is_over() {
    let (hub, site) = (hub().await, site("").await);
    for era in ERAS {
        let user = hub.user("kim").await;
        let (short, _) = user.new_token(json!({ "expires_in": 6 })).await;
        let agent = Agent::connect_to(&site.url("/mcp"), &short, era).await;
        let stream = Watcher::start(&agent, era, &[]).await;
        timeout(Duration::from_secs(20), stream.ended())
            .await
            .expect("the stream ends");
        let refused = agent
            .send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))
            .await;
        assert_eq!(refused.status(), 401);
        let models = hub.ask(Method::GET, &format!("users/{}", user.name), json!({})).await;
        assert!(models["name"].is_string(), "the user is still there");
    }
}
