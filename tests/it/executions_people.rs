//! People's view of an agent's cells that wait and ask, and what agents learn of people's actions on their kernels.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, eventually,
    gateway::lab_server,
    lab,
    scene::{Scene, ended, id, person, texts},
};

/// Waits in the kernel until a file is there.
const HOLDS: &str = "import os, time\nprint('held', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)";

fn looks(scene: &Scene, cell: u32) -> (Value, Value) {
    let cell = scene.human.cell(cell);
    (cell["execution_state"].clone(), cell["execution_count"].clone())
}

async fn waits_to_look(scene: &Scene, cell: u32, state: &str, count: Value) {
    let what = format!("cell {cell} is {state} with count {count}");
    scene
        .human
        .wait_for(&what, |_| {
            let (shown, number) = looks(scene, cell);
            let idle = state == "idle" && (shown.is_null() || shown == "idle");
            (idle || shown == state) && number.as_f64() == count.as_f64()
        })
        .await;
}

/// A scene in which the first cell holds the kernel, and two wait behind it in the same batch.
async fn held(cells: &[&str]) -> (Scene, String) {
    let scene = Scene::new(&[&[HOLDS], cells].concat()).await;
    let run = json!({ "ranges": [{ "start": 0, "end": cells.len() + 1 }], "timeout": 0 });
    let running = id(&scene.call("execute_nb_cells", run).await.structured);
    scene.shows(0, "held").await;
    (scene, running)
}

#[tokio::test]
async fn cells_that_wait_look_queued_and_those_that_ran_before_keep_their_outputs_until_they_run() {
    let scene = Scene::new(&[HOLDS, "print('first')", "2"]).await;
    scene.run(1, 2).await.ok();
    let run = json!({ "ranges": [{ "start": 0, "end": 3 }], "timeout": 0 });
    let running = id(&scene.call("execute_nb_cells", run).await.structured);
    for cell in [1, 2] {
        scene.shows_running(cell).await;
    }
    assert_eq!(crate::support::scene::shown(&scene.human.cell(1)), "first\n");
    scene
        .human
        .wait_for("whose they are", |human| human.shown_as("ana") == "ana · running")
        .await;
    scene.folder.write("go", "");
    assert_eq!(scene.ended(&running).await["status"], "completed");
    waits_to_look(&scene, 1, "idle", json!(3)).await;
    waits_to_look(&scene, 2, "idle", json!(4)).await;
    scene
        .human
        .wait_for("it is over", |human| human.shown_as("ana") == "ana")
        .await;
}

#[tokio::test]
async fn cells_that_wait_behind_a_persons_code_look_queued_and_as_before_when_they_are_cancelled() {
    let scene = Scene::new(&["print('ran')", "'never ran'"]).await;
    scene.run(0, 1).await.ok();
    let mut tab = scene.tab().await;
    let theirs = tab.send(HOLDS).await;
    tab.prints(&theirs).await;
    let run = json!({ "ranges": [{ "start": 0, "end": 2 }], "timeout": 0 });
    let waiting = id(&scene.call("execute_nb_cells", run).await.structured);
    for cell in [0, 1] {
        scene.shows_running(cell).await;
    }
    scene
        .human
        .wait_for("whose they are", |human| human.shown_as("ana") == "ana · queued")
        .await;
    scene.cancel(&waiting).await;
    waits_to_look(&scene, 0, "idle", json!(1)).await;
    waits_to_look(&scene, 1, "idle", Value::Null).await;
    assert_eq!(crate::support::scene::shown(&scene.human.cell(0)), "ran\n");
    scene.folder.write("go", "");
    tab.printed(&theirs).await;
}

#[tokio::test]
async fn cells_behind_one_that_fails_look_as_before() {
    let (scene, running) = held(&["1/0", "'not run'"]).await;
    scene.shows_running(2).await;
    scene.folder.write("go", "");
    let ended = scene.ended(&running).await;
    assert_eq!(
        (&ended["status"], &ended["cells"][2]["status"]),
        (&json!("failed"), &json!("cancelled"))
    );
    waits_to_look(&scene, 1, "idle", json!(2)).await;
    waits_to_look(&scene, 2, "idle", Value::Null).await;
}

