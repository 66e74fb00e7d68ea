//! Running cells and code: what agents get, what people in the notebook see, and what is left in the file.

use serde_json::{Value, json};

use crate::support::{
    eventually,
    notebook::whole_cells_on_disk,
    scene::{Scene, texts},
};

#[tokio::test]
async fn cells_run_in_order_and_everybody_sees_the_outputs() {
    let scene = Scene::new(&["x = 20", "print('hello')\nx + 22", "# Title"]).await;
    let ran = scene.run(0, 2).await.ok();
    assert_eq!(
        (&ran["status"], &ran["executed_cells"], &ran["executed_ranges"]),
        (&json!("completed"), &json!(2), &json!(1))
    );
    let result = &ran["execution_results"][1];
    assert_eq!(texts(result), ["hello\n", "42"]);
    assert_eq!(
        (
            &result["truncated"],
            &result["original_size"],
            &result["execution_count"]
        ),
        (&json!(false), &json!(8), &json!(2))
    );
    scene
        .human
        .wait_for("the person sees them too", |human| {
            let cell = human.cell(1);
            cell["outputs"].as_array().map(Vec::len) == Some(2)
                && cell["execution_count"] == 2.0
                && cell["execution_state"] == "idle"
        })
        .await;
    let file = scene.folder.disk.join("run.ipynb");
    let saved = eventually("the file has them", async || {
        let cells = whole_cells_on_disk(&file)?;
        (cells[1]["outputs"].as_array()?.len() == 2).then_some(cells)
    })
    .await;
    assert_eq!(saved[1]["outputs"][0]["name"], "stdout");
    assert_eq!(saved[1]["outputs"][1]["output_type"], "execute_result");
    assert_eq!(saved[1]["execution_count"], 2);
}

#[tokio::test]
async fn an_error_stops_the_batch_and_is_told_in_both_conventions() {
    let scene = Scene::new(&["1/0", "print('not reached')"]).await;
    let failed = scene.run(0, 2).await;
    assert!(failed.is_error);
    let ran = failed.structured;
    assert_eq!(ran["status"], "failed");
    let output = &ran["execution_results"][0]["outputs"][0];
    assert_eq!(
        (&output["name"], &output["ename"]),
        (&json!("ZeroDivisionError"), &json!("ZeroDivisionError"))
    );
    assert_eq!(
        (&output["value"], &output["evalue"]),
        (&json!("division by zero"), &json!("division by zero"))
    );
    let traceback = output["traceback"].to_string();
    assert!(
        traceback.contains("ZeroDivisionError") && !traceback.contains("\\u001b"),
        "{traceback}"
    );
    assert_eq!(ran["execution_results"][1]["status"], "cancelled");
    assert_eq!(ran["execution_results"][1]["outputs"], json!([]));
    let all = json!({ "ranges": [{ "start": 0, "end": 2 }], "stop_on_error": false });
    let ran = scene.call("execute_nb_cells", all).await.structured;
    assert_eq!(texts(&ran["execution_results"][1]), ["not reached\n"]);
}

