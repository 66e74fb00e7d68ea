//! `get_base_url` and `nb_path_from_url`, by every shape of URL a browser shows.

use std::sync::Arc;

use jupyter_client::{DocPath, JupyterServer, locate_notebook};
use jupyter_mcp_gateway::config::{Config, Env};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{
    Agent, Era, Gateway,
    gateway::{everything, server},
};

fn two_servers() -> String {
    let (plain, hub) = (
        server("plain", "http://127.0.0.1:8888/", "t"),
        server("hub", "https://hub.example.org/user/ana/", "t"),
    );
    format!("{plain}{hub}{}", everything())
}

#[tokio::test]
async fn every_shape_of_url_leads_to_the_notebook() {
    let gateway = Gateway::configured(&two_servers()).await;
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    let shapes = [
        "tree/",
        "notebooks/",
        "edit/",
        "view/",
        "lab/tree/",
        "doc/tree/",
        "nbclassic/notebooks/",
        "lab/workspaces/auto-X/tree/",
        "lab/tree/RTC%3A",
        "lab/tree/RTC:",
        "files/",
    ];
    for (base, server, base_url) in [
        ("http://127.0.0.1:8888/", "plain", "http://127.0.0.1:8888"),
        ("http://localhost:8888/", "plain", "http://127.0.0.1:8888"),
        (
            "https://hub.example.org/user/ana/",
            "hub",
            "https://hub.example.org/user/ana",
        ),
        (
            "https://HUB.example.org:443/user/ana/",
            "hub",
            "https://hub.example.org/user/ana",
        ),
    ] {
        for shape in shapes {
            let url = format!("{base}{shape}my%20notes/%C3%BC%F0%9F%8E%89.ipynb?reset&token=x#cell-3");
            let found = agent.call("nb_path_from_url", json!({ "url": url })).await.ok();
            assert_eq!(
                found,
                json!({ "original_url": url, "base_url": base_url, "notebook_path": "my notes/ü🎉.ipynb", "server": server })
            );
        }
    }
}

#[tokio::test]
async fn a_user_may_be_spelt_either_way() {
    let bases = ["/user/ana@x/", "/user/bob%40y/"].map(|base| format!("https://hub.example.org{base}"));
    let servers = [("ana", &bases[0]), ("bob", &bases[1])].map(|(name, url)| server(name, url, "t"));
    let gateway = Gateway::configured(&format!("{}{}", servers.concat(), everything())).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    for (user, server) in [
        ("ana@x", "ana"),
        ("ana%40x", "ana"),
        ("bob@y", "bob"),
        ("bob%40y", "bob"),
    ] {
        let url = format!("https://hub.example.org/user/{user}/lab/tree/a%20b.ipynb");
        let found = agent.call("nb_path_from_url", json!({ "url": url })).await.ok();
        assert_eq!(
            (&found["server"], &found["notebook_path"]),
            (&json!(server), &json!("a b.ipynb")),
            "{url}"
        );
    }
}

#[tokio::test]
async fn what_is_not_one_of_our_notebooks_is_refused_with_a_reason() {
    let gateway = Gateway::configured(&two_servers()).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    for (url, hint) in [
        ("not a url", "http(s)"),
        ("ftp://127.0.0.1:8888/tree/a.ipynb", "http(s)"),
        (
            "http://elsewhere.org/tree/a.ipynb",
            "plain (http://127.0.0.1:8888), hub",
        ),
        ("http://127.0.0.1:9999/tree/a.ipynb", "none of the configured"),
        (
            "https://hub.example.org/user/bob/tree/a.ipynb",
            "none of the configured",
        ),
        ("http://127.0.0.1:8888/tree/a.txt", ".ipynb"),
        ("http://127.0.0.1:8888/lab", "shows no document"),
        ("http://127.0.0.1:8888/lab/tree/", "shows no document"),
        ("http://127.0.0.1:8888/tree/a%2F..%2Fb.ipynb", "percent"),
    ] {
        let refused = agent.call("nb_path_from_url", json!({ "url": url })).await.error();
        assert!(refused.contains(hint), "{url}: {refused}");
    }
}

#[tokio::test]
async fn base_urls_have_no_trailing_slash() {
    let gateway = Gateway::configured(&two_servers()).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let hub = agent.call("get_base_url", json!({ "server": "hub" })).await.ok();
    assert_eq!(
        hub,
        json!({ "base_url": "https://hub.example.org/user/ana", "server": "hub" })
    );
}

fn a_server(base_path: &str) -> JupyterServer {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let toml = server("s", &format!("http://127.0.0.1:8888{base_path}"), "t");
    let config = Config::from_toml(&toml, "t", &Env::new()).unwrap();
    JupyterServer::new(&config.servers[0].options(&Env::new()).unwrap(), Arc::new(())).unwrap()
}

#[test]
fn a_path_survives_its_way_through_a_url() {
    let server = a_server("/base/");
    let name = "[a-z0-9 ü漢🎉._~()&=+-]{1,20}(/[a-z0-9 ü漢🎉_~()&=+-]{1,20}){0,3}";
    proptest!(|(path in name)| {
        let Ok(wanted) = DocPath::parse_file(&format!("{path}.ipynb")) else { return Ok(()) };
        let url = format!("http://localhost:8888/base/lab/tree/{}", wanted.to_url_path());
        prop_assert_eq!(locate_notebook(&url, [&server]).map(|found| found.path), Ok(wanted));
    });
}

#[test]
fn no_url_makes_it_panic_or_leave_the_root() {
    let server = a_server("/");
    proptest!(|(raw in ".{0,60}", tail in ".{0,40}")| {
        let _ = locate_notebook(&raw, [&server]);
        if let Ok(found) = locate_notebook(&format!("http://127.0.0.1:8888/lab/tree/{tail}"), [&server]) {
            prop_assert!(found.path.as_str().split('/').all(|segment| segment != ".."));
        }
    });
}
