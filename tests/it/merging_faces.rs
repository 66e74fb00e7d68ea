//! The same in text documents, in whole documents, by resources and in the other vocabularies.

use serde_json::{Value, json};

use crate::support::{beside::Beside, eventually};

#[tokio::test]
async fn a_whole_text_is_merged_with_what_a_person_typed() {
    let scene = Beside::text("# Title\n\nFirst line.\nSecond line.\n").await;
    scene.read().await;
    scene.human.splice_text(34, 0, "Typed 🎉 by hand.\n");
    scene.heard().await;
    let overwrite = |content: &str, force: bool| json!({ "content": content, "force": force });
    let sent = "# Another title\n\nFirst line.\nSecond line.\n";
    let answer = scene.call("overwrite_document", overwrite(sent, false)).await.ok();
    assert!(answer["notices"].to_string().contains("Ida"), "{answer}");
    let expected = "# Another title\n\nFirst line.\nSecond line.\nTyped 🎉 by hand.\n";
    scene.human.wait_for("both", |human| human.text() == expected).await;
    scene.read().await;
    scene.human.splice_text(2, 7, "One more");
    scene.heard().await;
    let refused = scene
        .call("overwrite_document", overwrite("# Third title\n", false))
        .await
        .error();
    assert!(
        refused.contains("One more title") && refused.contains("Ida"),
        "{refused}"
    );
    scene
        .call("overwrite_document", overwrite("# Third title\n", true))
        .await
        .ok();
    scene
        .human
        .wait_for("the last word", |human| human.text() == "# Third title\n")
        .await;
}

#[tokio::test]
async fn positions_in_a_text_mean_what_was_read() {
    let scene = Beside::text("one two three").await;
    scene.read().await;
    scene.human.splice_text(0, 0, "🎉 zero ");
    scene.heard().await;
    let replace =
        |position: usize, length: usize, text: &str| json!({ "position": position, "length": length, "text": text });
    let replaced = scene.call("replace_document_text", replace(4, 3, "2")).await.ok();
    assert!(replaced["notices"].to_string().contains("Ida"), "{replaced}");
    scene
        .human
        .wait_for("the right word", |human| human.text() == "🎉 zero one 2 three")
        .await;
    scene.human.splice_text(14, 5, "3");
    scene.heard().await;
    let gone = json!({ "position": 6, "length": 5 });
    let refused = scene.call("delete_document_text", gone.clone()).await.error();
    assert!(
        refused.contains("🎉 zero one 2 3") && refused.contains("force"),
        "{refused}"
    );
    scene
        .call("insert_document_text", json!({ "position": 0, "text": "> " }))
        .await
        .ok();
    scene
        .human
        .wait_for("an insertion", |human| human.text() == "> 🎉 zero one 2 3")
        .await;
}

#[tokio::test]
async fn a_whole_notebook_is_merged_by_its_cells() {
    let scene = Beside::notebook(&["zero", "one", "two"]).await;
    scene.read().await;
    scene.human.insert_cell(1, "by-hand", "a new thought");
    scene.types("c0", 4, 0, "\ntyped").await;
    let cell = |id: &str, source: &str| json!({ "id": id, "cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": null });
    let whole = |cells: Vec<Value>, force: bool| {
        let content = json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5 });
        json!({ "content": content.to_string(), "force": force })
    };
    let sent = vec![cell("c0", "zero"), cell("c1", "ONE"), cell("c3", "three")];
    let answer = scene.call("overwrite_document", whole(sent, false)).await.ok();
    assert!(answer["notices"].to_string().contains("Ida"), "{answer}");
    scene.sees(&["zero\ntyped", "a new thought", "ONE", "three"]).await;
    scene.read().await;
    scene.types("c1", 3, 0, " AND ONLY").await;
    let refused = scene
        .call("overwrite_document", whole(vec![cell("c0", "zero")], false))
        .await
        .error();
    assert!(refused.contains("ONE AND ONLY"), "{refused}");
    scene
        .call("overwrite_document", whole(vec![cell("c0", "zero")], true))
        .await
        .ok();
    scene.sees(&["zero"]).await;
}

#[tokio::test]
async fn what_a_resource_shows_is_read() {
    let scene = Beside::notebook(&["x = 1\ny = 2", "a = 1\nb = 2"]).await;
    let sessions = scene.agent.call("query_nb_sessions", json!({})).await.ok();
    let session = &sessions["sessions"][0];
    let named = |member: &str| {
        session[member]
            .as_str()
            .unwrap_or_else(|| panic!("{sessions}"))
            .to_owned()
    };
    let address = format!("notebook://{}/{}", named("session_id"), named("file_id"));
    scene.agent.read(&format!("{address}/cells/c0")).await;
    scene.types("c0", 11, 0, "\nz = 3").await;
    scene.modify("c0", "x = 10\ny = 2").await.ok();
    scene.agent.read(&address).await;
    scene.types("c1", 11, 0, "\nc = 3").await;
    scene.modify("c1", "a = 10\nb = 2").await.ok();
    scene.sees(&["x = 10\ny = 2\nz = 3", "a = 10\nb = 2\nc = 3"]).await;
}

