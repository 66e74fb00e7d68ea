//! Lines that are cut and servers that are gone while code runs: every execution ends in a true state.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, eventually, lab,
    notebook::notebook,
    own_lab::OwnLab,
    proxy::Proxy,
    scene::{Scene, ended, id, person, shown, texts},
    tab::Tab,
};

const WAITS: &str = "import os, time\nprint('begin', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nprint('middle', flush=True)\nopen('done', 'w').close()\n'end'";

/// A cell that has begun, through a line that can be cut.
async fn begun() -> (Proxy, Scene, String) {
    let proxy = Proxy::to(lab().address()).await;
    let scene = Scene::notebook(&[WAITS, "print('next')"])
        .through(&proxy.url())
        .set()
        .await;
    let id = scene.start(0).await;
    scene.shows(0, "begin").await;
    (proxy, scene, id)
}

/// The code runs to its end while nobody of the gateway can hear it.
async fn ends_unheard(proxy: &Proxy, scene: &Scene) {
    let kernel = cut(proxy, scene).await;
    scene.folder.write("go", "");
    eventually("the code has ended", async || scene.folder.has("done").then_some(())).await;
    eventually("the kernel is idle", async || {
        (state_of(&kernel).await["execution_state"] == "idle").then_some(())
    })
    .await;
    proxy.refuse(false);
}

/// Cuts all lines of the gateway, and returns when Jupyter has noticed: what is said before goes nowhere.
async fn cut(proxy: &Proxy, scene: &Scene) -> String {
    let kernel = scene.kernel().await;
    let connections = state_of(&kernel).await["connections"].as_u64().unwrap();
    proxy.refuse(true);
    proxy.cut();
    has_connections(&kernel, connections - 1).await;
    kernel
}

async fn has_connections(kernel: &str, count: u64) {
    eventually("Jupyter notices", async || {
        (state_of(kernel).await["connections"] == count).then_some(())
    })
    .await;
}

async fn state_of(kernel: &str) -> Value {
    let kernel = person().get(&format!("api/kernels/{kernel}")).await;
    kernel.json().await.unwrap()
}

#[tokio::test]
async fn after_a_cut_everything_is_there() {
    let (proxy, scene, id) = begun().await;
    ends_unheard(&proxy, &scene).await;
    let ended = scene.ended(&id).await;
    assert_eq!(
        (&ended["status"], texts(&ended["cells"][0])),
        (&json!("completed"), vec!["begin\nmiddle\n", "'end'"])
    );
    assert!(ended["reason"].is_null(), "nothing is missing: {ended}");
    assert_eq!(scene.idle_output(0).await, "begin\nmiddle\n'end'");
    assert_eq!(texts(&scene.run(1, 2).await.ok()["execution_results"][0]), ["next\n"]);
}

#[tokio::test]
async fn what_jupyter_did_not_keep_is_lost_and_has_not_failed() {
    let (proxy, scene, id) = begun().await;
    // Jupyter keeps what a kernel says only if nobody hears it.
    let _tab: Tab = scene.tab().await;
    ends_unheard(&proxy, &scene).await;
    let ended = scene.ended(&id).await;
    assert_eq!(
        (&ended["status"], texts(&ended["cells"][0])),
        (&json!("lost"), vec!["begin\n", "ExecutionLost"])
    );
    assert!(
        ended["reason"]
            .as_str()
            .unwrap()
            .contains("connection to the kernel was lost"),
        "{ended}"
    );
    assert_eq!(scene.idle_output(0).await, "begin\nExecutionLost");
    assert_eq!(texts(&scene.run(1, 2).await.ok()["execution_results"][0]), ["next\n"]);
}

#[tokio::test]
async fn a_cut_in_the_middle_loses_nothing_of_what_comes_after() {
    let (proxy, scene, id) = begun().await;
    let kernel = cut(&proxy, &scene).await;
    proxy.refuse(false);
    has_connections(&kernel, 1).await;
    scene.folder.write("go", "");
    let ended = scene.ended(&id).await;
    assert_eq!(
        (&ended["status"], texts(&ended["cells"][0])),
        (&json!("completed"), vec!["begin\nmiddle\n", "'end'"])
    );
    assert_eq!(
        scene.idle_output(0).await,
        "begin\nmiddle\n'end'",
        "the room was cut too, and has it all"
    );
    scene.saved("run.ipynb", 0, "begin\nmiddle\n'end'").await;
}

#[tokio::test]
async fn output_that_somebody_else_may_have_had_instead_is_said_to_be_missing() {
    let (proxy, scene, id) = begun().await;
    let _tab: Tab = scene.tab().await;
    let kernel = cut(&proxy, &scene).await;
    proxy.refuse(false);
    has_connections(&kernel, 2).await;
    scene.shows_running(0).await;
    // Time to be told who hears the kernel, before it goes on.
    tokio::time::sleep(Duration::from_millis(500)).await;
    scene.folder.write("go", "");
    let ended = scene.ended(&id).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(ended["reason"].as_str().unwrap().contains("may be missing"), "{ended}");
}

#[tokio::test]
async fn a_jupyter_that_is_killed_loses_what_ran_and_the_notebook_says_so() {
    let mut jupyter = OwnLab::start(&[]).await;
    let gateway = Gateway::to(&jupyter.url(), jupyter.token()).await;
    let agent = Agent::executing(&gateway, Era::Modern).await;
    jupyter.write(
        "k.ipynb",
        &notebook(&["print('begin', flush=True)\nwhile True: pass", "print('next')"]),
    );
    let run =
        |cell: usize, timeout: u32| json!({ "path": "k.ipynb", "ranges": [{ "start": cell }], "timeout": timeout });
    let running = id(&agent.call("execute_nb_cells", run(0, 0)).await.ok());
    let person = Human::join_at(&jupyter.url(), jupyter.token(), "k.ipynb").await;
    person
        .wait_for("it runs", |human| shown(&human.cell(0)).contains("begin"))
        .await;
    jupyter.kill();
    drop(person);
    jupyter.restart().await;
    let result = ended(&agent, &running).await;
    assert_eq!(result["status"], "lost", "{result}");
    assert_eq!(texts(&result["cells"][0]), ["begin\n", "ExecutionLost"]);
    let person = Human::join_at(&jupyter.url(), jupyter.token(), "k.ipynb").await;
    person
        .wait_for("the notebook says so", |human| {
            let cell = human.cell(0);
            cell["execution_state"] == "idle" && shown(&cell) == "begin\nExecutionLost"
        })
        .await;
    let ran = agent.call("execute_nb_cells", run(1, 60)).await.ok();
    assert_eq!(texts(&ran["execution_results"][0]), ["next\n"]);
}
