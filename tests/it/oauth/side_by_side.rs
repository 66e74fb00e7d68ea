//! Two users of a Hub and two of an OpenID provider in one gateway, by tokens and by browser login: what one of them has
//! does not exist for the other three. Keys change meanwhile, and provider and Hub are away for a while.

use std::{fs, path::PathBuf};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::future::join_all;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::Url;

use super::{Browser, CALLBACK};
use crate::support::{
    Agent, Era, Gateway, Watcher, eventually,
    gateway::lab_server,
    hub::{HubUser, hub},
    lab,
    lab::Folder,
    notebook::notebook,
    own_lab::free_port,
    provider::{Provider, ProviderClient},
    proxy::Proxy,
    scene::id,
    wire::{Events, initialize, post_without_token, send},
};

const SCOPES: &str = "jupyter:read jupyter:write jupyter:execute";

struct Stage {
    provider: Provider,
    client: ProviderClient,
    /// Between the gateway and the Hub.
    hub: Proxy,
    gateway: Gateway,
    folder: Folder,
    audit: PathBuf,
    _home: tempfile::TempDir,
}

/// Somebody, and one of everything that can be had here. Each has a word that is in all of it.
struct Person {
    word: String,
    principal: String,
    server: String,
    path: String,
    modern: Agent,
    legacy: Agent,
    watcher: Watcher,
    has: Belongings,
}

#[derive(Default)]
struct Belongings {
    finished: String,
    running: String,
    session: String,
    notebook: String,
    fork: String,
    version: String,
    event: String,
}

impl Stage {
    async fn new() -> Self {
        let (provider, hub) = (Provider::start().await, hub().await);
        let proxy = Proxy::to(&hub.address()).await;
        let port = free_port();
        let client = provider
            .register(&format!("http://127.0.0.1:{port}/oauth/callback"))
            .await;
        let (folder, home) = (lab().folder(), tempfile::tempdir().expect("a folder"));
        let audit = home.path().join("audit.jsonl");
        let tenant = |name: &str| {
            let limits = "requests_per_minute = 100000\nburst = 100000";
            let files = folder.path(&format!("{name}/**"));
            format!("[[tenants]]\nname = \"{name}\"\nservers = [\"lab\"]\npaths = [\"{files}\"]\n{limits}\n")
        };
        let config = format!(
            "http.public_url = \"http://127.0.0.1:{port}\"\nstore.url = \"{}\"\naudit.file = \"{}\"\n{}{}{}\
             [[tenants]]\nname = \"hub\"\nrequests_per_minute = 100000\nburst = 100000\n\
             [auth.jupyterhub]\nurl = \"{}hub/api\"\ntenant = \"hub\"\ncache_ttl = \"1s\"\n\
             [auth.jwt]\nissuer = \"{}\"\naudience = \"http://127.0.0.1:{port}/mcp\"\npermissions_claim = \"permissions\"\n\
             [auth.oauth]\nenabled = true\nclient_id = \"{}\"\nclient_secret_env = \"SECRET\"\n",
            store::file_url(&home.path().join("gateway.db")),
            audit.display(),
            lab_server("lab"),
            tenant("numbat"),
            tenant("dugong"),
            proxy.url(),
            provider.issuer(),
            client.id,
        );
        let gateway = Gateway::on_port(port, &config, &[("SECRET", &client.secret)]).await;
        Self {
            provider,
            client,
            hub: proxy,
            gateway,
            folder,
            audit,
            _home: home,
        }
    }

    /// Somebody of the OpenID provider, who has logged in with a browser.
    async fn of_provider(&self, name: &str) -> Person {
        let permissions: Vec<&str> = SCOPES.split(' ').collect();
        let claims = json!({ "tenant": name, "permissions": permissions });
        self.provider.account(name, claims).await;
        let inner = format!("{name}/work-{name}.ipynb");
        let path = self.folder.write(&inner, &cells(name));
        let principal = format!("{}|{name}", self.provider.issuer());
        let token = self.log_in(name).await;
        self.person(name, principal, "lab", path, &token).await
    }

