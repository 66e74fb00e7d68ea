//! `read_cell`, `insert_cell`, `overwrite_cell_source`, `edit_cell_source`, `move_cell`, `delete_cell`, `clear_cell_output`.

use serde_json::{Value, json};

use super::{HEADER, OTHER, Scene, agent};
use crate::support::{Era, Human, agent::ERAS, eventually};

/// The id of a cell, as reading it tells.
async fn id_of(scene: &Scene, index: usize) -> String {
    let read = scene.call("read_cell", json!({ "cell_index": index })).await;
    let id = read.structured["cell_id"].as_str().expect("an id").to_owned();
    let (_, short) = read.text().rsplit_once(" | id: ").expect("an id");
    assert!(id.starts_with(short.trim_end_matches('=')), "{read:?}");
    id
}

#[tokio::test]
async fn cells_are_read_by_index_and_by_id() {
    for era in ERAS {
        let scene = Scene::with(era, &["print('out')", "b"]).await;
        scene.outputs("execute_cell", json!({ "cell_index": 0 })).await;
        let read = scene.outputs("read_cell", json!({ "cell_index": 0 })).await;
        let heading = read[0].as_str().unwrap();
        assert!(
            heading.starts_with("=====Cell 0 | type: code | execution count: 1"),
            "{heading}"
        );
        assert_eq!(read[1..], ["print('out')", "out"]);
        let without = json!({ "cell_index": 0, "include_outputs": false });
        assert_eq!(scene.outputs("read_cell", without).await.len(), 2);
        let id = id_of(&scene, 1).await;
        // Of both the id counts.
        let by_id = json!({ "cell_index": 0, "cell_id": id, "notebook_name": "nb", "include_outputs": null });
        assert_eq!(scene.outputs("read_cell", by_id).await[1], "b");
        for (arguments, expected) in [
            (json!({}), "name the cell by cell_index or cell_id"),
            (
                json!({ "cell_index": 2 }),
                "2 is out of range; the notebook has 2 cells, 0 to 1",
            ),
            (json!({ "cell_index": -1 }), "`cell_index`"),
            (json!({ "cell_id": "no-such" }), "no cell \"no-such\""),
            (
                json!({ "cell_index": 0, "notebook_name": "other" }),
                "\"other\" is not connected",
            ),
        ] {
            let error = scene.error("read_cell", arguments.clone()).await;
            assert!(error.contains(expected), "{arguments}: {error}");
        }
    }
}

