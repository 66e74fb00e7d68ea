//! Executions and their clients: questions to the person, progress, tasks, leaving and cancelling.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, eventually,
    gateway::{everything, lab_server},
    lab,
    lab::Folder,
    notebook::{notebook, whole_cells_on_disk},
    wire::Events,
};

const ASKS: &str = "name = input('Your name? ')\nprint('Hello', name)";
const TASKS: &str = "io.modelcontextprotocol/tasks";

async fn start() -> (Gateway, Folder) {
    (Gateway::start().await, lab().folder())
}

fn first_cell(path: &str) -> Value {
    json!({ "path": path, "ranges": [{ "start": 0 }] })
}

fn text_of(result: &Value) -> &str {
    result["outputs"][0]["text"].as_str().unwrap_or_default()
}

async fn status(agent: &Agent, id: &Value) -> Value {
    agent
        .call("get_execution", json!({ "execution_id": id }))
        .await
        .structured["status"]
        .take()
}

async fn until_status(agent: &Agent, id: &Value, wanted: &str) {
    eventually(&format!("the execution is {wanted}"), async || {
        (status(agent, id).await == wanted).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_question_waits_for_whoever_answers_it() {
    let (gateway, folder) = start().await;
    let path = folder.write("ask.ipynb", &notebook(&[ASKS]));
    for era in [Era::Modern, Era::Legacy] {
        let agent = Agent::executing(&gateway, era).await;
        let asked = agent.call("execute_nb_cells", first_cell(&path)).await.ok();
        assert_eq!(asked["status"], "input_required");
        assert_eq!(
            (&asked["input_request"]["prompt"], &asked["input_request"]["password"]),
            (&json!("Your name? "), &json!(false))
        );
        let id = &asked["execution_id"];
        let answer = json!({ "execution_id": id, "input": "Ana", "wait": 20 });
        let ended = agent.call("get_execution", answer.clone()).await.ok();
        assert_eq!(
            (&ended["status"], text_of(&ended["cells"][0])),
            (&json!("completed"), "Hello Ana\n")
        );
        let late = agent.call("get_execution", answer).await.error();
        assert!(late.contains("asks for nothing"), "{late}");
    }
}

#[tokio::test]
async fn a_modern_client_is_asked_in_a_second_round_and_nothing_is_done_twice() {
    let (gateway, folder) = start().await;
    let path = folder.write("ask.ipynb", &notebook(&["1"]));
    let agent = Agent::capable(&gateway, Era::Modern, json!({ "elicitation": { "form": {} } })).await;
    let cells = json!([{ "content": format!("{ASKS}\nprint('and', input())") }]);
    let insert = json!({ "path": path, "position": 1, "cells": cells });
    let mut params = json!({ "name": "insert_nb_cells", "arguments": insert });
    let mut prompts = Vec::new();
    let mut answers = ["Ana", "Bo"].into_iter();
    let result = loop {
        let result = agent.request("tools/call", params.clone()).await["result"].take();
        if result["resultType"] != "input_required" {
            break result;
        }
        let requests = result["inputRequests"].as_object().expect("questions").clone();
        let (key, request) = requests.iter().next().expect("one question");
        prompts.push(request["params"]["message"].as_str().unwrap_or_default().to_owned());
        let reply = json!({ "action": "accept", "content": { "input": answers.next().expect("two questions") } });
        params["inputResponses"] = json!({ key: reply });
        params["requestState"] = result["requestState"].clone();
    };
    assert_eq!(
        prompts,
        ["The running code asks: Your name?", "The running code asks for input"]
    );
    let ran = &result["structuredContent"];
    assert_eq!(text_of(&ran["execution_results"][0]), "Hello Ana\nand Bo\n");
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert_eq!(read["cell_count"], 2, "the cell was inserted once");
}

#[tokio::test]
async fn the_state_of_a_question_is_good_for_its_own_call_alone() {
    let ben = "[[auth.tokens]]\nname = \"ben\"\ntenant = \"all\"\ntoken = \"token-of-ben\"\npermissions = [\"read\", \"write\", \"execute\"]\n";
    let config = format!("{}{}{ben}", lab_server("lab"), everything());
    let gateway = Gateway::configured(&config).await;
    let restarted = Gateway::configured(&config).await;
    let folder = lab().folder();
    let path = folder.write("ask.ipynb", &notebook(&[ASKS, "2"]));
    let asking = json!({ "elicitation": { "form": {} } });
    let ana = Agent::capable(&gateway, Era::Modern, asking.clone()).await;
    let mut params = json!({ "name": "execute_nb_cells", "arguments": first_cell(&path) });
    let asked = ana.request("tools/call", params.clone()).await["result"].take();
    let state = asked["requestState"].as_str().expect("a state").to_owned();
    params["requestState"] = state.clone().into();
    params["inputResponses"] = json!({ "input-1": { "action": "accept", "content": { "input": "Ana" } } });
    let listed = ana.call("list_executions", json!({ "path": path })).await.ok();
    let id = listed["executions"][0]["execution_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert!(!state.contains(&id), "nobody reads it");

    let changed = |member: &str, value: Value| {
        let mut changed = params.clone();
        changed[member] = value;
        changed
    };
    let mut last = state.clone();
    last.replace_range(20..21, if &state[20..21] == "A" { "B" } else { "A" });
    let elsewhere = json!({ "path": path, "ranges": [{ "start": 1 }] });
    let ben = Agent::connect_to(&gateway.url("/mcp"), "token-of-ben", Era::Modern).await;
    let later = Agent::connect(&restarted, Era::Modern).await;
    for (who, params) in [
        (&ana, changed("requestState", "made up".into())),
        (&ana, changed("requestState", id.into())),
        (&ana, changed("requestState", last.into())),
        (&ana, changed("arguments", elsewhere)),
        (&ana, changed("name", "run_code".into())),
        (&ben, params.clone()),
        (&later, params.clone()),
    ] {
        let refused = who.request("tools/call", params).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let why = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(
            why.starts_with("`params.requestState` is not valid for this call"),
            "{why}"
        );
        assert!(why.contains("list_executions"), "{why}");
    }
    let done = ana.request("tools/call", params).await["result"].take();
    assert_eq!(
        text_of(&done["structuredContent"]["execution_results"][0]),
        "Hello Ana\n",
        "{done}"
    );
}

#[tokio::test]
async fn a_legacy_client_is_asked_in_the_middle_of_the_call() {
    let (gateway, folder) = start().await;
    let path = folder.write(
        "ask.ipynb",
        &notebook(&["import getpass\nprint(len(getpass.getpass('Key: ')))"]),
    );
    let agent = Agent::capable(&gateway, Era::Legacy, json!({ "elicitation": {} })).await;
    let call = json!({ "name": "execute_nb_cells", "arguments": first_cell(&path) });
    let mut events = Events::new(agent.start(7, "tools/call", call).await);
    let (_, question) = events.next_message().await.expect("a question");
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "The running code asks: Key:");
    let result = json!({ "action": "accept", "content": { "input": "s3cret" } });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    agent.send(answer).await;
    let (_, answered) = events.next_message().await.expect("a result");
    let ran = &answered["result"]["structuredContent"];
    assert_eq!(
        (&ran["status"], text_of(&ran["execution_results"][0])),
        (&json!("completed"), "6\n")
    );
    let file = folder.disk.join("ask.ipynb");
    eventually("the file has the output", async || {
        let cells = whole_cells_on_disk(&file)?;
        (cells[0]["outputs"][0]["text"] == json!(["6\n"])).then_some(())
    })
    .await;
    assert!(!std::fs::read_to_string(&file).expect("the file").contains("s3cret"));
    assert!(!answered.to_string().contains("s3cret"), "a password is never echoed");
}

#[tokio::test]
async fn one_who_declines_to_answer_cancels() {
    let (gateway, folder) = start().await;
    let path = folder.write("ask.ipynb", &notebook(&[ASKS]));
    let agent = Agent::capable(&gateway, Era::Legacy, json!({ "elicitation": {} })).await;
    let call = json!({ "name": "execute_nb_cells", "arguments": first_cell(&path) });
    let mut events = Events::new(agent.start(7, "tools/call", call).await);
    let (_, question) = events.next_message().await.expect("a question");
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } });
    agent.send(answer).await;
    let (_, answered) = events.next_message().await.expect("a result");
    assert_eq!(
        answered["result"]["structuredContent"]["status"], "cancelled",
        "{answered}"
    );
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_ends_nothing() {
    let (gateway, folder) = start().await;
    let path = folder.write("ask.ipynb", &notebook(&[ASKS]));
    let legacy = Agent::capable(&gateway, Era::Legacy, json!({ "elicitation": {} })).await;
    let call = json!({ "name": "execute_nb_cells", "arguments": first_cell(&path) });
    let mut events = Events::new(legacy.start(7, "tools/call", call).await);
    let (_, question) = events.next_message().await.expect("a question");
    let empty = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": {} } });
    legacy.send(empty).await;
    let (_, told) = events.next_message().await.expect("a result");
    let told = &told["result"]["structuredContent"];
    assert_eq!(told["status"], "input_required", "{told}");
    let answer = json!({ "execution_id": told["execution_id"], "input": "Ana", "wait": 30 });
    let ended = legacy.call("get_execution", answer).await.ok();
    assert_eq!(text_of(&ended["cells"][0]), "Hello Ana\n");
    let modern = Agent::capable(&gateway, Era::Modern, json!({ "elicitation": { "form": {} } })).await;
    let mut params = json!({ "name": "execute_nb_cells", "arguments": first_cell(&path) });
    let asked = modern.request("tools/call", params.clone()).await["result"].take();
    params["requestState"] = asked["requestState"].clone();
    for (reply, result) in [
        (json!({ "action": "maybe" }), "input_required"),
        (json!({ "action": "accept", "content": { "input": "Bo" } }), "complete"),
    ] {
        params["inputResponses"] = json!({ "input-1": reply });
        let told = modern.request("tools/call", params.clone()).await["result"].take();
        assert_eq!(told["resultType"], result, "{told}");
    }
}

#[tokio::test]
async fn those_who_want_to_are_told_of_the_latest_output() {
    let (gateway, folder) = start().await;
    let source = "import time\nfor n in range(6):\n    print('step', n, flush=True)\n    time.sleep(0.3)";
    let path = folder.write("steps.ipynb", &notebook(&[source]));
    for era in [Era::Legacy, Era::Modern] {
        let agent = Agent::connect(&gateway, era).await;
        let mut call = json!({ "name": "execute_nb_cells", "arguments": first_cell(&path) });
        call["_meta"] = json!({ "progressToken": "p" });
        let mut events = Events::new(agent.start(7, "tools/call", call).await);
        let mut told = Vec::new();
        loop {
            let (_, message) = events.next_message().await.expect("an answer");
            if message["id"] == 7 {
                break;
            }
            assert_eq!(message["method"], "notifications/progress");
            told.push(message["params"].clone());
        }
        assert!(told.len() >= 3, "{told:?}");
        let rises = told
            .windows(2)
            .all(|pair| pair[0]["progress"].as_f64() < pair[1]["progress"].as_f64());
        assert!(rises, "{told:?}");
        let says = |step: &Value| {
            step["message"]
                .as_str()
                .is_some_and(|message| message.starts_with("step"))
        };
        assert!(told.iter().any(says), "{told:?}");
    }
}

#[tokio::test]
async fn what_ends_before_it_would_become_a_task_is_answered_at_once() {
    let gateway = Gateway::with("[execution]\ntask_after = \"1s\"\n").await;
    let patient = Gateway::start().await;
    let capabilities = json!({ "extensions": { TASKS: {} } });
    let slow = json!({ "code": "import time; time.sleep(2.5)" });
    let call = async |gateway: &Gateway, arguments: Value| {
        let agent = Agent::capable(gateway, Era::Modern, capabilities.clone()).await;
        let params = json!({ "name": "run_code", "arguments": arguments });
        agent.request("tools/call", params).await["result"]["resultType"].take()
    };
    assert_eq!(call(&patient, slow.clone()).await, "complete", "within 20 s");
    assert_eq!(call(&gateway, slow).await, "task");
    let told = json!({ "code": "import time; time.sleep(2.5)", "timeout": 60, "kernel_name": "python3" });
    assert_eq!(
        call(&gateway, told).await,
        "complete",
        "the call said how long it waits"
    );
    let told = json!({ "code": "import time; time.sleep(2.5)", "timeout": 0 });
    assert_eq!(call(&patient, told).await, "task");
}

#[tokio::test]
async fn a_client_that_knows_tasks_gets_one_for_what_takes_long() {
    let gateway = Gateway::with("[execution]\ntask_after = \"1s\"\n").await;
    let folder = lab().folder();
    let path = folder.write(
        "slow.ipynb",
        &notebook(&["import time; time.sleep(2.5); print('slept')", "2"]),
    );
    let capabilities = json!({ "extensions": { TASKS: {} }, "elicitation": {} });
    let agent = Agent::capable(&gateway, Era::Modern, capabilities).await;
    let call = async |code: &str| {
        let arguments = json!({ "path": path, "code": code });
        let answer = agent
            .request("tools/call", json!({ "name": "run_code", "arguments": arguments }))
            .await;
        answer["result"].clone()
    };
    // The kernel is there, so that what is quick is quick.
    agent
        .call(
            "execute_nb_cells",
            json!({ "path": path, "ranges": [{ "start": 1 }], "timeout": 60 }),
        )
        .await
        .ok();
    let quick = call("1 + 1").await;
    assert_eq!(
        (&quick["resultType"], &quick["structuredContent"]["status"]),
        (&json!("complete"), &json!("completed"))
    );

    let params = json!({ "name": "execute_nb_cells", "arguments": first_cell(&path) });
    let task = agent.request("tools/call", params).await["result"].take();
    assert_eq!(
        (&task["resultType"], &task["status"]),
        (&json!("task"), &json!("working")),
        "{task}"
    );
    let look = async |id: &Value| agent.request("tasks/get", json!({ "taskId": id })).await["result"].take();
    let ended = eventually("the task ends", async || {
        let seen = look(&task["taskId"]).await;
        (seen["status"] != "working").then_some(seen)
    })
    .await;
    let ran = &ended["result"]["structuredContent"];
    assert_eq!(
        (&ended["status"], &ran["executed_ranges"]),
        (&json!("completed"), &json!(1)),
        "{ended}"
    );
    assert_eq!(text_of(&ran["execution_results"][0]), "slept\n");

    let endless = call("while True: pass").await;
    agent
        .request("tasks/cancel", json!({ "taskId": endless["taskId"] }))
        .await;
    eventually("the task is cancelled", async || {
        (look(&endless["taskId"]).await["status"] == "cancelled").then_some(())
    })
    .await;

    let asks = call("print(input('A? ') + input('B? '))").await;
    for (key, value) in [("input-1", "x"), ("input-2", "y")] {
        let asked = eventually("it asks", async || {
            let seen = look(&asks["taskId"]).await;
            (seen["inputRequests"].get(key).is_some()).then_some(seen)
        })
        .await;
        assert_eq!(asked["status"], "input_required");
        let reply = json!({ key: { "action": "accept", "content": { "input": value } } });
        let update = json!({ "taskId": asks["taskId"], "inputResponses": reply });
        agent.request("tasks/update", update).await;
    }
    let ended = eventually("it ends", async || {
        let seen = look(&asks["taskId"]).await;
        (seen["status"] == "completed").then_some(seen)
    })
    .await;
    assert_eq!(text_of(&ended["result"]["structuredContent"]), "xy\n");
    let unknown = agent.request("tasks/get", json!({ "taskId": "nope" })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[tokio::test]
async fn a_lost_connection_leaves_the_execution_running_unless_told_otherwise() {
    let (gateway, folder) = start().await;
    let slow = "import time\nfor n in range(40):\n    print(n, flush=True)\n    time.sleep(0.05)";
    for era in [Era::Modern, Era::Legacy] {
        let agent = Agent::connect(&gateway, era).await;
        let path = folder.write(&format!("{era:?}.ipynb"), &notebook(&[slow, "while True: pass"]));
        agent.call("run_code", json!({ "path": path, "code": "1" })).await.ok();
        let list = async |status: &str| {
            let listed = agent
                .call("list_executions", json!({ "path": path, "status": status }))
                .await
                .ok();
            listed["executions"].as_array().expect("a list").clone()
        };
        // Starts a call and leaves as soon as it is seen to run.
        let leave = async |id: i64, arguments: Value| {
            let call = json!({ "name": "execute_nb_cells", "arguments": arguments });
            let running = async || list("running").await.first().map(|seen| seen["execution_id"].clone());
            tokio::select! {
                answer = async { agent.start(id, "tools/call", call).await.text().await } => panic!("{answer:?}"),
                running = eventually("it runs", running) => running,
            }
        };
        let id = leave(7, first_cell(&path)).await;
        let get = json!({ "execution_id": id, "wait": 20 });
        let ended = agent.call("get_execution", get).await.ok();
        assert_eq!(ended["status"], "completed");
        assert!(text_of(&ended["cells"][0]).ends_with("38\n39\n"), "{ended}");

        if era == Era::Modern {
            let arguments = json!({ "path": path, "ranges": [{ "start": 1 }], "on_disconnect": "interrupt" });
            let id = leave(8, arguments).await;
            until_status(&agent, &id, "cancelled").await;
        }
    }
}

/// Begins with code that does not end by itself in a kernel of the agent's own, and is to be interrupted when the client
/// leaves; the first event of its stream, and the execution.
async fn begin_endless(agent: &Agent, kernel_of: &str) -> (Events, String, Value) {
    let code = "import time\nwhile True: time.sleep(0.1)";
    let arguments = json!({ "path": kernel_of, "code": code, "on_disconnect": "interrupt" });
    let call = json!({ "name": "run_code", "arguments": arguments });
    let mut events = Events::new(agent.start(7, "tools/call", call).await);
    let first = events
        .next()
        .await
        .expect("an event to resume from")
        .id
        .expect("its id");
    let running = eventually("it runs", async || {
        let running = json!({ "path": kernel_of, "status": "running" });
        let listed = agent.call("list_executions", running).await.ok();
        Some(listed["executions"].get(0)?["execution_id"].clone())
    })
    .await;
    (events, first, running)
}

#[tokio::test]
async fn a_legacy_client_that_does_not_come_back_interrupts_if_it_said_so() {
    let (gateway, folder) = start().await;
    let [back, gone, over] =
        ["back", "gone", "over"].map(|name| folder.write(&format!("{name}.ipynb"), &notebook(&[])));
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    let (events, first, kept) = begin_endless(&agent, &back).await;
    drop(events);
    let mut resumed = Events::new(agent.listen(Some(&first)).await);

    let other = Agent::connect(&gateway, Era::Legacy).await;
    let (events, _, ended) = begin_endless(&other, &over).await;
    assert_eq!(other.close().await, 204);
    until_status(&agent, &ended, "cancelled").await;
    drop(events);

    let other = Agent::connect(&gateway, Era::Legacy).await;
    let (events, first, left) = begin_endless(&other, &gone).await;
    drop(events);
    until_status(&agent, &left, "cancelled").await;
    let mut late = Events::new(other.listen(Some(&first)).await);
    let (_, answer) = late.next_message().await.expect("the answer waits");
    assert_eq!(answer["result"]["structuredContent"]["status"], "cancelled", "{answer}");

    assert_eq!(status(&agent, &kept).await, "running", "who came back has not left");
    agent
        .call("cancel_execution", json!({ "execution_id": kept }))
        .await
        .ok();
    let (_, answer) = resumed.next_message().await.expect("an answer");
    assert_eq!(answer["result"]["structuredContent"]["status"], "cancelled", "{answer}");
}

#[tokio::test]
async fn a_legacy_client_that_takes_its_call_back_interrupts_the_kernel() {
    let (gateway, folder) = start().await;
    let path = folder.write(
        "loop.ipynb",
        &notebook(&["print('begun', flush=True)\nwhile True: pass"]),
    );
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    agent.call("run_code", json!({ "path": path, "code": "1" })).await.ok();
    let call = json!({ "name": "execute_nb_cells", "arguments": first_cell(&path) });
    let response = agent.start(9, "tools/call", call).await;
    let running = eventually("it runs", async || {
        let listed = agent.call("list_executions", json!({ "status": "running" })).await.ok();
        listed["executions"]
            .get(0)
            .map(|execution| execution["execution_id"].clone())
    })
    .await;
    eventually("it has begun", async || {
        let seen = agent
            .call("get_execution", json!({ "execution_id": running }))
            .await
            .ok();
        seen.to_string().contains("begun").then_some(())
    })
    .await;
    agent
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } }))
        .await;
    until_status(&agent, &running, "cancelled").await;
    drop(response);
}

