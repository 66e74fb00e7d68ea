//! Edits by match, moves, types and places of cells, and what their answers tell.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    beside::Beside,
    eventually,
    notebook::whole_cells_on_disk,
    scene::{Scene, shown},
};

fn edit(cell: &str, old: &str, new: &str) -> Value {
    json!({ "cell_id": cell, "old_text": old, "new_text": new })
}

#[tokio::test]
async fn a_match_is_replaced_and_the_answer_is_its_diff() {
    let scene = Scene::notebook(&["import os\nx = 1\ny = 2\nprint(x)", "x = 1"])
        .editing()
        .set()
        .await;
    let answer = scene.call("edit_nb_cell", edit("c0", "x = 1", "x = 10")).await;
    let text = answer.text().to_owned();
    let edited = answer.ok();
    assert_eq!(
        (&edited["cell_id"], &edited["index"], &edited["replacements"]),
        (&json!("c0"), &json!(0), &json!(1))
    );
    assert_eq!(edited["path"], scene.path);
    assert_eq!(edited["diff"], "@@ -1,3 +1,3 @@\n import os\n-x = 1\n+x = 10\n y = 2");
    assert_eq!(
        (&edited["executed"], &edited["acknowledged"]),
        (&json!(false), &json!(true))
    );
    let revision = edited["revision"].as_str().unwrap();
    assert_eq!(
        text,
        format!(
            "1 cell changed; revision {revision}\n[0] c0\n{}",
            edited["diff"].as_str().unwrap()
        )
    );
    assert!(text.len() < 200, "{text}");
    scene.sees(&["import os\nx = 10\ny = 2\nprint(x)", "x = 1"]).await;

    // By index, every occurrence, and executed.
    let all = json!({ "index": 0, "old_text": "x", "new_text": "value", "replace_all": true, "exec": true });
    let ran = scene.call("edit_nb_cell", all).await.ok();
    assert_eq!(
        (&ran["replacements"], &ran["executed"], &ran["status"]),
        (&json!(2), &json!(true), &json!("completed"))
    );
    assert_eq!(shown(&ran["execution_results"][0]), "10\n");
    scene
        .sees(&["import os\nvalue = 10\ny = 2\nprint(value)", "x = 1"])
        .await;
}

#[tokio::test]
async fn what_is_found_not_at_all_or_several_times_is_refused_with_where_it_is() {
    let cells = [
        "a = 1\nb = 1\na = 1",
        "total = sum(values)\nif total:\n\treturn  total",
        "",
    ];
    let scene = Scene::notebook(&cells).editing().set().await;
    for (cell, old, parts) in [
        (
            "c0",
            "a = 1",
            vec![
                "found 2 times in [0] c0",
                "line 1: a = 1",
                "line 3: a = 1",
                "replace_all=true",
            ],
        ),
        (
            "c0",
            "sum(values)",
            vec!["not found in [0] c0", "It is in 1 other cell: [1] c1 line 1"],
        ),
        (
            "c1",
            "total = sum(value)",
            vec!["most like it", "line 1: total = sum(values)"],
        ),
        (
            "c1",
            "    return total",
            vec!["other white space", "line 3: \treturn  total"],
        ),
        ("c2", "x", vec!["not found in [2] c2, which is empty"]),
        ("c0", "", vec!["`old_text`", "give the text to replace"]),
        ("nope", "x", vec!["`cell_id`", "no cell \"nope\""]),
    ] {
        let refused = scene.call("edit_nb_cell", edit(cell, old, "new")).await.error();
        for part in parts {
            assert!(refused.contains(part), "{old:?}, {part:?}: {refused}");
        }
    }
    for bad in [
        json!({ "old_text": "a", "new_text": "b" }),
        json!({ "cell_id": "c0", "index": 0, "old_text": "a", "new_text": "b" }),
        json!({ "index": 9, "old_text": "a", "new_text": "b" }),
        json!({ "index": -1, "old_text": "a", "new_text": "b" }),
        edit("c0", "b = 1", "b = 1"),
        json!({ "cell_id": "c0", "old_text": "b", "new_text": "c", "if_revision": "x-1" }),
    ] {
        let refused = scene.call("edit_nb_cell", bad.clone()).await.error();
        assert!(!refused.is_empty(), "{bad}");
    }
    assert_eq!(scene.human.sources(), cells, "nothing of it was done");
    // An empty cell has nothing but nothing to replace.
    scene.call("edit_nb_cell", edit("c2", "", "filled = True")).await.ok();
    scene.sees(&[cells[0], cells[1], "filled = True"]).await;
}

