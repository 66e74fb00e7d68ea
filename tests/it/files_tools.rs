//! The tools about files and whole notebooks, on a real JupyterLab.

use serde_json::{Value, json};

use crate::support::{Agent, Era, Gateway, agent::ERAS, eventually, lab};

async fn scene() -> (Gateway, Agent) {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    (gateway, agent)
}

fn names(listing: &Value, member: &str) -> Vec<String> {
    listing[member]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn listing_shows_what_the_document_promises() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    folder.notebook("nb.ipynb");
    folder.write("ü 漢🎉.md", "# hi");
    folder.write("sub/x.txt", "x");
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        let answer = agent.call("list_documents", json!({ "path": folder.name })).await;
        let text: Value = serde_json::from_str(answer.text()).unwrap();
        let listing = answer.ok();
        assert_eq!(text, listing["documents"], "the text is the bare array");
        assert_eq!(names(&listing, "documents"), ["nb.ipynb", "sub", "ü 漢🎉.md"]);
        let base = lab().url();
        let file = &text[2];
        assert_eq!(file["type"], "file");
        assert_eq!(file["size"], 4);
        assert_eq!(file["writable"], true);
        assert_eq!(file["path"], folder.path("ü 漢🎉.md"));
        assert_eq!(
            file["url"],
            format!("{base}lab/tree/{}/%C3%BC%20%E6%BC%A2%F0%9F%8E%89.md", folder.name)
        );
        assert!(file["created"].is_string() && file["last_modified"].is_string());
        assert_eq!(text[0]["url"], format!("{base}lab/tree/{}/nb.ipynb", folder.name));
        assert_eq!(text[1]["url"], format!("{base}lab/tree/{}/sub", folder.name));
    }
}

#[tokio::test]
async fn notebooks_are_found_at_every_depth_and_limits_are_said() {
    let (_gateway, agent) = scene().await;
    let folder = lab().folder();
    for path in ["a.ipynb", "x/b.ipynb", "x/y/c.ipynb"] {
        folder.notebook(path);
    }
    folder.write("x/not.txt", "");
    let found = agent.call("list_nbs", json!({ "path": folder.name })).await.ok();
    assert_eq!(names(&found, "notebooks"), ["a.ipynb", "b.ipynb", "c.ipynb"]);
    assert_eq!(found["truncated"], false);
    let entry = &found["notebooks"][2];
    assert_eq!(entry["path"], folder.path("x/y/c.ipynb"));
    for field in ["name", "last_modified", "created", "size", "writable", "url"] {
        assert!(!entry[field].is_null(), "{field}");
    }
    let shallow = agent
        .call("list_nbs", json!({ "path": folder.name, "max_depth": 1 }))
        .await
        .ok();
    assert_eq!(
        (names(&shallow, "notebooks").len(), &shallow["truncated"]),
        (2, &json!(true))
    );
    let few = agent
        .call("list_nbs", json!({ "path": folder.name, "max_nbs": 1 }))
        .await
        .ok();
    assert_eq!((names(&few, "notebooks").len(), &few["truncated"]), (1, &json!(true)));
    let missing = agent
        .call("list_nbs", json!({ "path": folder.path("nowhere") }))
        .await
        .error();
    assert!(missing.contains("does not exist"), "{missing}");
}

#[tokio::test]
async fn a_created_notebook_is_valid_and_has_a_kernel() {
    let (_gateway, agent) = scene().await;
    let folder = lab().folder();
    let path = folder.path("ü 漢🎉.ipynb");
    let created = agent.call("create_notebook", json!({ "path": path })).await.ok();
    assert_eq!(created["path"], path);
    let notebook: Value = serde_json::from_str(&folder.read("ü 漢🎉.ipynb")).unwrap();
    assert_eq!(notebook["nbformat"], 4);
    assert_eq!(notebook["metadata"]["kernelspec"]["name"], "python3");
    let again = agent.call("create_notebook", json!({ "path": path })).await.error();
    assert!(again.contains("already exists"), "{again}");
    for (arguments, hint) in [
        (json!({ "path": folder.path("x.txt") }), ".ipynb"),
        (
            json!({ "path": folder.path("y.ipynb"), "kernel_name": "cobol" }),
            "python3",
        ),
        (json!({ "path": folder.path("nowhere/y.ipynb") }), "does not exist"),
        (json!({ "path": "" }), "name a file"),
    ] {
        let refused = agent.call("create_notebook", arguments.clone()).await.error();
        assert!(refused.contains(hint), "{arguments}: {refused}");
    }
    assert!(
        !folder.has("x.txt") && !folder.has("y.ipynb") && !folder.has("nowhere"),
        "nothing else was made"
    );
}

