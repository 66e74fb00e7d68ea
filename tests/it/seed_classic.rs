//! The document of jupyter-mcp-server, from its top to its bottom, in its own words on a real JupyterLab.

mod cells;
mod own_servers;

use jupyter_mcp_gateway::types::Toolset;
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, TOKEN,
    agent::{ERAS, ToolAnswer},
    eventually,
    gateway::{everything, lab_server},
    jupyter::JupyterApi,
    lab,
    lab::Folder,
    notebook::notebook,
};

const OTHER: &str = "token-of-somebody-else";
const HEADER: &str = "Index\tType\tCount\tContent";

/// Two servers, and an agent that knows only the old words.
struct Classic {
    gateway: Gateway,
    agent: Agent,
    folder: Folder,
}

impl Classic {
    async fn set(era: Era) -> Self {
        let other = format!("[[auth.tokens]]\nname = \"bob\"\ntenant = \"all\"\ntoken = \"{OTHER}\"\n");
        let servers = format!("{}{}", lab_server("lab"), lab_server("lab-b"));
        let gateway = Gateway::configured(&format!("{servers}{}{other}", everything())).await;
        let agent = agent(&gateway, "", TOKEN, era).await;
        let folder = lab().folder();
        Self { gateway, agent, folder }
    }

    /// Connects a notebook with these cells under a name.
    async fn connect(&self, name: &str, cells: &[&str]) -> ToolAnswer {
        let path = self.folder.write(&format!("{name}.ipynb"), &notebook(cells));
        let arguments = json!({ "server_url": "lab", "token": "", "notebook_name": name, "notebook_path": path });
        self.agent.call("connect_notebook", arguments).await
    }

    async fn call(&self, tool: &str, name: &str, mut arguments: Value) -> ToolAnswer {
        arguments["notebook_name"] = name.into();
        self.agent.call(tool, arguments).await
    }
}

async fn agent(gateway: &Gateway, selection: &str, token: &str, era: Era) -> Agent {
    let url = gateway.url(&format!("/mcp?toolsets=classic{selection}"));
    Agent::connect_to(&url, token, era).await
}

/// The kernel that Jupyter says a notebook has.
async fn kernel_of(path: &str) -> Option<String> {
    let jupyter = JupyterApi::new(lab().url(), lab().token());
    let sessions: Vec<Value> = jupyter.get("api/sessions").await.json().await.expect("sessions");
    let session = sessions.iter().find(|session| session["path"] == path)?;
    session["kernel"]["id"].as_str().map(str::to_owned)
}

/// "1.1": one gateway, many servers, each by its name or URL; tokens are not the agent's business.
#[tokio::test]
async fn the_server_layer() {
    let scene = Classic::set(Era::Modern).await;
    let path = scene.folder.notebook("a.ipynb");
    let url = lab().url().trim_end_matches('/').to_owned();
    let local = format!("{}/lab?token=secret", url.replace("127.0.0.1", "localhost"));
    for (name, server, known_as) in [
        ("by name", json!("lab-b"), "lab-b"),
        ("by url", json!(url), "lab"),
        ("by a url from the browser", json!(local), "lab"),
        ("by default", Value::Null, "lab"),
    ] {
        let arguments = json!({ "server_url": server, "token": "wrong", "notebook_name": name, "notebook_path": path });
        let connected = scene.agent.call("connect_notebook", arguments).await.ok();
        assert_eq!(connected["server"]["name"], known_as, "{name}");
        assert_eq!(connected["server"]["url"], url, "{name}");
    }
    for (server, expected) in [
        ("http://elsewhere.example:8888/?token=secret", "lab (http"),
        ("lab-c", "available: lab, lab-b"),
        ("ftp://x", "not an http(s) URL"),
    ] {
        let arguments = json!({ "server_url": server, "notebook_name": "x", "notebook_path": path });
        let error = scene.agent.call("connect_notebook", arguments).await.error();
        assert!(error.contains(expected) && !error.contains("secret"), "{error}");
    }
    let listed = scene.agent.call("list_notebook", json!({})).await;
    assert_eq!(listed.structured["notebooks"].as_array().unwrap().len(), 4);
    let narrowed = agent(&scene.gateway, "&server=lab-b", TOKEN, Era::Modern).await;
    let listed = narrowed.call("list_notebook", json!({})).await.ok();
    assert_eq!(listed["notebooks"].as_array().unwrap().len(), 1, "{listed}");
}