#[tokio::test]
async fn emoji_accents_and_carriage_returns_are_replaced_whole() {
    let source = "s = '🎉🎊'\r\ncafe\u{301} = '👩‍👩‍👧'\r\nend = '漢字'";
    let scene = Scene::notebook(&[source]).editing().set().await;
    let refused = scene.call("edit_nb_cell", edit("c0", "'👩‍👩‍👧'\nend", "x")).await.error();
    assert!(refused.contains("\\r\\n"), "{refused}");
    scene.call("edit_nb_cell", edit("c0", "🎊", "🥳")).await.ok();
    scene
        .call("edit_nb_cell", edit("c0", "'👩‍👩‍👧'\r\nend", "'👨‍👩‍👦'\r\nlast"))
        .await
        .ok();
    scene.call("edit_nb_cell", edit("c0", "e\u{301}", "\u{e9}")).await.ok();
    scene.sees(&["s = '🎉🥳'\r\ncaf\u{e9} = '👨‍👩‍👦'\r\nlast = '漢字'"]).await;
}

#[tokio::test]
async fn a_person_types_on_while_matches_are_replaced() {
    let scene = Beside::notebook(&["x = 1\ny = 0\n"]).await;
    let typed = "\n# the quick brown fox 🎉 漢字 jumps over the lazy dog";
    let typing = scene.human.type_into(0, 5, typed, Duration::from_millis(10));
    let editing = async {
        for value in 1..20 {
            let (old, new) = (format!("y = {}", value - 1), format!("y = {value}"));
            scene.call("edit_nb_cell", edit("c0", &old, &new)).await.ok();
        }
    };
    tokio::join!(typing, editing);
    let expected = format!("x = 1{typed}\ny = 19\n");
    scene.sees(&[&expected]).await;
    scene.heard().await;
}

#[tokio::test]
async fn a_match_in_what_a_person_just_typed_is_replaced_and_stays_unread() {
    let scene = Beside::notebook(&["x = 1\ny = 2"]).await;
    let revision = scene.read().await["revision"].clone();
    scene.types("c0", 11, 0, "\nz = 3").await;
    // What it names was not touched, but the cell was.
    let mut stale = edit("c0", "x = 1", "x = 10");
    stale["if_revision"] = revision;
    let refused = scene.call("edit_nb_cell", stale.clone()).await.error();
    assert!(refused.contains("Ida changed cell c0"), "{refused}");
    stale["force"] = true.into();
    scene.call("edit_nb_cell", stale).await.ok();
    scene.sees(&["x = 10\ny = 2\nz = 3"]).await;
    scene.types("c0", 0, 0, "# 🎉\n").await;
    scene.call("edit_nb_cell", edit("c0", "y = 2", "y = 20")).await.ok();
    scene.sees(&["# 🎉\nx = 10\ny = 20\nz = 3"]).await;
    // The reading has its own replacement and none of the person's lines, which stay.
    scene.modify("c0", "x = 10\ny = 20\nz = 3\nw = 4").await.ok();
    scene.sees(&["# 🎉\nx = 10\ny = 20\nz = 3\nw = 4"]).await;
}

#[tokio::test]
async fn a_text_is_edited_by_match_and_at_its_end() {
    let scene = Scene::of("notes.md", "# Café 🎉\n\none\ntwo\none more\n")
        .editing()
        .set()
        .await;
    let refused = scene
        .call("edit_document_text", json!({ "old_text": "one", "new_text": "1" }))
        .await
        .error();
    assert!(
        refused.contains("found 2 times") && refused.contains("line 3: one") && refused.contains("line 5: one more"),
        "{refused}"
    );
    let refused = scene
        .call("edit_document_text", json!({ "old_text": "tow", "new_text": "2" }))
        .await
        .error();
    assert!(
        refused.contains("not found") && refused.contains("line 4: two"),
        "{refused}"
    );
    let answer = scene
        .call("edit_document_text", json!({ "old_text": "two", "new_text": "2" }))
        .await;
    assert!(
        answer.text().contains("\n one\n-two\n+2\n one more"),
        "{}",
        answer.text()
    );
    let edited = answer.ok();
    assert_eq!(
        (&edited["replacements"], &edited["path"]),
        (&json!(1), &json!(scene.path))
    );
    let all = json!({ "old_text": "one", "new_text": "1", "replace_all": true });
    assert_eq!(scene.call("edit_document_text", all).await.ok()["replacements"], 2);
    let appended = scene
        .call("insert_document_text", json!({ "position": -1, "text": "end\n" }))
        .await;
    assert!(appended.text().contains("+end"), "{}", appended.text());
    assert_eq!(appended.ok()["position"], 21);
    scene
        .call(
            "replace_document_text",
            json!({ "position": -1, "length": 0, "text": "." }),
        )
        .await
        .ok();
    for (tool, bad) in [
        ("insert_document_text", json!({ "position": -2, "text": "x" })),
        (
            "replace_document_text",
            json!({ "position": -1, "length": 1, "text": "x" }),
        ),
        ("delete_document_text", json!({ "position": -1, "length": 1 })),
    ] {
        let refused = scene.call(tool, bad).await.error();
        assert!(refused.contains("argument `"), "{refused}");
    }
    scene
        .human
        .wait_for("the person has it", |human| {
            human.text() == "# Café 🎉\n\n1\n2\n1 more\nend\n."
        })
        .await;
}

