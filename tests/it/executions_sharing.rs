//! One kernel and many who use it; many kernels and one gateway.

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use test_postgres::TestDatabase;

use crate::support::{
    Agent, Era, Gateway, eventually,
    gateway::{everything, lab_server},
    lab,
    notebook::notebook,
    scene::{Scene, ended, id, person, texts},
};

#[tokio::test]
async fn what_a_person_runs_at_the_same_time_stays_theirs() {
    let cells: Vec<String> = (0..6)
        .map(|n| format!("import time\ntime.sleep(0.05)\nprint('ours', {n})"))
        .collect();
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    let scene = Scene::new(&cells).await;
    scene.run(0, 1).await.ok();
    let mut tab = scene.tab().await;
    let theirs = async {
        for n in 0..12 {
            let request = tab.send(&format!("time.sleep(0.02)\nprint('theirs', {n})")).await;
            assert_eq!(tab.printed(&request).await, format!("theirs {n}\n"));
        }
    };
    let (ran, ()) = tokio::join!(scene.run(0, 6), theirs);
    let ran = ran.ok();
    for n in 0..6 {
        assert_eq!(texts(&ran["execution_results"][n]), [format!("ours {n}\n")]);
        assert_eq!(
            scene.idle_output(u32::try_from(n).unwrap()).await,
            format!("ours {n}\n")
        );
    }
}

#[tokio::test]
async fn a_failing_request_of_a_person_does_not_take_an_agents_with_it() {
    let scene = Scene::new(&["n = 0", "n += 1\nn"]).await;
    scene.run(0, 1).await.ok();
    let mut tab = scene.tab().await;
    // Jupyter drops what waits behind a request that fails.
    let failing = tab.send("import time; time.sleep(1); 1/0").await;
    let ran = scene.run(1, 2).await.ok();
    assert_eq!(texts(&ran["execution_results"][0]), ["1"], "it ran, and once");
    tab.printed(&failing).await;
    // And the other way round: the failure of an agent's cell is its own.
    let run = json!({ "code": "import time; time.sleep(0.5); 1/0", "timeout": 0 });
    let failing = id(&scene.call("run_code", run).await.structured);
    eventually("it runs", async || {
        let seen = scene
            .agent
            .call("get_execution", json!({ "execution_id": failing }))
            .await;
        seen.structured["kernel_id"].is_string().then_some(())
    })
    .await;
    let theirs = tab.send("print(n)").await;
    assert_eq!(tab.printed(&theirs).await, "1\n");
    assert_eq!(scene.ended(&failing).await["status"], "failed");
}

#[tokio::test]
async fn eight_agents_on_one_notebook_run_one_after_the_other() {
    let cell = |n: usize| format!("log.append({n}); time.sleep(0.05); log.append({n}); {n}");
    let mut cells = vec!["import time; log = []".to_owned()];
    cells.extend((1..=8).map(cell));
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    let scene = Scene::new(&cells).await;
    scene.run(0, 1).await.ok();
    let agents = join_all((1..=8).map(|_| Agent::executing(&scene.gateway, Era::Modern))).await;
    let mut ids = Vec::new();
    for (agent, cell) in agents.iter().zip(1..) {
        let run = json!({ "path": scene.path, "ranges": [{ "start": cell }], "timeout": 0 });
        ids.push(id(&agent.call("execute_nb_cells", run).await.ok()));
    }
    let all = join_all(agents.iter().zip(&ids).map(|(agent, id)| ended(agent, id))).await;
    for (n, result) in (1..).zip(&all) {
        assert_eq!(texts(&result["cells"][0]), [n.to_string()], "{result}");
    }
    let expected: Vec<usize> = (1..=8).flat_map(|n| [n, n]).collect();
    assert_eq!(scene.code("log").await, format!("{expected:?}"));
}

/// As many as a small machine can start in the time of a test.
const NOTEBOOKS: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_on_notebooks_of_their_own_do_not_meet() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let work = async |n: usize| {
        let path = folder.write(
            &format!("n{n}.ipynb"),
            &notebook(&[&format!("x = {n}"), "print(x * 1000)", "x"]),
        );
        let agent = Agent::executing(&gateway, Era::Modern).await;
        let run = json!({ "path": path, "ranges": [{ "start": 0, "end": 3 }] });
        let ran = agent.call("execute_nb_cells", run).await.ok();
        assert_eq!(texts(&ran["execution_results"][1]), [format!("{}\n", n * 1000)]);
        assert_eq!(texts(&ran["execution_results"][2]), [n.to_string()]);
        assert_eq!(ran["execution_results"][2]["execution_count"], 3, "a kernel of its own");
    };
    join_all((0..NOTEBOOKS).map(work)).await;
    let sessions: serde_json::Value = person().get("api/sessions").await.json().await.unwrap();
    for session in sessions.as_array().unwrap() {
        if session["path"].as_str().unwrap().starts_with(&folder.name) {
            let session = format!("api/sessions/{}", session["id"].as_str().unwrap());
            person().send(Method::DELETE, &session, json!(null)).await;
        }
    }
}

#[tokio::test]
async fn what_another_gateway_runs_is_waited_for_and_not_called_cancelled() {
    let database = TestDatabase::create();
    let url = database.url();
    let config = format!("[store]\nurl = \"{url}\"\n{}{}", lab_server("lab"), everything());
    let (here, there) = (Gateway::configured(&config).await, Gateway::configured(&config).await);
    let runner = Agent::connect(&here, Era::Modern).await;
    let other = Agent::connect(&there, Era::Modern).await;
    let folder = lab().folder();
    let waits = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'):\n    time.sleep(0.05)\nprint('done')";
    let path = folder.write("long.ipynb", &notebook(&[waits]));
    let run = json!({ "path": path, "timeout": 0 });
    let begun = runner.call("execute_nb_cells", run).await.ok();
    let execution = &begun["execution_id"];
    eventually("it has begun", async || folder.has("begun").then_some(())).await;

    let cancel = json!({ "execution_id": execution });
    let refused = other.call("cancel_execution", cancel).await.error();
    assert!(refused.contains("run by another gateway"), "{refused}");
    let wait = other.call("get_execution", json!({ "execution_id": execution, "wait": 60 }));
    let (ended, _) = tokio::join!(wait, async { folder.write("go", "") });
    let ended = ended.ok();
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(ended["cells"].to_string().contains("done"), "{ended}");
}
