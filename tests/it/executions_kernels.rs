//! Which kernel a notebook's cells run in, and what happens to them when something happens to it.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, eventually,
    jupyter::JupyterApi,
    notebook::notebook,
    own_lab::OwnLab,
    process::send_signal,
    scene::{Scene, ended, id, person, texts},
};

const ENDLESS: &str = "print('begin', flush=True)\nwhile True: pass";

/// A scene in which the first cell runs for ever and the second waits.
async fn endless() -> (Scene, String, String) {
    let scene = Scene::new(&[ENDLESS, "print('next')"]).await;
    let running = scene.start(0).await;
    scene.shows(0, "begin").await;
    let waiting = scene.start(1).await;
    (scene, running, waiting)
}

#[tokio::test]
async fn a_kernel_that_dies_fails_what_ran_and_the_next_is_at_work() {
    let scene = Scene::new(&[
        "import os, time\nprint('last words', flush=True)\ntime.sleep(0.3)\nos._exit(1)",
        "6 * 7",
    ])
    .await;
    let (first, second) = (scene.start(0).await, scene.start(1).await);
    let died = scene.ended(&first).await;
    assert_eq!(died["status"], "failed");
    assert!(died["reason"].as_str().unwrap().contains("the kernel died"), "{died}");
    assert_eq!(texts(&died["cells"][0]), ["last words\n", "KernelDied"]);
    let waited = scene.ended(&second).await;
    assert_eq!(waited["status"], "cancelled");
    assert!(waited["reason"].as_str().unwrap().contains("not run"), "{waited}");
    assert_eq!(
        scene.idle_output(0).await,
        "last words\nKernelDied",
        "the notebook says so"
    );
    let ran = scene.run(1, 2).await.ok();
    assert_eq!(texts(&ran["execution_results"][0]), ["42"]);
    assert_eq!(ran["execution_results"][0]["execution_count"], 1, "in a new process");
}

#[tokio::test]
async fn what_is_sent_to_a_kernel_that_died_unnoticed_has_a_true_end_and_runs_once_at_most() {
    let scene = Scene::new(&["print(open('ran', 'a').write('x'))"]).await;
    let process = scene.code("import os\nos.getpid()").await;
    send_signal("-KILL", process.parse().unwrap());
    // Jupyter looks after its kernels every few seconds.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let run = json!({ "ranges": [{ "start": 0 }], "timeout": 60 });
    let ran = scene.call("execute_nb_cells", run).await.structured;
    println!("{ran}");
    let runs = match ran["status"].as_str().unwrap() {
        "completed" => "x",
        "lost" => "",
        other => panic!("{other}: {ran}"),
    };
    assert_eq!(scene.code("6 * 7").await, "42", "in the new process");
    let left = std::fs::read_to_string(scene.folder.disk.join("ran")).unwrap_or_default();
    assert_eq!(left, runs, "{ran}");
}

#[tokio::test]
async fn a_kernel_that_a_person_restarts_cancels_what_ran() {
    let (scene, running, waiting) = endless().await;
    let kernel = scene.kernel().await;
    let answer = person()
        .send(Method::POST, &format!("api/kernels/{kernel}/restart"), json!({}))
        .await;
    assert_eq!(answer.status(), 200);
    let (ran, waited) = (scene.ended(&running).await, scene.ended(&waiting).await);
    // Jupyter interrupts a kernel before it restarts it, of which the kernel may still tell, and go on with what waits.
    let is_interrupted = texts(&ran["cells"][0]).contains(&"KeyboardInterrupt");
    for ended in [&ran, &waited] {
        match ended["status"].as_str() {
            Some("cancelled") => assert!(ended["reason"].as_str().unwrap().contains("restarted"), "{ended}"),
            _ => assert!(is_interrupted, "{ended}"),
        }
    }
    let left = scene.idle_output(0).await;
    assert!(left.starts_with("begin\n"), "what came is kept: {left}");
    assert_eq!(texts(&scene.run(1, 2).await.ok()["execution_results"][0]), ["next\n"]);
    assert_eq!(scene.kernel().await, kernel);
}

