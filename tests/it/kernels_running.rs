//! `list_kernels` and `shutdown_kernel`.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, eventually,
    gateway::{everything, lab_server},
    scene::{Scene, id, person, texts},
};

const OTHERS: &str = "[[auth.tokens]]\nname = \"ben\"\ntenant = \"all\"\ntoken = \"test-token-of-ben\"\npermissions = [\"read\", \"write\", \"execute\"]\n\
    [[auth.tokens]]\nname = \"eve\"\ntenant = \"all\"\ntoken = \"test-token-of-eve\"\npermissions = [\"read\", \"write\", \"execute\"]\npaths = [\"elsewhere/**\"]\n\
    [[auth.tokens]]\nname = \"ron\"\ntenant = \"all\"\ntoken = \"test-token-of-ron\"\npermissions = [\"read\"]\n";

async fn scene(cells: &[&str]) -> Scene {
    let config = format!("{}{}{OTHERS}", lab_server("lab"), everything());
    Scene::notebook(cells).configured(&config).set().await
}

async fn other(scene: &Scene, name: &str) -> Agent {
    Agent::with_token(&scene.gateway, &format!("test-token-of-{name}"), Era::Modern).await
}

async fn kernels(agent: &Agent) -> Vec<Value> {
    let listed = agent.call("list_kernels", json!({})).await.ok();
    listed["kernels"].as_array().expect("kernels").clone()
}

async fn kernel(agent: &Agent, id: &str) -> Option<Value> {
    let kernels = kernels(agent).await;
    kernels.into_iter().find(|kernel| kernel["kernel_id"] == id)
}

#[tokio::test]
async fn kernels_are_listed_with_their_notebook_and_who_started_them() {
    let scene = scene(&["1"]).await;
    scene.run(0, 1).await.ok();
    let notebooks = scene.kernel().await;
    let seen = kernel(&scene.agent, &notebooks).await.expect("it is listed");
    assert_eq!(
        (&seen["path"], &seen["name"], &seen["started_by"]),
        (&json!(scene.path), &json!("python3"), &json!("ana"))
    );
    assert!(seen["state"].is_string() && seen["last_activity"].is_string(), "{seen}");
    let beside = scene.start_kernel_beside().await;
    let persons = kernel(&scene.agent, &beside).await.expect("it is listed");
    assert_eq!(
        (&persons["started_by"], &persons["path"]),
        (&Value::Null, &json!(scene.path))
    );
    let text = scene.agent.call("list_kernels", json!({})).await;
    let line = format!("{notebooks} python3 ");
    assert!(
        text.text().contains(&line) && text.text().contains("started by agent ana"),
        "{text:?}"
    );
    person()
        .send(Method::DELETE, &format!("api/kernels/{beside}"), Value::Null)
        .await;
}

#[tokio::test]
async fn nobody_sees_or_ends_a_kernel_of_what_they_may_not_read() {
    let scene = scene(&["1"]).await;
    scene.run(0, 1).await.ok();
    let notebooks = scene.kernel().await;
    let private = scene.agent.call("run_code", json!({ "code": "1" })).await.ok();
    let private = scene.ended(&id(&private)).await["kernel_id"]
        .as_str()
        .expect("a kernel")
        .to_owned();
    let own = kernel(&scene.agent, &private).await.expect("it is listed");
    assert_eq!((&own["path"], &own["started_by"]), (&Value::Null, &json!("ana")));
    let (ben, eve, ron) = (
        other(&scene, "ben").await,
        other(&scene, "eve").await,
        other(&scene, "ron").await,
    );
    assert!(kernel(&ben, &notebooks).await.is_some() && kernel(&ron, &notebooks).await.is_some());
    assert_eq!(kernel(&ben, &private).await, None, "a kernel of somebody's own");
    assert_eq!(kernel(&eve, &notebooks).await, None);
    for (agent, id) in [
        (&ben, &private),
        (&eve, &notebooks),
        (&eve, &private),
        (&ben, &"none".to_owned()),
    ] {
        let error = agent.call("shutdown_kernel", json!({ "kernel_id": id })).await.error();
        assert!(error.contains("no kernel") && error.contains("list_kernels"), "{error}");
    }
    let error = eve.call("shutdown_kernel", json!({ "path": scene.path })).await.error();
    assert!(error.contains("path rules") || error.contains("not allowed"), "{error}");
    let error = ron.call("shutdown_kernel", json!({ "path": scene.path })).await.error();
    assert!(error.contains("execute"), "{error}");
    for arguments in [json!({}), json!({ "path": scene.path, "kernel_id": notebooks })] {
        let error = scene.agent.call("shutdown_kernel", arguments).await.error();
        assert!(error.contains("either `path` or `kernel_id`"), "{error}");
    }
    let missing = json!({ "path": scene.folder.path("none.ipynb") });
    assert!(
        scene
            .agent
            .call("shutdown_kernel", missing)
            .await
            .error()
            .contains("does not exist")
    );
    assert_eq!(scene.kernel().await, notebooks, "nothing ended");
}