#[tokio::test]
async fn the_vocabulary_of_jupyter_collaboration_mcp_loses_nothing_either() {
    let scene = Beside::notebook(&["x = 1\ny = 2", "z = 3"]).await;
    scene.call("get_notebook", json!({})).await.ok();
    scene.types("c0", 11, 0, "\n# typed").await;
    let update = |content: &str, force: bool| json!({ "updates": [{ "content": content }], "cell_ids": ["c0"], "exec": false, "force": force });
    let merged = scene
        .call("batch_update_notebook_cells", update("x = 10\ny = 2", false))
        .await
        .ok();
    assert!(merged["notices"].to_string().contains("Ida"), "{merged}");
    scene.sees(&["x = 10\ny = 2\n# typed", "z = 3"]).await;
    scene.types("c0", 4, 2, "11").await;
    let refused = scene
        .call("batch_update_notebook_cells", update("x = 12\ny = 2", false))
        .await
        .error();
    assert!(refused.contains("x = 11") && refused.contains("Ida"), "{refused}");
    scene.types("c1", 4, 1, "4").await;
    let delete = |force: bool| json!({ "cell_ids": ["c1"], "exec": false, "force": force });
    let refused = scene.call("batch_delete_notebook_cells", delete(false)).await.error();
    assert!(refused.contains("z = 4"), "{refused}");
    scene.types("c1", 4, 1, "5").await;
    let executed = json!({ "cell_ids": ["c1"] });
    let refused = scene.call("batch_delete_notebook_cells", executed).await.error();
    assert!(refused.contains("z = 5"), "{refused}");
    assert!(scene.human.cell(1)["execution_count"].is_null(), "nothing ran");
    scene.types("c1", 4, 1, "6").await;
    scene.call("batch_delete_notebook_cells", delete(true)).await.ok();
    scene
        .call("batch_update_notebook_cells", update("forced", true))
        .await
        .ok();
    scene.sees(&["forced"]).await;

    let text = Beside::text("one two").await;
    text.call("get_document", json!({})).await.ok();
    text.human.splice_text(0, 3, "1");
    text.heard().await;
    let delete = json!({ "operations": [{ "position": 0, "length": 3 }] });
    let refused = text.call("batch_delete_text", delete).await.error();
    assert!(refused.contains("1 two"), "{refused}");
}

#[tokio::test]
async fn the_vocabulary_of_jupyter_mcp_server_loses_nothing_either() {
    let scene = Beside::notebook(&["x = 1\ny = 2", "z = 3"]).await;
    let connect = json!({ "notebook_name": "n", "notebook_path": scene.path });
    scene.agent.call("connect_notebook", connect).await.ok();
    let call = async |tool: &str, mut arguments: Value| {
        arguments["notebook_name"] = "n".into();
        scene.agent.call(tool, arguments).await
    };
    for index in [0, 1] {
        call("read_cell", json!({ "cell_index": index })).await.ok();
    }
    scene.types("c0", 11, 0, "\n# typed").await;
    let overwrite = |content: &str, force: bool| json!({ "cell_index": 0, "cell_content": content, "force": force });
    let merged = call("overwrite_cell", overwrite("x = 10\ny = 2", false)).await;
    assert!(
        merged.texts.join("\n").contains("Merged with changes by Ida"),
        "{:?}",
        merged.texts
    );
    merged.ok();
    scene.sees(&["x = 10\ny = 2\n# typed", "z = 3"]).await;
    scene.types("c0", 4, 2, "11").await;
    let refused = call("overwrite_cell", overwrite("x = 12\ny = 2", false)).await.error();
    assert!(refused.contains("x = 11"), "{refused}");
    scene.types("c1", 4, 1, "4").await;
    let refused = call("delete_cell", json!({ "cell_index": 1 })).await.error();
    assert!(refused.contains("z = 4") && refused.contains("Ida"), "{refused}");
    scene.types("c1", 4, 1, "5").await;
    call("delete_cell", json!({ "cell_index": 1, "force": true }))
        .await
        .ok();
    scene.types("c0", 4, 2, "13").await;
    call("overwrite_cell", overwrite("forced", true)).await.ok();
    scene.sees(&["forced"]).await;
    eventually("the file too", async || {
        scene.folder.read("notebook.ipynb").contains("forced").then_some(())
    })
    .await;
}