/// "1.2": connecting starts a kernel, in the notebook's own name so that people have the same one.
#[tokio::test]
async fn the_kernel_layer() {
    let scene = Classic::set(Era::Legacy).await;
    let connected = scene.connect("a", &["x = 1"]).await;
    let text = connected.text().to_owned();
    let connected = connected.ok();
    let path = scene.folder.path("a.ipynb");
    let kernel = kernel_of(&path).await.expect("a kernel");
    assert_eq!(connected["kernel"]["id"], kernel);
    for line in [
        "a connection successful!\n".to_owned(),
        format!("Server: lab ({})\n", lab().url().trim_end_matches('/')),
        format!(", {kernel})\nNotebook: {path}, 1 cells\n\n{HEADER}\n0\tcode\tNone\tx = 1"),
    ] {
        assert!(text.contains(&line), "{line:?} in {text}");
    }
    let again = scene.connect("again", &["y = 2"]).await.ok();
    assert_ne!(again["kernel"]["id"], kernel, "each notebook has its own");
    let arguments = json!({ "notebook_name": "b", "notebook_path": path });
    let adopted = scene.agent.call("connect_notebook", arguments).await.ok();
    assert_eq!(adopted["kernel"]["id"], kernel, "the one it has is used");

    let shared = scene.folder.notebook("shared.ipynb");
    let bob = agent(&scene.gateway, "", OTHER, Era::Modern).await;
    let arguments = json!({ "notebook_name": "shared", "notebook_path": shared });
    let (ours, theirs) = tokio::join!(
        scene.agent.call("connect_notebook", arguments.clone()),
        bob.call("connect_notebook", arguments)
    );
    assert_eq!(
        ours.ok()["kernel"]["id"],
        theirs.ok()["kernel"]["id"],
        "two who connect at once have one kernel"
    );

    let cobol = json!({ "cells": [], "metadata": { "kernelspec": { "name": "cobol", "display_name": "COBOL" } }, "nbformat": 4, "nbformat_minor": 5 });
    let path = scene.folder.write("cobol.ipynb", &cobol.to_string());
    let arguments = json!({ "notebook_name": "cobol", "notebook_path": path });
    let connected = scene.agent.call("connect_notebook", arguments).await;
    assert!(
        !connected.is_error && connected.text().contains("Kernel: none: ") && connected.text().contains("python3"),
        "a notebook without a kernel can be read: {connected:?}"
    );

    let unread = scene.folder.notebook("unread.ipynb");
    let reader = agent(&scene.gateway, "&readonly=true", TOKEN, Era::Legacy).await;
    let read = json!({ "notebook_name": "r", "notebook_path": unread });
    let connected = reader.call("connect_notebook", read).await.ok();
    assert_eq!(
        (&connected["kernel"], kernel_of(&unread).await),
        (&Value::Null, None),
        "reading starts nothing"
    );
    let create = json!({ "notebook_name": "n", "notebook_path": scene.folder.path("new.ipynb"), "mode": "create" });
    let error = reader.call("connect_notebook", create).await.error();
    assert!(error.contains("`write`") && !scene.folder.has("new.ipynb"), "{error}");
}