#[tokio::test]
async fn what_is_sent_while_a_kernel_restarts_runs_or_is_said_not_to() {
    let scene = Scene::new(&["1"]).await;
    scene.run(0, 1).await.ok();
    let restart = format!("api/kernels/{}/restart", scene.kernel().await);
    for pause in [0, 50, 150, 300, 600, 900] {
        let restarting = tokio::spawn({
            let restart = restart.clone();
            async move { person().send(Method::POST, &restart, json!({})).await.status() }
        });
        // At another moment of the restart each time.
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let run = json!({ "ranges": [{ "start": 0 }], "timeout": 20 });
        let ran = scene.call("execute_nb_cells", run).await.structured;
        let status = ran["status"].as_str().unwrap();
        assert!(
            ["completed", "cancelled", "lost"].contains(&status),
            "{pause} ms: {ran}"
        );
        println!("{pause} ms after the restart began: {status}");
        assert_eq!(restarting.await.unwrap(), 200);
    }
    assert_eq!(texts(&scene.run(0, 1).await.ok()["execution_results"][0]), ["1"]);
}

#[tokio::test]
async fn a_kernel_that_a_person_shuts_down_cancels_what_ran_and_another_is_started() {
    let (scene, running, waiting) = endless().await;
    let kernel = scene.kernel().await;
    person()
        .send(Method::DELETE, &format!("api/kernels/{kernel}"), json!(null))
        .await;
    let ended = scene.ended(&running).await;
    // Jupyter interrupts a kernel before it shuts it down, of which the kernel may still tell.
    let is_interrupted = texts(&ended["cells"][0]).contains(&"KeyboardInterrupt");
    match ended["status"].as_str() {
        Some("cancelled" | "lost") => {}
        Some("failed") => assert!(is_interrupted, "{ended}"),
        _ => panic!("{ended}"),
    }
    assert_eq!(scene.ended(&waiting).await["status"], "cancelled");
    scene.idle_output(0).await;
    assert_eq!(texts(&scene.run(1, 2).await.ok()["execution_results"][0]), ["next\n"]);
    assert_ne!(scene.kernel().await, kernel);
}

#[tokio::test]
async fn what_a_person_interrupts_has_failed_as_the_kernel_says() {
    let (scene, running, waiting) = endless().await;
    let interrupt = format!("api/kernels/{}/interrupt", scene.kernel().await);
    assert_eq!(person().send(Method::POST, &interrupt, json!({})).await.status(), 204);
    let ended = scene.ended(&running).await;
    assert_eq!(
        (&ended["status"], texts(&ended["cells"][0])),
        (&json!("failed"), vec!["begin\n", "KeyboardInterrupt"])
    );
    assert_eq!(
        scene.ended(&waiting).await["status"],
        "completed",
        "what waits is run next"
    );
    assert_eq!(scene.idle_output(0).await, "begin\nKeyboardInterrupt");
}

#[tokio::test]
async fn an_agent_interrupts_a_tight_loop() {
    let (scene, running, waiting) = endless().await;
    let interrupted = scene.call("interrupt_nb_kernel", json!({})).await.ok();
    assert_eq!(interrupted["kernel_interrupted"], true);
    assert_eq!(scene.ended(&running).await["status"], "cancelled");
    assert_eq!(scene.ended(&waiting).await["status"], "completed");
}

#[tokio::test]
async fn cancelling_what_waits_behind_a_persons_cell_leaves_that_alone() {
    let scene = Scene::new(&["import time", ENDLESS]).await;
    scene.run(0, 1).await.ok();
    let mut tab = scene.tab().await;
    let theirs = tab.send("time.sleep(1.5); print('undisturbed')").await;
    let unwanted = scene.start(1).await;
    scene.cancel(&unwanted).await;
    assert_eq!(tab.printed(&theirs).await, "undisturbed\n");
    assert_eq!(scene.code("6 * 7").await, "42");
}