#[tokio::test]
async fn cells_are_inserted_after_others_and_at_the_end() {
    let scene = Scene::notebook(&["one", "two"]).editing().set().await;
    let insert = |place: Value, content: &str| {
        let mut arguments = place;
        arguments["cells"] = json!([{ "content": content }]);
        arguments
    };
    let answer = scene
        .call("insert_nb_cells", insert(json!({ "after": "c0" }), "between\nmore"))
        .await;
    let text = answer.text().to_owned();
    let inserted = answer.ok();
    assert_eq!(inserted["position"], 1);
    let id = inserted["cell_ids"][0].as_str().unwrap();
    let expected = format!(
        "\n [0] c0 code one\n+[1] {} code between (2 lines)\n [2] c1 code two",
        &id[..6]
    );
    assert!(
        text.starts_with("1 cell inserted; revision ") && text.ends_with(&expected),
        "{text}"
    );
    // A short id will do.
    scene
        .call("insert_nb_cells", insert(json!({ "after": id[..6] }), "after it"))
        .await
        .ok();
    scene
        .call(
            "insert_nb_cells",
            insert(json!({ "position": { "cell_id": id[..8] } }), "before it"),
        )
        .await
        .ok();
    assert_eq!(
        scene
            .call("insert_nb_cells", insert(json!({ "position": -1 }), "last"))
            .await
            .ok()["position"],
        5
    );
    scene
        .sees(&["one", "before it", "between\nmore", "after it", "two", "last"])
        .await;
    for (bad, told) in [
        (json!({}), "`position`"),
        (json!({ "position": 0, "after": "c0" }), "either `position`"),
        (json!({ "position": -2 }), "-1"),
        (json!({ "position": 7 }), "0 to 6"),
        (json!({ "after": "nowhere" }), "no cell \"nowhere\""),
    ] {
        let refused = scene.call("insert_nb_cells", insert(bad, "x")).await.error();
        assert!(refused.contains(told), "{told}: {refused}");
    }
}

#[tokio::test]
async fn a_cell_becomes_another_type_and_loses_its_outputs_only_as_text() {
    let scene = Scene::notebook(&["1 + 1", "# Title"]).set().await;
    scene.run(0, 1).await.ok();
    let set = |cell: &str, kind: &str| json!({ "modifications": [{ "range": { "cell_id": cell }, "type": kind }] });
    scene.call("modify_nb_cells", set("c0", "code")).await.ok();
    scene.shows(0, "2").await;
    let answer = scene.call("modify_nb_cells", set("c0", "markdown")).await;
    assert!(
        answer.text().contains("[0] c0 code is markdown now"),
        "{}",
        answer.text()
    );
    assert_eq!(answer.ok()["executed"], false);
    let both = json!({ "modifications": [{ "range": { "cell_id": "c1" }, "type": "raw", "content": "raw" }] });
    scene.call("modify_nb_cells", both).await.ok();
    scene
        .human
        .wait_for("the types change", |human| {
            let kinds: Vec<String> = human.cells().into_iter().map(|cell| cell.cell_type).collect();
            kinds == ["markdown", "raw"]
        })
        .await;
    assert_eq!(scene.human.sources(), ["1 + 1", "raw"]);
    eventually("the file is valid", async || {
        let cells = whole_cells_on_disk(&scene.folder.disk.join("run.ipynb"))?;
        (cells[0]["cell_type"] == "markdown" && cells[1]["cell_type"] == "raw").then_some(())
    })
    .await;
    for (bad, told) in [
        (
            json!({ "range": { "start": 0 }, "type": "text" }),
            "allowed: `code`, `markdown`, `raw`",
        ),
        (json!({ "range": { "start": 0 } }), "give `content`, `type` or both"),
    ] {
        let refused = scene
            .call("modify_nb_cells", json!({ "modifications": [bad] }))
            .await
            .error();
        assert!(
            refused.contains("modifications[0]") && refused.contains(told),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn answers_show_what_was_deleted_and_what_is_around() {
    let cells = ["zero", "one", "two\n2", "three", "four", "five"];
    let scene = Scene::notebook(&cells).editing().set().await;
    let answer = scene
        .call("delete_nb_cells", json!({ "ranges": [{ "cell_id": "c2" }] }))
        .await;
    let text = answer.text().to_owned();
    let revision = answer.ok()["revision"].as_str().unwrap().to_owned();
    let expected = format!(
        "1 cell deleted; revision {revision}\n-[2] c2 code\n-two\n-2\n [0] c0 code zero\n [1] c1 code one\n [2] c3 code three\n [3] c4 code four"
    );
    assert_eq!(text, expected);
    let notebook = json!({ "cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5 }).to_string();
    let answer = scene
        .call("overwrite_document", json!({ "content": notebook, "force": true }))
        .await;
    assert!(
        answer.text().starts_with("5 cells deleted; revision "),
        "{}",
        answer.text()
    );
}
