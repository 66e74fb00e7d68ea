//! People go on working in the notebook while a cell of it runs.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::support::{
    eventually,
    scene::{Scene, person, texts},
};

/// Runs until a file says that it is enough, so that people have all the time they need.
const WAITS: &str = "import os, time\nprint('begin', flush=True)\nwhile not os.path.exists('enough'): time.sleep(0.05)\nprint('end')\nmark = 42";

/// A scene in which the second of three cells runs.
async fn running() -> (Scene, String) {
    let scene = Scene::new(&["'above'", WAITS, "'below'"]).await;
    let id = scene.start(1).await;
    scene.shows(1, "begin").await;
    (scene, id)
}

impl Scene {
    fn enough(&self) {
        self.folder.write("enough", "");
    }
}

#[tokio::test]
async fn cells_come_and_go_around_the_one_that_runs() {
    let (scene, id) = running().await;
    scene.human.insert_cell(0, "new", "# Title");
    scene.human.delete_cell(1);
    scene.human.delete_cell(2);
    scene.human.insert_cell(1, "c2", "moved");
    scene.enough();
    let ended = scene.ended(&id).await;
    assert_eq!(
        (&ended["status"], texts(&ended["cells"][0])),
        (&json!("completed"), vec!["begin\nend\n"])
    );
    scene.shows(2, "end").await;
    assert_eq!(scene.rests(2).await, "begin\nend\n");
    let ids: Vec<String> = scene.human.cells().into_iter().map(|cell| cell.id).collect();
    assert_eq!(ids, ["new", "c2", "c1"]);
}

#[tokio::test]
async fn the_running_cell_may_be_deleted() {
    let (scene, id) = running().await;
    scene.human.delete_cell(1);
    scene.enough();
    let ended = scene.ended(&id).await;
    assert_eq!(
        (&ended["status"], texts(&ended["cells"][0])),
        (&json!("completed"), vec!["begin\nend\n"])
    );
    assert_eq!(scene.human.sources(), ["'above'", "'below'"]);
    assert_eq!(scene.code("mark").await, "42", "the kernel is at work for the next");
}

#[tokio::test]
async fn outputs_that_the_person_clears_stay_cleared() {
    let (scene, id) = running().await;
    scene.human.clear_outputs(1);
    scene
        .human
        .wait_for("it is empty", |human| human.cell(1)["outputs"] == json!([]))
        .await;
    // The gateway hears of it a moment later.
    tokio::time::sleep(Duration::from_millis(300)).await;
    scene.enough();
    let ended = scene.ended(&id).await;
    assert_eq!(texts(&ended["cells"][0]), ["begin\nend\n"], "the agent gets all");
    scene.shows(1, "end").await;
    assert_eq!(scene.rests(1).await, "end\n", "the notebook has what came since");
}

#[tokio::test]
async fn a_notebook_renamed_by_an_agent_keeps_its_run_and_its_kernel() {
    let (mut scene, id) = running().await;
    let kernel = scene.kernel().await;
    let renamed = scene.path.replace("run.ipynb", "renamed.ipynb");
    scene.call("rename_document", json!({ "newPath": renamed })).await.ok();
    scene.path = renamed;
    assert_eq!(scene.kernels().await, [(scene.path.clone(), kernel.clone())]);
    follows(&scene, &id, &kernel).await;
}

#[tokio::test]
async fn a_notebook_renamed_by_a_person_keeps_its_run_and_its_kernel() {
    let (mut scene, id) = running().await;
    let kernel = scene.kernel().await;
    let renamed = scene.path.replace("run.ipynb", "renamed.ipynb");
    let answer = person()
        .send(
            Method::PATCH,
            &format!("api/contents/{}", scene.path),
            json!({ "path": renamed }),
        )
        .await;
    assert_eq!(answer.status(), 200);
    scene.path = renamed;
    // No JupyterLab is open that would tell Jupyter where the kernel belongs now.
    eventually("the kernel follows", async || {
        (scene.kernels().await == [(scene.path.clone(), kernel.clone())]).then_some(())
    })
    .await;
    follows(&scene, &id, &kernel).await;
}

async fn follows(scene: &Scene, id: &str, kernel: &str) {
    let listed = scene.call("list_executions", json!({ "status": "running" })).await.ok();
    assert_eq!(
        listed["executions"][0]["execution_id"], id,
        "it is known by its new name"
    );
    scene.enough();
    let ended = scene.ended(id).await;
    assert_eq!(
        (&ended["status"], &ended["path"]),
        (&json!("completed"), &json!(scene.path))
    );
    assert_eq!(scene.rests(1).await, "begin\nend\n");
    assert_eq!(scene.code("mark").await, "42");
    assert_eq!(texts(&scene.run(2, 3).await.ok()["execution_results"][0]), ["'below'"]);
    assert_eq!(scene.kernel().await, kernel, "one kernel all the time");
    scene.saved("renamed.ipynb", 1, "begin\nend\n").await;
}
