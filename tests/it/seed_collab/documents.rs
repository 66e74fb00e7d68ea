//! "Document Collaboration Features", as far as access and content go.

use serde_json::{Value, json};

use super::{connect, merged, paths, says, shared_file};
use crate::support::{Era, Gateway, eventually, lab};

#[tokio::test]
async fn documents_of_a_tree_are_listed() {
    let gateway = Gateway::start().await;
    let (agent, folder) = (connect(&gateway, Era::Modern).await, lab().folder());
    for name in ["a.md", "docs/b.txt", "docs/deep/c.py", "docs/d.markdown", "n.ipynb"] {
        folder.write(
            name,
            if name.ends_with("ipynb") {
                "{\"cells\":[],\"metadata\":{},\"nbformat\":4,\"nbformat_minor\":5}"
            } else {
                "héllo 🎉"
            },
        );
    }

    // list_documents: the directory of one vocabulary, the filters of the other.
    let list = async |more: Value| {
        agent
            .ok(
                "list_documents",
                merged(json!({ "path_filter": folder.path("") }), more),
            )
            .await
    };
    let all = list(json!({})).await;
    assert_eq!(
        paths(&all["documents"]),
        ["a.md", "docs/b.txt", "docs/d.markdown", "docs/deep/c.py"].map(|name| folder.path(name))
    );
    says(&all, "Found 4 documents");
    assert_eq!(all["documents"][0]["collaborative"], false);
    for (file_type, names) in [
        ("file", vec!["a.md", "docs/b.txt", "docs/d.markdown", "docs/deep/c.py"]),
        ("text", vec!["a.md", "docs/b.txt", "docs/d.markdown", "docs/deep/c.py"]),
        ("markdown", vec!["a.md", "docs/d.markdown"]),
        ("py", vec!["docs/deep/c.py"]),
        ("notebook", vec!["n.ipynb"]),
        ("directory", vec!["docs", "docs/deep"]),
        ("poem", vec![]),
    ] {
        let found = list(json!({ "file_type": file_type })).await;
        let names: Vec<String> = names.into_iter().map(|name| folder.path(name)).collect();
        assert_eq!(paths(&found["documents"]), names, "{file_type}");
    }
    let few = list(json!({ "max_results": 1 })).await;
    says(&few, "Found 4 documents (showing first 1 results)");
    assert_eq!(paths(&few["documents"]), [folder.path("a.md")]);
    assert_eq!(
        paths(&list(json!({ "path_filter": folder.path("docs/d") })).await["documents"]).len(),
        2
    );
    let directory = agent.call("list_documents", json!({ "path": folder.name })).await;
    assert!(
        directory.text().starts_with('['),
        "one directory, as ever: {}",
        directory.text()
    );
    assert_eq!(
        paths(&directory.ok()["documents"]),
        ["a.md", "docs", "n.ipynb"].map(|name| folder.path(name))
    );
    agent
        .refused("list_documents", json!({ "path_filter": "../x" }), &[".."])
        .await;
    agent
        .refused(
            "list_documents",
            json!({ "path_filter": "a", "path": "b" }),
            &["path_filter", "path"],
        )
        .await;
}

#[tokio::test]
async fn documents_are_read_and_joined() {
    let gateway = Gateway::start().await;
    let (agent, folder) = (connect(&gateway, Era::Legacy).await, lab().folder());
    folder.notebook("n.ipynb");
    let path = folder.write("a.md", "héllo 🎉");

    // get_document: the content with its size, and the collaboration unless it is not wanted.
    let read = agent.ok("get_document", json!({ "path": path })).await;
    says(&read, "7 characters");
    says(&read, "collaboration session");
    assert_eq!(
        (&read["content"], &read["file_type"], &read["truncated"]),
        (&json!("héllo 🎉"), &json!("markdown"), &json!(false))
    );
    assert_eq!(
        (&read["type"], &read["content_length"]),
        (&json!("document"), &json!(7))
    );
    let bare = agent
        .ok(
            "get_document",
            json!({ "path": path, "include_collaboration_state": false }),
        )
        .await;
    assert!(bare["collaboration_state"].is_null());
    let cut = agent
        .ok("get_document", json!({ "path": path, "max_content_length": 2 }))
        .await;
    assert_eq!((&cut["content"], &cut["truncated"]), (&json!("hé"), &json!(true)));
    says(&cut, "exceeds limit of 2");
    let long = folder.write("long.txt", &"x".repeat(100_001));
    assert_eq!(
        agent.ok("get_document", json!({ "path": long })).await["truncated"],
        true,
        "100000 by default"
    );
    agent
        .refused("get_document", json!({ "path": folder.path("none.md") }), &["none.md"])
        .await;
    agent
        .refused("get_document", json!({ "path": folder.path("n.ipynb") }), &["notebook"])
        .await;

    // create_document_session: the type is found out, or told truly.
    let session = agent.ok("create_document_session", json!({ "path": path })).await;
    assert_eq!(
        session["room_id"],
        format!("text:file:{}", session["file_id"].as_str().unwrap())
    );
    assert_eq!(session["session_id"], read["collaboration_state"]["session_id"]);
    assert_eq!(
        (&session["file_type"], &session["status"]),
        (&json!("markdown"), &json!("connected"))
    );
    let again = agent
        .ok("create_document_session", json!({ "path": path, "file_type": "text" }))
        .await;
    assert_eq!(
        (&again["session_id"], &again["file_type"]),
        (&session["session_id"], &json!("text"))
    );
    agent
        .refused(
            "create_document_session",
            json!({ "path": path, "file_type": "notebook" }),
            &["file_type", "markdown"],
        )
        .await;
    agent
        .refused(
            "create_document_session",
            json!({ "path": folder.path("n.ipynb") }),
            &["notebook"],
        )
        .await;
    let list = json!({ "path_filter": folder.path("a"), "file_type": "md" });
    let listed = agent.ok("list_documents", list).await;
    assert_eq!(listed["documents"][0]["collaborative"], true);
}

