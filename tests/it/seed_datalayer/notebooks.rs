//! `use_notebook`, `unuse_notebook`, `list_notebooks`, `restart_notebook`, `read_notebook`, and which notebook is active.

use reqwest::Method;
use serde_json::{Value, json};

use super::{HEADER, OTHER, Scene, agent, jupyter, kernel_of};
use crate::support::{
    Era, TOKEN,
    agent::ERAS,
    gateway::{everything, lab_server},
    notebook::notebook,
};

#[tokio::test]
async fn a_notebook_is_used_reactivated_and_given_up() {
    for era in ERAS {
        let scene = Scene::set(era).await;
        let none = scene.text("list_notebooks", json!({})).await;
        assert!(none.starts_with("No managed notebooks."), "{none}");
        let used = scene.activate("a", &["x = 1\ny = 2", "z"]).await;
        let path = scene.folder.path("a.ipynb");
        let kernel = kernel_of(&path).await.expect("a kernel");
        let expected = format!(
            "[INFO] Connected to kernel '{kernel}'.\n[INFO] Successfully activate notebook 'a'.\n\nNotebook has 2 cells.\n\
             Showing first 2 cells:\n\n{HEADER}\n0\tcode\tN/A\tx = 1...(1 lines hidden)\n1\tcode\tN/A\tz"
        );
        assert_eq!(used, expected);
        let again = json!({ "notebook_name": "a", "notebook_path": path });
        let again = scene.text("use_notebook", again.clone()).await;
        assert!(
            again.starts_with("Notebook 'a' is already connected and active."),
            "{again}"
        );
        scene.activate("b", &[]).await;
        let back = scene
            .text(
                "use_notebook",
                json!({ "notebook_name": "a", "notebook_path": path, "mode": "connect" }),
            )
            .await;
        assert!(
            back.starts_with("[INFO] Reactivating notebook 'a' and deactivating 'b'."),
            "{back}"
        );

        let listed = scene.call("list_notebooks", json!({})).await;
        assert_eq!(listed.structured["count"], 2);
        let first = &listed.structured["items"][0];
        assert_eq!((&first["Name"], &first["Path"]), (&json!("a"), &json!(path)));
        assert_eq!((&first["Kernel_ID"], &first["Activate"]), (&json!(kernel), &json!("✓")));
        assert_eq!(listed.structured["items"][1]["Activate"], "");
        let lines: Vec<&str> = listed.text().lines().collect();
        assert_eq!(lines[0], "Name\tPath\tKernel_ID\tKernel_Status\tActivate");
        assert!(lines[1].ends_with("\t✓"), "{lines:?}");

        let restarted = scene.text("restart_notebook", json!({ "notebook_name": "a" })).await;
        assert!(
            restarted.starts_with("Notebook 'a' kernel restarted successfully."),
            "{restarted}"
        );
        let given_up = scene.text("unuse_notebook", json!({ "notebook_name": "a" })).await;
        assert_eq!(
            given_up,
            "Notebook 'a' unused successfully. Current notebook switched to 'b'."
        );
        let given_up = scene.text("unuse_notebook", json!({ "notebook_name": "b" })).await;
        assert_eq!(given_up, "Notebook 'b' unused successfully. No notebook is active.");
        assert_eq!(kernel_of(&path).await, Some(kernel), "its kernel goes on");
        for tool in ["unuse_notebook", "restart_notebook", "read_notebook"] {
            let error = scene.error(tool, json!({ "notebook_name": "a" })).await;
            assert!(error.contains("\"a\" is not connected; connected: none"), "{error}");
            assert!(
                error.contains("use_notebook") && !error.contains("connect_notebook"),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn notebooks_that_cannot_be_used_leave_everything_as_it_is() {
    let scene = Scene::with(Era::Legacy, &["x"]).await;
    let path = scene.folder.path("nb.ipynb");
    let nowhere = scene.folder.path("nowhere.ipynb");
    let text = scene.folder.write("a.txt", "text");
    for (name, path, more, expected) in [
        ("n", nowhere.as_str(), json!({}), "not found in jupyter server"),
        ("n", path.as_str(), json!({ "mode": "create" }), "already exists"),
        ("n", text.as_str(), json!({}), "does not end with .ipynb"),
        ("n", "../a.ipynb", json!({}), ".."),
        (
            "nb",
            text.replace("txt", "ipynb").as_str(),
            json!({}),
            "not the correct path for notebook 'nb'",
        ),
        (" ", path.as_str(), json!({}), "a name has 1 to 200 characters"),
        ("n", path.as_str(), json!({ "mode": "open" }), "connect"),
        ("n", path.as_str(), json!({ "kernel_id": "no-such" }), "list_kernels"),
        ("n", path.as_str(), json!({ "kernel_id": "NEW" }), "restart_notebook"),
    ] {
        let mut arguments = more;
        arguments["notebook_name"] = name.into();
        arguments["notebook_path"] = path.into();
        let error = scene.error("use_notebook", arguments).await;
        assert!(error.contains(expected), "{name} {path}: {error}");
    }
    let listed = scene.call("list_notebooks", json!({})).await.ok();
    let active: Vec<&Value> = listed["items"].as_array().unwrap().iter().collect();
    assert!(
        active.iter().any(|row| row["Name"] == "nb" && row["Activate"] == "✓"),
        "{listed}"
    );
    assert!(!scene.folder.has("nowhere.ipynb"));
}

#[tokio::test]
async fn a_notebook_is_created_and_a_kernel_is_chosen() {
    let scene = Scene::with(Era::Modern, &["shared = 7"]).await;
    let created = scene.folder.path("new.ipynb");
    let arguments = json!({ "notebook_name": "new", "notebook_path": created, "mode": "create", "kernel_id": "new" });
    let text = scene.text("use_notebook", arguments).await;
    assert!(
        text.contains("Notebook has 1 cells.") && text.contains("markdown"),
        "{text}"
    );
    let own = kernel_of(&created).await.expect("a kernel");
    assert!(text.contains(&own), "{text}");
    // The kernel of another notebook, in which what was run there is known.
    scene
        .outputs("execute_code", json!({ "code": "shared = 7", "kernel_id": own }))
        .await;
    let path = scene.folder.write("third.ipynb", &notebook(&["shared"]));
    let arguments = json!({ "notebook_name": "third", "notebook_path": path, "kernel_id": own });
    let text = scene.text("use_notebook", arguments).await;
    assert!(
        text.starts_with(&format!("[INFO] Connected to kernel '{own}'.")),
        "{text}"
    );
    assert_eq!(kernel_of(&path).await, Some(own.clone()));
    assert_eq!(scene.outputs("execute_cell", json!({ "cell_index": 0 })).await, ["7"]);
    // Another one in the place of the one that it has.
    let first = scene.folder.path("nb.ipynb");
    let before = kernel_of(&first).await.expect("a kernel");
    let arguments = json!({ "notebook_name": "nb", "notebook_path": first, "kernel_id": own });
    let text = scene.text("use_notebook", arguments).await;
    assert!(
        text.contains(&format!("The notebook's kernel '{before}' ended.")),
        "{text}"
    );
    assert_eq!(kernel_of(&first).await, Some(own));
}

#[tokio::test]
async fn each_session_and_each_token_has_an_active_notebook_of_its_own() {
    let scene = Scene::set(Era::Legacy).await;
    scene.activate("a", &["in a"]).await;
    let (other_session, stateless) = (
        agent(&scene.gateway, "", TOKEN, Era::Legacy).await,
        agent(&scene.gateway, "", TOKEN, Era::Modern).await,
    );
    for agent in [&other_session, &stateless] {
        let error = agent.call("read_cell", json!({ "cell_index": 0 })).await.error();
        assert!(
            error.contains("no notebook is active; activate one with use_notebook; in use: a"),
            "{error}"
        );
        // The name is the token's.
        let named = agent
            .call("read_cell", json!({ "cell_index": 0, "notebook_name": "a" }))
            .await;
        assert_eq!(named.texts[1], "in a");
    }
    let b = scene.folder.write("b.ipynb", &notebook(&["in b"]));
    let use_b = json!({ "notebook_name": "b", "notebook_path": b });
    stateless.call("use_notebook", use_b).await.ok();
    let again = agent(&scene.gateway, "", TOKEN, Era::Modern).await;
    for (agent, expected) in [(&again, "in b"), (&stateless, "in b"), (&scene.agent, "in a")] {
        let read = agent
            .call("read_cell", json!({ "cell_index": 0, "notebook_name": null }))
            .await;
        assert_eq!(read.texts[1], expected);
    }
    let bob = agent(&scene.gateway, "", OTHER, Era::Modern).await;
    let error = bob.call("read_cell", json!({ "cell_index": 0 })).await.error();
    assert!(
        error.contains("no notebook is active") && !error.contains("in use"),
        "{error}"
    );
    let error = bob.call("read_notebook", json!({ "notebook_name": "a" })).await.error();
    assert!(error.contains("connected: none"), "{error}");
}

#[tokio::test]
async fn a_notebook_is_read_in_pages() {
    let scene = Scene::set(Era::Modern).await;
    scene.activate("empty", &["x"]).await;
    scene.text("delete_cell", json!({ "cell_indices": [0] })).await;
    let empty = scene.text("read_notebook", json!({ "notebook_name": "empty" })).await;
    assert_eq!(empty, "Notebook empty has 0 cells.\n\nNotebook is empty");
    let sources: Vec<String> = (0..23).map(|index| format!("a{index}\nb")).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    scene.activate("nb", &sources).await;
    let read = async |arguments: Value| {
        let mut arguments = arguments;
        arguments["notebook_name"] = "nb".into();
        scene.text("read_notebook", arguments).await
    };
    let brief = read(json!({})).await;
    assert!(brief.starts_with("Notebook nb has 23 cells.\n\n"), "{brief}");
    assert!(brief.ends_with("19\tcode\tN/A\ta19...(1 lines hidden)"), "{brief}");
    let page = read(json!({ "start_index": 20, "limit": 2 })).await;
    assert!(
        page.contains("20\tcode") && page.contains("21\tcode") && !page.contains("22\tcode"),
        "{page}"
    );
    let all = read(json!({ "limit": 0, "response_format": "detailed" })).await;
    assert!(
        all.contains("=====Cell 22 | type: code | execution count: N/A"),
        "{all}"
    );
    assert!(all.contains("=====\na22\nb\n"), "{all}");
    let error = scene
        .error("read_notebook", json!({ "notebook_name": "nb", "start_index": 23 }))
        .await;
    assert!(
        error.contains("23 is out of range; the notebook has 23 cells"),
        "{error}"
    );
}

/// Path rules bind names and kernels too.
#[tokio::test]
async fn what_a_token_may_not_touch_is_neither_used_nor_run_in() {
    let narrow =
        "[[auth.tokens]]\nname = \"narrow\"\ntenant = \"all\"\ntoken = \"narrow-token\"\npaths = [\"mine/**\"]\n";
    let reader =
        "[[auth.tokens]]\nname = \"reader\"\ntenant = \"all\"\ntoken = \"reader-token\"\npermissions = [\"read\"]\n";
    let scene = Scene::configured(
        &format!("{}{}{narrow}{reader}", lab_server("lab"), everything()),
        Era::Modern,
    )
    .await;
    scene.activate("nb", &["x = 1"]).await;
    let path = scene.folder.path("nb.ipynb");
    let kernel = kernel_of(&path).await.expect("a kernel");
    let narrow = agent(&scene.gateway, "", "narrow-token", Era::Modern).await;
    let used = json!({ "notebook_name": "nb", "notebook_path": path });
    assert!(narrow.call("use_notebook", used.clone()).await.is_error);
    let run = narrow
        .call("execute_code", json!({ "code": "x", "kernel_id": kernel }))
        .await
        .error();
    assert!(run.contains("no kernel"), "{run}");
    let listed = narrow.call("list_kernels", json!({})).await;
    assert!(!listed.text().contains(&kernel), "{listed:?}");
    // Who may only read gets no kernel started.
    let started: Value = jupyter()
        .send(Method::POST, "api/kernels", json!({}))
        .await
        .json()
        .await
        .unwrap();
    let raw = started["id"].as_str().unwrap();
    let run = narrow
        .call("execute_code", json!({ "code": "1", "kernel_id": raw }))
        .await
        .error();
    assert!(run.contains("no kernel"), "{run}");
    let reader = agent(&scene.gateway, "", "reader-token", Era::Modern).await;
    let other = scene.folder.write("other.ipynb", &notebook(&["y = 2"]));
    let answer = reader
        .call("use_notebook", json!({ "notebook_name": "o", "notebook_path": other }))
        .await;
    assert!(answer.text().contains("No kernel runs for the notebook."), "{answer:?}");
    assert_eq!(kernel_of(&other).await, None);
    let chosen = json!({ "notebook_name": "o", "notebook_path": other, "kernel_id": raw });
    assert!(reader.call("use_notebook", chosen).await.error().contains("execute"));
    let made = json!({ "notebook_name": "m", "notebook_path": scene.folder.path("m.ipynb"), "mode": "create" });
    assert!(reader.call("use_notebook", made).await.error().contains("write"));
    assert!(!scene.folder.has("m.ipynb"));
    jupyter()
        .send(Method::DELETE, &format!("api/kernels/{raw}"), Value::Null)
        .await;
}
