//! Executions outlive the calls that asked for them, and belong to nobody but their principal.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{
    Agent, Era,
    agent::ERAS,
    eventually,
    gateway::{everything, lab_server},
    scene::{Scene, ended, id, texts},
};

const COUNT: &str = "import time\nfor n in range(6):\n    print(n, flush=True)\n    time.sleep(0.5)";
const COUNTED: &str = "0\n1\n2\n3\n4\n5\n";

#[tokio::test]
async fn a_cell_that_runs_longer_than_rooms_stay_open_keeps_its_room() {
    let scene = Scene::notebook(&[COUNT])
        .with("[sessions]\nidle_timeout = \"1s\"\n")
        .set()
        .await;
    let id = scene.start(0).await;
    // Nobody asks for anything meanwhile.
    scene.shows(0, "5\n").await;
    assert_eq!(scene.idle_output(0).await, COUNTED);
    let ended = scene.ended(&id).await;
    assert_eq!(ended["status"], "completed");
    assert_eq!(texts(&ended["cells"][0]), [COUNTED]);
    scene.saved("run.ipynb", 0, COUNTED).await;
}

/// Somebody else of the same tenant.
const BEN: &str = "[[auth.tokens]]\nname = \"ben\"\ntenant = \"all\"\ntoken = \"test-token-of-ben\"\npermissions = [\"read\", \"write\", \"execute\"]\n";

#[tokio::test]
async fn a_client_that_is_killed_loses_nothing() {
    let config = format!("{}{}{BEN}", lab_server("lab"), everything());
    for era in ERAS {
        let scene = Scene::notebook(&[COUNT]).configured(&config).set().await;
        let killed = Agent::connect(&scene.gateway, era).await;
        let run = json!({ "path": scene.path, "ranges": [{ "start": 0 }] });
        let call = async {
            killed
                .start(1, "tools/call", json!({ "name": "execute_nb_cells", "arguments": run }))
                .await
        };
        // A response may begin at once or with the answer; either way the connection goes at a third of the cell.
        let watch = scene.shows(0, "1\n");
        tokio::select! {
            () = watch => {}
            response = call => {
                scene.shows(0, "1\n").await;
                drop(response);
            }
        }
        drop(killed);
        let again = Agent::connect(&scene.gateway, Era::Modern).await;
        let listed = again.call("list_executions", json!({ "path": scene.path })).await.ok();
        assert_eq!(
            listed["executions"][0]["cells"][0].get("outputs"),
            None,
            "a list shows none"
        );
        let id = id(&listed["executions"][0]);
        let ben = Agent::with_token(&scene.gateway, "test-token-of-ben", era).await;
        for tool in ["get_execution", "cancel_execution"] {
            let refused = ben.call(tool, json!({ "execution_id": id })).await.error();
            assert!(refused.contains("you have no execution"), "{refused}");
        }
        let result = ended(&again, &id).await;
        assert_eq!(
            (&result["status"], texts(&result["cells"][0])),
            (&json!("completed"), vec![COUNTED]),
            "{era:?}"
        );
        assert_eq!(scene.idle_output(0).await, COUNTED);
        let refused = ben.call("get_execution", json!({ "execution_id": id })).await.error();
        assert!(refused.contains("you have no execution"), "{refused}");
    }
}

#[tokio::test]
async fn beyond_the_limit_it_is_said_what_runs() {
    let tenant = everything().replace("name = \"all\"\n", "name = \"all\"\nmax_concurrent_executions = 1\n");
    let scene = Scene::notebook(&["import time; print('begun', flush=True); time.sleep(60)", "1"])
        .configured(&format!("{}{tenant}{BEN}", lab_server("lab")))
        .set()
        .await;
    let running = scene.start(0).await;
    let refused = scene.agent.call("run_code", json!({ "code": "1" })).await.error();
    for part in ["1 execution, its limit", &running, &scene.path, "cancel_execution"] {
        assert!(refused.contains(part), "{refused}");
    }
    let ben = Agent::with_token(&scene.gateway, "test-token-of-ben", Era::Modern).await;
    let refused = ben.call("run_code", json!({ "code": "1" })).await.error();
    assert!(
        refused.contains("1 of others") && !refused.contains("get_execution"),
        "{refused}"
    );
    scene.shows(0, "begun").await;
    scene
        .agent
        .call("cancel_execution", json!({ "execution_id": running }))
        .await
        .ok();
    assert_eq!(texts(&scene.run(1, 2).await.ok()["execution_results"][0]), ["1"]);
}

#[tokio::test]
async fn a_room_that_nobody_uses_after_a_run_is_closed_in_time() {
    let scene = Scene::notebook(&["1"])
        .with("[sessions]\nidle_timeout = \"4s\"\n")
        .set()
        .await;
    scene.run(0, 1).await.ok();
    let ran = Instant::now();
    eventually("the room is closed", async || {
        let sessions = scene.agent.call("query_nb_sessions", json!({})).await.ok();
        (!sessions.to_string().contains(&scene.path)).then_some(())
    })
    .await;
    let took = ran.elapsed();
    assert!(took < Duration::from_secs(7), "{took:?}");
}