#[tokio::test]
async fn cells_whose_kernel_died_look_as_before() {
    let scene = Scene::new(&["import os, time\ntime.sleep(2)\nos._exit(1)", "'not run'"]).await;
    scene.code("1").await;
    let run = json!({ "ranges": [{ "start": 0, "end": 2 }], "timeout": 0 });
    let running = id(&scene.call("execute_nb_cells", run).await.structured);
    scene.shows_running(1).await;
    assert_eq!(scene.ended(&running).await["status"], "failed");
    waits_to_look(&scene, 1, "idle", Value::Null).await;
}

#[tokio::test]
async fn a_gateway_that_leaves_shows_what_it_did_not_begin_as_before() {
    let (scene, _running) = held(&["'not run'"]).await;
    scene.shows_running(1).await;
    let Scene {
        gateway,
        human,
        agent,
        folder,
        ..
    } = scene;
    drop(agent);
    gateway.drain().start();
    gateway.gone().await;
    human
        .wait_for("it is not queued", |human| human.cell(1)["execution_state"] == "idle")
        .await;
    folder.write("go", "");
}

#[tokio::test]
async fn people_see_what_code_asks_and_what_was_answered() {
    let scene = Scene::new(&["name = input('Who? ')\nprint('Hello', name)"]).await;
    let run = json!({ "ranges": [{ "start": 0 }] });
    let asked = scene.call("execute_nb_cells", run).await.ok();
    assert_eq!(asked["status"], "input_required");
    scene.shows(0, "Who? ").await;
    scene
        .human
        .wait_for("it waits", |human| human.shown_as("ana") == "ana · waiting for input")
        .await;
    let answer = json!({ "execution_id": asked["execution_id"], "input": "Ana", "wait": 30 });
    let ended = scene.agent.call("get_execution", answer).await.ok();
    assert_eq!(texts(&ended["cells"][0]), ["Hello Ana\n"], "{ended}");
    assert_eq!(scene.idle_output(0).await, "Who? Ana\nHello Ana\n");
    scene.saved("run.ipynb", 0, "Who? Ana\nHello Ana\n").await;
}

#[tokio::test]
async fn a_password_is_asked_for_in_the_cell_and_never_shown_there() {
    let scene = Scene::new(&["import getpass\nprint(len(getpass.getpass('Key: ')))"]).await;
    let asked = scene
        .call("execute_nb_cells", json!({ "ranges": [{ "start": 0 }] }))
        .await
        .ok();
    scene.shows(0, "Key: ").await;
    let answer = json!({ "execution_id": asked["execution_id"], "input": "s3cret", "wait": 30 });
    scene.agent.call("get_execution", answer).await.ok();
    assert_eq!(scene.idle_output(0).await, "6\n");
}

#[tokio::test]
async fn who_interrupts_or_restarts_is_told_by_name() {
    let config = format!(
        "{}[[tenants]]\nname = \"all\"\n{}{}",
        lab_server("lab"),
        token("ana", crate::support::TOKEN),
        token("bo", "test-token-of-bo"),
    );
    let scene = Scene::notebook(&["print('begin', flush=True)\nwhile True: pass"])
        .configured(&config)
        .set()
        .await;
    let bo = Agent::with_token(&scene.gateway, "test-token-of-bo", Era::Modern).await;
    let path = json!({ "path": scene.path });
    let reason = async |id: &str| scene.ended(id).await["reason"].as_str().unwrap_or_default().to_owned();

    let running = begun(&scene).await;
    let interrupt = format!("api/kernels/{}/interrupt", scene.kernel().await);
    person().send(Method::POST, &interrupt, json!({})).await;
    assert_eq!(
        reason(&running).await,
        "a person interrupted the kernel (KeyboardInterrupt)"
    );

    let running = begun(&scene).await;
    bo.call("interrupt_nb_kernel", path.clone()).await.ok();
    assert_eq!(reason(&running).await, "agent `bo` interrupted the kernel");

    let running = begun(&scene).await;
    scene.agent.call("interrupt_nb_kernel", path.clone()).await.ok();
    assert_eq!(reason(&running).await, "you interrupted the kernel");

    let running = begun(&scene).await;
    let restart = format!("api/kernels/{}/restart", scene.kernel().await);
    person().send(Method::POST, &restart, json!({})).await;
    // Jupyter interrupts a kernel before it restarts it, and sometimes that is what the run ends by.
    let restarted = [
        "a person restarted the kernel",
        "a person interrupted the kernel (KeyboardInterrupt)",
    ];
    let told = reason(&running).await;
    assert!(restarted.contains(&told.as_str()), "{told}");

    let running = begun(&scene).await;
    let restart = json!({ "path": scene.path, "exec": false });
    bo.call("restart_nb_kernel", restart).await.ok();
    assert_eq!(reason(&running).await, "agent `bo` restarted the kernel");
}

