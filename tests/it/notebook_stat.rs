//! `get_nb_stat`: sections, errors, stale and running cells, from the open room or from the file.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::{Agent, Era, Gateway, lab, notebook::notebook, scene::Scene};

fn cells() -> String {
    let mut cells: Vec<Value> = (0..120)
        .map(|index| match index % 10 {
            0 => json!({ "cell_type": "markdown", "id": format!("md{index:06}"), "metadata": {},
                         "source": format!("{} Section number {index}\ntext", if index % 30 == 0 { "#" } else { "##" }) }),
            _ => json!({ "cell_type": "code", "id": format!("co{index:06}"), "metadata": {}, "execution_count": index,
                         "source": "x", "outputs": [] }),
        })
        .collect();
    let error =
        |value: &str| json!([{ "output_type": "error", "ename": "KeyError", "evalue": value, "traceback": ["long"] }]);
    cells[5]["outputs"] = error("'x'");
    cells[77]["outputs"] = error("'y'\nand more");
    cells[3]["execution_count"] = json!(500);
    json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5 }).to_string()
}

#[tokio::test]
async fn a_closed_notebook_is_told_of_from_its_file_in_few_words() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let path = folder.write("big.ipynb", &cells());
    let answer = agent.call("get_nb_stat", json!({ "path": path })).await;
    let text = answer.text().to_owned();
    println!("{text}");
    assert!(text.len() <= 1500, "{} bytes", text.len());
    assert!(text.starts_with(&format!("{path}: 120 cells (108 code, 12 markdown), no kernel runs\n# Section number 0 [0]-[29]\n## Section number 10 [10]-[19]\n")), "{text}");
    assert!(
        text.contains("error: [5] co000005 KeyError: 'x'\nerror: [77] co000077 KeyError: 'y'\n"),
        "{text}"
    );
    assert!(
        text.contains("stale, ran before a cell above: [4]-[9], [11]-[19], [21]"),
        "{text}"
    );
    assert!(text.contains("edits since runs are unknown"), "{text}");
    let stat = answer.ok();
    assert_eq!(
        (&stat["cell_count"], &stat["kernel"], &stat["seen_since"]),
        (&json!(120), &Value::Null, &Value::Null)
    );
    assert_eq!(stat["cell_types"], json!({ "code": 108, "markdown": 12, "raw": 0 }));
    assert_eq!(
        stat["sections"][1],
        json!({ "level": 2, "title": "Section number 10", "index": 10, "cell_id": "md000010", "end_index": 19 })
    );
    assert_eq!(
        stat["errors"][0],
        json!({ "index": 5, "cell_id": "co000005", "ename": "KeyError", "evalue": "'x'" })
    );
    assert_eq!(
        stat["stale"][0],
        json!({ "index": 4, "cell_id": "co000004", "why": ["out_of_order"] })
    );
    let open = agent.call("query_nb_sessions", json!({})).await.ok();
    assert!(!open.to_string().contains(&folder.name), "{open}");
}