#[tokio::test]
async fn texts_are_updated_where_it_is_meant_before_the_call() {
    let shared = shared_file(Era::Legacy, "text.md", "🎉 one two\n").await;
    let tool = "batch_update_document";
    let answer = shared.ok(tool, json!({ "operations": [{ "content": "end" }] })).await;
    shared.sees_text("🎉 one two\nend").await;
    says(&answer, "Performed 1 update operations");
    says(&answer, "synchronized with all collaborators");
    says(&answer, "collaboration session");
    let confirmed = json!({ "success": true, "position": -1, "length": 0, "new_length": 3 });
    assert_eq!(answer["results"][0], confirmed);
    assert_eq!(
        (&answer["acknowledged"], &answer["path"]),
        (&json!(true), &json!(shared.path))
    );
    let operations = json!([
        { "content": "1", "position": 2, "length": 3 },
        { "content": "2", "position": 6, "length": 3 },
        { "content": "# ", "position": 0 },
        { "content": "!", "position": -1 },
        { "position": 9, "length": 1 },
    ]);
    shared.ok(tool, json!({ "operations": operations })).await;
    shared.sees_text("# 🎉 1 2end!").await;
    for (operations, names) in [
        (json!([]), ["operations", "at least one"]),
        (json!([{}]), ["operations[0]", "content"]),
        (json!([{ "content": "x", "position": 99 }]), ["99", "0 to 11"]),
        (
            json!([{ "content": "x", "position": 8, "length": 4 }]),
            ["beyond the end", "3"],
        ),
        (
            json!([{ "content": "x", "position": -1, "length": 1 }]),
            ["operations[0].length", "0"],
        ),
        (
            json!([{ "content": "x", "position": -2 }]),
            ["operations[0].position", "-1 to append"],
        ),
        (
            json!([{ "content": "x", "length": 3, "position": 0 }, { "content": "y", "position": 2 }]),
            ["0 and 2", "overlap"],
        ),
        (
            json!([{ "content": "x", "position": "first" }]),
            ["operations[0].position", "first"],
        ),
    ] {
        shared.refused(tool, json!({ "operations": operations }), &names).await;
    }
    shared.sees_text("# 🎉 1 2end!").await;
}

#[tokio::test]
async fn texts_are_inserted_and_deleted_where_it_is_meant_before_the_call() {
    let shared = shared_file(Era::Modern, "text.py", "# 🎉 1 2end!").await;
    let tool = "batch_insert_text";
    let operations =
        json!([{ "text": "three", "position": 7 }, { "text": "A", "position": 0 }, { "text": "B", "position": 0 }]);
    let answer = shared.ok(tool, json!({ "operations": operations })).await;
    shared.sees_text("AB# 🎉 1 2threeend!").await;
    says(&answer, "Inserted 3 text segments");
    let confirmed = json!({ "success": true, "position": 7, "length": 0, "new_length": 5 });
    assert_eq!(answer["results"][0], confirmed);
    shared
        .ok(tool, json!({ "operations": [{ "text": "?", "position": -1 }] }))
        .await;
    shared.sees_text("AB# 🎉 1 2threeend!?").await;
    let beyond = json!([{ "text": "x", "position": 0 }, { "text": "y", "position": 20 }]);
    shared
        .refused(tool, json!({ "operations": beyond }), &["20", "0 to 19"])
        .await;
    let nowhere = json!({ "operations": [{ "text": "x" }] });
    shared.refused(tool, nowhere, &["operations[0]", "position"]).await;

    let tool = "batch_delete_text";
    let operations = json!([{ "position": 9, "length": 5 }, { "position": 0, "length": 2 }]);
    let answer = shared.ok(tool, json!({ "operations": operations })).await;
    shared.sees_text("# 🎉 1 2end!?").await;
    says(&answer, "Deleted 2 text segments");
    let confirmed = json!({ "success": true, "position": 9, "length": 5, "new_length": 0 });
    assert_eq!(answer["results"][0], confirmed);
    let beyond = json!([{ "position": 0, "length": 1 }, { "position": 5, "length": 99 }]);
    shared
        .refused(tool, json!({ "operations": beyond }), &["beyond the end", "7"])
        .await;
    let endless = json!({ "operations": [{ "position": 0 }] });
    shared.refused(tool, endless, &["operations[0]", "length"]).await;

    let revision = &answer["revision"];
    shared.human.splice_text(0, 0, "mine ");
    eventually("the gateway has the person's edit", async || {
        let read = shared.ok("get_document", json!({})).await;
        read["content"].as_str()?.starts_with("mine").then_some(())
    })
    .await;
    let stale = json!({ "operations": [{ "position": 0, "length": 2 }], "if_revision": revision });
    shared.refused(tool, stale, &["somebody else"]).await;
    shared.sees_text("mine # 🎉 1 2end!?").await;
}
