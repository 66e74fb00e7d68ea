//! "只需提供对应的 URL 和认证 Token": servers that no operator configured, where one allows it.

use std::net::SocketAddr;

use axum::{Router, response::Html};
use reqwest::Method;
use serde_json::{Value, json};

use super::{OTHER, agent};
use crate::support::{
    Agent, Era, Gateway, TOKEN,
    agent::ERAS,
    eventually,
    gateway::lab_server,
    jupyter::JupyterApi,
    notebook::{cells_on_disk, notebook},
    own_lab::OwnLab,
    wire,
};

/// A gateway with one configured server, whose tenant may connect to others by these URLs.
async fn gateway(allowed: &[&str], more: &str) -> Gateway {
    let tenant = format!("[[tenants]]\nname = \"all\"\nconnect_urls = {allowed:?}\n{more}\n");
    let token = |name: &str, token: &str, paths: &str| {
        format!(
            "[[auth.tokens]]\nname = \"{name}\"\ntenant = \"all\"\ntoken = \"{token}\"\npaths = [\"**\", \"!{paths}\"]\n"
        )
    };
    let tokens = token("ana", TOKEN, "private/**") + &token("bob", OTHER, "private/**");
    Gateway::configured(&format!("{}{tenant}{tokens}", lab_server("lab"))).await
}

fn connect(url: &str, token: &str, name: &str, path: &str) -> Value {
    json!({ "server_url": url, "token": token, "notebook_name": name, "notebook_path": path })
}

