//! Executions that are cancelled, declined or refused stay so: none of their code runs or asks again.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{
    Agent, Era, Gateway, eventually,
    gateway::lab_server,
    lab,
    notebook::notebook,
    scene::{Scene, texts},
    wire::Events,
};

const SWALLOWS: &str = "import time\ntry:\n    print('on', flush=True)\n    time.sleep(30)\nexcept KeyboardInterrupt:\n    print('swallowed')";

#[tokio::test]
async fn what_follows_in_a_cancelled_batch_does_not_run() {
    let scene = Scene::new(&[SWALLOWS, "open('ran', 'w').close()"]).await;
    let begun = scene
        .call(
            "execute_nb_cells",
            json!({ "ranges": [{ "start": 0, "end": 2 }], "timeout": 0 }),
        )
        .await
        .ok();
    let id = begun["execution_id"].as_str().unwrap().to_owned();
    scene.shows(0, "on").await;
    let cancelled = scene
        .agent
        .call("cancel_execution", json!({ "execution_id": id }))
        .await
        .ok();
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    let ended = scene.ended(&id).await;
    assert_eq!(
        ended["cells"][0]["status"], "completed",
        "the code went on as it pleased"
    );
    assert_eq!(ended["cells"][1]["status"], "cancelled");
    assert!(!scene.folder.has("ran"));
}

#[tokio::test]
async fn a_cell_that_is_deleted_while_it_waits_keeps_no_other_from_running() {
    let wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)";
    let scene = Scene::new(&[wait, "'deleted'", "'after'"]).await;
    let begun = scene
        .call(
            "execute_nb_cells",
            json!({ "ranges": [{ "start": 0, "end": 3 }], "timeout": 0 }),
        )
        .await
        .ok();
    scene.shows_running(0).await;
    scene
        .call("delete_nb_cells", json!({ "ranges": [{ "start": 1 }] }))
        .await
        .ok();
    scene.folder.write("go", "");
    let ended = scene.ended(begun["execution_id"].as_str().unwrap()).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(ended["cells"][1]["status"], "cancelled");
    assert_eq!(texts(&ended["cells"][2]), ["'after'"]);
}

#[tokio::test]
async fn nobody_waits_longer_for_an_answer_than_for_anything_else() {
    let scene = Scene::new(&["input('Who? ')"]).await;
    let agent = Agent::capable(&scene.gateway, Era::Legacy, json!({ "elicitation": {} })).await;
    scene.call("run_code", json!({ "code": "1" })).await.ok();
    let arguments = json!({ "path": scene.path, "ranges": [{ "start": 0 }], "timeout": 1 });
    let call = json!({ "name": "execute_nb_cells", "arguments": arguments });
    let mut events = Events::new(agent.start(7, "tools/call", call).await);
    let (_, question) = events.next_message().await.expect("a question");
    assert_eq!(question["method"], "elicitation/create");
    let answered = timeout(Duration::from_secs(10), async {
        loop {
            let (_, message) = events.next_message().await.expect("an answer");
            if message["id"] == 7 && message["method"].is_null() {
                return message;
            }
        }
    });
    let answered = answered.await.expect("the call does not wait for the person for ever");
    let ran = &answered["result"]["structuredContent"];
    assert_eq!(ran["status"], "input_required", "{answered}");
    let id = &ran["execution_id"];
    agent.call("cancel_execution", json!({ "execution_id": id })).await.ok();
}

/// Asks as a client that can be asked between rounds does, and returns the result.
async fn round(agent: &Agent, params: &Value) -> Value {
    agent.request("tools/call", params.clone()).await["result"].take()
}

#[tokio::test]
async fn an_answer_that_comes_twice_answers_one_question() {
    let scene = Scene::new(&["a = input('A? ')\nb = input('B? ')\nprint(a, b)"]).await;
    let agent = Agent::capable(&scene.gateway, Era::Modern, json!({ "elicitation": {} })).await;
    let arguments = json!({ "path": scene.path, "ranges": [{ "start": 0 }] });
    let mut params = json!({ "name": "execute_nb_cells", "arguments": arguments });
    let asked = round(&agent, &params).await;
    let answer = |value: &str| json!({ "action": "accept", "content": { "input": value } });
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({ "input-1": answer("first") });
    for _ in 0..3 {
        let asked = round(&agent, &params).await;
        assert!(asked["inputRequests"]["input-2"].is_object(), "{asked}");
    }
    params["inputResponses"] = json!({ "input-2": answer("second") });
    let ended = round(&agent, &params).await;
    let ran = &ended["structuredContent"]["execution_results"][0];
    assert_eq!(texts(ran), ["first second\n"], "{ended}");
}

