//! Limits of a token's access to executions and kernels.

use reqwest::Method;
use serde_json::json;

use crate::support::{
    Agent, Era, Gateway, eventually,
    gateway::lab_server,
    lab,
    notebook::notebook,
    scene::{id, person, texts},
};

fn token(permissions: &str, paths: &str) -> String {
    format!(
        "{}[[tenants]]\nname = \"all\"\n[[auth.tokens]]\nname = \"ana\"\ntenant = \"all\"\ntoken = \"test-token-of-ana\"\npermissions = {permissions}\npaths = {paths}\n",
        lab_server("lab")
    )
}

#[tokio::test]
async fn kernels_are_given_and_outputs_cleared_only_by_who_may_write() {
    let gateway = Gateway::configured(&token("[\"read\", \"execute\"]", "[\"**\"]")).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let path = folder.write("n.ipynb", &notebook(&["6 * 7"]));
    let run = json!({ "path": path, "ranges": [{ "start": 0 }] });
    agent.call("execute_nb_cells", run).await.ok();
    let tools = agent.tools().await;
    assert!(!tools.iter().any(|tool| tool == "assign_nb_kernel"), "{tools:?}");
    for (tool, arguments) in [
        ("assign_nb_kernel", json!({ "path": path, "kernel_name": "python3" })),
        (
            "restart_nb_kernel",
            json!({ "path": path, "clear_outputs": true, "exec": false }),
        ),
    ] {
        let refused = agent.call(tool, arguments).await.error();
        assert!(refused.contains("write"), "{tool}: {refused}");
    }
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert_eq!(texts(&read["cells"][0]), ["42"], "nothing was cleared");
    let restart = json!({ "path": path, "exec": false });
    assert_eq!(
        agent.call("restart_nb_kernel", restart).await.ok()["kernel_restarted"],
        true
    );
}

#[tokio::test]
async fn outputs_of_a_notebook_that_was_moved_away_are_not_shown() {
    let gateway = Gateway::configured(&token("[\"read\", \"write\", \"execute\"]", "[\"*/open/**\"]")).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let path = folder.write("open/n.ipynb", &notebook(&["'secret'", "import time; time.sleep(600)"]));
    folder.write("closed/x", "");
    let ran = |cell: usize, timeout: f64| json!({ "path": path, "ranges": [{ "start": cell }], "timeout": timeout });
    let done = id(&agent.call("execute_nb_cells", ran(0, 60.0)).await.ok());
    let running = id(&agent.call("execute_nb_cells", ran(1, 0.0)).await.ok());
    let moved = json!({ "path": folder.path("closed/n.ipynb") });
    let answer = person()
        .send(Method::PATCH, &format!("api/contents/{path}"), moved)
        .await;
    assert_eq!(answer.status(), 200);
    for id in [&done, &running] {
        let refused = eventually("it is refused", async || {
            let seen = agent.call("get_execution", json!({ "execution_id": id })).await;
            seen.is_error.then(|| seen.text().to_owned())
        })
        .await;
        assert!(refused.contains("moved") && !refused.contains("closed"), "{refused}");
    }
    assert_eq!(
        agent.call("list_executions", json!({})).await.ok()["executions"],
        json!([])
    );
    let cancelled = agent
        .call("cancel_execution", json!({ "execution_id": running }))
        .await
        .ok();
    assert_eq!(cancelled["status"], "cancelled", "its owner may always end it");
}
