//! Cells are moved with all that they have, while people type and cells run.

use serde_json::{Value, json};

use crate::support::{
    beside::Beside,
    eventually,
    notebook::whole_cells_on_disk,
    scene::{Scene, shown, texts},
};

/// Runs until a file says that it is enough.
const WAITS: &str =
    "import os, time\nprint('begin', flush=True)\nwhile not os.path.exists('enough'): time.sleep(0.05)\nprint('end')";

fn to(cells: &[&str], position: i64) -> Value {
    let ranges: Vec<Value> = cells.iter().map(|cell| json!({ "cell_id": cell })).collect();
    json!({ "ranges": ranges, "position": position })
}

fn ids(scene: &Scene) -> Vec<String> {
    scene.human.cells().into_iter().map(|cell| cell.id).collect()
}

async fn sees(scene: &Scene, order: &[&str]) {
    scene
        .human
        .wait_for(&format!("the order is {order:?}"), |_| ids(scene) == order)
        .await;
}

#[tokio::test]
async fn cells_move_with_ids_outputs_metadata_and_counts() {
    let scene = Scene::new(&["print('🎉')", "1 / 0", "'third'", "# four"]).await;
    scene.run(0, 1).await.ok();
    scene.run(1, 2).await;
    scene.run(2, 3).await.ok();
    let has_ended = |cell: u32| scene.human.cell(cell)["execution_count"] == cell + 1;
    scene.human.wait_for("all have run", |_| (0..3).all(has_ended)).await;
    let before: Vec<Value> = (0..4).map(|cell| scene.human.cell(cell)).collect();
    let answer = scene.call("move_nb_cells", to(&["c0", "c1"], 3)).await;
    let text = answer.text().to_owned();
    let moved = answer.ok();
    assert_eq!(
        (&moved["moved_cells"], &moved["position"], &moved["cell_ids"]),
        (&json!(2), &json!(1), &json!(["c0", "c1"]))
    );
    let told = "\n [0] c2 code 'third'\n+[1] c0 code print('🎉')\n+[2] c1 code 1 / 0\n [3] c3 code # four";
    assert!(
        text.starts_with("2 cells moved; revision ") && text.ends_with(told),
        "{text}"
    );
    sees(&scene, &["c2", "c0", "c1", "c3"]).await;
    let after = [1, 2, 0, 3].map(|cell| scene.human.cell(cell));
    assert_eq!(after.to_vec(), before, "everything is as it was");
    eventually("the file has it", async || {
        let cells = whole_cells_on_disk(&scene.folder.disk.join("run.ipynb"))?;
        (cells[1]["id"] == "c0" && shown(&cells[1]) == "🎉\n" && cells[1]["execution_count"] == 1).then_some(())
    })
    .await;
    // In the order given, to the beginning and to the end, by position.
    scene.call("move_nb_cells", to(&["c3", "c0"], 0)).await.ok();
    sees(&scene, &["c3", "c0", "c2", "c1"]).await;
    scene
        .call(
            "move_nb_cells",
            json!({ "ranges": [{ "start": 0, "end": 2 }], "position": -1 }),
        )
        .await
        .ok();
    sees(&scene, &["c2", "c1", "c3", "c0"]).await;
    let same = scene.call("move_nb_cells", to(&["c1"], 1)).await;
    assert_eq!(same.ok()["position"], 1);
    sees(&scene, &["c2", "c1", "c3", "c0"]).await;
}

#[tokio::test]
async fn bad_moves_change_nothing() {
    let scene = Scene::notebook(&["one", "two"]).editing().set().await;
    for (bad, told) in [
        (to(&["c0"], 3), "0 to 2, or -1"),
        (to(&["c0"], -2), "-1 to append"),
        (to(&["nowhere"], 0), "no cell \"nowhere\""),
        (to(&[], 0), "name at least one"),
        (
            json!({ "ranges": [{ "start": 1, "end": 3 }], "position": 0 }),
            "out of range",
        ),
        (json!({ "ranges": [{ "start": 0 }] }), "`position`"),
    ] {
        let refused = scene.call("move_nb_cells", bad).await.error();
        assert!(refused.contains(told), "{told}: {refused}");
    }
    assert_eq!(ids(&scene), ["c0", "c1"]);
}