#[tokio::test]
async fn of_many_who_create_the_same_document_one_does() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let path = folder.path("once.md");
    let create = |number: usize| {
        let agent = &agent;
        let arguments = json!({ "path": path, "type": "markdown", "content": format!("by {number}") });
        async move { agent.call("create_document", arguments).await }
    };
    let answers = futures::future::join_all((0..10).map(create)).await;
    let done: Vec<usize> = (0..10).filter(|number| !answers[*number].is_error).collect();
    assert_eq!(done.len(), 1, "{done:?}");
    assert_eq!(folder.read("once.md"), format!("by {}", done[0]));
}

#[tokio::test]
async fn documents_of_every_type_are_created() {
    let (_gateway, agent) = scene().await;
    let folder = lab().folder();
    let nb = r#"{"cells":[{"cell_type":"markdown","id":"a","metadata":{},"source":"hi"}],"metadata":{},"nbformat":4,"nbformat_minor":5}"#;
    for (name, kind, content, expected) in [
        ("default.ipynb", None, None, "notebook"),
        ("given.ipynb", Some("notebook"), Some(nb), "notebook"),
        ("plain.py", Some("file"), Some("print('ü🎉')\n"), "file"),
        ("notes.md", Some("markdown"), Some("# hi"), "markdown"),
        ("folder", Some("directory"), None, "directory"),
    ] {
        let created = agent
            .call(
                "create_document",
                json!({ "path": folder.path(name), "type": kind, "content": content }),
            )
            .await
            .ok();
        assert_eq!(created["type"], expected, "{name}");
        assert!(created["message"].as_str().unwrap().contains("Successfully created"));
        assert!(folder.has(name));
    }
    assert_eq!(folder.read("plain.py"), "print('ü🎉')\n");
    let taken = agent
        .call(
            "create_document",
            json!({ "path": folder.path("plain.py"), "content": "gone?" }),
        )
        .await
        .error();
    assert!(taken.contains("already exists"), "{taken}");
    assert_eq!(
        folder.read("plain.py"),
        "print('ü🎉')\n",
        "what exists is never replaced"
    );
    for (arguments, hint) in [
        (
            json!({ "path": folder.path("bad.ipynb"), "content": "not json" }),
            "nbformat",
        ),
        (
            json!({ "path": folder.path("bad.ipynb"), "content": "{\"cells\":[{}],\"metadata\":{},\"nbformat\":4,\"nbformat_minor\":5}" }),
            "cells[0]",
        ),
        (json!({ "path": folder.path("bad.txt"), "type": "notebook" }), ".ipynb"),
        (json!({ "path": folder.path("bad.ipynb"), "type": "file" }), "notebook"),
        (json!({ "path": folder.path("bad"), "type": "spreadsheet" }), "markdown"),
    ] {
        let refused = agent.call("create_document", arguments.clone()).await.error();
        assert!(refused.contains(hint), "{arguments}: {refused}");
        assert!(!folder.has("bad.ipynb") && !folder.has("bad.txt"));
    }
}

#[tokio::test]
async fn info_comes_in_up_to_three_messages() {
    let (_gateway, agent) = scene().await;
    let folder = lab().folder();
    let path = folder.write("doc.md", "🎉🎉🎉 # Content");
    let bare = agent.call("get_document_info", json!({ "path": path })).await;
    assert_eq!(bare.texts.len(), 1);
    let info: Value = serde_json::from_str(bare.text()).unwrap();
    for field in [
        "name",
        "path",
        "type",
        "format",
        "created",
        "last_modified",
        "size",
        "writable",
        "mimetype",
        "url",
    ] {
        assert!(info.get(field).is_some(), "{field}");
    }
    assert_eq!(info["mimetype"], "text/markdown");
    let full = agent
        .call("get_document_info", json!({ "path": path, "include_content": true }))
        .await;
    assert_eq!(
        full.texts[1..],
        [
            r#"{"content_length":13,"truncated":false}"#.to_owned(),
            "🎉🎉🎉 # Content".to_owned()
        ]
    );
    let cut = agent
        .call(
            "get_document_info",
            json!({ "path": path, "include_content": true, "max_content": 2 }),
        )
        .await;
    assert_eq!(
        cut.texts[1..],
        [
            r#"{"content_length":13,"truncated":true}"#.to_owned(),
            "🎉🎉".to_owned()
        ]
    );
    std::fs::write(folder.disk.join("pic.png"), [0x89, b'P', b'N', b'G', 0, 255, 1, 2]).unwrap();
    let picture = agent
        .call(
            "get_document_info",
            json!({ "path": folder.path("pic.png"), "include_content": true }),
        )
        .await;
    assert_eq!(picture.texts[2], "iVBORwD/AQI=");
    let uncut = agent
        .call(
            "get_document_info",
            json!({ "path": folder.path("pic.png"), "include_content": true, "max_content": 3 }),
        )
        .await;
    assert_eq!(uncut.texts[2], "", "base64 is never cut in the middle");
}