/// "1.3": the notebook is live, and its name leads to it for as long as it exists, also by another file name.
#[tokio::test]
async fn the_notebook_layer() {
    let scene = Classic::set(Era::Modern).await;
    scene.connect("a", &["one"]).await.ok();
    let path = scene.folder.path("a.ipynb");
    let human = Human::join(&path).await;
    let insert = json!({ "cell_index": 0, "cell_type": "markdown", "cell_content": "# two" });
    scene.call("insert_cell", "a", insert).await.ok();
    human
        .wait_for("the person sees it", |human| human.sources() == ["one", "# two"])
        .await;
    human.splice_cell("c0", 0, 3, "uno");
    human.wait_for("typed", |human| human.sources()[0] == "uno").await;
    eventually("the agent sees what the person typed", async || {
        let read = scene.call("read_cell", "a", json!({ "cell_index": 0 })).await;
        (read.text() == "uno").then_some(())
    })
    .await;

    let moved = scene.folder.path("b.ipynb");
    let elsewhere = Agent::connect_to(&scene.gateway.url("/mcp?toolsets=files"), TOKEN, Era::Modern).await;
    let rename = json!({ "path": path, "new_path": moved });
    elsewhere.call("rename_document", rename).await.ok();
    let listed = scene.call("list_cell", "a", json!({})).await;
    assert!(listed.text().contains("uno"), "{}", listed.text());
    let listed = scene.agent.call("list_notebook", json!({})).await;
    assert!(listed.text().contains(&moved), "{}", listed.text());
}

/// "2": a cell is executed in the notebook's kernel, people see the output, and the answer has it too.
#[tokio::test]
async fn executing_a_cell() {
    let scene = Classic::set(Era::Modern).await;
    let raising = "print('before')\n1 / 0";
    let slow = "import time\nprint('working', flush=True)\ntime.sleep(30)";
    let cells = ["x = 20", "print('a\\tb')\nx + 22", raising, slow];
    scene.connect("a", &cells).await.ok();
    let human = Human::join(&scene.folder.path("a.ipynb")).await;
    let silent = scene.call("execute_cell", "a", json!({ "cell_index": 0 })).await;
    assert_eq!(silent.texts, ["Cell index 0 was executed"]);
    let by_id = json!({ "cell_index": { "cell_id": "c1" }, "timeout": 30 });
    let ran = scene.call("execute_cell", "a", by_id).await;
    assert_eq!(ran.texts, ["Cell index 1 was executed", "a\tb\n", "42"]);
    let ran = ran.ok();
    assert_eq!((&ran["status"], &ran["cell_index"]), (&json!("completed"), &json!(1)));
    human
        .wait_for("the person sees it", |human| {
            human.cell(1)["outputs"][1]["data"]["text/plain"] == "42"
        })
        .await;

    let failed = scene.call("execute_cell", "a", json!({ "cell_index": 2 })).await;
    assert!(failed.is_error && failed.text().contains("but it failed"), "{failed:?}");
    assert_eq!(failed.texts[1], "before\n");
    assert!(
        failed.texts[2].contains("ZeroDivisionError") && !failed.texts[2].contains('\u{1b}'),
        "{failed:?}"
    );

    let running = scene
        .call("execute_cell", "a", json!({ "cell_index": 3, "timeout": 1 }))
        .await;
    let id = running.structured["execution_id"].as_str().expect("an id").to_owned();
    assert_eq!((running.is_error, running.texts[1].as_str()), (false, "working\n"));
    assert!(
        running.texts[2].starts_with("[TIMEOUT: ") && running.texts[2].contains(&id),
        "{running:?}"
    );
    let read = scene.call("read_cell", "a", json!({ "cell_index": 3 })).await;
    assert!(read.texts.contains(&"working\n".to_owned()), "{read:?}");
    scene.call("restart_notebook", "a", json!({})).await.ok();
    for (arguments, expected) in [
        (json!({ "cell_index": 4 }), "the notebook has 4 cells"),
        (json!({ "cell_index": -1 }), "an index from 0"),
        (json!({ "cell_index": 0, "timeout": -1 }), "`timeout`"),
        (json!({}), "`cell_index`"),
    ] {
        let error = scene.call("execute_cell", "a", arguments).await.error();
        assert!(error.contains(expected), "{error}");
    }
}

