//! "Notebook Access and Management".

use serde_json::{Value, json};

use super::{connect, paths, says};
use crate::support::{Era, Gateway, Human, eventually, lab, notebook::notebook};

#[tokio::test]
async fn notebooks_of_a_tree_are_listed() {
    let gateway = Gateway::start().await;
    let (agent, folder) = (connect(&gateway, Era::Legacy).await, lab().folder());
    for name in ["alpha.ipynb", "data/beta.ipynb", "data/deep/gamma.ipynb", "datum.ipynb"] {
        folder.write(name, &notebook(&["print('a')", "1 + 1"]));
    }
    folder.write("data/notes.txt", "no notebook");

    // list_notebooks: by the beginning of the path, wherever in a name it ends, and at most so many.
    let list = async |prefix: &str| {
        agent
            .ok("list_notebooks", json!({ "path_prefix": folder.path(prefix) }))
            .await
    };
    let all = list("").await;
    assert_eq!(paths(&all["notebooks"]).len(), 4);
    says(&all, "Found 4 notebooks");
    assert_eq!(
        paths(&list("dat").await["notebooks"]),
        [
            folder.path("data/beta.ipynb"),
            folder.path("data/deep/gamma.ipynb"),
            folder.path("datum.ipynb")
        ]
    );
    assert_eq!(
        paths(&list("/data/deep/").await["notebooks"]),
        [folder.path("data/deep/gamma.ipynb")]
    );
    let few = agent
        .ok(
            "list_notebooks",
            json!({ "path_prefix": folder.path(""), "max_results": 2 }),
        )
        .await;
    assert_eq!(
        paths(&few["notebooks"]),
        [folder.path("alpha.ipynb"), folder.path("data/beta.ipynb")]
    );
    says(&few, "Found 4 notebooks (showing first 2 results)");
    assert_eq!(few["notebooks"][0]["collaborative"], false, "listing opens nothing");
    let everything = agent.ok("list_notebooks", json!({})).await;
    assert!(paths(&everything["notebooks"]).len() <= 50);
    agent
        .refused("list_notebooks", json!({ "path_prefix": "../x" }), &[".."])
        .await;
    agent
        .refused("list_notebooks", json!({ "max_results": -1 }), &["max_results"])
        .await;
}

#[tokio::test]
async fn the_limit_of_a_reading_holds_for_metadata_too() {
    let gateway = Gateway::start().await;
    let (agent, folder) = (connect(&gateway, Era::Modern).await, lab().folder());
    let mut heavy: Value = serde_json::from_str(&notebook(&["1", "2", "3"])).expect("json");
    for cell in heavy["cells"].as_array_mut().expect("cells") {
        cell["metadata"] = json!({ "notes": "n".repeat(60_000) });
    }
    let heavy = folder.write("heavy.ipynb", &heavy.to_string());
    let cut = agent.ok("get_notebook", json!({ "path": heavy })).await;
    says(&cut, "Metadata beyond the limit was left out");
    assert_eq!(cut["truncated"], true);
    assert!(cut.to_string().len() < 110_000, "{}", cut.to_string().len());
}

#[tokio::test]
async fn a_long_a_missing_and_another_kind_of_document_are_told_apart() {
    let gateway = Gateway::start().await;
    let (agent, folder) = (connect(&gateway, Era::Modern).await, lab().folder());
    folder.write("notes.txt", "no notebook");
    let long = folder.write("long.ipynb", &notebook(&[&"x".repeat(100_001)]));
    assert_eq!(
        agent.ok("get_notebook", json!({ "path": long })).await["truncated"],
        true,
        "100000 by default"
    );
    agent.refused("get_notebook", json!({}), &["path"]).await;
    agent
        .refused(
            "get_notebook",
            json!({ "path": folder.path("none.ipynb") }),
            &["none.ipynb"],
        )
        .await;
    agent
        .refused("get_notebook", json!({ "path": folder.path("notes.txt") }), &[".ipynb"])
        .await;
}

#[tokio::test]
async fn notebooks_are_read_and_joined() {
    let gateway = Gateway::start().await;
    let (agent, folder) = (connect(&gateway, Era::Modern).await, lab().folder());
    folder.write("alpha.ipynb", &notebook(&["print('a')", "1 + 1"]));

    // get_notebook: the content with its size, and the collaboration unless it is not wanted.
    let path = folder.path("alpha.ipynb");
    let person = Human::join(&path).await;
    let session = agent.ok("create_notebook_session", json!({ "path": path })).await;
    person.publish("Grace", true);
    let read = eventually("the person is seen", async || {
        let read = agent.ok("get_notebook", json!({ "path": path })).await;
        let collaborators = read["collaboration_state"]["collaborators"].as_array().cloned();
        collaborators
            .is_some_and(|names| names.contains(&json!("Grace")))
            .then_some(read)
    })
    .await;
    says(&read, "15 characters");
    says(&read, "collaboration session");
    assert_eq!(
        (&read["path"], &read["type"], &read["truncated"]),
        (&json!(path), &json!("notebook"), &json!(false))
    );
    assert_eq!((&read["cell_count"], &read["content_length"]), (&json!(2), &json!(15)));
    let cell = &read["content"]["cells"][0];
    assert_eq!(
        (&cell["id"], &cell["cell_type"], &cell["source"]),
        (&json!("c0"), &json!("code"), &json!("print('a')"))
    );
    assert!(read["content"]["metadata"].is_object() && read["revision"].is_string());
    let bare = agent
        .ok(
            "get_notebook",
            json!({ "path": path, "include_collaboration_state": false }),
        )
        .await;
    assert!(bare["collaboration_state"].is_null());
    assert!(!bare["description"].as_str().unwrap().contains("session"), "{bare}");
    let cut = agent
        .ok("get_notebook", json!({ "path": path, "max_content_length": 12 }))
        .await;
    says(&cut, "exceeds limit of 12");
    assert_eq!(cut["content"]["cells"][1]["source"], "1 ");
    assert_eq!(cut["truncated"], true);
    let less = agent
        .ok("get_notebook", json!({ "path": path, "max_content_length": 10 }))
        .await;
    says(&less, "shows 1 of 2 cells");
    assert!(less["content"]["metadata"].is_null(), "larger than the limit: {less}");
    let whole = agent
        .ok("get_notebook", json!({ "path": path, "max_content_length": 1000 }))
        .await;
    assert_eq!(
        (&whole["truncated"], &whole["content_length"]),
        (&json!(false), &json!(15))
    );
    // create_notebook_session: creates it once, retrieves it afterwards.
    let again = agent.ok("create_notebook_session", json!({ "path": path })).await;
    for member in ["session_id", "room_id", "file_id"] {
        assert!(
            session[member].is_string() && session[member] == again[member],
            "{member}: {again}"
        );
        assert_eq!(session[member], read["collaboration_state"][member]);
    }
    assert_eq!(
        session["room_id"],
        format!("json:notebook:{}", session["file_id"].as_str().unwrap())
    );
    assert_eq!(
        (&session["path"], &session["status"]),
        (&json!(path), &json!("connected"))
    );
    let listed = agent
        .ok("list_notebooks", json!({ "path_prefix": folder.path("alpha") }))
        .await;
    assert_eq!(listed["notebooks"][0]["collaborative"], true);
    agent
        .refused(
            "create_notebook_session",
            json!({ "path": folder.path("none.ipynb") }),
            &["none.ipynb"],
        )
        .await;
    person.leave().await;
}