#[tokio::test]
async fn what_code_raises_itself_is_nobodys_interrupt() {
    let scene = Scene::new(&["raise KeyboardInterrupt"]).await;
    let ran = scene.run(0, 1).await.structured;
    assert_eq!(ran["status"], "failed");
    let reason = ran["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("KeyboardInterrupt") && !reason.contains("person"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_restart_between_two_runs_is_told_with_the_next() {
    let scene = Scene::new(&["x = 1", "x"]).await;
    scene.run(0, 1).await.ok();
    let restart = format!("api/kernels/{}/restart", scene.kernel().await);
    assert_eq!(person().send(Method::POST, &restart, json!({})).await.status(), 200);
    let failed = scene.run(1, 2).await.structured;
    assert_eq!(failed["status"], "failed", "{failed}");
    let notice = failed["notices"][0].as_str().unwrap_or_default();
    assert!(notice.starts_with("A person restarted the kernel at "), "{failed}");
    assert!(notice.contains("variables"), "{notice}");
    let again = scene.run(1, 2).await.structured;
    assert!(again["notices"].is_null(), "once: {again}");
}

#[tokio::test]
async fn a_restart_that_the_gateway_did_not_hear_is_told_with_the_next_run() {
    let config = format!(
        "[sessions]\nidle_timeout = \"300ms\"\n{}[[tenants]]\nname = \"all\"\n{}{}",
        lab_server("lab"),
        token("ana", crate::support::TOKEN),
        token("bo", "test-token-of-bo"),
    );
    let scene = Scene::notebook(&["x = 1", "x"]).configured(&config).set().await;
    let bo = Agent::with_token(&scene.gateway, "test-token-of-bo", Era::Modern).await;
    let run = json!({ "path": scene.path, "ranges": [{ "start": 1 }] });
    let alone = async || {
        let kernel = format!("api/kernels/{}", scene.kernel().await);
        eventually("the gateway is not connected to the kernel", async || {
            let kernel: Value = person().get(&kernel).await.json().await.ok()?;
            (kernel["connections"] == 0).then_some(())
        })
        .await;
    };
    scene.run(0, 1).await.ok();
    alone().await;
    assert!(
        scene.run(1, 2).await.ok()["notices"].is_null(),
        "it is the same process"
    );
    bo.call("execute_nb_cells", run.clone()).await.ok();
    alone().await;

    let restart = format!("api/kernels/{}/restart", scene.kernel().await);
    assert_eq!(person().send(Method::POST, &restart, json!({})).await.status(), 200);
    let failed = scene.run(1, 2).await.structured;
    assert_eq!(failed["status"], "failed", "there is no x: {failed}");
    let notice = failed["notices"][0].as_str().unwrap_or_default();
    assert!(
        notice.contains("was restarted") && notice.contains("variables"),
        "{failed}"
    );
    let again = scene.run(1, 2).await.structured;
    assert!(again["notices"].is_null(), "once: {again}");
    alone().await;

    let restart = json!({ "path": scene.path, "exec": false });
    scene.agent.call("restart_nb_kernel", restart).await.ok();
    let own = scene.run(0, 1).await.ok();
    assert!(own["notices"].is_null(), "who did it knows: {own}");
    let told = bo.call("execute_nb_cells", run).await.ok();
    let notice = told["notices"][0].as_str().unwrap_or_default();
    assert!(notice.starts_with("Agent `ana` restarted the kernel at "), "{told}");
}

/// JupyterLab has no session after a person shut the kernel down, and starts one when they run something: under a name that
/// nobody knows, and for the notebook a moment later.
#[tokio::test]
async fn a_kernel_that_a_person_starts_beside_the_agents_is_followed_and_told() {
    let scene = Scene::new(&["x = 1", "x"]).await;
    scene.run(0, 1).await.ok();
    let first = scene.kernel().await;
    person()
        .send(Method::DELETE, &format!("api/kernels/{first}"), json!(null))
        .await;
    scene.run(0, 1).await;
    let ours = eventually("the agent has a kernel again", async || {
        let kernels = scene.kernels().await;
        kernels
            .into_iter()
            .map(|(_, kernel)| kernel)
            .find(|kernel| *kernel != first)
    })
    .await;
    let theirs = scene.start_kernel_beside().await;
    let ran = scene.run(1, 2).await.structured;
    assert_eq!(ran["status"], "failed", "there is no x: {ran}");
    let notice = ran["notices"][0].as_str().unwrap_or_default();
    assert!(
        notice.contains("another kernel") && notice.contains("variables"),
        "{ran}"
    );
    assert_eq!(
        scene.kernel().await,
        theirs,
        "one kernel is left, which is the person's"
    );
    let gone = person().get(&format!("api/kernels/{ours}")).await.status();
    assert_eq!(gone, 404, "the one that the gateway started has ended");
    scene.run(0, 1).await.ok();
    let mut tab = scene.tab().await;
    let request = tab.send("print(x)").await;
    assert_eq!(tab.printed(&request).await, "1\n", "they share it");
}

#[tokio::test]
async fn another_kernel_that_a_person_chooses_is_told() {
    let scene = Scene::new(&["x = 1", "x"]).await;
    scene.run(0, 1).await.ok();
    let sessions: Value = person().get("api/sessions").await.json().await.unwrap();
    let session = sessions
        .as_array()
        .unwrap()
        .iter()
        .find(|session| session["path"] == scene.path.as_str());
    let session = format!("api/sessions/{}", session.unwrap()["id"].as_str().unwrap());
    let changed = json!({ "kernel": { "name": "python3" } });
    assert_eq!(person().send(Method::PATCH, &session, changed).await.status(), 200);
    let ran = scene.run(1, 2).await.structured;
    let notice = ran["notices"][0].as_str().unwrap_or_default();
    assert!(notice.contains("a person") || notice.contains("A person"), "{ran}");
    assert!(notice.contains("variables"), "{ran}");
}

#[tokio::test]
async fn a_private_kernel_has_a_session_named_after_the_agent() {
    let gateway = Gateway::start().await;
    let agent = Agent::executing(&gateway, Era::Modern).await;
    let ran = agent
        .call("run_code", json!({ "code": "import os\nprint(os.getcwd())" }))
        .await
        .ok();
    let root = lab().root().canonicalize().unwrap();
    assert_eq!(texts(&ran), [format!("{}\n", root.display())]);
    let kernel = ended(&agent, &id(&ran)).await["kernel_id"].clone();
    let sessions: Value = person().get("api/sessions").await.json().await.unwrap();
    let session = sessions
        .as_array()
        .unwrap()
        .iter()
        .find(|session| session["kernel"]["id"] == kernel);
    assert_eq!(session.unwrap()["name"], "ana");
}

#[tokio::test]
async fn a_cell_that_an_agent_ran_is_trusted_as_one_that_a_person_ran() {
    let scene = Scene::new(&["from IPython.display import HTML\nHTML('<b>x</b>')", "1"]).await;
    assert_eq!(
        scene.human.cell(0)["metadata"]["trusted"],
        false,
        "nobody signed the notebook"
    );
    scene.run(0, 1).await.ok();
    scene
        .human
        .wait_for("it is trusted", |human| human.cell(0)["metadata"]["trusted"] == true)
        .await;
    assert_eq!(scene.human.cell(1)["metadata"]["trusted"], false, "and no other");
}

fn token(name: &str, token: &str) -> String {
    format!(
        "[[auth.tokens]]\nname = \"{name}\"\ntenant = \"all\"\ntoken = \"{token}\"\npermissions = [\"read\", \"write\", \"execute\"]\n"
    )
}

/// Runs the first cell until it printed something.
async fn begun(scene: &Scene) -> String {
    scene.human.clear_outputs(0);
    let running = scene.start(0).await;
    scene.shows(0, "begin").await;
    running
}
