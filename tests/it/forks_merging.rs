//! What becomes of a cell that was changed both in a fork and beside it.

use serde_json::json;

use crate::{
    forks::{fork, merge, modify, sources},
    support::{eventually, scene::Scene},
};

#[tokio::test]
async fn lines_that_both_changed_stand_there_twice_and_deletions_are_refused() {
    let scene = Scene::notebook(&["x = 1\nz = 1", "y = 1", "w = 1"])
        .editing()
        .set()
        .await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    scene.human.publish("Ida", true);
    let id = fork(agent, path, json!({})).await;
    modify(agent, path, &id, "c0", "x = 2\nz = 1").await;
    modify(agent, path, &id, "c1", "y = 2").await;
    let delete = json!({ "path": path, "fork_id": id, "ranges": [{ "cell_id": "c2" }] });
    agent.call("delete_nb_cells", delete).await.ok();
    scene.human.splice_cell("c0", 4, 1, "3");
    scene.human.splice_cell("c2", 5, 0, "0");
    eventually("the gateway has it", async || {
        let seen = sources(agent, path, None).await;
        (seen == ["x = 3\nz = 1", "y = 1", "w = 10"]).then_some(())
    })
    .await;
    let refused = merge(agent, path, &id, json!({})).await.error();
    for part in [
        "nothing was changed",
        "the fork deleted cell c2",
        "w = 10",
        "force: true",
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert!(!refused.contains("cell c0"), "{refused}");
    scene.sees(&["x = 3\nz = 1", "y = 1", "w = 10"]).await;
    let merged = merge(agent, path, &id, json!({ "cell_ids": ["c0", "c1"] })).await;
    assert!(
        merged.text().contains("In c0 the same lines were changed"),
        "{}",
        merged.text()
    );
    assert_eq!(merged.ok()["kept_both"], json!(["c0"]));
    scene.sees(&["x = 3\nx = 2\nz = 1", "y = 2", "w = 10"]).await;
    // It is an edit like others.
    agent.call("undo_changes", json!({ "path": path })).await.ok();
    scene.sees(&["x = 3\nz = 1", "y = 1", "w = 10"]).await;
    merge(agent, path, &id, json!({ "force": true })).await.ok();
    scene.sees(&["x = 3\nz = 1", "y = 1"]).await;
}

#[tokio::test]
async fn what_both_changed_in_one_line_is_merged_by_character() {
    let cells = ["a = 1", "value", "plot(data)", "x = 1"];
    let scene = Scene::notebook(&cells).editing().set().await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let id = fork(agent, path, json!({})).await;
    for (cell, content) in [
        ("c0", "a = 10"),
        ("c1", "values"),
        ("c2", "plot(data, width=3)"),
        ("c3", "x = 10"),
    ] {
        modify(agent, path, &id, cell, content).await;
    }
    scene.human.splice_cell("c0", 5, 0, " # mine");
    scene.human.splice_cell("c1", 0, 0, "my_");
    scene.human.splice_cell("c2", 9, 0, ", color='red'");
    scene.human.splice_cell("c3", 4, 1, "2");
    let typed = ["a = 1 # mine", "my_value", "plot(data, color='red')", "x = 2"];
    eventually("the gateway has it", async || {
        (sources(agent, path, None).await == typed).then_some(())
    })
    .await;
    let merged = merge(agent, path, &id, json!({})).await.ok();
    assert_eq!(merged["kept_both"], json!(["c3"]), "the end of one number: {merged}");
    let expected = [
        "a = 10 # mine",
        "my_values",
        "plot(data, color='red', width=3)",
        "x = 2\nx = 10",
    ];
    scene.sees(&expected).await;
    agent.call("undo_changes", json!({ "path": path })).await.ok();
    scene.sees(&typed).await;
}

#[tokio::test]
async fn a_forced_merge_overwrites_only_what_both_changed() {
    let scene = Scene::notebook(&["x = 1\nz = 1"]).editing().set().await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let id = fork(agent, path, json!({})).await;
    modify(agent, path, &id, "c0", "x = 2\nz = 1").await;
    scene.human.splice_cell("c0", 4, 1, "3");
    scene.human.splice_cell("c0", 11, 0, "  # mine");
    eventually("the gateway has it", async || {
        (sources(agent, path, None).await == ["x = 3\nz = 1  # mine"]).then_some(())
    })
    .await;
    let merged = merge(agent, path, &id, json!({ "force": true })).await.ok();
    assert_eq!(merged["kept_both"], json!([]), "{merged}");
    scene.sees(&["x = 2\nz = 1  # mine"]).await;
}