    /// A user of the Hub, whose server runs.
    async fn of_hub(&self, user: &HubUser) -> Person {
        user.start().await;
        let path = format!("work-{}.ipynb", user.name);
        fs::write(user.home().join(&path), cells(&user.name)).expect("a file");
        let principal = format!("hub:{}", user.name);
        self.person(&user.name, principal, &user.name, path, &user.token).await
    }

    async fn person(&self, word: &str, principal: String, server: &str, path: String, token: &str) -> Person {
        let url = self.gateway.url("/mcp?toolsets=all");
        let modern = Agent::connect_to(&url, token, Era::Modern).await;
        Person {
            word: word.to_owned(),
            principal,
            server: server.to_owned(),
            path,
            legacy: Agent::connect_to(&url, token, Era::Legacy).await,
            watcher: Watcher::start(&modern, Era::Modern, &[]).await,
            modern,
            has: Belongings::default(),
        }
    }

    /// An access token of the gateway, for a client that a person has allowed in a browser.
    async fn log_in(&self, account: &str) -> String {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let metadata = json!({ "client_name": "Agent", "redirect_uris": [CALLBACK] });
        let registered = http.post(self.gateway.url("/oauth/register")).json(&metadata).send();
        let registered: Value = registered.await.expect("an answer").json().await.expect("JSON");
        let client = registered["client_id"].as_str().expect("an id");
        let (verifier, resource) = (format!("{account:0>43}"), self.gateway.url("/mcp"));
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        let asked = [
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", CALLBACK),
            ("state", "x"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &resource),
            ("scope", SCOPES),
        ];
        let url = Url::parse_with_params(&self.gateway.url("/oauth/authorize"), asked).expect("a URL");
        let answer = Browser::new().allow(url.as_str(), account).await;
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", &answer["code"]),
            ("redirect_uri", CALLBACK),
            ("code_verifier", &verifier),
        ];
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let request = http.post(self.gateway.url("/oauth/token"));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let tokens = request.body(body.extend_pairs(form).finish()).send().await;
        let tokens: Value = tokens.expect("an answer").json().await.expect("JSON");
        tokens["access_token"]
            .as_str()
            .unwrap_or_else(|| panic!("{tokens}"))
            .to_owned()
    }

    /// A token that the provider itself has made, and the status with which the gateway answers it.
    async fn token_of_provider(&self) -> (String, u16) {
        let audience = self.gateway.url("/mcp");
        let token = self.provider.token(&self.client, &audience, SCOPES).await;
        let status = self.status(&token).await;
        (token, status)
    }

    async fn status(&self, token: &str) -> u16 {
        let request = post_without_token(&self.gateway, initialize()).bearer_auth(token);
        send(request).await.status.as_u16()
    }
}

fn cells(word: &str) -> String {
    let endless = format!("import time\nprint('{word} goes on', flush=True)\ntime.sleep(600)");
    notebook(&[&format!("print('{word} has been here')"), &endless])
}

impl Person {
    async fn call(&self, tool: &str, mut arguments: Value) -> Value {
        arguments["server"] = self.server.as_str().into();
        self.modern.call(tool, arguments).await.ok()
    }