#[tokio::test]
async fn cells_are_inserted_where_they_are_wanted() {
    let scene = Scene::with(Era::Legacy, &["a", "b"]).await;
    let insert = async |index: i64, kind: &str, source: &str| {
        let arguments = json!({ "cell_index": index, "cell_type": kind, "cell_source": source });
        scene.text("insert_cell", arguments).await
    };
    let inserted = insert(1, "markdown", "# m\nmore").await;
    let expected = format!(
        "Cell inserted successfully at index 1 (markdown)!\nNotebook now has 3 cells, showing surrounding cells:\n{HEADER}\n\
         0\tcode\tN/A\ta\n1\tmarkdown\tN/A\t# m...(1 lines hidden)\n2\tcode\tN/A\tb"
    );
    assert_eq!(inserted, expected);
    assert!(
        insert(-1, "raw", "end")
            .await
            .starts_with("Cell inserted successfully at index 3 (raw)!")
    );
    assert!(
        insert(4, "code", "")
            .await
            .starts_with("Cell inserted successfully at index 4 (code)!")
    );
    assert_eq!(
        scene.firsts("nb").await,
        ["a", "# m...(1 lines hidden)", "b", "end", ""]
    );
    for (arguments, expected) in [
        (
            json!({ "cell_index": 6, "cell_type": "code", "cell_source": "" }),
            "allowed: 0 to 5, or -1",
        ),
        (
            json!({ "cell_index": -2, "cell_type": "code", "cell_source": "" }),
            "allowed: 0 to 5, or -1",
        ),
        (
            json!({ "cell_index": 0, "cell_type": "sql", "cell_source": "" }),
            "markdown",
        ),
        (json!({ "cell_index": 0, "cell_type": "code" }), "`cell_source`"),
    ] {
        let error = scene.error("insert_cell", arguments).await;
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(scene.firsts("nb").await.len(), 5);
    // Not the active one.
    scene.activate("other", &[]).await;
    let there = json!({ "cell_index": 0, "cell_type": "code", "cell_source": "there", "notebook_name": "nb" });
    scene.text("insert_cell", there).await;
    assert_eq!(scene.firsts("nb").await[0], "there");
}

#[tokio::test]
async fn sources_are_overwritten_and_edited_with_a_diff() {
    let scene = Scene::with(Era::Modern, &["x = 1\ny = 2", "a a a"]).await;
    let overwrite = json!({ "cell_index": 0, "cell_source": "x = 10\ny = 2" });
    let text = scene.text("overwrite_cell_source", overwrite.clone()).await;
    let diff = "Cell 0 overwritten successfully!\n\n```diff\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 10\n y = 2\n```";
    assert_eq!(text, diff);
    let same = scene.text("overwrite_cell_source", overwrite).await;
    assert_eq!(same, "Cell 0 overwritten successfully - no changes detected");
    let id = id_of(&scene, 1).await;
    let by_id = json!({ "cell_id": id, "cell_source": "b a", "notebook_name": "nb" });
    assert!(
        scene
            .text("overwrite_cell_source", by_id)
            .await
            .contains("Cell 1 overwritten")
    );

    let edit = |old: &str, new: &str| json!({ "cell_index": 0, "old_string": old, "new_string": new });
    let text = scene.text("edit_cell_source", edit("x = 10", "x = 3")).await;
    assert!(text.starts_with("Cell 0 edited successfully!\n\n```diff\n"), "{text}");
    assert!(text.contains("\n-x = 10\n+x = 3\n"), "{text}");
    let same = scene.text("edit_cell_source", edit("y", "y")).await;
    assert_eq!(same, "Cell 0 edited successfully - no changes detected");
    let mut all = edit(" = ", "=");
    all["replace_all"] = true.into();
    scene.text("edit_cell_source", all).await;
    assert_eq!(
        scene.outputs("read_cell", json!({ "cell_index": 0 })).await[1],
        "x=3\ny=2"
    );
    for (arguments, expected) in [
        (edit("z", "w"), "not found"),
        (edit("=", ":"), "found 2 times"),
        (edit("", "w"), "must not be empty"),
        (
            json!({ "cell_index": 9, "old_string": "a", "new_string": "b" }),
            "9 is out of range",
        ),
        (json!({ "old_string": "a", "new_string": "b" }), "cell_index or cell_id"),
        (json!({ "cell_index": 0, "old_string": "x" }), "`new_string`"),
    ] {
        let error = scene.error("edit_cell_source", arguments).await;
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(
        scene.outputs("read_cell", json!({ "cell_index": 0 })).await[1],
        "x=3\ny=2"
    );
}

/// Nobody's typing is lost by an agent that knows nothing of revisions.
#[tokio::test]
async fn what_a_person_typed_is_not_overwritten() {
    let scene = Scene::with(Era::Modern, &["first\nsecond\nthird"]).await;
    scene.outputs("read_cell", json!({ "cell_index": 0 })).await;
    let human = Human::join(&scene.folder.path("nb.ipynb")).await;
    let id = id_of(&scene, 0).await;
    type_over(&scene, &human, &id, 0, "FIRST").await;
    let merged = json!({ "cell_index": 0, "cell_source": "first\nsecond\nTHIRD" });
    scene.call("overwrite_cell_source", merged).await.ok();
    human
        .wait_for("the merge", |human| human.sources()[0] == "FIRST\nsecond\nTHIRD")
        .await;
    type_over(&scene, &human, &id, 6, "SECOND").await;
    let refused = scene
        .error(
            "overwrite_cell_source",
            json!({ "cell_index": 0, "cell_source": "mine" }),
        )
        .await;
    assert!(refused.contains("SECOND") && refused.contains("force"), "{refused}");
    type_over(&scene, &human, &id, 0, "First").await;
    let refused = scene.error("delete_cell", json!({ "cell_indices": [0] })).await;
    assert!(refused.contains("First"), "{refused}");
    let forced = json!({ "cell_index": 0, "cell_source": "mine", "force": true });
    scene.call("overwrite_cell_source", forced).await.ok();
    human.wait_for("the source", |human| human.sources()[0] == "mine").await;
}

/// A person types over a word, which the gateway sees before this returns.
async fn type_over(scene: &Scene, human: &Human, id: &str, at: u32, word: &str) {
    let length = u32::try_from(word.len()).expect("a short word");
    human.splice_cell(id, at, length, word);
    // Somebody else looks, for what the agent itself is shown it may overwrite.
    let bob = agent(&scene.gateway, "", OTHER, Era::Modern).await;
    let nb = json!({ "notebook_name": "nb", "notebook_path": scene.folder.path("nb.ipynb") });
    bob.call("use_notebook", nb).await.ok();
    eventually("the gateway to see it", async || {
        let cell = json!({ "cell_index": 0, "notebook_name": "nb" });
        let read = bob.call("read_cell", cell).await;
        read.texts[1].contains(word).then_some(())
    })
    .await;
}

#[tokio::test]
async fn cells_are_moved_with_what_they_hold() {
    for era in ERAS {
        let scene = Scene::with(era, &["print('A')", "B", "C", "D"]).await;
        scene.outputs("execute_cell", json!({ "cell_index": 0 })).await;
        let id = id_of(&scene, 0).await;
        let moved = scene
            .text("move_cell", json!({ "source_index": 0, "target_index": 2 }))
            .await;
        assert!(
            moved.starts_with("Cell moved successfully from index 0 to 2 (code).\nNotebook has 4 cells"),
            "{moved}"
        );
        assert_eq!(scene.firsts("nb").await, ["B", "C", "print('A')", "D"]);
        let read = scene.outputs("read_cell", json!({ "cell_id": id })).await;
        assert_eq!(read[1..], ["print('A')", "A"], "its outputs move with it");
        for (from, to, order) in [
            (2, 0, ["print('A')", "B", "C", "D"]),
            (0, 3, ["B", "C", "D", "print('A')"]),
            (3, 2, ["B", "C", "print('A')", "D"]),
            (1, 1, ["B", "C", "print('A')", "D"]),
        ] {
            scene
                .text("move_cell", json!({ "source_index": from, "target_index": to }))
                .await;
            assert_eq!(scene.firsts("nb").await, order, "{from} to {to}");
        }
        let target = id_of(&scene, 0).await;
        let by_id = json!({ "source_cell_id": id, "target_cell_id": target, "notebook_name": "nb" });
        scene.text("move_cell", by_id).await;
        assert_eq!(scene.firsts("nb").await, ["print('A')", "B", "C", "D"]);
        for (arguments, expected) in [
            (
                json!({ "source_index": 4, "target_index": 0 }),
                "`source_index`: 4 is out of range",
            ),
            (
                json!({ "source_index": 0, "target_index": 4 }),
                "`target_index`: 4 is out of range",
            ),
            (json!({ "source_index": 0 }), "target_index or target_cell_id"),
            (json!({ "target_index": 0 }), "source_index or source_cell_id"),
        ] {
            let error = scene.error("move_cell", arguments).await;
            assert!(error.contains(expected), "{error}");
        }
    }
}

#[tokio::test]
async fn cells_are_deleted_whole_or_not_at_all() {
    let scene = Scene::with(Era::Modern, &["a", "b", "c", "d", "e"]).await;
    let deleted = scene.text("delete_cell", json!({ "cell_indices": [3, 0] })).await;
    let expected = "Cell 3 (code) deleted successfully.\ndeleted cell source:\nd\n\n---\n\n\
                    Cell 0 (code) deleted successfully.\ndeleted cell source:\na\n\n---\n";
    assert_eq!(deleted, expected);
    let id = id_of(&scene, 2).await;
    let by_id = json!({ "cell_ids_to_delete": [id], "cell_indices": [0], "include_source": false });
    let deleted = scene.text("delete_cell", by_id).await;
    assert_eq!(deleted, "Cell 2 (code) deleted successfully.");
    assert_eq!(scene.firsts("nb").await, ["b", "c"]);
    for (arguments, expected) in [
        (json!({}), "cell_indices or cell_ids_to_delete"),
        (json!({ "cell_indices": [] }), "cell_indices or cell_ids_to_delete"),
        (json!({ "cell_indices": [0, 2] }), "2 is out of range"),
        (json!({ "cell_indices": [0, 0] }), "twice"),
        (json!({ "cell_indices": [-1] }), "cell_indices"),
        (json!({ "cell_ids_to_delete": ["no-such"] }), "no cell \"no-such\""),
    ] {
        let error = scene.error("delete_cell", arguments.clone()).await;
        assert!(error.contains(expected), "{arguments}: {error}");
    }
    assert_eq!(scene.firsts("nb").await, ["b", "c"]);
}

#[tokio::test]
async fn outputs_are_cleared() {
    let scene = Scene::with(Era::Legacy, &["print('x')", "y = 1"]).await;
    scene.outputs("execute_cell", json!({ "cell_index": 0 })).await;
    let cleared = scene.text("clear_cell_output", json!({ "cell_index": 0 })).await;
    assert_eq!(cleared, "Cell 0 output cleared successfully (1 output(s) removed).");
    let read = scene.outputs("read_cell", json!({ "cell_index": 0 })).await;
    assert_eq!(read.len(), 2, "{read:?}");
    assert!(read[0].as_str().unwrap().contains("execution count: N/A"), "{read:?}");
    let again = scene
        .text("clear_cell_output", json!({ "cell_index": 0, "notebook_name": "nb" }))
        .await;
    assert_eq!(again, "Cell 0 had no output to clear.");
    let note = json!({ "cell_index": -1, "cell_type": "markdown", "cell_source": "m" });
    scene.text("insert_cell", note).await;
    let arguments: [(Value, &str); 3] = [
        (json!({ "cell_index": 2 }), "not a code cell"),
        (json!({ "cell_index": 3 }), "3 is out of range"),
        (json!({}), "cell_index or cell_id"),
    ];
    for (arguments, expected) in arguments {
        let error = scene.error("clear_cell_output", arguments).await;
        assert!(error.contains(expected), "{error}");
    }
}