#[tokio::test]
async fn who_runs_something_is_told_who_shut_the_kernel_down() {
    let scene = scene(&[
        "x = 1",
        "import time\nprint('runs', flush=True)\ntime.sleep(600)",
        "3",
        "'x' in globals()",
    ])
    .await;
    scene.run(0, 1).await.ok();
    let notebooks = scene.kernel().await;
    let (running, waiting) = (scene.start(1).await, scene.start(2).await);
    scene.shows(1, "runs").await;
    let ben = other(&scene, "ben").await;
    let ended = ben.call("shutdown_kernel", json!({ "path": scene.path })).await.ok();
    assert_eq!(
        (&ended["kernel_shut_down"], &ended["kernel_id"]),
        (&json!(true), &json!(notebooks))
    );
    for id in [running, waiting] {
        let seen = scene.ended(&id).await;
        assert_eq!(seen["status"], "cancelled", "{seen}");
        assert!(
            seen["reason"]
                .as_str()
                .unwrap()
                .contains("agent `ben` shut down the kernel"),
            "{seen}"
        );
    }
    scene.idle_output(1).await;
    assert_eq!(scene.kernels().await, [], "the session is gone too");
    let again = ben.call("shutdown_kernel", json!({ "path": scene.path })).await.ok();
    assert_eq!(again["kernel_shut_down"], false);
    let next = scene.run(3, 4).await.ok();
    assert_eq!(texts(&next["execution_results"][0]), ["False"], "in a new kernel");
    let notice = next["notices"].to_string();
    assert!(
        notice.contains("`ben` shut down the kernel") && notice.contains("variables"),
        "{notice}"
    );
}

#[tokio::test]
async fn a_kernel_of_ones_own_can_be_shut_down_and_the_next_code_gets_another() {
    let scene = scene(&["1"]).await;
    let run = json!({ "code": "x = 1" });
    let first = id(&scene.agent.call("run_code", run).await.ok());
    let kernel_id = scene.ended(&first).await["kernel_id"].clone();
    let held = json!({ "code": "import time; time.sleep(600)", "timeout": 0 });
    let held = id(&scene.agent.call("run_code", held).await.ok());
    eventually("it runs", async || {
        let seen = scene.agent.call("get_execution", json!({ "execution_id": held })).await;
        (seen.structured["kernel_id"] == kernel_id).then_some(())
    })
    .await;
    let shut = json!({ "kernel_id": kernel_id });
    scene.agent.call("shutdown_kernel", shut).await.ok();
    let ended = scene.ended(&held).await;
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert!(
        ended["reason"].as_str().unwrap().contains("you shut down the kernel"),
        "{ended}"
    );
    let next = json!({ "code": "'x' in globals()" });
    let next = scene.agent.call("run_code", next).await.ok();
    assert_eq!(texts(&next), ["False"], "{next}");
    let id = kernel_id.as_str().unwrap();
    assert_eq!(kernel(&scene.agent, id).await, None);
}
