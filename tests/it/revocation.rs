//! Tokens that are removed, or may do less, while their bearers are connected: a hangup ends what goes on in their names,
//! and nothing else.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{
    Agent, Era, Human, Watcher,
    agent::ERAS,
    eventually, lab,
    lab::Folder,
    notebook::notebook,
    own_lab::OwnLab,
    running::{Home, Running},
};

/// Time within which streams must have ended.
const CUT_OFF_TIMEOUT: Duration = Duration::from_secs(5);

struct Stage {
    file: PathBuf,
    gateway: Running,
    folder: Folder,
    path: String,
    _home: Home,
}

impl Stage {
    async fn new(tokens: impl Fn(&Folder) -> String) -> Self {
        let (home, folder) = (Home::new(), lab().folder());
        let file = home.path("gateway.toml");
        fs::write(&file, config(&tokens(&folder))).expect("a config");
        let mut command = home.serve();
        command.arg("--config").arg(&file);
        Self {
            file,
            gateway: Running::start(command).await,
            path: folder.write("a.ipynb", &notebook(&["zero"])),
            folder,
            _home: home,
        }
    }

    async fn agent(&self, name: &str, era: Era) -> Agent {
        Agent::connect_to(self.gateway.url(), &format!("token-of-{name}"), era).await
    }

    /// Watches the notebook as somebody who has it open.
    async fn watch(&self, agent: &Agent, era: Era) -> (Watcher, String) {
        agent.call("read_nb_cells", json!({ "path": self.path })).await.ok();
        let current = agent.read("notebook://current").await["_meta"].clone();
        let text = |key: &str| current[key].as_str().expect("an id").to_owned();
        let uri = format!("notebook://{}/{}", text("sessionId"), text("notebookId"));
        (Watcher::start(agent, era, &[&uri]).await, uri)
    }

    async fn read_again(&self, tokens: &str) {
        fs::write(&self.file, config(tokens)).expect("a config");
        let read = || self.gateway.log().matches("reloaded tokens and tenants").count();
        let before = read();
        self.gateway.signal("-HUP");
        eventually("the config is read", async || (read() > before).then_some(())).await;
    }
}

fn config(tokens: &str) -> String {
    let lab = crate::support::gateway::lab_server("lab");
    format!("store.url = \"sqlite::memory:\"\n{lab}[[tenants]]\nname = \"t\"\n{tokens}")
}

fn token(name: &str, more: &str) -> String {
    format!("[[auth.tokens]]\nname = \"{name}\"\ntenant = \"t\"\ntoken = \"token-of-{name}\"\n{more}\n")
}

