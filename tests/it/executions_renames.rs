//! Notebooks that get another name while something runs or waits in them, or while no gateway looks.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Agent, eventually,
    process_scene::ProcessScene,
    scene::{Scene, ended, id, person, shown, texts},
};

/// Runs until a file says that it is enough.
const WAITS: &str = "import os, time\nprint('begin', flush=True)\nwhile not os.path.exists('enough'): time.sleep(0.05)\nprint('end')\nmark = 42";

/// A scene in which a cell runs and another waits behind it.
async fn running() -> (Scene, String, String) {
    let scene = Scene::new(&["'above'", WAITS, "'below'"]).await;
    let running = scene.start(1).await;
    scene.shows(1, "begin").await;
    let waiting = scene.start(2).await;
    (scene, running, waiting)
}

/// Renames a notebook as a person does, without a JupyterLab that would tell Jupyter where the kernel belongs now.
async fn rename(from: &str, to: &str) {
    let place = format!("api/contents/{from}");
    let answer = person().send(Method::PATCH, &place, json!({ "path": to })).await;
    assert_eq!(answer.status(), 200);
}

fn renamed(path: &str) -> String {
    path.replace("run.ipynb", "renamed.ipynb")
}

#[tokio::test]
async fn a_notebook_renamed_by_an_agent_keeps_its_queue_and_its_kernel() {
    let (mut scene, running, waiting) = running().await;
    let kernel = scene.kernel().await;
    let new = renamed(&scene.path);
    scene.call("rename_document", json!({ "newPath": new })).await.ok();
    scene.path = new;
    assert_eq!(scene.kernels().await, [(scene.path.clone(), kernel.clone())]);
    follows(&scene, [&running, &waiting], &kernel).await;
}

#[tokio::test]
async fn a_notebook_renamed_by_a_person_keeps_its_queue_and_its_kernel() {
    let (mut scene, running, waiting) = running().await;
    let kernel = scene.kernel().await;
    let new = renamed(&scene.path);
    rename(&scene.path, &new).await;
    scene.path = new;
    eventually("the kernel follows", async || {
        (scene.kernels().await == [(scene.path.clone(), kernel.clone())]).then_some(())
    })
    .await;
    follows(&scene, [&running, &waiting], &kernel).await;
}

#[tokio::test]
async fn a_renamed_notebook_has_one_queue_whichever_name_was_used() {
    for tool in ["execute_nb_cells", "run_code"] {
        let (mut scene, first, waiting) = running().await;
        let new = renamed(&scene.path);
        rename(&scene.path, &new).await;
        scene.path = new;
        // At once, before the gateway may have heard of it.
        let run = match tool {
            "run_code" => json!({ "code": "mark", "timeout": 0 }),
            _ => json!({ "ranges": [{ "start": 2 }], "timeout": 0 }),
        };
        let second = id(&scene.call(tool, run).await.ok());
        let get = json!({ "execution_id": second });
        let seen = scene.agent.call("get_execution", get).await.ok();
        let behind = format!("waiting for your execution {first} (cell 1) and 1 more");
        assert!(
            seen["reason"].as_str().is_some_and(|why| why.starts_with(&behind)),
            "{tool}: {seen}"
        );
        scene.folder.write("enough", "");
        for id in [first, waiting, second] {
            assert_eq!(scene.ended(&id).await["status"], "completed", "{tool}");
        }
        assert_eq!(scene.kernels().await.len(), 1, "{tool}");
    }
}

