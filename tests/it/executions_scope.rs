//! `execute_nb_cells` without ranges, above and below a cell; lists that say behind what an execution waits.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, eventually,
    gateway::{everything, lab_server},
    notebook::notebook,
    scene::{Scene, id},
};

const BEN: &str = "[[auth.tokens]]\nname = \"ben\"\ntenant = \"all\"\ntoken = \"test-token-of-ben\"\npermissions = [\"read\", \"write\", \"execute\"]\n";

/// A notebook in which a text stands between code.
fn mixed() -> String {
    let mut mixed: Value = serde_json::from_str(&notebook(&["0", "1", "2", "3"])).unwrap();
    mixed["cells"][1] = json!({ "id": "text", "cell_type": "markdown", "source": "# Text", "metadata": {} });
    mixed.to_string()
}

fn ran(answer: &Value) -> Vec<u64> {
    let cells = answer["execution_results"].as_array().expect("cells");
    cells.iter().map(|cell| cell["index"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn all_cells_run_or_those_above_or_below_one() {
    let scene = Scene::of("run.ipynb", &mixed()).set().await;
    for (arguments, expected) in [
        (json!({}), &[0, 2, 3][..]),
        (json!({ "scope": "only" }), &[0, 2, 3]),
        (json!({ "ranges": [{ "start": 3 }], "scope": "above" }), &[0, 2]),
        (json!({ "ranges": [{ "cell_id": "c2" }], "scope": "below" }), &[2, 3]),
        (
            json!({ "ranges": [{ "start": 3 }, { "start": 2 }], "scope": "above" }),
            &[0],
        ),
        (json!({ "ranges": [{ "start": 2 }], "scope": "only" }), &[2]),
    ] {
        let answer = scene.call("execute_nb_cells", arguments.clone()).await.ok();
        assert_eq!(ran(&answer), expected, "{arguments}");
        assert_eq!(answer["status"], "completed");
        assert_eq!(answer["executed_cells"], expected.len(), "texts are left out");
    }
}

#[tokio::test]
async fn a_scope_without_a_cell_and_one_without_cells_are_refused() {
    let scene = Scene::of("run.ipynb", &mixed()).set().await;
    for (arguments, why) in [
        (json!({ "scope": "above" }), "needs `ranges`"),
        (json!({ "scope": "below" }), "needs `ranges`"),
        (
            json!({ "ranges": [{ "start": 0 }], "scope": "above" }),
            "no cell above cell 0",
        ),
        (json!({ "ranges": [{ "start": 4 }], "scope": "below" }), "out of range"),
        (json!({ "ranges": [], "scope": "below" }), "name at least one"),
        (json!({ "scope": "around" }), "above"),
    ] {
        let error = scene.call("execute_nb_cells", arguments.clone()).await.error();
        assert!(error.contains(why), "{arguments}: {error}");
    }
    let listed = scene
        .agent
        .call("list_executions", json!({ "path": scene.path }))
        .await
        .ok();
    assert_eq!(listed["executions"], json!([]), "nothing ran");
}

#[tokio::test]
async fn a_list_says_behind_what_each_waits() {
    let config = format!("{}{}{BEN}", lab_server("lab"), everything());
    let held = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)";
    let scene = Scene::notebook(&["1", held]).configured(&config).set().await;
    let first = scene.start(1).await;
    // A cell that waits for its kernel to start looks the same to people.
    eventually("it runs", async || {
        let get = json!({ "execution_id": first });
        let seen = scene.agent.call("get_execution", get).await.ok();
        seen["cells"][0]["execution_count"].is_number().then_some(())
    })
    .await;
    let own = scene.start(0).await;
    let ben = Agent::with_token(&scene.gateway, "test-token-of-ben", Era::Modern).await;
    let run = json!({ "path": scene.path, "ranges": [{ "start": 0 }], "timeout": 0 });
    let bens = id(&ben.call("execute_nb_cells", run).await.ok());
    let reason = async |agent: &Agent, id: &str| {
        let listed = agent.call("list_executions", json!({ "path": scene.path })).await.ok();
        let executions = listed["executions"].as_array().unwrap();
        let found = executions.iter().find(|execution| execution["execution_id"] == id);
        let found = found.expect("it is listed");
        assert_eq!(found["status"], "queued", "{found}");
        found["reason"].as_str().expect("a reason").to_owned()
    };
    let told = reason(&scene.agent, &own).await;
    assert!(told.contains(&first) && told.contains("cell 1"), "{told}");
    let told = reason(&ben, &bens).await;
    assert!(
        told.contains("cell 1 that ana runs") && told.contains("1 more"),
        "{told}"
    );
    scene.folder.write("go", "");
    let wait = json!({ "execution_id": bens, "wait": 60 });
    assert_eq!(ben.call("get_execution", wait).await.ok()["status"], "completed");
}

#[tokio::test]
async fn what_waits_behind_a_persons_cell_is_told_whose_and_which() {
    let scene = Scene::new(&["6 * 7", "held"]).await;
    scene.code("1").await;
    scene.call("read_nb_cells", json!({})).await.ok();
    scene.human.publish("Pat", true);
    eventually("the gateway knows of Pat", async || {
        let read = scene.call("read_nb_cells", json!({})).await.ok();
        (read["people"][0]["name"] == "Pat").then_some(())
    })
    .await;
    let mut tab = scene.tab().await;
    let theirs = tab
        .send("import os, time\nprint('held', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)")
        .await;
    scene.human.show_running(1);
    tab.prints(&theirs).await;
    let run = json!({ "ranges": [{ "start": 0 }], "timeout": 1 });
    let waiting = scene.call("execute_nb_cells", run).await.ok();
    let told = waiting["reason"].as_str().expect("a reason");
    assert!(told.contains("cell 1 that Pat runs"), "{waiting}");
    scene.folder.write("go", "");
    assert_eq!(scene.ended(&id(&waiting)).await["status"], "completed");
}

#[tokio::test]
async fn all_of_a_notebook_of_five_thousand_cells_runs_in_one_call() {
    let cell = |n: usize| match n % 50 {
        49 => {
            json!({ "id": format!("c{n}"), "cell_type": "code", "source": format!("print({n})"), "metadata": {}, "outputs": [], "execution_count": null })
        }
        _ => json!({ "id": format!("c{n}"), "cell_type": "markdown", "source": "text", "metadata": {} }),
    };
    let cells: Vec<Value> = (0..5000).map(cell).collect();
    let content = json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5 });
    let scene = Scene::of("run.ipynb", &content.to_string()).set().await;
    let begun = scene.call("execute_nb_cells", json!({ "timeout": 0 })).await.ok();
    let ended = scene.ended(&id(&begun)).await;
    let is_done = |cell: &&Value| cell["status"] == "completed";
    let cells = ended["cells"].as_array().expect("cells");
    assert_eq!((cells.len(), cells.iter().filter(is_done).count()), (100, 100));
    assert_eq!(cells[99]["outputs"][0]["text"], "4999\n");
}