#[tokio::test]
async fn documents_are_renamed_copied_overwritten_and_deleted() {
    let (_gateway, agent) = scene().await;
    let folder = lab().folder();
    folder.write("a.txt", "one");
    folder.write("taken.txt", "taken");
    let path = |name: &str| folder.path(name);
    let renamed = agent
        .call(
            "rename_document",
            json!({ "path": path("a.txt"), "newPath": path("b ü.txt") }),
        )
        .await
        .ok();
    assert_eq!(
        (&renamed["old_path"], &renamed["new_path"]),
        (&json!(path("a.txt")), &json!(path("b ü.txt")))
    );
    let copied = agent
        .call(
            "copy_document",
            json!({ "path": path("b ü.txt"), "copy_path": path("c.txt") }),
        )
        .await
        .ok();
    assert_eq!(
        (&copied["original_path"], &copied["copy_path"]),
        (&json!(path("b ü.txt")), &json!(path("c.txt")))
    );
    let overwritten = agent
        .call(
            "overwrite_document",
            json!({ "path": path("c.txt"), "content": "zwö🎉" }),
        )
        .await
        .ok();
    assert_eq!(overwritten["content_length"], 4);
    eventually("it is saved", async || (folder.read("c.txt") == "zwö🎉").then_some(())).await;
    assert_eq!(folder.read("b ü.txt"), "one");
    for (tool, arguments) in [
        (
            "rename_document",
            json!({ "path": path("c.txt"), "newPath": path("taken.txt") }),
        ),
        (
            "copy_document",
            json!({ "path": path("c.txt"), "copyPath": path("taken.txt") }),
        ),
    ] {
        assert!(
            agent.call(tool, arguments).await.error().contains("already exists"),
            "{tool}"
        );
    }
    assert_eq!(folder.read("taken.txt"), "taken");
    let nowhere = json!({ "path": path("c.txt"), "newPath": path("nowhere/c.txt") });
    let refused = agent.call("rename_document", nowhere).await.error();
    assert!(refused.contains("nowhere\" does not exist"), "{refused}");
    let deleted = agent
        .call("delete_document", json!({ "path": path("c.txt") }))
        .await
        .ok();
    assert_eq!(deleted["path"], path("c.txt"));
    assert!(!folder.has("c.txt"));
    for (tool, arguments) in [
        ("delete_document", json!({ "path": path("c.txt") })),
        (
            "rename_document",
            json!({ "path": path("c.txt"), "newPath": path("d.txt") }),
        ),
        (
            "copy_document",
            json!({ "path": path("c.txt"), "copyPath": path("d.txt") }),
        ),
        ("overwrite_document", json!({ "path": path("c.txt"), "content": "" })),
        ("get_document_info", json!({ "path": path("c.txt") })),
    ] {
        let refused = agent.call(tool, arguments).await.error();
        assert!(
            refused.contains("does not exist") && refused.contains("c.txt"),
            "{tool}: {refused}"
        );
    }
}

#[tokio::test]
async fn a_copy_is_exact_to_the_byte() {
    let (_gateway, agent) = scene().await;
    let folder = lab().folder();
    let odd = "{\n  \"nbformat\": 4,  \"nbformat_minor\":5, \"metadata\":{},\"cells\":[]\n}\r\n";
    folder.write("odd.ipynb", odd);
    std::fs::write(folder.disk.join("b.bin"), [0_u8, 255, 10, 13, 128]).unwrap();
    for name in ["odd.ipynb", "b.bin"] {
        let target = format!("copy-of-{name}");
        agent
            .call(
                "copy_document",
                json!({ "path": folder.path(name), "copyPath": folder.path(&target) }),
            )
            .await
            .ok();
        assert_eq!(
            std::fs::read(folder.disk.join(name)).unwrap(),
            std::fs::read(folder.disk.join(&target)).unwrap(),
            "{name}"
        );
    }
}

#[tokio::test]
async fn bad_arguments_are_named() {
    let (_gateway, agent) = scene().await;
    for (tool, arguments, hint) in [
        ("get_document_info", json!({}), "`path`"),
        ("get_document_info", json!({ "path": 5 }), "`path`"),
        (
            "get_document_info",
            json!({ "path": "a", "max_content": -1 }),
            "`max_content`",
        ),
        ("get_document_info", json!({ "path": "a", "pth": 1 }), "`pth`"),
        ("rename_document", json!({ "path": "a" }), "`newPath`"),
        ("list_nbs", json!({ "path": "a", "max_depth": "deep" }), "`max_depth`"),
        ("get_base_url", json!({ "server": "nowhere" }), "available: lab"),
    ] {
        let refused = agent.call(tool, arguments.clone()).await.error();
        assert!(refused.contains(hint), "{tool} {arguments}: {refused}");
    }
}

#[tokio::test]
async fn kernels_are_listed() {
    let (_gateway, agent) = scene().await;
    let kernels = agent.call("list_available_kernels", json!({})).await.ok();
    let python = &kernels["kernels"][0];
    assert_eq!(
        (&python["name"], &python["language"]),
        (&json!("python3"), &json!("python"))
    );
    assert!(python["display_name"].as_str().unwrap().contains("Python 3"));
    assert!(python["path"].as_str().unwrap().contains("kernelspecs/python3"));
}