    /// Does one of everything, in both eras.
    async fn work(&mut self) {
        let path = self.path.clone();
        let ran = self
            .call(
                "execute_nb_cells",
                json!({ "path": path, "ranges": [{ "start": 0 }], "timeout": 60 }),
            )
            .await;
        assert_eq!(ran["status"], "completed", "{ran}");
        self.has.finished = id(&ran);
        let endless = json!({ "path": path, "ranges": [{ "start": 1 }], "timeout": 0 });
        self.has.running = id(&self.call("execute_nb_cells", endless).await);
        eventually("it has begun", async || {
            let read = self.call("read_nb_cells", json!({ "path": path })).await;
            read["cells"][1]["outputs"]
                .to_string()
                .contains("goes on")
                .then_some(())
        })
        .await;
        let edit = json!({ "path": path, "position": 2, "cells": [{ "type": "markdown", "content": self.word }], "exec": false });
        self.call("insert_nb_cells", edit).await;
        let forked = self
            .call("fork_document", json!({ "path": path, "title": self.word }))
            .await;
        forked["fork_id"]
            .as_str()
            .expect("a fork")
            .clone_into(&mut self.has.fork);
        self.has.version = eventually("a version", async || {
            let history = self.call("get_document_history", json!({ "path": path })).await;
            history["versions"][0]["version_id"].as_str().map(str::to_owned)
        })
        .await;
        let said = json!({ "activity_type": "busy", "description": format!("{} is busy", self.word) });
        self.call("broadcast_user_activity", said).await;
        self.call("set_user_presence", json!({ "status": "busy", "message": self.word }))
            .await;
        let current = self.modern.read("notebook://current").await;
        let text = |key: &str| current["_meta"][key].as_str().expect("an id").to_owned();
        (self.has.session, self.has.notebook) = (text("sessionId"), text("notebookId"));
        let call = json!({ "name": "list_servers", "arguments": {}, "_meta": { "progressToken": "p" } });
        let mut events = Events::new(self.legacy.start(7, "tools/call", call).await);
        let primed = events.next().await.expect("an event");
        self.has.event = primed.id.expect("its id");
    }

    /// What everybody may ask for has nothing of another's in it.
    async fn lists_nothing_of(&self, other: &Self) {
        let is_clean = |what: &str, answer: &str| {
            let has = &other.has;
            for secret in [&other.word, &has.finished, &has.running, &has.session, &has.fork] {
                assert!(!answer.contains(&**secret), "{} by {what}: {answer}", self.word);
            }
        };
        for (tool, arguments) in [
            ("list_servers", json!({})),
            ("list_documents", json!({})),
            ("list_nbs", json!({})),
            ("list_kernels", json!({})),
            ("query_nb_sessions", json!({})),
            ("list_executions", json!({})),
            ("search_documents", json!({ "query": "has been here" })),
            ("get_online_users", json!({})),
            ("get_user_cursors", json!({ "document_path": self.path })),
            ("get_user_activity", json!({})),
            ("get_active_sessions", json!({})),
            ("list_document_forks", json!({ "path": self.path })),
            ("get_document_history", json!({ "path": self.path })),
        ] {
            let answer = self.modern.call(tool, arguments).await;
            is_clean(tool, &format!("{:?} {}", answer.texts, answer.structured));
        }
        for agent in [&self.modern, &self.legacy] {
            for method in ["resources/list", "resources/templates/list", "prompts/list"] {
                is_clean(method, &agent.request(method, json!({})).await.to_string());
            }
            for uri in ["notebook://list", "notebook://activity", "notebook://current"] {
                let read = agent.request("resources/read", json!({ "uri": uri })).await;
                is_clean(uri, &read.to_string());
            }
        }
    }

