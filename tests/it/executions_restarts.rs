//! A gateway that leaves or is killed while code runs, and the one that comes after it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, eventually,
    gateway::{everything, lab_server},
    lab,
    notebook::notebook,
    process_scene::ProcessScene,
    proxy::Proxy,
    scene::{ended, id, person, shown, texts},
    tab::Tab,
};

/// Tells how often it ran, and waits in the middle.
const WAITS: &str = "import os, time\nopen('runs', 'a').write('once ')\nprint('begin', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nprint('middle', flush=True)\n'end'";

const CELLS: [&str; 3] = ["'first'", WAITS, "print('never')"];

impl ProcessScene {
    /// All cells, of which the second waits, and one more execution behind them.
    async fn begin(&self, agent: &Agent) -> (String, String) {
        let run = |start: usize, end: usize| json!({ "path": self.path, "ranges": [{ "start": start, "end": end }], "timeout": 0 });
        let running = id(&agent.call("execute_nb_cells", run(0, 3)).await.ok());
        let waiting = id(&agent.call("execute_nb_cells", run(0, 1)).await.ok());
        self.human
            .wait_for("it has begun", |human| shown(&human.cell(1)).contains("begin"))
            .await;
        (running, waiting)
    }

    /// Checks what the next gateway finds if the code ended while its outputs were received or kept for it.
    async fn is_completed(&self, agent: &Agent, running: &str, waiting: &str) {
        let result = ended(agent, running).await;
        let statuses: Vec<&Value> = result["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| &cell["status"])
            .collect();
        assert_eq!(statuses, ["completed", "completed", "cancelled"], "{result}");
        assert_eq!(texts(&result["cells"][0]), ["'first'"]);
        assert_eq!(texts(&result["cells"][1]), ["begin\nmiddle\n", "'end'"]);
        assert!(result["reason"].as_str().unwrap().contains("restarted"), "{result}");
        self.shows_idle("begin\nmiddle\n'end'").await;
        for cell in [0, 2] {
            let looks_queued = |human: &Human| human.cell(cell)["execution_state"] == "running";
            self.human
                .wait_for("what never ran does not look queued", |human| !looks_queued(human))
                .await;
        }
        assert_eq!(ended(agent, waiting).await["status"], "cancelled");
        assert_eq!(self.folder.read("runs"), "once ", "nothing runs twice");
    }

    async fn shows_idle(&self, text: &str) {
        self.human
            .wait_for("the cell is idle", |human| {
                let cell = human.cell(1);
                cell["execution_state"] == "idle" && shown(&cell).contains(text)
            })
            .await;
    }
}

#[tokio::test]
async fn what_runs_when_the_gateway_leaves_is_taken_up_by_the_next() {
    let scene = ProcessScene::new(&CELLS).await;
    let (gateway, agent) = scene.gateway().await;
    let (running, waiting) = scene.begin(&agent).await;
    gateway.signal("-TERM");
    assert_eq!(gateway.ended().await.code, Some(0));
    scene.folder.write("go", "");
    let (_gateway, agent) = scene.gateway().await;
    scene.is_completed(&agent, &running, &waiting).await;
}

#[tokio::test]
async fn a_single_run_that_is_taken_up_and_completes_has_nothing_to_explain() {
    let scene = ProcessScene::new(&CELLS).await;
    let (gateway, agent) = scene.gateway().await;
    let run = json!({ "path": scene.path, "code": WAITS, "timeout": 0 });
    let running = id(&agent.call("run_code", run).await.ok());
    // The moment at which the code is known to run, whatever the gateway has heard of it.
    eventually("it has begun", async || scene.folder.has("runs").then_some(())).await;
    let kernel = scene.kernel().await;
    gateway.signal("-KILL");
    gateway.ended().await;
    let (_gateway, agent) = scene.gateway().await;
    scene.is_connected_to(&kernel).await;
    scene.folder.write("go", "");
    let result = ended(&agent, &running).await;
    assert_eq!(result["status"], "completed", "{result}");
    assert!(result["reason"].is_null(), "{result}");
}

#[tokio::test]
async fn calls_that_wait_are_answered_before_the_gateway_leaves() {
    for era in [Era::Legacy, Era::Modern] {
        let folder = lab().folder();
        let path = folder.write("w.ipynb", &notebook(&[]));
        let gateway = Gateway::with("[http]\ndrain_timeout = \"2s\"").await;
        let agent = Agent::connect(&gateway, era).await;
        let code = "import time\nopen('begun', 'w').close()\ntime.sleep(10)";
        let waiting = agent.call("run_code", json!({ "path": path, "code": code, "timeout": 60 }));
        let leaving = async {
            eventually("it has begun", async || folder.has("begun").then_some(())).await;
            gateway.drain().start();
        };
        let (answer, ()) = tokio::join!(waiting, leaving);
        let result = answer.ok();
        assert_eq!(result["status"], "running", "{era:?}: {result}");
        assert!(result["execution_id"].is_string(), "{era:?}: {result}");
        gateway.gone().await;
    }
}

#[tokio::test]
async fn what_runs_when_the_gateway_is_killed_is_taken_up_by_the_next() {
    for scene in [
        ProcessScene::new(&CELLS).await,
        ProcessScene::new(&CELLS).await.on_postgres(),
    ] {
        is_taken_up_after_a_kill(&scene).await;
    }
}

async fn is_taken_up_after_a_kill(scene: &ProcessScene) {
    let (gateway, agent) = scene.gateway().await;
    let (running, waiting) = scene.begin(&agent).await;
    let kernel = scene.kernel().await;
    gateway.signal("-KILL");
    gateway.ended().await;
    let (_gateway, agent) = scene.gateway().await;
    scene.is_connected_to(&kernel).await;
    scene.folder.write("go", "");
    scene.is_completed(&agent, &running, &waiting).await;
}

#[tokio::test]
async fn a_jupyter_that_cannot_be_reached_at_once_is_waited_for() {
    let proxy = Proxy::to(lab().address()).await;
    let scene = ProcessScene::through(&proxy.url(), &CELLS).await;
    let (gateway, agent) = scene.gateway().await;
    let (running, waiting) = scene.begin(&agent).await;
    gateway.signal("-KILL");
    gateway.ended().await;
    proxy.refuse(true);
    let (_gateway, agent) = scene.gateway().await;
    // Long enough for some attempts to reach the server, all in vain.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let get = json!({ "execution_id": running });
    let seen = agent.call("get_execution", get).await.structured;
    assert_eq!(seen["status"], "running", "{seen}");
    proxy.refuse(false);
    scene.folder.write("go", "");
    scene.is_completed(&agent, &running, &waiting).await;
}

#[tokio::test]
async fn outputs_of_an_earlier_run_are_not_taken_for_those_of_one_that_was_killed_at_its_beginning() {
    let scene = ProcessScene::new(&CELLS).await;
    let (gateway, agent) = scene.gateway().await;
    let code = WAITS.replace("print('begin', flush=True)", "");
    scene.human.splice_cell("c1", 0, WAITS.len().try_into().unwrap(), &code);
    scene.human.put_back(1, 7, "of an earlier run");
    let run = json!({ "path": scene.path, "ranges": [{ "start": 1 }], "timeout": 0 });
    eventually("the gateway has the code", async || {
        let read = agent.call("read_nb_cells", json!({ "path": scene.path })).await.ok();
        (read["cells"][1]["source"] == code && read["cells"][1]["execution_count"] == 7).then_some(())
    })
    .await;
    let running = id(&agent.call("execute_nb_cells", run).await.ok());
    eventually("it has begun", async || scene.folder.has("runs").then_some(())).await;
    scene
        .human
        .wait_for("it is shown", |human| human.cell(1)["execution_state"] == "running")
        .await;
    gateway.signal("-KILL");
    gateway.ended().await;
    // As if it had been killed before anything was written.
    scene.human.put_back(1, 7, "of an earlier run");
    let (_gateway, agent) = scene.gateway().await;
    scene
        .human
        .wait_for("what was there before is gone", |human| {
            human.cell(1)["execution_state"] == "running" && shown(&human.cell(1)).is_empty()
        })
        .await;
    scene.folder.write("go", "");
    let result = ended(&agent, &running).await;
    assert_eq!(texts(&result["cells"][0]), ["middle\n", "'end'"], "{result}");
    scene.shows_idle("middle\n'end'").await;
    assert!(!shown(&scene.human.cell(1)).contains("earlier"));
    assert_eq!(scene.folder.read("runs"), "once ");
}

#[tokio::test]
async fn what_nobody_kept_for_the_next_gateway_is_lost() {
    let scene = ProcessScene::new(&CELLS).await;
    let (gateway, agent) = scene.gateway().await;
    let (running, waiting) = scene.begin(&agent).await;
    let kernel = scene.kernel().await;
    let _tab = Tab::open(&kernel).await;
    gateway.signal("-KILL");
    gateway.ended().await;
    scene.folder.write("go", "");
    eventually("the kernel is idle", async || {
        let kernel: Value = person()
            .get(&format!("api/kernels/{kernel}"))
            .await
            .json()
            .await
            .unwrap();
        (kernel["execution_state"] == "idle").then_some(())
    })
    .await;
    let (_gateway, agent) = scene.gateway().await;
    let result = ended(&agent, &running).await;
    assert_eq!(result["status"], "lost", "{result}");
    let told = texts(&result["cells"][1]);
    assert_eq!((told[0], told[2]), ("begin\n", "ExecutionLost"), "{result}");
    assert!(told[1].contains("may be lost: the gateway was down"), "{result}");
    scene.shows_idle("ExecutionLost").await;
    assert_eq!(ended(&agent, &waiting).await["status"], "cancelled");
    assert_eq!(scene.folder.read("runs"), "once ");
}

/// Says something while nobody listens, and goes on.
const SAYS: &str = "import os, time\nprint('begin', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nprint('unheard', flush=True)\ntime.sleep(0.2)\nopen('said', 'w').close()\nwhile not os.path.exists('more'): time.sleep(0.02)\nprint('after')";

#[tokio::test]
async fn output_that_was_lost_while_the_gateway_was_down_is_marked_and_the_agent_keeps_its_name() {
    let scene = ProcessScene::new(&CELLS).await;
    let (gateway, agent) = scene.gateway().await;
    scene.human.splice_cell("c1", 0, WAITS.len().try_into().unwrap(), SAYS);
    eventually("the gateway has the code", async || {
        let read = agent.call("read_nb_cells", json!({ "path": scene.path })).await.ok();
        (read["cells"][1]["source"] == SAYS).then_some(())
    })
    .await;
    let run = json!({ "path": scene.path, "ranges": [{ "start": 1 }], "timeout": 0 });
    let running = id(&agent.call("execute_nb_cells", run).await.ok());
    scene
        .human
        .wait_for("it has begun", |human| shown(&human.cell(1)).contains("begin"))
        .await;
    let names = |human: &Human| -> std::collections::BTreeSet<String> {
        let others = human.others();
        let names = others.iter().filter_map(|other| other["user"]["display_name"].as_str());
        // Without what it does.
        names
            .map(|name| name.split(" · ").next().unwrap_or_default().to_owned())
            .collect()
    };
    scene
        .human
        .wait_for("the agent is seen", |human| !names(human).is_empty())
        .await;
    let known_as = names(&scene.human);
    let _tab = Tab::open(&scene.kernel().await).await;
    gateway.signal("-KILL");
    gateway.ended().await;
    scene.folder.write("go", "");
    eventually("it was said", async || scene.folder.has("said").then_some(())).await;
    let (_gateway, agent) = scene.gateway().await;
    scene
        .human
        .wait_for("the cell says so", |human| {
            shown(&human.cell(1)).contains("may be lost: the gateway was down")
        })
        .await;
    scene.folder.write("more", "");
    let result = ended(&agent, &running).await;
    assert_eq!(result["status"], "completed", "{result}");
    assert!(
        result["reason"].as_str().unwrap().contains("the gateway was down"),
        "{result}"
    );
    scene.shows_idle("after").await;
    let seen = shown(&scene.human.cell(1));
    assert!(
        seen.starts_with("begin\n[jupyter-mcp-gateway: output between "),
        "{seen}"
    );
    assert!(seen.ends_with("after\n"), "{seen}");
    assert_eq!(names(&scene.human), known_as, "not by an id");
}

#[tokio::test]
async fn two_gateways_on_one_database_leave_each_other_their_executions() {
    let scene = ProcessScene::new(&CELLS).await;
    let store = tempfile::tempdir().unwrap();
    let config = format!(
        "[store]\nurl = \"sqlite://{}/gateway.db\"\n{}{}",
        store.path().display(),
        lab_server("lab"),
        everything()
    );
    let first = Gateway::configured(&config).await;
    let agent = Agent::connect(&first, Era::Modern).await;
    let (running, waiting) = scene.begin(&agent).await;
    let second = Gateway::configured(&config).await;
    let other = Agent::connect(&second, Era::Modern).await;
    // Time enough to take what it should not.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let seen = other
        .call("get_execution", json!({ "execution_id": running }))
        .await
        .ok();
    assert_eq!(seen["status"], "running");
    let seen = other
        .call("get_execution", json!({ "execution_id": waiting }))
        .await
        .ok();
    assert_eq!(seen["status"], "queued");
    // When the first leaves, the second takes up what it leaves behind.
    first.drain().start();
    first.gone().await;
    scene.folder.write("go", "");
    eventually("it is taken up and ends", async || {
        let seen = other
            .call("get_execution", json!({ "execution_id": running }))
            .await
            .structured;
        (seen["status"] != "running").then_some(())
    })
    .await;
    scene.is_completed(&other, &running, &waiting).await;
}

#[tokio::test]
async fn kernels_of_its_own_that_a_killed_gateway_left_behind_are_shut_down_unless_somebody_uses_them() {
    let scene = ProcessScene::new(&CELLS).await;
    let (gateway, agent) = scene.gateway().await;
    let kernel_of = async |run: Value| {
        let ran = agent.call("run_code", run).await.ok();
        let told = ended(&agent, ran["execution_id"].as_str().unwrap()).await;
        assert_eq!(told["status"], "completed", "{told}");
        scene.recorded(&told["execution_id"], "completed").await;
        told["kernel_id"].as_str().unwrap().to_owned()
    };
    let left = kernel_of(json!({ "code": "1" })).await;
    let used = kernel_of(json!({ "code": "1", "kernel_name": "python3" })).await;
    let notebooks = kernel_of(json!({ "code": "1", "path": scene.path })).await;
    assert_ne!(left, used);
    let _tab = Tab::open(&used).await;
    gateway.signal("-KILL");
    gateway.ended().await;
    let exists = async |kernel: &str| person().get(&format!("api/kernels/{kernel}")).await.status() == 200;
    assert!(exists(&left).await, "nobody could shut it down");
    let (_gateway, _) = scene.gateway().await;
    eventually("it is shut down", async || (!exists(&left).await).then_some(())).await;
    assert!(exists(&used).await, "a person uses it");
    assert!(exists(&notebooks).await, "it is a notebook's");
}

#[tokio::test]
async fn what_code_in_no_notebook_printed_and_asked_outlives_a_killed_gateway() {
    let scene = ProcessScene::new(&CELLS).await;
    let (gateway, agent) = scene.gateway().await;
    let code = "print('before', flush=True)\nname = input('Who? ')\nprint('hello', name)";
    let asked = agent
        .call("run_code", json!({ "code": code, "timeout": 60 }))
        .await
        .ok();
    assert_eq!(asked["status"], "input_required", "{asked}");
    let get = json!({ "execution_id": asked["execution_id"] });
    scene.recorded(&asked["execution_id"], "input_required").await;
    gateway.signal("-KILL");
    gateway.ended().await;
    let (_gateway, agent) = scene.gateway().await;
    let seen = eventually("it asks again", async || {
        let seen = agent.call("get_execution", get.clone()).await.structured;
        (seen["status"] == "input_required").then_some(seen)
    })
    .await;
    assert_eq!(seen["input_request"]["prompt"], "Who? ");
    let answer = json!({ "execution_id": asked["execution_id"], "input": "Ana", "wait": 30 });
    let ended = agent.call("get_execution", answer).await.ok();
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(texts(&ended["cells"][0]), ["before\nhello Ana\n"]);
    assert!(ended["reason"].is_null(), "{ended}");
}