#[tokio::test]
async fn executions_are_nobody_elses() {
    let tenant = "[[tenants]]\nname = \"all\"\nmax_concurrent_executions = 1\n";
    let token = |name: &str| {
        format!(
            "[[auth.tokens]]\nname = \"{name}\"\ntenant = \"all\"\ntoken = \"{name}-token-of-some-length\"\npermissions = [\"read\", \"write\", \"execute\"]\n"
        )
    };
    let servers = lab_server("lab");
    let gateway = Gateway::configured(&format!("{servers}{tenant}{}{}", token("ana"), token("bo"))).await;
    let ana = Agent::with_token(&gateway, "ana-token-of-some-length", Era::Modern).await;
    let bo = Agent::with_token(&gateway, "bo-token-of-some-length", Era::Modern).await;
    let run = json!({ "code": "import time; time.sleep(30)", "timeout": 0 });
    let id = ana.call("run_code", run.clone()).await.ok()["execution_id"].clone();
    for tool in ["get_execution", "cancel_execution"] {
        let refused = bo.call(tool, json!({ "execution_id": id })).await.error();
        assert!(refused.contains("no execution"), "{refused}");
    }
    assert_eq!(
        bo.call("list_executions", json!({})).await.ok()["executions"],
        json!([])
    );
    let refused = bo.call("run_code", run).await.error();
    assert!(
        refused.contains("already running 1 execution, its limit") && refused.contains("1 of others"),
        "{refused}"
    );
    assert!(!refused.contains(id.as_str().unwrap()), "{refused}");
    ana.call("cancel_execution", json!({ "execution_id": id })).await.ok();
}
