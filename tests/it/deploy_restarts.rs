//! Several gateways behind nginx: clients of both protocols, and what they see of it when the gateways are replaced.

use std::{
    fs,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use reqwest::StatusCode;
use serde_json::json;
use test_postgres::TestDatabase;
use tokio::task::JoinSet;

use crate::support::{
    Agent, Era, Gateway, TOKEN,
    agent::ERAS,
    eventually,
    gateway::{everything, lab_server},
    lab,
    nginx::{HOST, Nginx},
    notebook::notebook,
    operator_tools::have_tools,
    own_lab::free_port,
    running::{Home, Running},
};

/// As many tokens, for nginx to spread over the gateways.
const PEOPLE: usize = 6;
/// Code that runs for as long as it takes to replace the gateways.
const LONG: &str =
    "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'):\n    time.sleep(0.05)\nprint('done')";

#[tokio::test]
async fn clients_of_both_protocols_work_through_nginx_and_two_gateways() {
    if !have_tools() {
        return;
    }
    let config = format!(
        "[http]\npublic_url = \"https://{HOST}\"\ntrusted_proxies = [\"127.0.0.1\"]\n{}{}",
        lab_server("lab"),
        everything()
    );
    let (one, other) = (Gateway::configured(&config).await, Gateway::configured(&config).await);
    let nginx = Nginx::start(&[one.address(), other.address()]).await;
    assert_eq!(nginx.status("/metrics").await, Some(StatusCode::NOT_FOUND));
    for era in ERAS {
        let agent = Agent::connect_to(&nginx.url("/mcp"), TOKEN, era).await;
        for _ in 0..4 {
            // A session that the other gateway was asked for would not be found.
            let servers = agent.call("list_servers", json!({})).await.ok();
            assert_eq!(servers["servers"][0]["name"], "lab", "{era:?}: {servers}");
        }
        let ran = agent.call("run_code", json!({ "code": "print(6 * 7)" })).await.ok();
        assert!(ran.to_string().contains("42"), "{era:?}: {ran}");
    }
}

/// One of several gateways with the same config but for the address, which it keeps when it is replaced.
struct Replica {
    home: Home,
    address: SocketAddr,
    running: Option<Running>,
}

impl Replica {
    async fn start(settings: &str) -> Self {
        let home = Home::new();
        fs::write(home.path("gateway.toml"), settings).unwrap();
        let mut replica = Self {
            home,
            address: SocketAddr::from(([127, 0, 0, 1], free_port())),
            running: None,
        };
        replica.run().await;
        replica
    }

    async fn run(&mut self) {
        let mut command = self.home.serve_on(&self.address.to_string());
        command.arg("--config").arg(self.home.path("gateway.toml"));
        self.running = Some(Running::start(command).await);
    }

    /// Ends it as an operator does, starts it again, and waits until nginx asks it.
    async fn replace(&mut self, nginx: &Nginx) {
        let before = self.running.take().unwrap();
        before.signal("-TERM");
        let ended = before.ended().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(!ended.stderr.contains("drain deadline"), "{}", ended.stderr);
        self.run().await;
        let client = reqwest::Client::new();
        let (url, mut number) = (format!("http://{}/metrics", self.address), 0);
        eventually("nginx asks it", async || {
            // Nobody's, and another one each time, for nginx to choose by.
            number += 1;
            let call = client
                .post(nginx.url("/mcp"))
                .bearer_auth(format!("token-of-nobody-{number}"));
            call.header("host", HOST).send().await.ok()?;
            let metrics = client
                .get(&url)
                .header("host", HOST)
                .send()
                .await
                .ok()?
                .text()
                .await
                .ok()?;
            metrics.contains("jmg_http_rejections_total").then_some(())
        })
        .await;
    }
}

/// What a client has seen.
#[derive(Default)]
struct Seen {
    answered: usize,
    inserted: usize,
    /// Sessions that it had to begin because the gateway that had the one before is gone.
    begun_anew: usize,
}

/// Makes short calls, one after the other, until told to stop. Each is answered, but where a session is gone.
async fn call_until(stop: Arc<AtomicBool>, mut agent: Agent, era: Era, path: String) -> Seen {
    let mut seen = Seen::default();
    let cell = json!({ "position": 0, "cells": [{ "type": "code", "content": "1" }], "exec": false, "path": path });
    let calls = [
        ("list_servers", json!({})),
        ("get_nb_stat", json!({ "path": path })),
        ("insert_nb_cells", cell),
    ];
    while !stop.load(Ordering::Relaxed) {
        let (tool, arguments) = &calls[seen.answered % calls.len()];
        let id = i64::try_from(seen.answered).unwrap();
        let params = json!({ "name": tool, "arguments": arguments });
        let response = agent.start(id, "tools/call", params).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        if status == StatusCode::NOT_FOUND && era == Era::Legacy {
            // The gateway that has the new one may be the next to go.
            while agent.begin().await == StatusCode::NOT_FOUND {}
            seen.begun_anew += 1;
            continue;
        }
        let is_answered = text.contains("\"result\"") && !text.contains("\"isError\":true");
        assert!(
            status == StatusCode::OK && is_answered,
            "{era:?} {tool}: {status} {text}"
        );
        seen.answered += 1;
        seen.inserted += usize::from(*tool == "insert_nb_cells");
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_are_replaced_one_after_the_other_and_no_short_call_fails() {
    if !have_tools() {
        return;
    }
    let database = TestDatabase::create();
    let token = |person: usize| format!("token-of-person-{person}");
    let people: String = (0..PEOPLE)
        .map(|person| {
            let permissions = "[\"read\", \"write\", \"execute\"]";
            let token = token(person);
            format!(
                "[[auth.tokens]]\nname = \"person-{person}\"\ntenant = \"team\"\ntoken = \"{token}\"\npermissions = {permissions}\n"
            )
        })
        .collect();
    let settings = format!(
        "[http]\npublic_url = \"https://{HOST}\"\ntrusted_proxies = [\"127.0.0.1\"]\n[store]\nurl = \"{}\"\n{}\
         [[tenants]]\nname = \"team\"\nrequests_per_minute = 1000000\nburst = 1000000\n{people}",
        database.url(),
        lab_server("lab"),
    );
    let mut replicas = [Replica::start(&settings).await, Replica::start(&settings).await];
    let nginx = Nginx::start(&replicas.each_ref().map(|replica| replica.address)).await;
    let url = nginx.url("/mcp");

    let folder = lab().folder();
    let long = folder.write("long.ipynb", &notebook(&[LONG]));
    let operator = Agent::connect_to(&url, &token(0), Era::Modern).await;
    let begun = operator
        .call("execute_nb_cells", json!({ "path": long, "timeout": 0 }))
        .await
        .ok();
    let execution = begun["execution_id"].clone();
    eventually("it has begun", async || folder.has("begun").then_some(())).await;

    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for (person, era) in (0..PEOPLE).flat_map(|person| ERAS.map(|era| (person, era))) {
        let path = folder.write(&format!("{person}-{era:?}.ipynb"), &notebook(&[]));
        let agent = Agent::connect_to(&url, &token(person), era).await;
        let stop = Arc::clone(&stop);
        clients.spawn(async move { (path.clone(), call_until(stop, agent, era, path).await) });
    }
    for replica in &mut replicas {
        replica.replace(&nginx).await;
    }
    stop.store(true, Ordering::Relaxed);
    let (mut answered, mut begun_anew) = (0, 0);
    while let Some(ended) = clients.join_next().await {
        let (path, seen) = ended.unwrap();
        eventually(&format!("{} cells in the file of {path}", seen.inserted), async || {
            let stat = operator.call("get_nb_stat", json!({ "path": path })).await.ok();
            (stat["cell_count"] == seen.inserted).then_some(())
        })
        .await;
        answered += seen.answered;
        begun_anew += seen.begun_anew;
    }
    println!("{answered} calls were answered, {begun_anew} sessions begun anew");
    assert!(answered > 100 && begun_anew > 0, "{answered}, {begun_anew}");

    folder.write("go", "");
    let ended = json!({ "execution_id": execution, "wait": 30 });
    let ended = operator.call("get_execution", ended).await.ok();
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(ended["cells"].to_string().contains("done"), "{ended}");
}
