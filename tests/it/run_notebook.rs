//! `run_notebook`: a copy in a fresh kernel, the original and its kernel untouched.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era,
    agent::ToolAnswer,
    eventually,
    gateway::{everything, lab_server},
    notebook::whole_cells_on_disk,
    process_scene::ProcessScene,
    scene::{Scene, id, person, shown},
};

const OTHERS: &str = "[[auth.tokens]]\nname = \"ben\"\ntenant = \"all\"\ntoken = \"test-token-of-ben\"\npermissions = [\"read\", \"execute\"]\n\
    [[auth.tokens]]\nname = \"ron\"\ntenant = \"all\"\ntoken = \"test-token-of-ron\"\npermissions = [\"read\"]\n\
    [[auth.tokens]]\nname = \"eve\"\ntenant = \"all\"\ntoken = \"test-token-of-eve\"\npermissions = [\"read\", \"write\", \"execute\"]\npaths = [\"elsewhere/**\"]\n";

fn out(text: &str) -> Value {
    json!({ "output_type": "stream", "name": "stdout", "text": text })
}

/// A notebook of code cells with the outputs of earlier runs, and a text.
fn ran(cells: &[(&str, &str)]) -> String {
    let cell = |(index, (source, output)): (usize, &(&str, &str))| {
        let outputs = if output.is_empty() {
            json!([])
        } else {
            json!([out(output)])
        };
        json!({ "id": format!("cell-{index}"), "cell_type": "code", "source": source, "metadata": {}, "outputs": outputs, "execution_count": index + 1 })
    };
    let mut cells: Vec<Value> = cells.iter().enumerate().map(cell).collect();
    cells.push(json!({ "id": "text", "cell_type": "markdown", "source": "# End", "metadata": {} }));
    json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5 }).to_string()
}

async fn scene(cells: &[(&str, &str)]) -> Scene {
    let config = format!("{}{}{OTHERS}", lab_server("lab"), everything());
    Scene::of("run.ipynb", &ran(cells)).configured(&config).set().await
}

/// The kernels that agents have of their own below the folder of a scene.
async fn private_kernels(folder: &str) -> usize {
    let sessions: Value = person().get("api/sessions").await.json().await.expect("sessions");
    let prefix = format!("{folder}jupyter-mcp-gateway/");
    let sessions = sessions.as_array().expect("a list").iter();
    sessions
        .filter(|session| session["path"].as_str().is_some_and(|path| path.starts_with(&prefix)))
        .count()
}

async fn no_kernel_is_left(scene: &Scene) {
    eventually("its kernel is gone", async || {
        (private_kernels(&scene.folder.path("")).await == 0).then_some(())
    })
    .await;
}

async fn run(scene: &Scene, arguments: Value) -> ToolAnswer {
    scene.call("run_notebook", arguments).await
}

#[tokio::test]
async fn a_copy_runs_in_a_fresh_kernel_and_the_original_stays_as_it_is() {
    let scene = scene(&[
        ("import os; x = 1", ""),
        ("print(os.path.basename(os.getcwd()) in 'FOLDER')", "True\n"),
        ("print(x)", "2\n"),
        ("print('new')", ""),
        ("print('same')", "same\n"),
    ])
    .await;
    let own = scene.code("x = 5; x").await;
    let (kernel, before) = (scene.kernel().await, scene.human.cells());
    let answer = run(&scene, json!({})).await;
    let text = answer.text().to_owned();
    let done = answer.ok();
    assert_eq!((own.as_str(), &done["status"]), ("5", &json!("completed")), "{done}");
    assert_eq!((&done["cells_run"], &done["cells_total"]), (&json!(5), &json!(5)));
    assert_eq!((&done["failed_cell"], &done["kept"]), (&Value::Null, &Value::Null));
    assert_eq!(done["kernel_name"], "python3");
    let expected = json!([
        { "index": 1, "cell_id": "cell-1", "what": "text" },
        { "index": 2, "cell_id": "cell-2", "what": "text" },
        { "index": 3, "cell_id": "cell-3", "what": "new output" },
    ]);
    assert_eq!(done["differences"], expected);
    for part in [
        "5 of 5 code cells ran in ",
        "fresh python3 kernel",
        "[2] cell-2 (text)",
        "[3] cell-3 (new output)",
    ] {
        assert!(text.contains(part), "{text}");
    }
    no_kernel_is_left(&scene).await;
    assert_eq!((scene.human.cells(), scene.kernel().await), (before, kernel));
    assert_eq!(scene.code("x").await, "5", "its kernel is as it was");
    let names: Vec<String> = std::fs::read_dir(&scene.folder.disk)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".ipynb"))
        .collect();
    assert_eq!(names, ["run.ipynb"], "nothing is kept");
}