#[tokio::test]
async fn a_cell_is_not_moved_from_under_a_persons_hands() {
    let scene = Beside::notebook(&["first", "second", "third"]).await;
    scene.read().await;
    scene.types("c0", 5, 0, " thoughts").await;
    let refused = scene.call("move_nb_cells", to(&["c1", "c0"], -1)).await.error();
    assert!(
        refused.contains("Ida is in cell c0") && refused.contains("force: true"),
        "{refused}"
    );
    let to_markdown = json!({ "modifications": [{ "range": { "cell_id": "c0" }, "type": "markdown" }] });
    let refused = scene.call("modify_nb_cells", to_markdown).await.error();
    assert!(refused.contains("Ida is in cell c0"), "{refused}");
    assert_eq!(ids(&scene), ["c0", "c1", "c2"]);
    // Another cell may pass the one that the person is in, which stays the same for their cursor.
    scene.call("move_nb_cells", to(&["c1"], 0)).await.ok();
    sees(&scene, &["c1", "c0", "c2"]).await;
    scene.types("c0", 14, 0, "!").await;
    scene.human.point_at("Ida", "c2", 1);
    eventually("the gateway knows where the person is", async || {
        let people = scene.watch().await["people"].clone();
        (people[0]["cell_id"] == "c2").then_some(())
    })
    .await;
    let refused = scene.call("move_nb_cells", to(&["c2"], 0)).await.error();
    assert!(refused.contains("Ida is in cell c2"), "{refused}");
    let mut forced = to(&["c0"], -1);
    forced["force"] = true.into();
    scene.call("move_nb_cells", forced).await.ok();
    scene.sees(&["second", "third", "first thoughts!"]).await;
}

#[tokio::test]
async fn positions_that_others_shifted_are_refused() {
    let scene = Beside::notebook(&["first", "second", "third"]).await;
    let revision = scene.read().await["revision"].clone();
    scene.human.insert_cell(1, "new", "# Title");
    scene.heard().await;
    for mut moved in [to(&["c0"], 2), json!({ "ranges": [{ "start": 2 }], "position": 0 })] {
        moved["if_revision"] = revision.clone();
        let refused = scene.call("move_nb_cells", moved).await.error();
        assert!(refused.contains("inserted or removed cells"), "{refused}");
    }
    let mut still = to(&["c2"], 0);
    still["if_revision"] = revision;
    scene.call("move_nb_cells", still).await.ok();
    sees(&scene, &["c2", "c0", "new", "c1"]).await;
}

#[tokio::test]
async fn a_running_cell_is_moved_and_keeps_its_outputs_and_its_state() {
    let scene = Scene::new(&["'above'", WAITS, "'queued'"]).await;
    let id = scene.start(1).await;
    scene.start(2).await;
    scene.shows(1, "begin").await;
    scene.shows_running(2).await;
    scene.call("move_nb_cells", to(&["c1", "c2"], 0)).await.ok();
    sees(&scene, &["c1", "c2", "c0"]).await;
    for cell in [0, 1] {
        assert_eq!(scene.human.cell(cell)["execution_state"], "running", "still [*]");
    }
    assert_eq!(shown(&scene.human.cell(0)), "begin\n");
    let cleared = scene.call("clear_nb_outputs", json!({})).await;
    assert!(cleared.text().contains("not cleared: c1, c2"), "{}", cleared.text());
    assert_eq!(cleared.ok()["running"], json!(["c1", "c2"]));
    scene.folder.write("enough", "");
    let ended = scene.ended(&id).await;
    assert_eq!(
        (&ended["status"], texts(&ended["cells"][0])),
        (&json!("completed"), vec!["begin\nend\n"])
    );
    assert_eq!(scene.idle_output(0).await, "begin\nend\n");
    assert_eq!(scene.idle_output(1).await, "'queued'");
}

#[tokio::test]
async fn outputs_are_cleared_of_all_cells_or_some() {
    let scene = Scene::new(&["1", "2", "3"]).await;
    scene.run(0, 3).await.ok();
    let answer = scene
        .call(
            "clear_nb_outputs",
            json!({ "ranges": [{ "cell_id": "c1" }, { "start": 1 }] }),
        )
        .await;
    assert!(
        answer.text().starts_with("Cleared outputs of 1 cell; revision "),
        "{}",
        answer.text()
    );
    assert_eq!(answer.ok()["cell_ids"], json!(["c1"]));
    scene
        .human
        .wait_for("it is cleared", |human| {
            shown(&human.cell(1)).is_empty() && human.cell(1)["execution_count"].is_null()
        })
        .await;
    assert_eq!(shown(&scene.human.cell(0)), "1");
    let refused = scene
        .call("clear_nb_outputs", json!({ "ranges": [{ "start": 3 }] }))
        .await
        .error();
    assert!(refused.contains("out of range"), "{refused}");
    assert_eq!(scene.call("clear_nb_outputs", json!({})).await.ok()["cleared_cells"], 2);
    let again = scene.call("clear_nb_outputs", json!({})).await.ok();
    assert_eq!(
        (&again["cleared_cells"], &again["acknowledged"]),
        (&json!(0), &json!(true))
    );
    scene
        .human
        .wait_for("all are cleared", |human| {
            (0..3).all(|cell| shown(&human.cell(cell)).is_empty())
        })
        .await;
}