#[tokio::test]
async fn one_who_declines_is_not_asked_again() {
    let scene = Scene::new(&["input('A? ')"]).await;
    let agent = Agent::capable(&scene.gateway, Era::Modern, json!({ "elicitation": {} })).await;
    let arguments = json!({ "path": scene.path, "ranges": [{ "start": 0 }] });
    let mut params = json!({ "name": "execute_nb_cells", "arguments": arguments });
    let asked = round(&agent, &params).await;
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({ "input-1": { "action": "decline" } });
    let ended = round(&agent, &params).await;
    assert_eq!(ended["structuredContent"]["status"], "cancelled", "{ended}");
}

#[tokio::test]
async fn what_cannot_be_executed_for_want_of_room_is_not_done_by_half() {
    let tenant = "[[tenants]]\nname = \"all\"\nmax_concurrent_executions = 1\n[[auth.tokens]]\nname = \"ana\"\ntenant = \"all\"\ntoken = \"ana-token-of-some-length\"\npermissions = [\"read\", \"write\", \"execute\"]\n";
    let gateway = Gateway::configured(&format!("{}{tenant}", lab_server("lab"))).await;
    let agent = Agent::with_token(&gateway, "ana-token-of-some-length", Era::Modern).await;
    let folder = lab().folder();
    let path = folder.write("n.ipynb", &notebook(&["1"]));
    let begun = agent
        .call(
            "run_code",
            json!({ "code": "import time; time.sleep(60)", "timeout": 0 }),
        )
        .await
        .ok();
    let (id, cells) = (&begun["execution_id"], json!([{ "content": "2" }]));
    for (tool, arguments) in [
        (
            "insert_nb_cells",
            json!({ "path": path, "position": 1, "cells": cells, "exec": true }),
        ),
        (
            "modify_nb_cells",
            json!({ "path": path, "modifications": [{ "range": { "start": 0 }, "content": "changed" }], "exec": true }),
        ),
        ("restart_nb_kernel", json!({ "path": path })),
    ] {
        let refused = agent.call(tool, arguments).await.error();
        assert!(refused.contains(id.as_str().unwrap()), "{tool}: {refused}");
    }
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert_eq!(
        (&read["cell_count"], &read["cells"][0]["source"]),
        (&json!(1), &json!("1"))
    );
    let stat = agent.call("get_nb_stat", json!({ "path": path })).await.ok();
    assert!(stat["kernel"].is_null(), "no kernel was started: {stat}");
    agent.call("cancel_execution", json!({ "execution_id": id })).await.ok();
}

#[tokio::test]
async fn the_first_output_is_told_at_once() {
    let scene = Scene::new(&["import time\nprint('hello', flush=True)\ntime.sleep(4)"]).await;
    scene.call("run_code", json!({ "code": "1" })).await.ok();
    let arguments = json!({ "path": scene.path, "ranges": [{ "start": 0 }], "timeout": 3 });
    let call = json!({ "name": "execute_nb_cells", "arguments": arguments, "_meta": { "progressToken": "p" } });
    let mut events = Events::new(scene.agent.start(7, "tools/call", call).await);
    let told = timeout(Duration::from_secs(3), async {
        loop {
            let (_, message) = events.next_message().await.expect("more");
            if message["params"]["message"] == "hello" {
                return;
            }
            assert!(message["result"].is_null(), "{message}");
        }
    });
    told.await.expect("it is told while the code runs");
}

#[tokio::test]
async fn an_error_is_kept_whatever_was_put_out_before_it() {
    let scene = Scene::new(&[]).await;
    let code = "from IPython.display import display\nfor n in range(3): display({'text/plain': str(n) * 900_000}, raw=True)\nraise ValueError('the end')";
    let ran = scene.call("run_code", json!({ "code": code, "timeout": 60 })).await;
    assert!(ran.is_error);
    let id = json!({ "execution_id": ran.structured["execution_id"] });
    let later = eventually("it is in the store", async || {
        let later = scene.agent.call("get_execution", id.clone()).await.structured;
        (later["status"] == "failed").then_some(later)
    })
    .await;
    let outputs = later["cells"][0]["outputs"].as_array().unwrap();
    let error = outputs.last().unwrap();
    assert_eq!(
        (&error["ename"], &error["evalue"]),
        (&json!("ValueError"), &json!("the end"))
    );
    let more = json!({ "execution_id": id["execution_id"], "max_cell_output_size": 3_000_000 });
    let later = scene.agent.call("get_execution", more).await.structured;
    let texts = texts(&later["cells"][0]);
    assert_eq!(texts[0].len(), 900_000);
    assert!(texts[1].contains("left out: too large"), "what is missing says so");
}

#[tokio::test]
async fn a_cell_without_code_is_done_and_has_no_number() {
    let scene = Scene::new(&["1", "  \n"]).await;
    let ran = scene.run(0, 2).await.ok();
    let counts: Vec<&Value> = ran["execution_results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| &cell["execution_count"])
        .collect();
    assert_eq!(
        (counts, &ran["status"]),
        (vec![&json!(1), &Value::Null], &json!("completed"))
    );
}
