//! Nobody's typing is lost: what an agent makes of an older reading is merged with what a person typed since, or refused.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human,
    beside::Beside,
    eventually,
    gateway::{everything, lab_server},
    lab,
    notebook::notebook,
    proxy::Proxy,
};

#[tokio::test]
async fn a_person_types_on_while_an_agent_changes_what_it_read_before() {
    let scene = Beside::notebook(&["x = 1\ny = 2\n"]).await;
    scene.read().await;
    let typed = "\n# the quick brown fox 🎉 漢字 jumps over the lazy dog";
    let typing = scene.human.type_into(0, 5, typed, Duration::from_millis(10));
    let editing = async {
        for value in 10..25 {
            scene.modify("c0", &format!("x = 1\ny = {value}\n")).await.ok();
        }
    };
    tokio::join!(typing, editing);
    let expected = format!("x = 1{typed}\ny = 24\n");
    scene.sees(&[&expected]).await;
    scene.heard().await;
}

#[tokio::test]
async fn an_answer_tells_with_whose_typing_it_was_merged() {
    let scene = Beside::notebook(&["a = 1\nb = 2", "c = 3"]).await;
    scene.read().await;
    scene.types("c0", 11, 0, "\nz = 26").await;
    let answer = scene.modify("c0", "a = 1\nb = 20").await;
    let text = answer.texts.join("\n");
    let merged = answer.ok()["notices"].to_string();
    assert!(merged.contains("Merged with changes by Ida in cell c0"), "{merged}");
    assert!(text.contains("Ida"), "{text}");
    scene.sees(&["a = 1\nb = 20\nz = 26", "c = 3"]).await;
    let alone = scene.modify("c1", "c = 30").await.ok();
    assert!(alone["notices"].is_null(), "{alone}");
    // It goes on from what it sent; the person's line stays although it does not know of it.
    scene.modify("c0", "a = 10\nb = 20").await.ok();
    scene.sees(&["a = 10\nb = 20\nz = 26", "c = 30"]).await;
}

#[tokio::test]
async fn texts_about_others_name_cells_in_short() {
    let content = notebook(&["a = 1\nb = 2"]).replace("\"c0\"", "\"0123456789abcdef\"");
    let scene = Beside::through(lab().url(), "long-ids.ipynb", &content).await;
    scene.read().await;
    scene.types("0123456789abcdef", 11, 0, "\nz = 3").await;
    let merged = scene.modify("0123456789", "a = 1\nb = 20").await.ok();
    let notices = merged["notices"].to_string();
    assert!(notices.contains("by Ida in cell 012345 that"), "{merged}");
    scene.types("0123456789abcdef", 4, 1, "7").await;
    let refused = scene.modify("0123456789", "a = 5\nb = 20").await.error();
    assert!(refused.contains("in cell 012345 since"), "{refused}");
}

