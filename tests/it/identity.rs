//! Access of a token: permissions, paths, toolsets, servers.

use serde_json::json;

use crate::support::{
    Agent, Era, Gateway, TOKEN,
    agent::ERAS,
    gateway::lab_server,
    lab,
    wire::{self, initialize, post_without_token, send},
};

fn people(tokens: &str) -> String {
    format!("{}[[tenants]]\nname = \"t\"\n{tokens}", lab_server("lab"))
}

fn person(token: &str, more: &str) -> String {
    format!("[[auth.tokens]]\nname = \"{token}\"\ntenant = \"t\"\ntoken = \"{token}\"\n{more}\n")
}

#[tokio::test]
async fn a_reader_neither_sees_nor_calls_what_writes() {
    let gateway = Gateway::configured(&people(&person("only-reads", "permissions = [\"read\"]"))).await;
    for era in ERAS {
        let agent = Agent::with_token(&gateway, "only-reads", era).await;
        let tools = agent.tools().await;
        assert!(
            tools.contains(&"list_documents".to_owned()) && !tools.contains(&"delete_document".to_owned()),
            "{tools:?}"
        );
        let folder = lab().folder();
        let path = folder.write("keep.txt", "x");
        let refused = agent.call("delete_document", json!({ "path": path })).await.error();
        assert!(
            refused.contains("`write`") && refused.contains("only-reads"),
            "{refused}"
        );
        assert!(folder.has("keep.txt"));
    }
}

#[tokio::test]
async fn a_writer_who_may_not_read_cannot_read() {
    let gateway = Gateway::configured(&people(&person("only-writes", "permissions = [\"write\"]"))).await;
    let agent = Agent::with_token(&gateway, "only-writes", Era::Modern).await;
    assert!(!agent.tools().await.contains(&"list_documents".to_owned()));
    assert!(agent.call("list_documents", json!({})).await.error().contains("`read`"));
}

#[tokio::test]
async fn the_tenant_bounds_its_tokens() {
    let config = format!(
        "{}[[tenants]]\nname = \"t\"\npermissions = [\"read\"]\ntoolsets = [\"files\"]\n{}",
        lab_server("lab"),
        person("asks-for-all", "permissions = [\"read\", \"write\", \"admin\"]")
    );
    let gateway = Gateway::configured(&config).await;
    let agent = Agent::connect_to(&gateway.url("/mcp?toolsets=all"), "asks-for-all", Era::Modern).await;
    assert_eq!(
        agent.tools().await,
        ["list_documents", "get_document_info", "search_documents"]
    );
    let outside = agent.call("list_nbs", json!({})).await.error();
    assert!(
        outside.contains("operator") && !outside.contains("?toolsets"),
        "{outside}"
    );
}