/// Checks that running and waiting executions go on in the renamed notebook, with one queue, one kernel and all records.
async fn follows(scene: &Scene, [running, waiting]: [&str; 2], kernel: &str) {
    assert_eq!(listed(&scene.agent, &scene.path).await, [waiting, running]);
    let seen = scene
        .agent
        .call("get_execution", json!({ "execution_id": waiting }))
        .await
        .ok();
    assert_eq!(
        (&seen["status"], &seen["path"]),
        (&json!("queued"), &json!(scene.path)),
        "{seen}"
    );
    let behind = format!("waiting for your execution {running}");
    assert!(seen["reason"].as_str().unwrap().starts_with(&behind), "{seen}");
    let later = scene.start(0).await;
    let seen = scene
        .agent
        .call("get_execution", json!({ "execution_id": later }))
        .await
        .ok();
    let behind = format!("waiting for your execution {running} (cell 1) and 1 more");
    assert!(
        seen["reason"].as_str().unwrap().starts_with(&behind),
        "one queue: {seen}"
    );
    scene.cancel(&later).await;
    scene.folder.write("enough", "");
    for id in [running, waiting] {
        let ended = scene.ended(id).await;
        assert_eq!(
            (&ended["status"], &ended["path"]),
            (&json!("completed"), &json!(scene.path))
        );
    }
    scene.shows(1, "end").await;
    assert_eq!(scene.idle_output(1).await, "begin\nend\n");
    scene.shows(2, "'below'").await;
    assert_eq!(scene.code("mark").await, "42");
    assert_eq!(scene.kernel().await, kernel, "one kernel all the time");
    scene.saved("renamed.ipynb", 1, "begin\nend\n").await;
    assert_eq!(listed(&scene.agent, &scene.path).await[1..], [&later, waiting, running]);
    let before = scene.path.replace("renamed.ipynb", "run.ipynb");
    assert!(listed(&scene.agent, &before).await.is_empty());
}

/// The ids of the executions of a notebook, the newest first.
async fn listed(agent: &Agent, path: &str) -> Vec<String> {
    let listed = agent.call("list_executions", json!({ "path": path })).await.ok();
    let executions = listed["executions"].as_array().unwrap().iter();
    let listed = executions.inspect(|execution| assert_eq!(execution["path"], path));
    listed.map(id).collect()
}

#[tokio::test]
async fn what_runs_in_a_notebook_that_is_renamed_while_the_gateway_is_down_goes_on_there() {
    let mut scene = ProcessScene::new(&["'above'", WAITS, "'below'"]).await;
    let (gateway, agent) = scene.gateway().await;
    let run = |cell: usize| json!({ "path": scene.path, "ranges": [{ "start": cell }], "timeout": 0 });
    let before = agent.call(
        "execute_nb_cells",
        json!({ "path": scene.path, "ranges": [{ "start": 0 }] }),
    );
    let before = id(&before.await.ok());
    let running = id(&agent.call("execute_nb_cells", run(1)).await.ok());
    scene
        .human
        .wait_for("it has begun", |human| shown(&human.cell(1)).contains("begin"))
        .await;
    scene.recorded(&json!(before), "completed").await;
    let kernel = scene.kernel().await;
    gateway.signal("-KILL");
    gateway.ended().await;
    let new = renamed(&scene.path);
    rename(&scene.path, &new).await;
    scene.path = new;
    let (_gateway, agent) = scene.gateway().await;
    scene.is_connected_to(&kernel).await;
    scene.folder.write("enough", "");
    let result = ended(&agent, &running).await;
    assert_eq!(
        (&result["status"], &result["path"]),
        (&json!("completed"), &json!(scene.path)),
        "{result}"
    );
    assert_eq!(texts(&result["cells"][0]), ["begin\nend\n"]);
    scene
        .human
        .wait_for("the notebook has the outputs", |human| {
            let cell = human.cell(1);
            cell["execution_state"] == "idle" && shown(&cell) == "begin\nend\n"
        })
        .await;
    assert_eq!(listed(&agent, &scene.path).await, [running, before]);
    let run = json!({ "path": scene.path, "code": "mark" });
    let ran: Value = agent.call("run_code", run).await.ok();
    assert_eq!(texts(&ran).concat(), "42", "its kernel went with it");
}

#[tokio::test]
async fn what_ended_before_a_notebook_was_renamed_unseen_is_found_under_its_new_name() {
    let scene = ProcessScene::new(&["'above'"]).await;
    let (gateway, agent) = scene.gateway().await;
    let run = json!({ "path": scene.path, "ranges": [{ "start": 0 }] });
    let of_cells = id(&agent.call("execute_nb_cells", run).await.ok());
    let run = json!({ "path": scene.path, "code": "1" });
    let of_code = id(&agent.call("run_code", run).await.ok());
    for execution in [&of_cells, &of_code] {
        scene.recorded(&json!(execution), "completed").await;
    }
    gateway.signal("-KILL");
    gateway.ended().await;
    let new = renamed(&scene.path);
    rename(&scene.path, &new).await;
    let (_gateway, agent) = scene.gateway().await;
    assert_eq!(listed(&agent, &new).await, [of_code, of_cells]);
    assert!(listed(&agent, &scene.path).await.is_empty());
}