#[tokio::test]
async fn edits_are_executed_unless_said_otherwise() {
    let scene = Scene::new(&["1"]).await;
    let insert = json!({ "position": 1, "cells": [{ "content": "6 * 7" }, { "type": "markdown", "content": "# T" }] });
    let inserted = scene.call("insert_nb_cells", insert).await.ok();
    assert_eq!(
        (&inserted["executed"], &inserted["position"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(
        inserted["execution_results"].as_array().map(Vec::len),
        Some(1),
        "only code runs"
    );
    assert_eq!(texts(&inserted["execution_results"][0]), ["42"]);
    let modify =
        |exec: Value| json!({ "modifications": [{ "range": { "start": 0 }, "content": "'new'" }], "exec": exec });
    let modified = scene.call("modify_nb_cells", modify(false.into())).await.ok();
    assert_eq!(modified["executed"], false);
    let modified = scene.call("modify_nb_cells", modify(Value::Null)).await.ok();
    assert_eq!(texts(&modified["execution_results"][0]), ["'new'"]);
}

#[tokio::test]
async fn a_call_that_waited_long_enough_leaves_its_execution_running() {
    let scene =
        Scene::new(&["import time\nfor n in range(4):\n    print(n, flush=True)\n    time.sleep(0.5)\n'done'"]).await;
    let run = json!({ "ranges": [{ "start": 0 }], "timeout": 0.3 });
    let running = scene.call("execute_nb_cells", run).await.ok();
    assert_eq!(running["status"], "running");
    let id = running["execution_id"].clone();
    scene
        .human
        .wait_for("the person sees it run", |human| {
            human.cell(0)["execution_state"] == "running"
        })
        .await;
    let listed = scene.call("list_executions", json!({ "status": "running" })).await.ok();
    assert_eq!(listed["executions"][0]["execution_id"], id);
    let get = json!({ "execution_id": id, "wait": 20 });
    let ended = scene.agent.call("get_execution", get.clone()).await.ok();
    assert_eq!(ended["status"], "completed");
    assert_eq!(texts(&ended["cells"][0]), ["0\n1\n2\n3\n", "'done'"]);
    let again = scene.agent.call("get_execution", get).await.ok();
    assert_eq!(again["cells"], ended["cells"], "what has ended can be asked for again");
    assert!(again["started_at"].is_string() && again["ended_at"].is_string());
}

#[tokio::test]
async fn code_runs_beside_the_notebook_or_in_a_kernel_of_its_own() {
    let scene = Scene::new(&["secret = 7"]).await;
    scene.run(0, 1).await.ok();
    let ran = scene.call("run_code", json!({ "code": "secret * 6" })).await.ok();
    assert_eq!((texts(&ran), &ran["status"]), (vec!["42"], &json!("completed")));
    let own = scene
        .agent
        .call("run_code", json!({ "code": "'secret' in globals()" }))
        .await
        .ok();
    assert_eq!(texts(&own), ["False"]);
    scene.agent.call("run_code", json!({ "code": "mine = 1" })).await.ok();
    let kept = scene.agent.call("run_code", json!({ "code": "mine" })).await.ok();
    assert_eq!(texts(&kept), ["1"], "the kernel is kept while it is used");
    assert_eq!(scene.human.sources(), ["secret = 7"]);
}

#[tokio::test]
async fn cancelling_interrupts_what_runs_and_removes_what_waits() {
    let scene = Scene::new(&["print('begun', flush=True)\nwhile True: pass", "print('waits')"]).await;
    let start = async |cell: usize| {
        let run = json!({ "ranges": [{ "start": cell }], "timeout": 0 });
        scene.call("execute_nb_cells", run).await.ok()["execution_id"].clone()
    };
    let (first, second) = (start(0).await, start(1).await);
    let cancelled = scene
        .agent
        .call("cancel_execution", json!({ "execution_id": second }))
        .await
        .ok();
    assert_eq!(cancelled["status"], "cancelled");
    eventually("the first runs", async || {
        let seen = scene
            .agent
            .call("get_execution", json!({ "execution_id": first }))
            .await
            .ok();
        (seen["status"] == "running").then_some(())
    })
    .await;
    scene.shows(0, "begun").await;
    let cancelled = scene
        .agent
        .call("cancel_execution", json!({ "execution_id": first }))
        .await
        .ok();
    assert_eq!(cancelled["status"], "cancelled");
    let ran = scene.call("run_code", json!({ "code": "1+1" })).await.ok();
    assert_eq!(texts(&ran), ["2"], "the kernel lives on");
    let unknown = scene
        .agent
        .call("cancel_execution", json!({ "execution_id": "nope" }))
        .await
        .error();
    assert!(unknown.contains("list_executions"), "{unknown}");
}