#[tokio::test]
async fn path_rules_hold_whatever_the_spelling() {
    let folder = lab().folder();
    folder.write("open/a.txt", "a");
    folder.write("secret/b.txt", "b");
    let rules = format!("paths = [\"{0}/**\", \"!{0}/secret/**\"]", folder.name);
    let gateway = Gateway::configured(&people(&person("bounded-one", &rules))).await;
    let agent = Agent::with_token(&gateway, "bounded-one", Era::Modern).await;
    let info = async |path: String| {
        agent
            .call("get_document_info", json!({ "path": path, "include_content": true }))
            .await
    };
    assert_eq!(info(folder.path("open/a.txt")).await.ok()["content"], "a");
    let name = &folder.name;
    for path in [
        format!("{name}/secret/b.txt"),
        format!("/{name}/secret/b.txt"),
        format!("./{name}//secret/./b.txt"),
        format!("{name}/open/../secret/b.txt"),
        format!("{name}/open/%2e%2e/secret/b.txt"),
        format!("{name}%2fsecret/b.txt"),
        format!("{name}/%73ecret/b.txt"),
        format!("{name}/SECRET/b.txt"),
        format!("{name}\\secret\\b.txt"),
        "elsewhere.txt".to_owned(),
        "../../etc/passwd".to_owned(),
    ] {
        let refused = info(path.clone()).await.error();
        assert!(!refused.contains("content"), "{path}: {refused}");
    }
    let listed = agent.call("list_documents", json!({ "path": name })).await.ok();
    let names: Vec<_> = listed["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["open"], "a wholly denied directory is left out");
    let root = agent.call("list_documents", json!({})).await.ok();
    assert!(
        root["documents"]
            .as_array()
            .unwrap()
            .iter()
            .all(|entry| entry["name"] == folder.name.as_str()),
        "{root}"
    );
    for (tool, arguments) in [
        (
            "rename_document",
            json!({ "path": folder.path("open/a.txt"), "newPath": folder.path("secret/a.txt") }),
        ),
        (
            "copy_document",
            json!({ "path": folder.path("open/a.txt"), "copyPath": "a-copy.txt" }),
        ),
        ("create_document", json!({ "path": "new.txt" })),
        ("list_documents", json!({ "path": folder.path("secret") })),
    ] {
        let refused = agent.call(tool, arguments).await.error();
        assert!(refused.contains("path rules"), "{tool}: {refused}");
    }
    assert!(folder.has("open/a.txt") && folder.has("secret/b.txt"));
}

#[tokio::test]
async fn what_is_denied_does_not_move_with_the_directory_it_is_in() {
    let folder = lab().folder();
    for file in ["open/a.txt", "open/deep/b.txt", "secret/c.txt", "above/private/d.txt"] {
        folder.write(file, "x");
    }
    let name = &folder.name;
    let rules = format!("paths = [\"{name}/**\", \"!{name}/secret/**\", \"!{name}/above/private/**\"]");
    let gateway = Gateway::configured(&people(&person("bounded-two", &rules))).await;
    let agent = Agent::with_token(&gateway, "bounded-two", Era::Modern).await;
    let path = |relative: &str| folder.path(relative);
    let rename = |from: &str, to: &str| ("rename_document", json!({ "path": path(from), "newPath": path(to) }));
    let one = |tool, at: &str| (tool, json!({ "path": path(at) }));
    for (tool, arguments) in [
        rename("secret", "stolen"),
        rename("secret", "secret"),
        rename("above", "stolen"),
        rename("above/private", "stolen"),
        rename("open", "secret"),
        rename("open", "above/private"),
        rename("open/deep", "secret/deep"),
        one("delete_document", "secret"),
        one("delete_document", "above"),
        one("delete_document", "above/private"),
        one("get_document_info", "secret"),
        one("get_document_info", "above/private"),
        (
            "create_document",
            json!({ "path": path("secret"), "type": "directory" }),
        ),
        (
            "copy_document",
            json!({ "path": path("above"), "copyPath": path("stolen") }),
        ),
    ] {
        let refused = agent.call(tool, arguments.clone()).await.error();
        assert!(refused.contains("path rules"), "{tool} {arguments}: {refused}");
        assert!(!folder.has("stolen"), "{tool} {arguments}");
    }
    let named = agent
        .call("delete_document", json!({ "path": path("above") }))
        .await
        .error();
    assert!(named.contains(&format!("`!{name}/above/private/**`")), "{named}");
    assert!(folder.has("secret/c.txt") && folder.has("above/private/d.txt"));

    let (tool, arguments) = rename("open", "opened");
    agent.call(tool, arguments).await.ok();
    agent
        .call("delete_document", json!({ "path": path("opened/deep/b.txt") }))
        .await
        .ok();
    assert!(folder.has("opened/a.txt") && !folder.has("opened/deep/b.txt"));
}

#[tokio::test]
async fn a_selection_narrows_what_is_offered() {
    let gateway = Gateway::start().await;
    for era in ERAS {
        let selected = Agent::connect_to(&gateway.url("/mcp?toolsets=url,files&readonly=true"), TOKEN, era).await;
        assert_eq!(
            selected.tools().await,
            [
                "get_base_url",
                "nb_path_from_url",
                "list_documents",
                "get_document_info",
                "search_documents"
            ]
        );
        let hidden = selected.call("list_nbs", json!({})).await.error();
        assert!(hidden.contains("?toolsets=notebook"), "{hidden}");
        let writing = selected
            .call("create_document", json!({ "path": "x.txt" }))
            .await
            .error();
        assert!(writing.contains("read-only"), "{writing}");
        let elsewhere = selected
            .call("delete_cell", json!({ "notebook_name": "n" }))
            .await
            .error();
        assert!(
            elsewhere.contains("read-only") && !elsewhere.contains("?toolsets"),
            "{elsewhere}"
        );
    }
}

#[tokio::test]
async fn who_may_not_call_a_tool_is_told_that_and_nothing_of_headers() {
    let config = format!(
        "mcp.route_headers = true\n{}",
        people(&person("only-reads", "permissions = [\"read\"]"))
    );
    let gateway = Gateway::configured(&config).await;
    for (query, why) in [
        ("", "`write`"),
        ("?readonly=true", "read-only"),
        ("?toolsets=url", "?toolsets=files"),
    ] {
        let agent = Agent::connect_to(&gateway.url(&format!("/mcp{query}")), "only-reads", Era::Modern).await;
        let refused = agent.call("create_document", json!({ "path": "x.txt" })).await.error();
        assert!(refused.contains(why), "{query}: {refused}");
    }
}

#[tokio::test]
async fn what_is_not_listed_is_not_advised() {
    let gateway = Gateway::start().await;
    for (toolsets, advice) in [("notebook,files", true), ("notebook", false)] {
        let url = gateway.url(&format!("/mcp?toolsets={toolsets}"));
        let agent = Agent::connect_to(&url, TOKEN, Era::Modern).await;
        let missing = agent
            .call("read_nb_cells", json!({ "path": "no-such.ipynb" }))
            .await
            .error();
        assert_eq!(missing.contains("list_documents"), advice, "{missing}");
        assert!(missing.contains("does not exist"), "{missing}");
        let told = agent.request("server/discover", json!({})).await;
        let told = told["result"]["instructions"].as_str().unwrap().to_owned();
        assert!(!told.contains("list_servers"), "{told}");
    }
    let all = Agent::connect(&gateway, Era::Modern).await;
    let told = all.request("server/discover", json!({})).await;
    assert!(
        told["result"]["instructions"]
            .as_str()
            .unwrap()
            .contains("list_servers")
    );
}

#[tokio::test]
async fn nonsense_in_a_selection_is_told_what_is_allowed() {
    let gateway = Gateway::start().await;
    for (query, hint) in [
        ("toolsets=notebooks", "notebook, kernel"),
        ("readonly=perhaps", "true"),
        ("server=nowhere", "lab"),
    ] {
        let request = reqwest::Client::new()
            .post(gateway.url(&format!("/mcp?{query}")))
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .bearer_auth(TOKEN)
            .body(initialize());
        let answer = send(request).await;
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.text.contains(hint), "{query}: {}", answer.text);
    }
}