#[tokio::test]
async fn it_runs_in_the_directory_of_the_notebook() {
    let scene = scene(&[("print(open('data.txt').read())", "here\n")]).await;
    scene.folder.write("data.txt", "here");
    let done = run(&scene, json!({})).await.ok();
    assert_eq!(
        (&done["status"], &done["differences"]),
        (&json!("completed"), &json!([])),
        "{done}"
    );
}

#[tokio::test]
async fn the_first_cell_that_fails_is_the_last_and_is_told() {
    let scene = scene(&[("x = 1", ""), ("print('before')\nx + y", ""), ("print('never')", "")]).await;
    let answer = run(&scene, json!({ "keep": true })).await;
    assert!(answer.is_error && answer.text().contains("[1] cell-1"), "{answer:?}");
    assert!(answer.text().contains("name 'y' is not defined"), "{answer:?}");
    let done = answer.structured;
    assert_eq!((&done["status"], &done["cells_run"]), (&json!("failed"), &json!(2)));
    let failed = &done["failed_cell"];
    assert_eq!((&failed["index"], &failed["cell_id"]), (&json!(1), &json!("cell-1")));
    assert_eq!(
        (&failed["ename"], &failed["evalue"]),
        (&json!("NameError"), &json!("name 'y' is not defined"))
    );
    assert_eq!(failed["outputs"][0]["text"], "before\n", "{failed}");
    assert_eq!(done["kept"], scene.folder.path("run-run.ipynb"));
    let kept = whole_cells_on_disk(&scene.folder.disk.join("run-run.ipynb")).expect("a notebook");
    assert_eq!(
        (kept[1]["execution_count"].clone(), shown(&kept[2])),
        (json!(2), String::new())
    );
    let execution = scene.ended(&id(&done)).await;
    assert_eq!(
        (&execution["status"], &execution["kept"]),
        (&json!("failed"), &done["kept"])
    );
    no_kernel_is_left(&scene).await;
}

#[tokio::test]
async fn parameters_come_after_their_defaults() {
    let content = ran(&[
        ("import json", ""),
        ("alpha = 1; name = None", ""),
        ("print(alpha, name, flag)", "1 None\n"),
    ]);
    let mut content: Value = serde_json::from_str(&content).unwrap();
    content["cells"][1]["metadata"] = json!({ "tags": ["parameters"] });
    let scene = Scene::of("run.ipynb", &content.to_string()).set().await;
    let parameters = json!({ "alpha": 0.5, "name": "a \"b\"\nc", "flag": [true, null] });
    let kept = scene.folder.path("out.ipynb");
    let done = run(&scene, json!({ "parameters": parameters, "keep": kept }))
        .await
        .ok();
    assert_eq!(
        (&done["status"], &done["kept"]),
        (&json!("completed"), &json!(kept)),
        "{done}"
    );
    assert_eq!((&done["cells_run"], &done["cells_total"]), (&json!(4), &json!(4)));
    assert_eq!(
        done["differences"],
        json!([{ "index": 2, "cell_id": "cell-2", "what": "text" }]),
        "of the original"
    );
    let cells = whole_cells_on_disk(&scene.folder.disk.join("out.ipynb")).expect("a notebook");
    assert_eq!(cells[2]["metadata"], json!({ "tags": ["injected-parameters"] }));
    assert_eq!(shown(&cells[3]), "0.5 a \"b\"\nc [True, None]\n");
    assert_eq!(scene.human.sources().len(), 4, "the original has no such cell");
    // A kept copy can be run again, with other parameters in the same place.
    let again = json!({ "path": kept, "parameters": { "alpha": 1, "flag": 2 }, "keep": true });
    let again = scene.agent.call("run_notebook", again).await.ok();
    assert_eq!(
        (&again["cells_total"], &again["status"]),
        (&json!(4), &json!("completed")),
        "{again}"
    );
    let at_top =
        json!({ "path": scene.folder.write("top.ipynb", &ran(&[("print(x)", "1\n")])), "parameters": { "x": 1 } });
    let at_top = scene.agent.call("run_notebook", at_top).await.ok();
    let notices = at_top["notices"].to_string();
    assert!(notices.contains("before the first cell"), "{at_top}");
    assert!(
        again["notices"].is_null() && done["notices"].is_null(),
        "{again} {done}"
    );
    assert_eq!(
        (&at_top["status"], &at_top["differences"]),
        (&json!("completed"), &json!([])),
        "{at_top}"
    );
}

