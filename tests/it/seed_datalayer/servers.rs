//! `connect_to_jupyter`, `list_files`, `list_kernels`.

use serde_json::{Value, json};

use super::{Scene, agent, kernel_of};
use crate::support::{Agent, Era, Gateway, TOKEN, gateway::lab_server, lab, notebook::notebook, own_lab::OwnLab};

#[tokio::test]
async fn a_known_server_is_chosen_by_name_and_by_url() {
    let scene = Scene::set(Era::Legacy).await;
    let url = lab().url().trim_end_matches('/').to_owned();
    for named in ["lab-b".to_owned(), url.clone(), format!("{url}/lab?token=secret")] {
        let arguments = json!({ "jupyter_url": named, "jupyter_token": null, "document_provider": "jupyter" });
        let text = scene.text("connect_to_jupyter", arguments).await;
        assert!(
            text.starts_with(&format!("Successfully connected to Jupyter server: {url}")),
            "{text}"
        );
        assert!(
            text.ends_with("DocumentProvider: jupyter") && !text.contains("secret"),
            "{text}"
        );
    }
    for (arguments, expected) in [
        (
            json!({ "jupyter_url": "http://elsewhere.example:8888/?token=secret" }),
            "elsewhere.example",
        ),
        (json!({ "jupyter_url": "lab-c" }), "available: lab, lab-b"),
        (json!({ "jupyter_url": " " }), "name a server"),
        (
            json!({ "jupyter_url": "lab", "document_provider": "datalayer" }),
            "allowed: jupyter",
        ),
    ] {
        let error = scene.error("connect_to_jupyter", arguments).await;
        assert!(error.contains(expected) && !error.contains("secret"), "{error}");
    }
    let narrowed = agent(&scene.gateway, "&server=lab", TOKEN, Era::Modern).await;
    let arguments = json!({ "jupyter_url": "lab-b" });
    assert!(narrowed.call("connect_to_jupyter", arguments).await.is_error);
    // The last one stays; the notebook is on it.
    scene
        .text("connect_to_jupyter", json!({ "jupyter_url": "lab-b" }))
        .await;
    scene.activate("nb", &["x"]).await;
    let refused = scene
        .error(
            "use_notebook",
            json!({ "notebook_name": "nb", "notebook_path": scene.folder.notebook("c.ipynb") }),
        )
        .await;
    assert!(refused.contains("on `lab-b`"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_is_reached_where_an_operator_allows_it() {
    let own = OwnLab::start(&[]).await;
    own.write("a.ipynb", &notebook(&["20 + 22"]));
    let tenant = format!("[[tenants]]\nname = \"all\"\nconnect_urls = [{:?}]\n", own.url());
    let token = format!("[[auth.tokens]]\nname = \"ana\"\ntenant = \"all\"\ntoken = \"{TOKEN}\"\n");
    let gateway = Gateway::configured(&format!("{}{tenant}{token}", lab_server("lab"))).await;
    let url = gateway.url("/mcp?toolsets=datalayer");
    let agent = Agent::connect_to(&url, TOKEN, Era::Modern).await;
    let wrong = json!({ "jupyter_url": own.url(), "jupyter_token": "wrong" });
    assert!(agent.call("connect_to_jupyter", wrong).await.is_error);
    let right = json!({ "jupyter_url": own.url(), "jupyter_token": own.token() });
    agent.call("connect_to_jupyter", right).await.ok();
    let files = agent.call("list_files", json!({})).await;
    assert!(files.text().contains("a.ipynb\tnotebook"), "{files:?}");
    let used = json!({ "notebook_name": "a", "notebook_path": "a.ipynb" });
    agent.call("use_notebook", used).await.ok();
    let ran = agent.call("execute_cell", json!({ "cell_index": 0 })).await;
    assert_eq!(ran.texts, ["42"]);
    let code = agent.call("execute_code", json!({ "code": "6 * 7" })).await;
    assert_eq!(code.texts, ["42"]);
}

#[tokio::test]
async fn files_are_listed_in_pages_by_depth_and_pattern() {
    let scene = Scene::set(Era::Modern).await;
    scene.folder.write("a.py", "x");
    scene.folder.notebook("n.ipynb");
    scene.folder.write("sub/b.py", &"y".repeat(2000));
    scene.folder.write("sub/deep/c.py", "z");
    let root = scene.folder.path("");
    let root = root.trim_end_matches('/');
    let list = async |more: Value| {
        let mut arguments = more;
        arguments["path"] = root.into();
        scene.call("list_files", arguments).await
    };
    let paths = |answer: &crate::support::agent::ToolAnswer| -> Vec<String> {
        let items = answer.structured["items"].as_array().expect("items").iter();
        let inner = |item: &Value| item["Path"].as_str().unwrap()[root.len() + 1..].to_owned();
        items.map(inner).collect()
    };
    let default = list(json!({})).await;
    let expected = ["a.py", "n.ipynb", "sub", "sub/b.py", "sub/deep"];
    assert_eq!(paths(&default), expected);
    let lines: Vec<&str> = default.text().lines().collect();
    assert_eq!(
        lines[..3],
        ["Showing 0-5 of 5 files", "", "Path\tType\tSize\tLast_Modified"]
    );
    assert!(lines[3].contains("a.py\tfile\t1B\t20"), "{lines:?}");
    assert!(lines[6].contains("sub/b.py\tfile\t2.0KB\t"), "{lines:?}");
    assert_eq!(paths(&list(json!({ "max_depth": 0 })).await), expected[..3]);
    assert_eq!(paths(&list(json!({ "max_depth": 2 })).await).len(), 6);
    let page = list(json!({ "start_index": 1, "limit": 2 })).await;
    assert!(page.text().starts_with("Showing 1-3 of 5 files"), "{page:?}");
    assert_eq!(paths(&page), expected[1..3]);
    assert_eq!(paths(&list(json!({ "limit": 0 })).await).len(), 5);
    let python = list(json!({ "pattern": "**/*.py", "max_depth": 3 })).await;
    assert_eq!(paths(&python), ["a.py", "sub/b.py", "sub/deep/c.py"]);
    let here = list(json!({ "pattern": format!("{root}/*.py") })).await;
    assert_eq!(paths(&here), ["a.py"]);
    let none = list(json!({ "pattern": "*.csv" })).await;
    assert!(
        none.text()
            .starts_with("No files matching pattern '*.csv' found in path"),
        "{none:?}"
    );
    for (arguments, expected) in [
        (json!({ "path": root, "max_depth": 4 }), "allowed: 0 to 3"),
        (
            json!({ "path": root, "start_index": 5 }),
            "5 is out of range; there are 5 files",
        ),
        (json!({ "path": root, "pattern": "[" }), "`pattern`"),
        (json!({ "path": scene.folder.path("nowhere") }), "nowhere"),
    ] {
        let error = scene.error("list_files", arguments).await;
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn kernels_are_listed() {
    let scene = Scene::with(Era::Modern, &["x"]).await;
    let kernel = kernel_of(&scene.folder.path("nb.ipynb")).await.expect("a kernel");
    let listed = scene.call("list_kernels", json!({})).await;
    let header = "ID\tName\tDisplay_Name\tLanguage\tState\tConnections\tLast_Activity\tEnvironment";
    assert!(listed.text().starts_with(header), "{listed:?}");
    let items = listed.structured["items"].as_array().expect("items");
    let item = items.iter().find(|item| item["ID"] == kernel).expect("the kernel");
    assert_eq!(
        (&item["Name"], &item["Language"]),
        (&json!("python3"), &json!("python"))
    );
    assert!(item["Last_Activity"].as_str().unwrap().starts_with("20"), "{item}");
}