/// Waits in the person's kernel until a file is there.
const HOLDS: &str = "import os, time\nprint('held', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nprint('undisturbed')";

#[tokio::test]
async fn what_is_cancelled_behind_a_persons_code_leaves_no_trace() {
    let scene = Scene::new(&["open('ran', 'a').write('x') and None\nprint('ran')"]).await;
    scene.run(0, 1).await.ok();
    std::fs::remove_file(scene.folder.disk.join("ran")).unwrap();
    // A gateway that is connected hears what the kernel is at, one that connects now asks for it.
    let late = Gateway::start().await;
    let late = Agent::executing(&late, Era::Modern).await;
    let mut tab = scene.tab().await;
    let (theirs, behind) = (tab.send(HOLDS).await, tab.send("print('behind')").await);
    tab.prints(&theirs).await;
    for agent in [&scene.agent, &late] {
        let run = json!({ "path": scene.path, "ranges": [{ "start": 0 }], "timeout": 0 });
        let unwanted = id(&agent.call("execute_nb_cells", run).await.structured);
        let cancelled = agent
            .call("cancel_execution", json!({ "execution_id": unwanted }))
            .await
            .ok();
        assert_eq!(cancelled["status"], "cancelled", "at once: {cancelled}");
    }
    let wanted = scene.start(0).await;
    scene.folder.write("go", "");
    assert_eq!(tab.printed(&theirs).await, "held\nundisturbed\n");
    assert_eq!(tab.printed(&behind).await, "behind\n");
    let ended = scene.ended(&wanted).await;
    assert_eq!(
        (&ended["status"], texts(&ended["cells"][0])),
        (&json!("completed"), vec!["ran\n"])
    );
    assert_eq!(scene.folder.read("ran"), "x", "only what was wanted ran");
    assert_eq!(scene.idle_output(0).await, "ran\n");
}

#[tokio::test]
async fn what_waits_behind_a_persons_code_is_interrupted_with_it() {
    let scene = Scene::new(&["open('ran', 'w').close()"]).await;
    scene.code("1").await;
    let mut tab = scene.tab().await;
    let theirs = tab.send(HOLDS).await;
    tab.prints(&theirs).await;
    let waiting = scene.start(0).await;
    scene.call("interrupt_nb_kernel", json!({})).await.ok();
    let ended = scene.ended(&waiting).await;
    assert_eq!(ended["status"], "cancelled", "{ended}");
    tab.printed(&theirs).await;
    assert_eq!(scene.code("6 * 7").await, "42");
    assert!(!scene.folder.has("ran"));
}

#[tokio::test]
async fn what_waits_behind_a_persons_code_does_not_run_in_another_process() {
    let scene = Scene::new(&["open('ran', 'w').close()"]).await;
    scene.code("1").await;
    let mut tab = scene.tab().await;
    let theirs = tab.send(HOLDS).await;
    tab.prints(&theirs).await;
    let waiting = scene.start(0).await;
    let restart = format!("api/kernels/{}/restart", scene.kernel().await);
    assert_eq!(person().send(Method::POST, &restart, json!({})).await.status(), 200);
    let ended = scene.ended(&waiting).await;
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert!(ended["reason"].as_str().unwrap().contains("not run"), "{ended}");
    assert_eq!(scene.code("6 * 7").await, "42");
    assert!(!scene.folder.has("ran"));
}

#[tokio::test]
async fn what_is_cancelled_at_any_moment_ends() {
    let scene = Scene::new(&[ENDLESS]).await;
    assert_eq!(scene.code("1").await, "1");
    for pause in [0, 2, 5, 10, 20, 40] {
        let unwanted = scene.start(0).await;
        // At another moment of the start each time.
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let cancelled = scene
            .agent
            .call("cancel_execution", json!({ "execution_id": unwanted }))
            .await
            .ok();
        assert_eq!(cancelled["status"], "cancelled", "after {pause} ms");
    }
}