/// The notebooks that an agent can browse.
async fn browsed(agent: &Agent) -> Vec<Value> {
    let list = agent.read("notebook://list").await;
    serde_json::from_str(list["text"].as_str().expect("text")).expect("a list")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_works_on_a_server_given_by_url() {
    let lab = OwnLab::start(&[]).await;
    lab.write("a.ipynb", &notebook(&["x = 20", "x + 22"]));
    let gateway = gateway(&[&lab.url()], "").await;
    let ana = agent(&gateway, "", TOKEN, Era::Modern).await;
    let url = lab.url().trim_end_matches('/').to_owned();
    let arguments = connect(&url, lab.token(), "a", "a.ipynb");
    let connected = ana.call("connect_notebook", arguments.clone()).await;
    assert!(
        connected.text().starts_with("a connection successful!"),
        "{connected:?}"
    );
    let connected = connected.ok();
    assert_eq!(connected["server"]["url"], url);
    let again = ana.call("connect_notebook", arguments).await.ok();
    assert_eq!(again["message"], "a is already connected");
    assert_eq!(
        again["server"], connected["server"],
        "the same URL and token are one server"
    );

    let call = async |tool: &str, mut arguments: Value| {
        arguments["notebook_name"] = "a".into();
        let answer = ana.call(tool, arguments).await;
        assert!(!answer.is_error, "{tool}: {answer:?}");
        answer.texts.join("\n")
    };
    call("execute_cell", json!({ "cell_index": 0 })).await;
    let ran = call("execute_cell", json!({ "cell_index": 1 })).await;
    assert!(ran.contains("42"), "{ran}");
    let ran = call("append_execute_code_cell", json!({ "cell_content": "x * 2" })).await;
    assert!(ran.contains("40"), "{ran}");
    let ran = call("execute_temporary_code", json!({ "cell_content": "x + 1" })).await;
    assert!(ran.contains("21"), "{ran}");
    let markdown = json!({ "cell_index": 0, "cell_type": "markdown", "cell_content": "# title", "location": "above" });
    call("insert_cell", markdown).await;
    call("overwrite_cell", json!({ "cell_index": 2, "cell_content": "x + 23" })).await;
    call("delete_cell", json!({ "cell_index": 3 })).await;
    let read = call("read_notebook", json!({})).await;
    assert!(read.contains("# title") && read.contains("x + 23"), "{read}");
    let listed = call("list_cell", json!({})).await;
    assert!(listed.contains("0-2 of 3"), "{listed}");
    call("read_cell", json!({ "cell_index": 0 })).await;
    eventually("it is on the disk of that server", async || {
        let cells = cells_on_disk(&lab.file("a.ipynb"))?;
        let sources: Vec<&str> = cells.iter().map(|cell| cell.source.as_str()).collect();
        (sources == ["# title", "x = 20", "x + 23"]).then_some(())
    })
    .await;

    // A person renames the file; the name leads to it, and its kernel has gone with it.
    let jupyter = JupyterApi::new(&lab.url(), lab.token());
    let body = json!({ "path": "b.ipynb" });
    let renamed = jupyter.send(Method::PATCH, "api/contents/a.ipynb", body).await;
    assert_eq!(renamed.status(), 200);
    eventually("the name leads to the renamed file", async || {
        let listed = ana.call("list_notebook", json!({})).await;
        (listed.structured["notebooks"][0]["path"] == "b.ipynb").then_some(())
    })
    .await;
    eventually("its kernel too", async || {
        let sessions: Vec<Value> = jupyter.get("api/sessions").await.json().await.ok()?;
        let is_it =
            |session: &Value| session["path"] == "b.ipynb" && session["kernel"]["id"] == connected["kernel"]["id"];
        sessions.iter().any(is_it).then_some(())
    })
    .await;
    let ran = call("execute_temporary_code", json!({ "cell_content": "x + 2" })).await;
    assert!(ran.contains("22"), "{ran}");
    call("restart_notebook", json!({})).await;
    let created = json!({ "server_url": format!("{url}/lab?token=ignored"), "token": lab.token(), "notebook_name": "n", "notebook_path": "n.ipynb", "mode": "create" });
    ana.call("connect_notebook", created).await.ok();
    assert!(lab.file("n.ipynb").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_given_by_url_is_nobody_elses() {
    let lab = OwnLab::start(&[]).await;
    for name in ["a.ipynb", "b.ipynb"] {
        lab.write(name, &notebook(&["mine"]));
    }
    for era in ERAS {
        let gateway = gateway(&[&lab.url()], "max_open_rooms = 1").await;
        let ana = agent(&gateway, ",gateway,session,execution", TOKEN, era).await;
        let bob = agent(&gateway, ",gateway,session,execution", OTHER, era).await;
        let connected = ana
            .call("connect_notebook", connect(&lab.url(), lab.token(), "a", "a.ipynb"))
            .await;
        let connected = connected.ok();
        let name = connected["server"]["name"].as_str().expect("a name").to_owned();
        let seen = browsed(&ana).await;
        assert_eq!((seen.len(), &seen[0]["path"]), (1, &json!("a.ipynb")), "{seen:?}");
        assert!(
            ana.read("notebook://current").await["text"]
                .to_string()
                .contains("mine")
        );

        assert!(browsed(&bob).await.is_empty());
        let uri = format!(
            "notebook://{}/{}",
            seen[0]["sessionId"].as_str().unwrap(),
            seen[0]["id"].as_str().unwrap()
        );
        assert!(ana.read(&uri).await["text"].is_string());
        bob.cannot_read(&uri).await;
        let listed = bob.call("list_notebook", json!({})).await;
        assert_eq!(listed.text(), "No notebook is currently connected");
        for anybody in [&ana, &bob] {
            let servers = anybody.call("list_servers", json!({})).await.ok();
            assert!(
                !servers.to_string().contains(lab.url().trim_end_matches('/')),
                "{servers}"
            );
            let error = anybody
                .call("query_nb_sessions", json!({ "server": name }))
                .await
                .error();
            assert!(error.contains("available: lab"), "{error}");
        }
        let ran = ana
            .call(
                "execute_temporary_code",
                json!({ "notebook_name": "a", "cell_content": "1" }),
            )
            .await
            .ok();
        let execution = json!({ "execution_id": ran["execution_id"] });
        assert_eq!(ana.call("get_execution", execution.clone()).await.ok()["server"], name);
        bob.call("get_execution", execution).await.error();
        // Who connects to the same server has it for themselves.
        let theirs = bob
            .call("connect_notebook", connect(&lab.url(), lab.token(), "a", "b.ipynb"))
            .await
            .ok();
        assert_ne!(theirs["server"]["name"], name);
        assert!(
            browsed(&ana).await.is_empty(),
            "one room is the tenant's limit, and it was taken over"
        );
        // A client that selected servers wants no others.
        let narrowed = agent(&gateway, "&server=lab", TOKEN, era).await;
        let listed = narrowed.call("list_notebook", json!({})).await;
        assert_eq!(listed.text(), "No notebook is currently connected");
        let error = narrowed
            .call("list_cell", json!({ "notebook_name": "a" }))
            .await
            .error();
        assert!(error.contains("available: lab"), "{error}");
        let arguments = connect(&lab.url(), lab.token(), "b", "b.ipynb");
        let error = narrowed.call("connect_notebook", arguments).await.error();
        assert!(error.contains("(connect_urls): none"), "{error}");
        let again = ana.call("list_cell", json!({ "notebook_name": "a" })).await;
        assert!(again.text().contains("mine"), "it is opened again: {again:?}");
        let metrics = wire::get(&gateway, "/metrics").await.text;
        assert!(
            metrics.contains("(by url)") && !metrics.contains(lab.url().trim_end_matches('/')),
            "URLs are no labels"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_connected_by_url_is_told_why() {
    let lab = OwnLab::start(&[]).await;
    let plain = OwnLab::start(&["--ServerApp.jpserver_extensions={\"jupyter_server_ydoc\": False}"]).await;
    for lab in [&lab, &plain] {
        lab.write("a.ipynb", &notebook(&["x"]));
    }
    let (page, unused) = (web_page().await, "http://127.0.0.1:9/");
    let allowed = [&lab.url(), &plain.url(), &page, unused, "https://hub.example.org/user/"];
    let gateway = gateway(&allowed, "").await;
    let ana = agent(&gateway, "", TOKEN, Era::Modern).await;
    let (url, token) = (lab.url(), lab.token());
    for (url, token, path, expected) in [
        (url.as_str(), "wrong-token", "a.ipynb", "the right `token`"),
        (&url, "", "a.ipynb", "the right `token`"),
        (&url, "a b", "a.ipynb", "`token`"),
        (&plain.url(), plain.token(), "a.ipynb", "jupyter-collaboration"),
        (&page, "any-token", "a.ipynb", "instead of JSON"),
        (unused, "any-token", "a.ipynb", "cannot be reached"),
        (&url, token, "no.ipynb", "no.ipynb"),
        (&url, token, "private/a.ipynb", "path rules"),
        ("http://127.0.0.1:22/", token, "a.ipynb", &url),
        ("https://127.0.0.1/", token, "a.ipynb", "https://hub.example.org/user/"),
        (&url.replace("http:", "https:"), token, "a.ipynb", "connect_urls"),
        (
            &url.replace("http://", "http://me:pw@"),
            token,
            "a.ipynb",
            "connect_urls",
        ),
        (
            "https://hub.example.org/user/..%2fadmin/",
            token,
            "a.ipynb",
            "connect_urls",
        ),
        (
            "https://hub.example.org/user/../admin/",
            token,
            "a.ipynb",
            "connect_urls",
        ),
        ("https://hub.example.org/hub/", token, "a.ipynb", "connect_urls"),
        (
            "https://hub.example.org.evil.example/user/",
            token,
            "a.ipynb",
            "connect_urls",
        ),
    ] {
        let error = ana
            .call("connect_notebook", connect(url, token, "a", path))
            .await
            .error();
        assert!(error.contains(expected), "{url} {path}: {error}");
        let told = token.len() > 3 && error.contains(token);
        assert!(!told && !error.contains("pw"), "no secret is repeated: {error}");
    }
    let listed = ana.call("list_notebook", json!({})).await;
    assert_eq!(listed.text(), "No notebook is currently connected");
}

/// A web server that is no Jupyter.
async fn web_page() -> String {
    let router = Router::new().fallback(|| async { Html("<h1>hello</h1>") });
    let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/")
}