#[tokio::test]
async fn the_same_place_is_refused_with_what_stands_there_and_the_batch_with_it() {
    let scene = Beside::notebook(&["x = 1", "y = 1"]).await;
    scene.read().await;
    scene.types("c0", 4, 1, "'🎉'").await;
    let modify = |force: bool| {
        json!({ "force": force, "modifications": [
            { "range": { "cell_id": "c1" }, "content": "y = 3" }, { "range": { "cell_id": "c0" }, "content": "x = 3" }] })
    };
    let refused = scene.call("modify_nb_cells", modify(false)).await.error();
    for part in ["nothing was changed", "Ida", "c0", "x = '🎉'", "force: true"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert_eq!(scene.human.sources(), ["x = '🎉'", "y = 1"]);
    // What the refusal showed is read.
    scene.modify("c0", "x = '🎉!'").await.ok();
    scene.sees(&["x = '🎉!'", "y = 1"]).await;
    scene.types("c0", 4, 4, "2").await;
    scene.call("modify_nb_cells", modify(true)).await.ok();
    scene.sees(&["x = 3", "y = 3"]).await;
}

#[tokio::test]
async fn who_never_read_a_cell_sets_it_unless_a_person_just_typed_in_it() {
    let scene = Beside::notebook(&["zero", "one"]).await;
    scene.modify("c1", "as asked").await.ok();
    scene.types("c0", 4, 0, " typed").await;
    let refused = scene.modify("c0", "replaced").await.error();
    assert!(
        refused.contains("zero typed") && refused.contains("have not read"),
        "{refused}"
    );
    scene.sees(&["zero typed", "as asked"]).await;
    scene.modify("c0", "zero typed and replaced").await.ok();
    scene.sees(&["zero typed and replaced", "as asked"]).await;
}

#[tokio::test]
async fn a_cell_is_not_deleted_under_a_persons_hands() {
    let scene = Beside::notebook(&["first", "second", "third"]).await;
    let delete = |cell: &str, force: bool| json!({ "ranges": [{ "cell_id": cell }], "force": force });
    scene.human.point_at("Ida", "c0", 2);
    eventually("the gateway knows where the person is", async || {
        let people = scene.watch().await["people"].clone();
        (people[0]["cell_id"] == "c0").then_some(())
    })
    .await;
    let refused = scene.call("delete_nb_cells", delete("c0", false)).await.error();
    assert!(
        refused.contains("Ida is in cell c0") && refused.contains("first"),
        "{refused}"
    );

    scene.read().await;
    scene.types("c1", 6, 0, " thoughts").await;
    let both = json!({ "ranges": [{ "cell_id": "c2" }, { "cell_id": "c1" }] });
    let refused = scene.call("delete_nb_cells", both).await.error();
    assert!(
        refused.contains("c1") && refused.contains("second thoughts"),
        "{refused}"
    );
    assert_eq!(scene.human.cells().len(), 3, "nothing of it is done");
    scene.types("c1", 15, 0, "!").await;
    assert!(scene.call("delete_nb_cells", delete("c1", false)).await.is_error);
    scene.call("delete_nb_cells", delete("c1", true)).await.ok();
    scene.call("delete_nb_cells", delete("c0", false)).await.ok();
    scene.sees(&["third"]).await;
}

#[tokio::test]
async fn who_was_shown_only_a_part_is_told_how_to_read_the_whole() {
    let long = format!("start = 0\n{}", "# a line of it\n".repeat(200));
    let scene = Beside::notebook(&[&long]).await;
    let read = scene.read().await;
    assert_eq!(read["cells"][0]["truncated"]["source"], true);
    let refused = scene.modify("c0", "start = 1\n").await.error();
    for part in ["only part of", "read_nb_cells", "max_cell_data", "c0"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let revision =
        json!({ "if_revision": read["revision"], "modifications": [{ "range": { "start": 0 }, "content": "" }] });
    assert!(
        scene
            .call("modify_nb_cells", revision)
            .await
            .error()
            .contains("only part of")
    );
    let whole = json!({ "ranges": [{ "cell_id": "c0" }], "max_cell_data": 4000 });
    scene.call("read_nb_cells", whole).await.ok();
    scene.read().await;
    let changed = long.replace("start = 0", "start = 1");
    scene.modify("c0", &changed).await.ok();
    scene.sees(&[&changed]).await;
}

#[tokio::test]
async fn reads_tell_who_is_in_which_cell() {
    let scene = Beside::notebook(&["first", "second\nline"]).await;
    assert_eq!(
        scene.read().await["people"],
        json!([{ "name": "Ida", "cell_id": null }])
    );
    scene.human.point_at("Ida", "c1", 8);
    let people = eventually("the gateway knows where the person is", async || {
        let people = scene.read().await["people"].clone();
        (people[0]["cell_id"] == "c1").then_some(people)
    })
    .await;
    assert_eq!(
        people,
        json!([{ "name": "Ida", "cell_id": "c1", "index": 1, "line": 2 }])
    );
    for tool in ["get_nb_stat", "get_notebook"] {
        assert_eq!(scene.call(tool, json!({})).await.ok()["people"], people, "{tool}");
    }
    let connect = json!({ "notebook_name": "n", "notebook_path": scene.path });
    scene.agent.call("connect_notebook", connect).await.ok();
    for tool in ["read_notebook", "read_cell"] {
        let read = json!({ "notebook_name": "n", "cell_index": 0 });
        let read = match tool {
            "read_cell" => read,
            _ => json!({ "notebook_name": "n" }),
        };
        let answer = scene.agent.call(tool, read).await;
        assert!(answer.texts.join("\n").contains("Ida (cell 1)"), "{:?}", answer.texts);
        assert_eq!(answer.ok()["people"], people, "{tool}");
    }
}

fn since(revision: &Value, cell: &str, content: &str) -> Value {
    json!({ "if_revision": revision, "modifications": [{ "range": { "cell_id": cell }, "content": content }] })
}

#[tokio::test]
async fn running_a_cell_is_no_edit_for_anybodys_revision() {
    let scene = Beside::notebook(&["1 + 1", "2 + 2", "3 + 3"]).await;
    let revision = scene.read().await["revision"].clone();
    let run = |cell: &str| json!({ "path": scene.path, "ranges": [{ "cell_id": cell }] });
    // Somebody's run does not refuse an edit.
    scene.bob.call("execute_nb_cells", run("c0")).await.ok();
    scene.human.clear_outputs(0);
    scene.heard().await;
    scene
        .call("modify_nb_cells", since(&revision, "c0", "1 + 10"))
        .await
        .ok();
    // An own run, before or after what somebody typed, does not let a stale edit pass.
    scene.agent.call("execute_nb_cells", run("c1")).await.ok();
    scene.types("c1", 5, 0, " # typed").await;
    scene.types("c2", 5, 0, " # typed").await;
    scene.agent.call("execute_nb_cells", run("c2")).await.ok();
    for cell in ["c1", "c2"] {
        let refused = scene
            .call("modify_nb_cells", since(&revision, cell, "lost"))
            .await
            .error();
        assert!(
            refused.contains("Ida") && refused.contains("# typed") && refused.contains(cell),
            "{refused}"
        );
    }
    scene.sees(&["1 + 10", "2 + 2 # typed", "3 + 3 # typed"]).await;
}

#[tokio::test]
async fn every_author_since_a_revision_counts_and_not_only_the_last() {
    let scene = Beside::notebook(&["a = 1\nb = 2\nc = 3"]).await;
    let revision = scene.read().await["revision"].clone();
    scene.types("c0", 4, 1, "'Ida'").await;
    // Merged with an edit without a revision, which must not hide the person's.
    scene.modify("c0", "a = 1\nb = 2\nc = 30").await.ok();
    let refused = scene
        .call("modify_nb_cells", since(&revision, "c0", "lost"))
        .await
        .error();
    assert!(refused.contains("Ida") && refused.contains("a = 'Ida'"), "{refused}");
    let mut bobs = since(&Value::Null, "c0", "a = 'Ida'\nb = 'bob'\nc = 30");
    bobs["path"] = scene.path.clone().into();
    scene.watch().await;
    scene.bob.call("modify_nb_cells", bobs).await.ok();
    let refused = scene
        .call("modify_nb_cells", since(&revision, "c0", "lost"))
        .await
        .error();
    assert!(refused.contains("Ida and agent `bob`"), "{refused}");
    let forced = json!({ "force": true, "if_revision": revision, "modifications": [{ "range": { "start": 0 }, "content": "forced" }] });
    scene.call("modify_nb_cells", forced).await.ok();
    scene.sees(&["forced"]).await;
}

#[tokio::test]
async fn what_an_agent_read_is_still_known_when_the_notebook_is_opened_again() {
    let scene = Beside::notebook(&["x = 1\ny = 2"]).await;
    scene.read().await;
    scene.call("end_nb_session", json!({})).await.ok();
    scene.human.splice_cell("c0", 11, 0, "\nz = 3");
    scene.modify("c0", "x = 10\ny = 2").await.ok();
    scene.sees(&["x = 10\ny = 2\nz = 3"]).await;
}

#[tokio::test]
async fn what_an_agent_read_is_still_known_after_a_cut_line() {
    let proxy = Proxy::to(lab().address()).await;
    let content = notebook(&["x = 1\ny = 2"]);
    let scene = Beside::through(&proxy.url(), "cut.ipynb", &content).await;
    scene.read().await;
    proxy.cut();
    scene.human.splice_cell("c0", 11, 0, "\nz = 3");
    scene.heard().await;
    scene.modify("c0", "x = 10\ny = 2").await.ok();
    scene.sees(&["x = 10\ny = 2\nz = 3"]).await;
}

#[tokio::test]
async fn a_refusal_says_whether_an_agent_or_a_person_changed_it() {
    let ben = "[[auth.tokens]]\nname = \"ben\"\ntenant = \"all\"\ntoken = \"token-of-ben\"\npermissions = [\"read\", \"write\"]\n";
    let gateway = Gateway::configured(&format!("{}{}{ben}", lab_server("lab"), everything())).await;
    let path = lab()
        .folder()
        .write("who.ipynb", &notebook(&["x = 1", "y = 1", "z = 1"]));
    let ana = Agent::connect(&gateway, Era::Modern).await;
    let ben = Agent::with_token(&gateway, "token-of-ben", Era::Modern).await;
    let human = Human::join(&path).await;
    let read = ana.call("read_nb_cells", json!({ "path": path })).await.ok();
    let set = |cell: &str, content: &str| {
        let modification = json!({ "range": { "cell_id": cell }, "content": content });
        json!({ "path": path, "modifications": [modification], "exec": false })
    };
    ben.call("modify_nb_cells", set("c0", "x = 2")).await.ok();
    human.publish("Ida", true);
    human.splice_cell("c1", 4, 1, "2");
    eventually("the person's change is seen", async || {
        let read = ben.call("read_nb_cells", json!({ "path": path })).await.ok();
        (read["cells"][1]["source"] == "y = 2").then_some(())
    })
    .await;
    for (cell, who, now) in [("c0", "agent `ben`", "x = 2"), ("c1", "Ida", "y = 2")] {
        let mut stale = set(cell, "3");
        stale["if_revision"] = read["revision"].clone();
        let refused = ana.call("modify_nb_cells", stale).await.error();
        let told = format!("nothing was changed: {who} changed cell {cell} after the revision that you named");
        assert!(refused.starts_with(&told) && refused.contains(now), "{refused}");
    }
    let delete = json!({ "path": path, "ranges": [{ "start": 2 }], "if_revision": read["revision"] });
    ben.call(
        "insert_nb_cells",
        json!({ "path": path, "position": 0, "exec": false, "cells": [{ "content": "0" }] }),
    )
    .await
    .ok();
    let refused = ana.call("delete_nb_cells", delete).await.error();
    assert!(
        refused.starts_with("nothing was changed: agent `ben` inserted or removed cells since you read it"),
        "{refused}"
    );
    let read = ana.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert_eq!(read["cells"][3]["source"], "z = 1");
    ben.call("modify_nb_cells", set("c2", "z = 2")).await.ok();
    let delete = json!({ "path": path, "ranges": [{ "cell_id": "c2" }] });
    let refused = ana.call("delete_nb_cells", delete).await.error();
    let told = "nothing was changed: agent `ben` changed cell c2 since you read it. It is now:\n```\nz = 2\n```";
    assert!(refused.starts_with(told), "{refused}");
}