#[tokio::test]
async fn reading_starts_no_kernel_and_running_starts_one_where_the_notebook_is() {
    let scene = Scene::new(&["import os; print(os.path.basename(os.getcwd()))"]).await;
    let stat = scene.call("get_nb_stat", json!({})).await.ok();
    assert_eq!(stat["kernel"], Value::Null, "{stat}");
    scene.call("read_nb_cells", json!({})).await.ok();
    scene.call("interrupt_nb_kernel", json!({})).await.ok();
    assert_eq!(scene.kernels().await, []);
    let ran = scene.run(0, 1).await.ok();
    assert_eq!(
        texts(&ran["execution_results"][0]),
        [format!("{}\n", scene.folder.name)]
    );
    scene.kernel().await;
}

#[tokio::test]
async fn the_kernel_that_the_notebook_has_is_used() {
    let scene = Scene::new(&["theirs"]).await;
    let session =
        json!({ "path": scene.path, "name": "run.ipynb", "type": "notebook", "kernel": { "name": "python3" } });
    person().send(Method::POST, "api/sessions", session).await;
    let mut tab = scene.tab().await;
    let request = tab.send("theirs = 'of a person'").await;
    tab.printed(&request).await;
    assert_eq!(
        texts(&scene.run(0, 1).await.ok()["execution_results"][0]),
        ["'of a person'"]
    );
    scene.kernel().await;
}

#[tokio::test]
async fn a_kernel_that_jupyter_does_not_have_is_named() {
    let scene = Scene::new(&["1"]).await;
    let mut cobol: Value = serde_json::from_str(&notebook(&["1"])).unwrap();
    cobol["metadata"]["kernelspec"] = json!({ "name": "cobol", "display_name": "COBOL" });
    let path = scene.folder.write("cobol.ipynb", &cobol.to_string());
    let run = json!({ "path": path, "ranges": [{ "start": 0 }] });
    let refused = scene.agent.call("execute_nb_cells", run).await;
    let told = refused.structured["message"].as_str().unwrap().to_owned();
    assert!(
        refused.is_error && told.contains("cobol") && told.contains("python3"),
        "{told}"
    );
    let assigned = scene
        .agent
        .call("assign_nb_kernel", json!({ "path": path, "kernel_name": "fortran" }))
        .await
        .error();
    assert!(
        assigned.contains("fortran") && assigned.contains("python3"),
        "{assigned}"
    );
    // Without a session yet.
    let assign = json!({ "path": path, "kernel_name": "python3" });
    let assigned = scene.agent.call("assign_nb_kernel", assign.clone()).await.ok();
    assert_eq!(assigned["kernel_assigned"], true);
    let first = scene.kernel().await;
    let run = json!({ "path": path, "ranges": [{ "start": 0 }] });
    assert_eq!(
        texts(&scene.agent.call("execute_nb_cells", run).await.ok()["execution_results"][0]),
        ["1"]
    );
    // With one.
    scene.agent.call("assign_nb_kernel", assign).await.ok();
    assert_ne!(scene.kernel().await, first);
    eventually("the file names it", async || {
        let file: Value = serde_json::from_str(&scene.folder.read("cobol.ipynb")).ok()?;
        (file["metadata"]["kernelspec"]["name"] == "python3").then_some(())
    })
    .await;
}