/// "3", `server.py`: the tools by group, and what they tell a model to call.
#[tokio::test]
async fn the_tools() {
    let scene = Classic::set(Era::Modern).await;
    let notebook = ["connect_notebook", "list_notebook", "restart_notebook", "read_notebook"];
    let cell = [
        "list_cell",
        "read_cell",
        "delete_cell",
        "insert_cell",
        "execute_cell",
        "overwrite_cell",
    ];
    let advanced = ["append_execute_code_cell", "execute_temporary_code"];
    let all = [&notebook[..], &cell, &advanced].concat();
    let following = ["get_execution", "cancel_execution"];
    assert_eq!(scene.agent.tools().await, [&following[..], &all].concat());
    let readonly = agent(&scene.gateway, "&readonly=true", TOKEN, Era::Modern).await;
    let reading = [
        "get_execution",
        "connect_notebook",
        "list_notebook",
        "read_notebook",
        "list_cell",
        "read_cell",
    ];
    assert_eq!(readonly.tools().await, reading);
    assert!(!Toolset::Classic.is_default());
    let default = Agent::connect(&scene.gateway, Era::Modern).await;
    assert!(default.tools().await.iter().all(|name| !all.contains(&name.as_str())));
}

/// "3", notebook management.
#[tokio::test]
async fn managing_notebooks() {
    let scene = Classic::set(Era::Modern).await;
    let none = scene.agent.call("list_notebook", json!({})).await;
    assert_eq!(none.text(), "No notebook is currently connected");
    let error = scene.call("list_cell", "a", json!({})).await.error();
    assert!(
        error.contains("connected: none") && error.contains("connect_notebook"),
        "{error}"
    );

    let (old, new) = (scene.folder.notebook("old.ipynb"), scene.folder.path("new.ipynb"));
    let connect = |name: &str, path: &str, mode: &str| {
        let arguments = json!({ "server_url": "lab", "notebook_name": name, "notebook_path": path, "mode": mode });
        scene.agent.call("connect_notebook", arguments)
    };
    let created = connect("n", &new, "create").await;
    assert!(
        created
            .text()
            .ends_with(&format!("1 cells\n\n{HEADER}\n0\tcode\tNone\t")),
        "{created:?}"
    );
    assert!(scene.folder.has("new.ipynb"));
    assert_eq!(
        connect("n", &new, "connect").await.ok()["message"],
        "n is already connected"
    );
    connect("n", &format!("./{new}"), "reconnect").await.ok();
    for (name, path, mode, expected) in [
        ("n", &old, "connect", "choose another name"),
        ("o", &old, "create", "exists"),
        ("o", &scene.folder.path("no.ipynb"), "connect", "no.ipynb"),
        ("o", &scene.folder.path("a.txt"), "connect", ".ipynb"),
        ("o", &old, "attach", "`connect`, `create`, `reconnect`"),
        (" ", &old, "connect", "1 to 200 characters"),
    ] {
        let error = connect(name, path, mode).await.error();
        assert!(error.contains(expected), "{name} {path} {mode}: {error}");
    }
    connect("n", &old, "reconnect").await.ok();
    connect("n", &new, "reconnect").await.ok();
    connect("o", &old, "connect").await.ok();
    let error = scene.call("list_cell", "x", json!({})).await.error();
    assert!(error.contains("\"x\"") && error.contains("connected: n, o"), "{error}");
    let listed = scene.agent.call("list_notebook", json!({})).await;
    let (lines, url): (Vec<&str>, _) = (listed.text().lines().collect(), lab().url().trim_end_matches('/'));
    assert_eq!(lines[0], "Name\tJupyter URL\tPath\tServer\tKernel");
    assert!(
        lines[1].starts_with(&format!("n\t{url}\t{new}\tlab\tpython3 (")),
        "{lines:?}"
    );
    assert_eq!(
        (lines.len(), &listed.structured["notebooks"][1]["path"]),
        (3, &json!(old))
    );

    let bob = agent(&scene.gateway, "", OTHER, Era::Modern).await;
    assert_eq!(
        bob.call("list_notebook", json!({})).await.text(),
        none.text(),
        "names are each one's own"
    );
    let error = bob.call("read_notebook", json!({ "notebook_name": "n" })).await.error();
    assert!(error.contains("connected: none"), "{error}");

    scene
        .call("execute_temporary_code", "o", json!({ "cell_content": "x = 1" }))
        .await
        .ok();
    let restarted = scene.call("restart_notebook", "o", json!({})).await;
    assert_eq!(restarted.text(), "o restart successful");
    let gone = scene
        .call("execute_temporary_code", "o", json!({ "cell_content": "x" }))
        .await;
    assert!(gone.error().contains("NameError"));
}