#[tokio::test]
async fn a_cell_that_is_meant_to_raise_an_error_stops_nothing() {
    let content = ran(&[
        ("x = 1", ""),
        ("1 / 0", ""),
        ("print(x)", "1\n"),
        ("nowhere", ""),
        ("print('never')", ""),
    ]);
    let mut content: Value = serde_json::from_str(&content).unwrap();
    content["cells"][1]["metadata"] = json!({ "tags": ["raises-exception"] });
    let scene = Scene::of("run.ipynb", &content.to_string()).set().await;
    let answer = run(&scene, json!({ "keep": true })).await;
    assert!(answer.text().contains("failed: [3] cell-3"), "{answer:?}");
    let done = answer.structured;
    assert_eq!(
        (&done["cells_run"], &done["failed_cell"]["index"]),
        (&json!(4), &json!(3)),
        "{done}"
    );
    let kept = whole_cells_on_disk(&scene.folder.disk.join("run-run.ipynb")).expect("a notebook");
    assert_eq!(
        (&kept[1]["outputs"][0]["ename"], shown(&kept[2])),
        (&json!("ZeroDivisionError"), "1\n".to_owned())
    );
}

#[tokio::test]
async fn nothing_is_ever_overwritten() {
    let scene = scene(&[("print(1)", "1\n")]).await;
    for expected in ["run-run.ipynb", "run-run-2.ipynb", "run-run-3.ipynb"] {
        let done = run(&scene, json!({ "keep": true })).await.ok();
        assert_eq!(done["kept"], scene.folder.path(expected));
    }
    let refused = run(&scene, json!({ "keep": scene.path })).await.error();
    assert!(refused.contains("already exists"), "{refused}");
    assert!(
        run(&scene, json!({ "keep": scene.folder.path("out.txt") }))
            .await
            .error()
            .contains(".ipynb")
    );
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_before_anything_runs() {
    let scene = scene(&[("print(1)", "1\n")]).await;
    for (arguments, why) in [
        (json!({ "kernel_name": "cobol" }), "python3"),
        (json!({ "parameters": [1] }), "object"),
        (json!({ "parameters": "x" }), "object"),
        (json!({ "parameters": { "a b": 1 } }), "a b"),
        (json!({ "timeout": -1 }), "timeout"),
    ] {
        let error = run(&scene, arguments.clone()).await.error();
        assert!(error.contains(why), "{arguments}: {error}");
    }
    let call = async |agent: &Agent, arguments: Value| agent.call("run_notebook", arguments).await.error();
    let missing = json!({ "path": scene.folder.path("none.ipynb") });
    assert!(call(&scene.agent, missing).await.contains("does not exist"));
    let text = json!({ "path": scene.folder.write("notes.txt", "1") });
    assert!(call(&scene.agent, text).await.contains(".ipynb"));
    let other =
        async |name: &str| Agent::with_token(&scene.gateway, &format!("test-token-of-{name}"), Era::Modern).await;
    assert!(
        call(&other("ron").await, json!({ "path": scene.path }))
            .await
            .contains("execute")
    );
    assert!(
        call(&other("eve").await, json!({ "path": scene.path }))
            .await
            .contains("path rules")
    );
    let keep = json!({ "path": scene.path, "keep": true });
    assert!(call(&other("ben").await, keep).await.contains("write"));
    let listed = scene
        .agent
        .call("list_executions", json!({ "path": scene.path }))
        .await
        .ok();
    assert_eq!(listed["executions"], json!([]));
}

#[tokio::test]
async fn it_outlives_the_call_and_can_be_followed_and_cancelled_by_its_owner_alone() {
    let held = "import os, time\nprint('held', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)";
    let scene = scene(&[("x = 1", ""), (held, "held\n"), ("print(x)", "1\n")]).await;
    let begun = run(&scene, json!({ "timeout": 0, "keep": true })).await.ok();
    let first = id(&begun);
    assert!(
        ["queued", "running"].contains(&begun["status"].as_str().unwrap()),
        "{begun}"
    );
    // Another one has a kernel of its own, and so has the notebook.
    let second = id(&run(&scene, json!({ "timeout": 0 })).await.ok());
    let look = async |id: &str| {
        let get = json!({ "execution_id": id });
        scene.agent.call("get_execution", get).await.structured
    };
    for id in [&first, &second] {
        eventually("it holds", async || {
            (shown(&look(id).await["cells"][1]) == "held\n").then_some(())
        })
        .await;
    }
    assert_eq!(scene.run(0, 1).await.ok()["status"], "completed");
    let ben = Agent::with_token(&scene.gateway, "test-token-of-ben", Era::Modern).await;
    let unknown = ben
        .call("get_execution", json!({ "execution_id": first }))
        .await
        .error();
    assert!(unknown.contains("no execution"), "{unknown}");
    scene.cancel(&second).await;
    scene.folder.write("go", "");
    let ended = scene.ended(&first).await;
    assert_eq!(
        (&ended["status"], &ended["differences"]),
        (&json!("completed"), &json!([])),
        "{ended}"
    );
    assert_eq!(ended["kept"], scene.folder.path("run-run.ipynb"));
    assert_eq!(look(&second).await["status"], "cancelled");
    no_kernel_is_left(&scene).await;
}

#[tokio::test]
async fn a_kernel_that_dies_ends_the_run() {
    let scene = scene(&[
        ("x = 1", ""),
        ("import os; os._exit(1)", ""),
        ("print('never')", "never\n"),
    ])
    .await;
    let answer = run(&scene, json!({})).await;
    assert!(answer.is_error, "{answer:?}");
    let done = answer.structured;
    assert!(["failed", "lost"].contains(&done["status"].as_str().unwrap()), "{done}");
    assert!(done["cells_run"].as_u64().unwrap() <= 2, "{done}");
    no_kernel_is_left(&scene).await;
}

#[tokio::test]
async fn what_a_killed_gateway_ran_ends_truly_and_its_kernel_with_it() {
    let held = "import os, time\nprint('held', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)";
    let scene = ProcessScene::new(&["x = 1", held, "print(x)"]).await;
    let (gateway, agent) = scene.gateway().await;
    let begun = agent
        .call("run_notebook", json!({ "path": scene.path, "timeout": 0 }))
        .await
        .ok();
    let get = json!({ "execution_id": begun["execution_id"] });
    eventually("it holds", async || {
        let seen = agent.call("get_execution", get.clone()).await.structured;
        (shown(&seen["cells"][1]) == "held\n").then_some(())
    })
    .await;
    scene.recorded(&begun["execution_id"], "running").await;
    gateway.signal("-KILL");
    gateway.ended().await;
    let (_gateway, agent) = scene.gateway().await;
    scene.folder.write("go", "");
    let wait = json!({ "execution_id": begun["execution_id"], "wait": 60 });
    let ended = agent.call("get_execution", wait).await.structured;
    assert_eq!(
        (&ended["status"], &ended["cells"][1]["status"]),
        (&json!("cancelled"), &json!("completed")),
        "{ended}"
    );
    assert!(
        ended["reason"].as_str().unwrap().contains("gateway restarted"),
        "{ended}"
    );
    let folder = scene.folder.path("");
    eventually("its kernel is gone", async || {
        (private_kernels(&folder).await == 0).then_some(())
    })
    .await;
}