#[tokio::test]
async fn restarting_begins_anew() {
    let scene = Scene::new(&["x = globals().get('x', 0) + 1\nx", "'second'"]).await;
    scene.run(0, 1).await.ok();
    assert_eq!(texts(&scene.run(0, 2).await.ok()["execution_results"][0]), ["2"]);
    let kernel = scene.kernel().await;
    let restarted = scene
        .call("restart_nb_kernel", json!({ "exec": false, "clear_outputs": true }))
        .await
        .ok();
    assert_eq!(
        (
            &restarted["kernel_restarted"],
            &restarted["outputs_cleared"],
            &restarted["cells_executed"]
        ),
        (&json!(true), &json!(true), &json!(false))
    );
    scene
        .human
        .wait_for("it is cleared", |human| human.cell(0)["outputs"] == json!([]))
        .await;
    assert_eq!(scene.code("'x' in globals()").await, "False");
    let restarted = scene.call("restart_nb_kernel", json!({})).await.ok();
    assert_eq!(texts(&restarted["execution_results"][0]), ["1"]);
    assert_eq!(texts(&restarted["execution_results"][1]), ["'second'"]);
    assert_eq!(scene.kernel().await, kernel, "it keeps its id");
    let restarted = scene
        .call("restart_nb_kernel", json!({ "kernel_name": "python3" }))
        .await
        .ok();
    assert_eq!(texts(&restarted["execution_results"][0]), ["1"]);
    let running = scene
        .call("run_code", json!({ "code": "while True: pass", "timeout": 0 }))
        .await;
    let running = id(&running.structured);
    scene.call("restart_nb_kernel", json!({ "exec": false })).await.ok();
    let ended = scene.ended(&running).await;
    assert_eq!(ended["status"], "cancelled");
    assert_eq!(scene.code("1").await, "1");
}

#[tokio::test]
async fn another_language_runs_as_well() {
    let data = tempfile::tempdir().unwrap();
    let spec = json!({ "argv": ["python", "-m", "bash_kernel", "-f", "{connection_file}"], "display_name": "Bash", "language": "bash" });
    std::fs::create_dir_all(data.path().join("kernels/bash")).unwrap();
    std::fs::write(data.path().join("kernels/bash/kernel.json"), spec.to_string()).unwrap();
    let config = data.path().join("config.py");
    let path = format!("import os; os.environ['JUPYTER_PATH'] = '{}'\n", data.path().display());
    std::fs::write(&config, path).unwrap();
    let jupyter = OwnLab::start(&[&format!("--config={}", config.display())]).await;
    let gateway = Gateway::to(&jupyter.url(), jupyter.token()).await;
    let agent = Agent::executing(&gateway, Era::Modern).await;
    jupyter.write("b.ipynb", &notebook(&["x=ü; echo $x; echo again >> ran", "sleep 60"]));
    agent
        .call("assign_nb_kernel", json!({ "path": "b.ipynb", "kernel_name": "bash" }))
        .await
        .ok();
    let ran = agent
        .call(
            "execute_nb_cells",
            json!({ "path": "b.ipynb", "ranges": [{ "start": 0 }] }),
        )
        .await
        .ok();
    assert_eq!(texts(&ran["execution_results"][0]), ["ü\n"]);
    // It says of what was interrupted that it was dropped, although it ran: it must not run again.
    let run = json!({ "path": "b.ipynb", "code": "echo once >> runs; sleep 60", "timeout": 0 });
    let running = id(&agent.call("run_code", run).await.structured);
    eventually("it runs", async || jupyter.file("runs").exists().then_some(())).await;
    let sessions = JupyterApi::new(&jupyter.url(), jupyter.token());
    let listed: Value = sessions.get("api/sessions").await.json().await.unwrap();
    let interrupt = format!("api/kernels/{}/interrupt", listed[0]["kernel"]["id"].as_str().unwrap());
    sessions.send(Method::POST, &interrupt, json!({})).await;
    let ended = ended(&agent, &running).await;
    assert_ne!(ended["status"], "completed", "{ended}");
    assert_eq!(std::fs::read_to_string(jupyter.file("runs")).unwrap(), "once\n");
}

/// JupyterLab starts a kernel under a name that nobody knows and names the notebook afterwards, so that both may start
/// one at the same time.
#[tokio::test]
async fn of_two_kernels_of_a_notebook_that_of_the_people_counts() {
    let scene = Scene::new(&["x = 1"]).await;
    scene.run(0, 1).await.ok();
    let ours = scene.kernel().await;
    let theirs = scene.start_kernel_beside().await;
    let stat = scene.call("get_nb_stat", json!({})).await.ok();
    assert_eq!(stat["kernel"]["id"], theirs.as_str());
    assert_ne!(stat["kernel"]["id"], ours.as_str());
}