#[tokio::test]
async fn servers_are_chosen_by_argument_url_and_tenant() {
    let config = format!(
        "{}{}{}[[tenants]]\nname = \"t\"\nservers = [\"b\", \"a\"]\n{}",
        lab_server("a"),
        lab_server("b"),
        lab_server("c"),
        person("two-servers", "")
    );
    let gateway = Gateway::configured(&config).await;
    let agent = Agent::with_token(&gateway, "two-servers", Era::Modern).await;
    assert_eq!(
        agent.call("get_base_url", json!({})).await.ok()["server"],
        "b",
        "the tenant's first"
    );
    assert_eq!(
        agent.call("get_base_url", json!({ "server": "a" })).await.ok()["server"],
        "a"
    );
    let foreign = agent.call("get_base_url", json!({ "server": "c" })).await.error();
    assert!(foreign.contains("available: b, a"), "{foreign}");
    let by_url = Agent::connect_to(&gateway.url("/mcp?server=a"), "two-servers", Era::Modern).await;
    assert_eq!(by_url.call("get_base_url", json!({})).await.ok()["server"], "a");
    assert!(
        by_url.call("get_base_url", json!({ "server": "b" })).await.is_error,
        "a selection only narrows"
    );
    let servers = agent.call("list_servers", json!({})).await.ok();
    assert_eq!(servers["servers"][0]["name"], "b");
    assert_eq!(servers["servers"][0]["default"], true);
    assert_eq!(
        servers["servers"].as_array().unwrap().len(),
        2,
        "another tenant's server is not named"
    );
    let request = post_without_token(&gateway, initialize())
        .bearer_auth("two-servers")
        .header("x-mcp-server", "c");
    assert_eq!(send(request).await.status, 400);
}

#[tokio::test]
async fn headers_select_as_the_url_does() {
    let gateway = Gateway::start().await;
    let answer = send(
        wire::post(&gateway, modern_list())
            .header("mcp-protocol-version", wire::MODERN_VERSION)
            .header("mcp-method", "tools/list")
            .header("x-mcp-toolsets", "kernel"),
    )
    .await;
    let tools = answer.json()["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"list_available_kernels"), "{names:?}");
    let is_of_kernels = |name: &&str| name.contains("kernel") || *name == "inspect_variables";
    assert!(names.iter().all(is_of_kernels), "{names:?}");
}

#[tokio::test]
async fn selections_without_anything_in_common_select_nothing() {
    let gateway = Gateway::start().await;
    let list = |query: &str| {
        let list = reqwest::Client::new().post(gateway.url(&format!("/mcp{query}")));
        list.header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .bearer_auth(TOKEN)
            .header("mcp-protocol-version", wire::MODERN_VERSION)
            .header("mcp-method", "tools/list")
            .body(modern_list())
    };
    let none = send(list("?toolsets=url").header("x-mcp-toolsets", "session")).await;
    assert_eq!(none.json()["result"]["tools"], json!([]), "{}", none.text);
    let repeated = list("").header("x-mcp-toolsets", "url").header("x-mcp-toolsets", "all");
    let repeated = send(repeated).await.json();
    assert_eq!(repeated["result"]["tools"].as_array().map(Vec::len), Some(2));
    for name in ["x-mcp-toolsets", "x-mcp-readonly", "x-mcp-server"] {
        let refused = send(list("").header(name, b"\xc3\xa4".as_slice())).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["error"]),
            (400, &json!("bad_selection")),
            "{name}"
        );
    }
}

fn modern_list() -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": wire::MODERN_VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } }).to_string()
}