    /// Whoever knows the id of what another has is told the same as if it did not exist.
    async fn finds_nothing_of(&self, other: &Self) {
        let has = &other.has;
        let path = self.path.as_str();
        for (tool, id, arguments) in [
            ("get_execution", &has.finished, json!({ "execution_id": has.finished })),
            ("get_execution", &has.running, json!({ "execution_id": has.running })),
            ("cancel_execution", &has.running, json!({ "execution_id": has.running })),
            ("join_session", &has.session, json!({ "session_id": has.session })),
            ("get_user_presence", &other.word, json!({ "user_id": other.word })),
            ("read_nb_cells", &has.fork, json!({ "path": path, "fork_id": has.fork })),
            (
                "merge_document_fork",
                &has.fork,
                json!({ "path": path, "fork_id": has.fork }),
            ),
            (
                "discard_document_fork",
                &has.fork,
                json!({ "path": path, "fork_id": has.fork }),
            ),
            (
                "restore_document_version",
                &has.version,
                json!({ "path": path, "version_id": has.version }),
            ),
        ] {
            let unknown = arguments.to_string().replace(&**id, &unlike(id));
            let unknown = serde_json::from_str(&unknown).expect("JSON");
            let refused = self.modern.call(tool, arguments).await.error();
            let expected = self.modern.call(tool, unknown).await.error();
            let expected = expected.replace(&unlike(id), id);
            assert_eq!(refused, expected, "{} by {tool}", self.word);
        }
        let (session, notebook) = (&has.session, &has.notebook);
        for agent in [&self.modern, &self.legacy] {
            for uri in [
                format!("notebook://{session}/{notebook}"),
                format!("notebook://{session}/{notebook}/json"),
                format!("notebook://{session}/{notebook}/cells/c0"),
                format!("notebook://{session}/{notebook}/executions/{}", has.finished),
            ] {
                let refused = agent.cannot_read(&uri).await;
                let expected = agent.cannot_read(&uri.replace(&**session, &unlike(session))).await;
                assert_eq!(refused, expected, "{} by {uri}", self.word);
            }
        }
        let uri = format!("notebook://{session}/{notebook}");
        let refused = self.legacy.request("resources/subscribe", json!({ "uri": uri })).await;
        assert!(refused["error"].is_object(), "{refused}");
        let watcher = Watcher::start(&self.modern, Era::Modern, &[&uri]).await;
        let accepted = watcher.accepted["resourceSubscriptions"].as_array();
        assert_eq!(accepted.map_or(0, Vec::len), 0, "{}", watcher.accepted);
        let task = self.modern.request("tasks/get", json!({ "taskId": has.running })).await;
        assert!(task["error"].is_object(), "{task}");
        // Neither where it is, nor in their session of MCP.
        let read = json!({ "path": other.path, "server": other.server });
        for tool in [
            "read_nb_cells",
            "get_document_history",
            "list_document_forks",
            "execute_nb_cells",
        ] {
            let refused = self.modern.call(tool, read.clone()).await.error();
            let is_unknown = refused.contains("unknown server") || refused.contains("outside the path rules");
            assert!(is_unknown, "{} by {tool}: {refused}", self.word);
        }
        assert_eq!(self.legacy.listen(Some(&has.event)).await.status(), 404);
    }

    /// Nobody uses the MCP session of another, whatever they know.
    async fn takes_no_session_of(&mut self, other: &Self) {
        let own = std::mem::replace(&mut self.legacy.session, other.legacy.session.clone());
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        assert_eq!(self.legacy.send(ping).await.status(), 404);
        assert_eq!(self.legacy.listen(Some(&other.has.event)).await.status(), 404);
        assert_eq!(self.legacy.close().await, 404);
        self.legacy.session = own;
    }

    async fn is_served(&self) -> bool {
        let read = json!({ "path": self.path, "server": self.server });
        let answer = self
            .modern
            .start(9, "tools/call", json!({ "name": "read_nb_cells", "arguments": read }));
        answer.await.status() == 200
    }

    async fn leave(&self) {
        let running = json!({ "execution_id": self.has.running });
        self.modern.call("cancel_execution", running).await.ok();
    }
}