/// An agent that was written for the old server and was given another URL.
#[tokio::test]
async fn an_agent_loop_in_both_eras() {
    for era in ERAS {
        let scene = Classic::set(era).await;
        let path = scene.folder.path("loop.ipynb");
        let connect = json!({ "server_url": lab().url(), "token": "irrelevant", "notebook_name": "nb", "notebook_path": path, "mode": "create" });
        scene.agent.call("connect_notebook", connect).await.ok();
        let listed = scene.agent.call("list_notebook", json!({})).await;
        assert!(listed.text().contains(&path), "{listed:?}");
        // Jupyter gives every new notebook an empty cell.
        for (kind, content, location) in [
            ("markdown", "# Sums", "above"),
            ("code", "total = sum(range(10))\ntotal", "below"),
        ] {
            let insert = json!({ "cell_index": 0, "cell_type": kind, "cell_content": content, "location": location });
            scene.call("insert_cell", "nb", insert).await.ok();
        }
        scene.call("delete_cell", "nb", json!({ "cell_index": 2 })).await.ok();
        let listed = scene.call("list_cell", "nb", json!({})).await;
        let rows = "0\tmarkdown\tN/A\t# Sums\n1\tcode\tNone\ttotal = sum(range(10))...(1 lines hidden)";
        assert!(listed.text().ends_with(rows), "{listed:?}");
        let read = scene.call("read_cell", "nb", json!({ "cell_index": 1 })).await;
        assert_eq!(
            read.texts,
            ["total = sum(range(10))\ntotal", "Current execution count: None"]
        );
        assert_eq!(
            scene.call("execute_cell", "nb", json!({ "cell_index": 1 })).await.texts[1],
            "45"
        );
        let overwrite = json!({ "cell_index": 1, "cell_content": "total = sum(range(11))\ntotal" });
        let overwritten = scene.call("overwrite_cell", "nb", overwrite).await;
        assert!(
            overwritten
                .text()
                .contains("-total = sum(range(10))\n+total = sum(range(11))")
        );
        assert_eq!(
            scene.call("execute_cell", "nb", json!({ "cell_index": 1 })).await.texts[1],
            "55"
        );
        scene.call("delete_cell", "nb", json!({ "cell_index": 0 })).await.ok();
        scene.call("restart_notebook", "nb", json!({})).await.ok();
        let gone = scene
            .call("execute_temporary_code", "nb", json!({ "cell_content": "total" }))
            .await;
        assert!(gone.error().contains("NameError"));
        let appended = scene
            .call("append_execute_code_cell", "nb", json!({ "cell_content": "1 + 1" }))
            .await;
        assert_eq!(
            (appended.structured["cell_index"].as_u64(), appended.texts[1].as_str()),
            (Some(1), "2")
        );
    }
}