#[tokio::test]
async fn what_was_edited_or_ran_before_a_restart_is_stale_until_it_runs_again() {
    let scene = Scene::new(&["a = 1", "b = 2", "1 / 0", "import time\ntime.sleep(60)", "d = 4"]).await;
    let stat = async || scene.call("get_nb_stat", json!({})).await.ok();
    let stale = |stat: &Value| {
        let cells = stat["stale"].as_array().expect("stale").iter();
        cells
            .map(|cell| (cell["index"].as_u64().unwrap(), cell["why"].clone()))
            .collect::<Vec<_>>()
    };
    scene.run(0, 3).await;
    let ran = stat().await;
    assert_eq!(
        (stale(&ran), &ran["errors"][0]["ename"]),
        (vec![], &json!("ZeroDivisionError"))
    );
    scene
        .call(
            "modify_nb_cells",
            json!({ "modifications": [{ "range": { "start": 1 }, "content": "b = 3" }], "exec": false }),
        )
        .await;
    scene
        .human
        .wait_for("the edit", |human| human.sources()[1] == "b = 3")
        .await;
    assert_eq!(stale(&stat().await), [(1, json!(["edited"]))]);
    scene.run(0, 1).await;
    let both = stat().await;
    assert_eq!(
        stale(&both),
        [(1, json!(["edited", "out_of_order"])), (2, json!(["out_of_order"]))]
    );
    scene.run(1, 3).await;
    assert_eq!(stale(&stat().await), []);

    let (running, queued) = (scene.start(3).await, scene.start(4).await);
    scene.shows_running(3).await;
    let busy = scene.call("get_nb_stat", json!({})).await;
    assert!(busy.text().contains("\nrunning: [3]\nqueued: [4]\n"), "{}", busy.text());
    let busy = busy.ok();
    assert_eq!(
        (&busy["running"][0]["index"], &busy["queued"][0]["index"]),
        (&json!(3), &json!(4))
    );
    scene.call("inspect_variables", json!({})).await.ok();
    assert_eq!(stat().await["kernel"]["state"], "busy");
    scene.cancel(&queued).await;
    scene.cancel(&running).await;
    scene.ended(&running).await;

    scene.call("restart_nb_kernel", json!({ "exec": false })).await.ok();
    scene.run(0, 1).await;
    let after = stat().await;
    let restarted = json!(["kernel_restarted"]);
    let before: Vec<_> = stale(&after).into_iter().filter(|(index, _)| *index < 3).collect();
    assert_eq!(before, [(1, restarted.clone()), (2, restarted)], "{after}");
}

#[tokio::test]
async fn a_persons_edit_makes_a_cell_stale_though_its_run_was_not_seen() {
    let mut ran: Value = serde_json::from_str(&notebook(&["x = 1", "y = 2"])).expect("JSON");
    for (index, count) in [(0, 1), (1, 2)] {
        ran["cells"][index]["execution_count"] = json!(count);
    }
    let scene = Scene::of("ran.ipynb", &ran.to_string()).set().await;
    scene.call("read_nb_cells", json!({})).await.ok();
    let stat = scene.call("get_nb_stat", json!({})).await.ok();
    assert_eq!((&stat["stale"], stat["seen_since"].is_string()), (&json!([]), true));
    scene.human.type_into(1, 0, "# ", Duration::ZERO).await;
    crate::support::eventually("the edit is known", async || {
        let stat = scene.call("get_nb_stat", json!({})).await.ok();
        (stat["stale"][0]["why"] == json!(["edited"]) && stat["stale"][0]["index"] == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_is_no_notebook_is_an_error() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    let empty = folder.write(
        "empty.ipynb",
        r#"{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#,
    );
    let stat = agent.call("get_nb_stat", json!({ "path": empty })).await;
    assert!(stat.text().contains("0 cells, no kernel runs"), "{}", stat.text());
    for (path, why) in [("none.ipynb", "does not exist"), ("a.txt", ".ipynb")] {
        let refused = agent
            .call("get_nb_stat", json!({ "path": folder.path(path) }))
            .await
            .error();
        assert!(refused.contains(why), "{refused}");
    }
}

#[tokio::test]
async fn a_notebook_that_is_being_written_is_read_when_it_is() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let agent = Agent::connect(&gateway, Era::Modern).await;
    // As Jupyter begins to save one.
    let path = folder.write("half.ipynb", "");
    let written = async {
        sleep(Duration::from_millis(60)).await;
        folder.write("half.ipynb", &notebook(&["1"]));
    };
    let (stat, ()) = tokio::join!(agent.call("get_nb_stat", json!({ "path": path })), written);
    assert_eq!(stat.ok()["cell_count"], 1);
    let broken = folder.write("broken.ipynb", "{");
    let error = agent.call("get_nb_stat", json!({ "path": broken })).await.error();
    assert!(error.contains("Unreadable Notebook"), "{error}");
}