/// A call that takes longer than anybody waits, begun.
fn call(agent: &Arc<Agent>, follows: bool) -> impl Future<Output = (u16, String)> + use<> {
    let code = "import time; time.sleep(100)";
    let mut params = json!({ "name": "run_code", "arguments": { "code": code, "timeout": 90 } });
    if follows {
        params["_meta"] = json!({ "progressToken": "p" });
    }
    let agent = Arc::clone(agent);
    let answer = tokio::spawn(async move {
        let answer = agent.start(4000 + i64::from(follows), "tools/call", params).await;
        (answer.status().as_u16(), answer.text().await.unwrap_or_default())
    });
    async move {
        let answer = timeout(CUT_OFF_TIMEOUT, answer).await.expect("the answer is cut off");
        answer.expect("no panic")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_is_removed_is_cut_off_at_once_and_nobody_else_is() {
    for era in ERAS {
        let reads = "permissions = [\"read\"]";
        let stage = Stage::new(|_| [token("ana", ""), token("ben", reads), token("cleo", "")].concat()).await;
        let [ana, ben, cleo] = [
            stage.agent("ana", era).await,
            stage.agent("ben", era).await,
            stage.agent("cleo", era).await,
        ];
        let ana = Arc::new(ana);
        let (anas, _) = stage.watch(&ana, era).await;
        let (mut bens, bens_uri) = stage.watch(&ben, era).await;
        let (mut cleos, cleos_uri) = stage.watch(&cleo, era).await;
        let (followed, awaited) = (call(&ana, true), call(&ana, false));
        let running = async || {
            let listed = ana.call("list_executions", json!({ "status": "running" })).await.ok();
            listed["executions"]
                .as_array()
                .is_some_and(|all| !all.is_empty())
                .then_some(())
        };
        eventually("code runs", running).await;

        // Ben may do more than before.
        stage.read_again(&[token("ben", ""), token("cleo", "")].concat()).await;
        timeout(CUT_OFF_TIMEOUT, anas.ended()).await.expect("her stream ends");
        for (status, text) in [followed.await, awaited.await] {
            assert!(status == 401 || status == 200, "{era:?}: {status} {text}");
            assert!(!text.contains("execution_id"), "{era:?}: {text}");
        }
        let refused = ana
            .send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))
            .await;
        assert_eq!(refused.status(), 401);
        if era == Era::Legacy {
            assert_eq!(ana.listen(None).await.status(), 401);
        }

        let human = Human::join(&stage.path).await;
        human.splice_cell("c0", 0, 0, "typed ");
        bens.updated(&bens_uri).await;
        cleos.updated(&cleos_uri).await;
        let change = json!({ "path": stage.path, "force": true, "modifications": [{ "range": { "cell_id": "c0" }, "content": "by ben" }] });
        ben.call("modify_nb_cells", change).await.ok();
        cleos.updated(&cleos_uri).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_may_no_longer_be_read_is_no_longer_told() {
    for era in ERAS {
        let all = |folder: &Folder| {
            token(
                "ana",
                &format!("paths = [\"{}/**\"]", folder.path("").trim_matches('/')),
            )
        };
        let stage = Stage::new(all).await;
        stage.folder.write("other/b.ipynb", &notebook(&["b"]));
        let ana = stage.agent("ana", era).await;
        let (watcher, uri) = stage.watch(&ana, era).await;
        let narrowed = format!(
            "permissions = [\"read\"]\npaths = [\"{}/**\"]",
            stage.folder.path("other")
        );
        stage.read_again(&token("ana", &narrowed)).await;
        timeout(CUT_OFF_TIMEOUT, watcher.ended())
            .await
            .expect("the stream ends");

        let ana = match era {
            Era::Legacy => {
                let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
                assert_eq!(ana.send(list).await.status(), 404, "the session is over");
                assert_eq!(ana.listen(None).await.status(), 404);
                stage.agent("ana", era).await
            }
            Era::Modern => ana,
        };
        let told = ana.call("read_nb_cells", json!({ "path": stage.path })).await.error();
        assert!(told.contains("path rules"), "{told}");
        let (code, _) = ana.cannot_read(&uri).await;
        assert!(code < 0);
        let path = stage.folder.path("other/b.ipynb");
        ana.call("read_nb_cells", json!({ "path": path })).await.ok();
        let delete = json!({ "path": path, "ranges": [{ "start": 0 }] });
        let told = ana.call("delete_nb_cells", delete).await.error();
        assert!(told.contains("needs permission `write`"), "{told}");
        if era == Era::Modern {
            let mut again = Watcher::start(&ana, era, &[&uri]).await;
            let human = Human::join(&stage.path).await;
            human.splice_cell("c0", 0, 0, "typed ");
            assert_eq!(again.count(&uri).await, 0);
        } else {
            let subscribed = ana.request("resources/subscribe", json!({ "uri": uri })).await;
            assert_ne!(subscribed["error"], Value::Null);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_may_no_longer_be_connected_to_is_refused() {
    let own = OwnLab::start(&[]).await;
    own.write("a.ipynb", &notebook(&["secret"]));
    let tenant = |url: &str| format!("connect_urls = [\"{url}\"]\n{}", token("ana", ""));
    let stage = Stage::new(|_| tenant(&own.url())).await;
    let url = format!("{}?toolsets=all", stage.gateway.url());
    let ana = Agent::connect_to(&url, "token-of-ana", Era::Modern).await;
    let connect =
        json!({ "server_url": own.url(), "token": own.token(), "notebook_name": "a", "notebook_path": "a.ipynb" });
    ana.call("connect_notebook", connect).await.ok();
    let read = async || ana.call("read_notebook", json!({ "notebook_name": "a" })).await;
    assert!(read().await.text().contains("secret"));
    let listed = async || ana.read("notebook://list").await["text"].to_string();
    assert!(listed().await.contains("a.ipynb"));

    stage.read_again(&tenant("http://127.0.0.1:9/")).await;
    let told = read().await.error();
    assert!(!told.contains("secret"), "{told}");
    assert!(!listed().await.contains("a.ipynb"));
}

#[tokio::test]
async fn who_is_added_can_be_called_by_name_at_once() {
    let stage = Stage::new(|_| token("ana", "")).await;
    let url = format!("{}?toolsets=default,awareness", stage.gateway.url());
    let ana = Agent::connect_to(&url, "token-of-ana", Era::Modern).await;
    ana.call("read_nb_cells", json!({ "path": stage.path })).await.ok();
    let human = Human::join(&stage.path).await;
    stage
        .read_again(&[token("ana", ""), token("newcomer", "")].concat())
        .await;
    human.splice_cell("c0", 0, 0, "# @newcomer look here\n");
    let mention = eventually("a mention", async || {
        let found = ana.call("get_user_activity", json!({ "limit": 50 })).await.ok();
        let mut all = found["activities"].as_array()?.iter();
        all.find(|activity| activity["activity_type"] == "mention").cloned()
    })
    .await;
    assert_eq!(mention["metadata"]["agent_id"], "token:newcomer", "{mention}");
}
