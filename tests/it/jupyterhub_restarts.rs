//! A gateway that is killed while code of a Hub's user runs. The next one has no credentials of that user until they come
//! back: then it goes on where the first one was, and says truly how what ran has ended.

use std::{fs, path::Path};

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, eventually,
    hub::{Hub, HubUser, hub},
    notebook::{notebook, whole_cells_on_disk},
    running::{Home, Running},
    scene::{ended, id, texts},
};

/// Tells how often it ran, and waits in the middle.
const WAITS: &str = "import os, time\nopen('runs', 'a').write('once ')\nprint('begin', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nprint('middle', flush=True)\n'end'";

/// A user whose server runs, and gateways that come one after the other.
struct Scene {
    hub: &'static Hub,
    user: HubUser,
    home: Home,
}

impl Scene {
    async fn new(name: &str) -> Self {
        let hub = hub().await;
        let user = hub.user(name).await;
        user.start().await;
        fs::write(user.home().join("run.ipynb"), notebook(&["'first'", WAITS, "'last'"])).unwrap();
        Self {
            hub,
            user,
            home: Home::new(),
        }
    }

    async fn gateway(&self) -> Running {
        let file = self.home.path("gateway.toml");
        let config = format!(
            "store.url = \"{}\"\n[[tenants]]\nname = \"hub\"\nrequests_per_minute = 100000\nburst = 100000\n\
             [auth.jupyterhub]\nurl = \"{}hub/api\"\ntenant = \"hub\"\n",
            store::file_url(&self.home.path("state/gateway.db")),
            self.hub.url(),
        );
        fs::write(&file, config).unwrap();
        let mut command = self.home.serve();
        command.arg("--config").arg(&file);
        Running::start(command).await
    }

    async fn agent(&self, gateway: &Running, token: &str) -> Agent {
        Agent::connect_to(gateway.url(), token, Era::Modern).await
    }

    /// The first gateway runs the cell that waits, another execution waits behind it, and then the gateway is killed.
    async fn begin_and_kill(&self) -> (String, String) {
        let gateway = self.gateway().await;
        let agent = self.agent(&gateway, &self.user.token).await;
        let run = |cell: usize| json!({ "path": "run.ipynb", "ranges": [{ "start": cell }], "timeout": 0 });
        let running = id(&agent.call("execute_nb_cells", run(1)).await.ok());
        let waiting = id(&agent.call("execute_nb_cells", run(2)).await.ok());
        eventually("its output arrives", async || {
            let read = agent.call("read_nb_cells", json!({ "path": "run.ipynb" })).await.ok();
            read["cells"][1]["outputs"].to_string().contains("begin").then_some(())
        })
        .await;
        gateway.signal("-KILL");
        gateway.ended().await;
        (running, waiting)
    }

    /// The user's kernels, as their own server tells.
    async fn kernels(&self) -> Vec<Value> {
        let url = format!("{}user/{}/api/kernels", self.hub.url(), self.user.name);
        let request = Client::new()
            .get(url)
            .header("authorization", format!("token {}", self.user.token));
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        answer.json().await.unwrap()
    }

    async fn is_alone(&self) {
        eventually("nobody is connected to the kernel", async || {
            let kernels = self.kernels().await;
            kernels.iter().all(|kernel| kernel["connections"] == 0).then_some(())
        })
        .await;
    }

    async fn is_idle(&self) {
        eventually("the kernel is idle", async || {
            let kernels = self.kernels().await;
            kernels
                .iter()
                .all(|kernel| kernel["execution_state"] == "idle")
                .then_some(())
        })
        .await;
    }

    fn go(&self) {
        fs::write(self.user.home().join("go"), "").unwrap();
    }

    /// The run was resumed: nothing of it is missing in the answer and in the notebook, and it ran once.
    async fn is_completed(&self, agent: &Agent, running: &str, waiting: &str) {
        let result = ended(agent, running).await;
        assert_eq!(result["status"], "completed", "{result}");
        assert_eq!(texts(&result["cells"][0]), ["begin\nmiddle\n", "'end'"], "{result}");
        let behind = ended(agent, waiting).await;
        assert_eq!(behind["status"], "cancelled", "{behind}");
        assert!(behind["reason"].to_string().contains("restarted"), "{behind}");
        assert_eq!(self.runs(), "once ", "nothing runs twice");
        agent.call("save_document", json!({ "path": "run.ipynb" })).await.ok();
        let cells = whole_cells_on_disk(&self.user.home().join("run.ipynb")).expect("a notebook");
        let outputs = cells[1]["outputs"].to_string();
        assert!(
            outputs.contains("begin") && outputs.contains("middle") && outputs.contains("'end'"),
            "{outputs}"
        );
        assert_eq!(cells[2]["outputs"], json!([]));
    }

