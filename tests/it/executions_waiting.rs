//! Executions that wait: they say behind what, they do not count as running, and no question keeps them for ever.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, eventually,
    gateway::{everything, lab_server},
    scene::{Scene, id, texts},
};

const BEN: &str = "[[auth.tokens]]\nname = \"ben\"\ntenant = \"all\"\ntoken = \"test-token-of-ben\"\npermissions = [\"read\", \"write\", \"execute\"]\n";
const ASKS: &str = "name = input('who? ')\nprint('hello', name)";

async fn code(agent: &Agent, code: &str, timeout: f64) -> Value {
    let run = json!({ "code": code, "timeout": timeout });
    agent.call("run_code", run).await.structured
}

fn reason(result: &Value) -> &str {
    result["reason"]
        .as_str()
        .unwrap_or_else(|| panic!("no reason: {result}"))
}

#[tokio::test]
async fn what_waits_behind_a_question_says_so_and_keeps_nobody_from_running() {
    let scene = Scene::new(&["6 * 7"]).await;
    let asking = code(&scene.agent, ASKS, 60.0).await;
    assert_eq!(asking["status"], "input_required", "{asking}");
    let mut last = Value::Null;
    for _ in 0..20 {
        last = code(&scene.agent, "'after'", 0.0).await;
        assert_eq!(last["status"], "queued", "{last}");
    }
    let last = scene
        .agent
        .call("get_execution", json!({ "execution_id": id(&last) }))
        .await
        .ok();
    for part in [&id(&asking), "who?", "input=", "cancel_execution", "and 19 more"] {
        assert!(reason(&last).contains(part), "{last}");
    }
    assert_eq!(scene.run(0, 1).await.ok()["status"], "completed", "elsewhere it runs");
    let answer = json!({ "execution_id": id(&asking), "input": "ana", "wait": 60 });
    let answered = scene.agent.call("get_execution", answer).await.ok();
    assert_eq!(texts(&answered["cells"][0]).concat(), "hello ana\n");
    let ended = scene.ended(&id(&last)).await;
    assert_eq!(
        (&ended["status"], &ended["reason"]),
        (&json!("completed"), &Value::Null)
    );
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_interrupted_in_time() {
    let scene = Scene::notebook(&[ASKS, "6 * 7"])
        .with("[execution]\ninput_timeout = \"2s\"\n")
        .set()
        .await;
    let asking = scene.run(0, 2).await;
    assert_eq!(asking.structured["status"], "input_required", "{asking:?}");
    let asking = id(&asking.structured);
    let waiting = scene.start(1).await;
    let ended = eventually("it is interrupted", async || {
        let seen = scene.ended(&asking).await;
        (seen["status"] != "input_required").then_some(seen)
    })
    .await;
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert!(
        reason(&ended).contains("nobody answered") && reason(&ended).contains("2s"),
        "{ended}"
    );
    let seen = scene.idle_output(0).await;
    assert!(seen.contains("nobody answered within 2s"), "{seen}");
    assert_eq!(scene.ended(&waiting).await["status"], "completed");
    let late = json!({ "execution_id": asking, "input": "ana" });
    assert!(
        scene
            .agent
            .call("get_execution", late)
            .await
            .error()
            .contains("asks for nothing")
    );
}

#[tokio::test]
async fn what_waits_behind_somebody_else_is_told_whom() {
    let config = format!("{}{}{BEN}", lab_server("lab"), everything());
    let scene = Scene::notebook(&[ASKS, "6 * 7"]).configured(&config).set().await;
    let asking = scene.start(0).await;
    scene
        .agent
        .call("get_execution", json!({ "execution_id": asking, "wait": 60 }))
        .await
        .ok();
    let ben = Agent::with_token(&scene.gateway, "test-token-of-ben", Era::Modern).await;
    let run = json!({ "path": scene.path, "ranges": [{ "start": 1 }], "timeout": 0 });
    let waiting = ben.call("execute_nb_cells", run).await.ok();
    let message = waiting["message"].as_str().unwrap();
    assert!(
        message.contains("cell 0 that ana runs") && !message.contains(&asking),
        "{message}"
    );
    scene.cancel(&asking).await;
    let wait = json!({ "execution_id": id(&waiting), "wait": 60 });
    assert_eq!(ben.call("get_execution", wait).await.ok()["status"], "completed");
}

#[tokio::test]
async fn what_waits_behind_a_persons_code_is_queued_and_says_so() {
    let scene = Scene::new(&["6 * 7"]).await;
    scene.code("1").await;
    let mut tab = scene.tab().await;
    let theirs = tab
        .send("import os, time\nprint('held', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)")
        .await;
    tab.prints(&theirs).await;
    let run = json!({ "ranges": [{ "start": 0 }], "timeout": 1 });
    let waiting = scene.call("execute_nb_cells", run).await.ok();
    assert_eq!(waiting["status"], "queued", "{waiting}");
    let seen = scene
        .agent
        .call("get_execution", json!({ "execution_id": id(&waiting) }))
        .await
        .ok();
    assert!(
        reason(&seen).contains("somebody else runs") && reason(&seen).contains("interrupt_nb_kernel"),
        "{seen}"
    );
    scene.folder.write("go", "");
    let ended = scene.ended(&id(&waiting)).await;
    assert_eq!(
        (&ended["status"], &ended["reason"]),
        (&json!("completed"), &Value::Null),
        "{ended}"
    );
}

#[tokio::test]
async fn only_what_runs_counts_against_the_limit_and_what_waits_has_one_of_its_own() {
    let tenant = everything().replace("name = \"all\"\n", "name = \"all\"\nmax_concurrent_executions = 1\n");
    let scene = Scene::notebook(&["import time; time.sleep(60)", "1"])
        .configured(&format!("{}{tenant}", lab_server("lab")))
        .set()
        .await;
    let running = scene.start(0).await;
    let waiting = scene.start(1).await;
    let refused = scene.agent.call("run_code", json!({ "code": "1" })).await.error();
    assert!(refused.contains(&running) && !refused.contains(&waiting), "{refused}");
    for _ in 1..100 {
        scene.start(1).await;
    }
    let refused = scene.run(1, 2).await.error();
    assert!(
        refused.contains("100 executions") && refused.contains("cancel_execution"),
        "{refused}"
    );
    let insert = json!({ "position": 0, "cells": [{ "content": "2" }] });
    assert!(
        scene
            .call("insert_nb_cells", insert)
            .await
            .error()
            .contains("100 executions")
    );
    assert_eq!(scene.human.sources().len(), 2, "nothing is inserted that cannot run");
    scene.cancel(&running).await;
    assert_eq!(scene.ended(&waiting).await["status"], "completed");
}

#[tokio::test]
async fn questions_do_not_use_up_what_may_run() {
    let tenant = everything().replace("name = \"all\"\n", "name = \"all\"\nmax_concurrent_executions = 1\n");
    let gateway = Gateway::configured(&format!("{}{tenant}", lab_server("lab"))).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let asking = code(&agent, ASKS, 60.0).await;
    assert_eq!(asking["status"], "input_required", "{asking}");
    let run = json!({ "code": "6 * 7", "kernel_name": "python3", "timeout": 60 });
    let ran = agent.call("run_code", run).await.ok();
    assert_eq!(texts(&ran), ["42"], "in another kernel of its own");
    agent
        .call("cancel_execution", json!({ "execution_id": id(&asking) }))
        .await
        .ok();
}
