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
    assert_eq!(scene.idle_output(2).await, "begin\nend\n");
    assert_eq!(scene.ended(&id).await["cells"][0]["index"], 2, "where it is now");
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
async fn a_cell_that_is_moved_while_it_runs_is_shown_running_and_gets_all_its_outputs() {
    let (scene, id) = running().await;
    scene.human.move_cell(1, 0);
    eventually("the gateway hears of it", async || {
        let read = scene.call("read_nb_cells", json!({})).await.ok();
        (read["cells"][0]["id"] == "c1").then_some(())
    })
    .await;
    scene.enough();
    assert_eq!(scene.ended(&id).await["status"], "completed");
    assert_eq!(scene.idle_output(0).await, "begin\nend\n");
}

#[tokio::test]
async fn cells_that_become_text_are_not_run_and_get_no_outputs() {
    let (scene, running) = running().await;
    let waiting = scene.start(2).await;
    for (at, id) in [(1, "c1"), (2, "c2")] {
        scene.human.delete_cell(at);
        scene.human.insert_cell(at, id, "open('ran', 'w')");
    }
    eventually("the gateway hears of it", async || {
        let read = scene.call("read_nb_cells", json!({})).await.ok();
        (read["cells"][2]["cell_type"] == "markdown").then_some(())
    })
    .await;
    scene.enough();
    assert_eq!(scene.ended(&running).await["status"], "completed");
    let ended = scene.ended(&waiting).await;
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert!(
        ended["reason"].as_str().unwrap().contains("changed from code to text"),
        "{ended}"
    );
    assert_eq!(scene.code("mark").await, "42", "nothing is to come");
    assert!(!scene.folder.has("ran"));
    for at in [1, 2] {
        let cell = scene.human.cell(at);
        let written = ["outputs", "execution_count", "execution_state"].map(|member| cell.get(member));
        assert_eq!(written, [None; 3], "{cell}");
    }
}

#[tokio::test]
async fn what_is_left_of_a_batch_when_its_notebook_is_deleted_is_cancelled() {
    let scene = Scene::new(&[WAITS, "open('ran', 'w')"]).await;
    let run = json!({ "ranges": [{ "start": 0, "end": 2 }], "timeout": 60 });
    let deleting = async {
        scene.shows(0, "begin").await;
        let contents = format!("api/contents/{}", scene.path);
        person().send(Method::DELETE, &contents, json!(null)).await;
        eventually("the gateway hears of it", async || {
            let sessions = scene.agent.call("query_nb_sessions", json!({})).await.ok();
            (!sessions.to_string().contains(&scene.path)).then_some(())
        })
        .await;
        // It leaves the room a moment later.
        tokio::time::sleep(Duration::from_millis(500)).await;
        scene.enough();
    };
    let (ran, ()) = tokio::join!(scene.call("execute_nb_cells", run), deleting);
    let (ended, message) = (&ran.structured, ran.structured["message"].as_str().unwrap());
    assert!(ran.is_error && ended["status"] == "cancelled", "{ended}");
    assert!(
        message.starts_with("Began to execute 1 cell range, but it") && message.contains("1 of 2 cells ran"),
        "{message}"
    );
    assert!(message.contains("notebook was deleted"), "{message}");
    assert!(!scene.folder.has("ran"));
    let before = eventually("it is looked for", async || refusals(&scene).await).await;
    // Longer than the gateway waits before it would look again.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(refusals(&scene).await, Some(before), "once");
}

/// The metric that counts what Jupyter refused the gateway, such as what does not exist.
async fn refusals(scene: &Scene) -> Option<String> {
    let metrics = reqwest::get(scene.gateway.url("/metrics")).await.unwrap();
    let metrics = metrics.text().await.unwrap();
    let is_count = |line: &&str| line.starts_with("jmg_jupyter_request_duration_seconds_count");
    let mut counts = metrics.lines().filter(is_count);
    counts.find(|line| line.contains("refused")).map(str::to_owned)
}

#[tokio::test]
async fn outputs_that_the_person_clears_stay_cleared() {
    let (scene, id) = running().await;
    scene.human.clear_outputs(1);
    scene
        .human
        .wait_for("it is empty", |human| human.cell(1)["outputs"] == json!([]))
        .await;
    eventually("the gateway has it", async || {
        let read = scene.call("read_nb_cells", json!({})).await.ok();
        (read["cells"][1]["outputs"] == json!([])).then_some(())
    })
    .await;
    scene.enough();
    let ended = scene.ended(&id).await;
    assert_eq!(texts(&ended["cells"][0]), ["begin\nend\n"], "the agent gets all");
    scene.shows(1, "end").await;
    assert_eq!(scene.idle_output(1).await, "end\n", "the notebook has what came since");
}