    fn runs(&self) -> String {
        fs::read_to_string(self.user.home().join("runs")).unwrap()
    }

    /// All that the gateways have left on disk.
    fn left_on_disk(&self) -> Vec<u8> {
        let folder = self.home.path("state/gateway.db");
        let files = fs::read_dir(folder.parent().unwrap_or(Path::new("/"))).unwrap();
        files
            .flat_map(|file| fs::read(file.unwrap().path()).unwrap_or_default())
            .collect()
    }
}

#[tokio::test]
async fn what_ran_to_its_end_without_the_gateway_is_completed_when_its_user_returns() {
    let scene = Scene::new("kim").await;
    let (running, waiting) = scene.begin_and_kill().await;
    let gateway = scene.gateway().await;
    scene.is_alone().await;
    scene.go();
    scene.is_idle().await;
    // Another user is of no use to it.
    let other = scene.hub.user("liv").await;
    let theirs = scene.agent(&gateway, &other.token).await;
    let unknown = theirs.call("get_execution", json!({ "execution_id": running })).await;
    assert!(unknown.is_error, "{}", unknown.text());
    assert!(scene.kernels().await.iter().all(|kernel| kernel["connections"] == 0));
    // They come back with another token, and ask for nothing but what they have.
    let (token, _) = scene.user.new_token(json!({})).await;
    let agent = scene.agent(&gateway, &token).await;
    agent.call("list_servers", json!({})).await.ok();
    scene.is_completed(&agent, &running, &waiting).await;
    let left = scene.left_on_disk();
    for token in [&token, &scene.user.token] {
        let is_there = left.windows(token.len()).any(|bytes| bytes == token.as_bytes());
        assert!(!is_there, "a token is on disk");
    }
}

#[tokio::test]
async fn what_runs_on_is_taken_up_before_anything_else_its_user_wants_there() {
    let scene = Scene::new("mia").await;
    let (running, waiting) = scene.begin_and_kill().await;
    // Two more gateways come and go without a word of the user.
    for signal in ["-TERM", "-KILL"] {
        let gateway = scene.gateway().await;
        scene.is_alone().await;
        gateway.signal(signal);
        gateway.ended().await;
    }
    let gateway = scene.gateway().await;
    let agent = scene.agent(&gateway, &scene.user.token).await;
    let run = json!({ "path": "run.ipynb", "ranges": [{ "start": 0 }], "timeout": 0 });
    let next = id(&agent.call("execute_nb_cells", run).await.ok());
    let seen = agent
        .call("get_execution", json!({ "execution_id": next }))
        .await
        .structured;
    assert_eq!(seen["status"], "queued", "it waits: {seen}");
    let seen = agent
        .call("get_execution", json!({ "execution_id": running }))
        .await
        .structured;
    assert_eq!(seen["status"], "running", "{seen}");
    scene.go();
    assert_eq!(ended(&agent, &next).await["status"], "completed");
    scene.is_completed(&agent, &running, &waiting).await;
}

#[tokio::test]
async fn what_ran_in_a_server_that_was_replaced_meanwhile_is_lost() {
    let scene = Scene::new("noa").await;
    let (running, waiting) = scene.begin_and_kill().await;
    let gateway = scene.gateway().await;
    scene.user.stop().await;
    scene.user.start().await;
    let agent = scene.agent(&gateway, &scene.user.token).await;
    let result = ended(&agent, &running).await;
    assert_eq!(result["status"], "lost", "{result}");
    assert_eq!(ended(&agent, &waiting).await["status"], "cancelled");
    let listed = agent.call("list_executions", json!({ "status": "running" })).await.ok();
    assert_eq!(listed["executions"], json!([]));
    assert_eq!(scene.runs(), "once ");
    let read = agent.call("read_nb_cells", json!({ "path": "run.ipynb" })).await.ok();
    let shown = read["cells"][1]["outputs"].to_string();
    assert!(shown.contains("ExecutionLost"), "{shown}");
}