/// Another id of the same form.
fn unlike(id: &str) -> String {
    let other = |byte: u8| match byte {
        b'0'..=b'8' | b'a'..=b'e' | b'g'..=b'y' => byte + 1,
        b'9' => b'0',
        b'f' => b'a',
        byte => byte,
    };
    id.bytes().map(|byte| char::from(other(byte))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn four_people_of_a_hub_and_a_provider_see_nothing_of_each_other() {
    let stage = Stage::new().await;
    let hub = hub().await;
    let (quokka, wombat) = (hub.user("quokka").await, hub.user("wombat").await);
    let mut people = vec![
        stage.of_hub(&quokka).await,
        stage.of_provider("numbat").await,
        stage.of_hub(&wombat).await,
        stage.of_provider("dugong").await,
    ];
    for at in 0..people.len() {
        people[at].work().await;
        // While one works, nobody else hears of it.
        let heard = join_all(people.iter_mut().enumerate().map(async |(who, person)| {
            let mut heard = Vec::new();
            while let Some(notice) = person.watcher.next().await {
                heard.push(notice);
            }
            (who != at).then_some((person.word.clone(), heard))
        }));
        for (word, heard) in heard.await.into_iter().flatten() {
            assert!(heard.is_empty(), "{word} heard {heard:?}");
        }
    }
    for viewer in &people {
        for owner in people.iter().filter(|owner| owner.word != viewer.word) {
            viewer.lists_nothing_of(owner).await;
            viewer.finds_nothing_of(owner).await;
        }
    }
    for at in 0..people.len() {
        let mut viewer = people.remove(0);
        for owner in &people {
            viewer.takes_no_session_of(owner).await;
        }
        assert_eq!(
            viewer.legacy.request("ping", json!({})).await["result"],
            json!({}),
            "{at}"
        );
        people.push(viewer);
    }
    is_recorded_apart(&stage, &people).await;
    goes_on_through_new_keys_and_outages(stage, &people, &quokka).await;
    join_all(people.iter().map(Person::leave)).await;
}

/// Every record of what is somebody's is theirs, or of somebody who was refused or found nothing.
async fn is_recorded_apart(stage: &Stage, people: &[Person]) {
    let lines = eventually("the records", async || {
        let text = fs::read_to_string(&stage.audit).ok()?;
        let lines: Vec<Value> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let is_there = |person: &Person| {
            let mut lines = lines.iter().rev();
            lines.any(|line| line["principal"] == person.principal.as_str())
        };
        people.iter().all(is_there).then_some(lines)
    })
    .await;
    for person in people {
        let about = lines
            .iter()
            .filter(|line| line["path"].to_string().contains(&person.path));
        let (own, others): (Vec<&Value>, Vec<&Value>) =
            about.partition(|line| line["principal"] == person.principal.as_str());
        assert!(
            own.iter()
                .any(|line| line["decision"] == "allow" && line["outcome"] == "completed")
        );
        assert!(!others.is_empty());
        for line in others {
            assert_eq!(line["outcome"], "failed", "{line}");
        }
    }
}

/// What one issuer does is felt by its own people at most.
async fn goes_on_through_new_keys_and_outages(mut stage: Stage, people: &[Person], user: &HubUser) {
    let all_are_served = async || {
        let served = join_all(people.iter().map(Person::is_served)).await;
        assert_eq!(served, [true; 4]);
    };
    let permissions: Vec<&str> = SCOPES.split(' ').collect();
    let claims = json!({ "tenant": "numbat", "permissions": permissions });
    stage.provider.token_claims(claims).await;
    let (before, status) = stage.token_of_provider().await;
    assert_eq!(status, 200);
    stage.provider.rotate_key(false).await;
    stage.client = stage.provider.register("https://client.example.org/callback").await;
    assert_eq!(stage.token_of_provider().await.1, 200, "a key that is new");
    assert_eq!(stage.status(&before).await, 200, "and one that is still there");
    all_are_served().await;

    let (audience, provider) = (stage.gateway.url("/mcp"), &mut stage.provider);
    let unseen = provider.token(&stage.client, &audience, SCOPES).await;
    provider.stop().await;
    assert_eq!(stage.status(&unseen).await, 200, "its keys are known");
    all_are_served().await;

    let of_hub = |person: &Person| person.principal.starts_with("hub:");
    stage.hub.refuse(true);
    stage.hub.cut();
    eventually("the Hub is missed", async || {
        (stage.status(&user.token).await == 503).then_some(())
    })
    .await;
    for person in people.iter().filter(|person| !of_hub(person)) {
        assert!(person.is_served().await, "{}", person.word);
    }
    assert_eq!(stage.status(&unseen).await, 200);
    stage.hub.refuse(false);
    eventually("the Hub is back", async || {
        (stage.status(&user.token).await == 200).then_some(())
    })
    .await;
    eventually("everybody works again", async || {
        let served = join_all(people.iter().map(Person::is_served)).await;
        (served == [true; 4]).then_some(())
    })
    .await;
}
