//! Review: edits of an agent go to a fork, and a person accepts them cell by cell.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era,
    agent::ToolAnswer,
    eventually,
    gateway::{TOKEN, lab_server},
    scene::Scene,
    wire::Events,
};

const PERSON: &str = "test-token-of-ida";

/// A tenant whose agents are reviewed, and another one on the same server for a person.
fn config() -> String {
    format!(
        "{}[[tenants]]\nname = \"agents\"\nreview = \"required\"\n[[tenants]]\nname = \"people\"\n\
         [[auth.tokens]]\nname = \"ana\"\ntenant = \"agents\"\ntoken = \"{TOKEN}\"\npermissions = [\"read\", \"write\", \"execute\", \"admin\"]\n\
         [[auth.tokens]]\nname = \"ida\"\ntenant = \"people\"\ntoken = \"{PERSON}\"\npermissions = [\"read\", \"write\"]\n",
        lab_server("lab")
    )
}

async fn reviewed(cells: &[&str]) -> Scene {
    Scene::notebook(cells).configured(&config()).editing().set().await
}

async fn modify(agent: &Agent, path: &str, cell: &str, content: &str) -> ToolAnswer {
    let modifications = json!([{ "range": { "cell_id": cell }, "content": content }]);
    let modify = json!({ "path": path, "modifications": modifications, "exec": false });
    agent.call("modify_nb_cells", modify).await
}

async fn sources(agent: &Agent, path: &str) -> Vec<String> {
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    let cells = read["cells"].as_array().expect("cells").iter();
    cells
        .map(|cell| cell["source"].as_str().unwrap_or_default().to_owned())
        .collect()
}

async fn review_fork(agent: &Agent, path: &str) -> String {
    let listed = agent.call("list_document_forks", json!({ "path": path })).await.ok();
    assert_eq!(listed["forks"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed["forks"][0]["review"], true, "{listed}");
    listed["forks"][0]["fork_id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn an_agent_works_as_usual_and_a_person_accepts_cell_by_cell() {
    let scene = reviewed(&["x = 1", "y = 1", "print('ran')"]).await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert!(read["notices"].is_null(), "nothing is under review yet: {read}");
    let edited = modify(agent, path, "c0", "x = 2").await;
    assert!(edited.texts.join("\n").contains("Under review"), "{:?}", edited.texts);
    edited.ok();
    modify(agent, path, "c1", "y = 2").await.ok();
    assert_eq!(sources(agent, path).await, ["x = 2", "y = 2", "print('ran')"]);
    let ran = json!({ "path": path, "ranges": [{ "cell_id": "c2" }] });
    let ran = agent.call("execute_nb_cells", ran).await.ok();
    assert_eq!(ran["execution_results"][0]["outputs"][0]["text"], "ran\n", "{ran}");
    assert_eq!(
        scene.human.sources(),
        ["x = 1", "y = 1", "print('ran')"],
        "people see nothing of it"
    );
    assert!(scene.human.cell(2)["outputs"].as_array().is_some_and(Vec::is_empty));

    // Nobody can switch a tenant's review off.
    let url = scene.gateway.url("/mcp?review=false");
    let defiant = Agent::connect_to(&url, TOKEN, Era::Legacy).await;
    assert_eq!(sources(&defiant, path).await[0], "x = 2", "the same fork");
    let id = review_fork(agent, path).await;
    let merge = json!({ "path": path, "fork_id": id, "force": true });
    let told = agent.call("merge_document_fork", merge).await.error();
    assert!(
        told.contains("under review") && told.contains("A person who is not"),
        "{told}"
    );

    scene.human.splice_cell("c0", 5, 0, "  # mine");
    scene.sees(&["x = 1  # mine", "y = 1", "print('ran')"]).await;
    let person = Agent::connect_to(&scene.gateway.url("/mcp"), PERSON, Era::Modern).await;
    assert_eq!(review_fork(&person, path).await, id);
    let some = json!({ "path": path, "fork_id": id, "cell_ids": ["c0"] });
    person.call("merge_document_fork", some).await.ok();
    scene.sees(&["x = 2  # mine", "y = 1", "print('ran')"]).await;
    assert_eq!(sources(agent, path).await[1], "y = 2", "the rest is still proposed");
}

#[tokio::test]
async fn a_caller_can_ask_for_review() {
    let scene = Scene::notebook(&["x = 1"])
        .selecting("?review=true")
        .editing()
        .set()
        .await;
    modify(&scene.agent, &scene.path, "c0", "x = 2").await.ok();
    assert_eq!(sources(&scene.agent, &scene.path).await, ["x = 2"]);
    assert_eq!(scene.human.sources(), ["x = 1"]);
    let plain = Agent::connect(&scene.gateway, Era::Legacy).await;
    assert_eq!(
        sources(&plain, &scene.path).await,
        ["x = 1"],
        "without it the document itself is meant"
    );
    let id = review_fork(&plain, &scene.path).await;
    let merged = plain.call("merge_document_fork", json!({ "path": scene.path, "fork_id": id }));
    assert_eq!(merged.await.ok()["fork_kept"], false);
    scene.sees(&["x = 2"]).await;
}

#[tokio::test]
async fn files_are_neither_deleted_nor_renamed_under_review_but_made() {
    let scene = reviewed(&["x = 1"]).await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let other = scene.folder.path("other.ipynb");
    for (tool, arguments) in [
        ("delete_document", json!({ "path": path })),
        ("rename_document", json!({ "path": path, "newPath": other })),
    ] {
        let refused = agent.call(tool, arguments).await.error();
        assert!(
            refused.contains("under review") && refused.contains("nothing was changed"),
            "{tool}: {refused}"
        );
    }
    let new = scene.folder.path("new.md");
    agent
        .call(
            "create_document",
            json!({ "path": new, "type": "file", "content": "new" }),
        )
        .await
        .ok();
    let overwrite = json!({ "path": new, "content": "newer" });
    agent.call("overwrite_document", overwrite).await.ok();
    assert_eq!(
        std::fs::read_to_string(scene.folder.disk.join("new.md")).expect("the file"),
        "new"
    );
    let read = agent.call("get_document_content", json!({ "path": new })).await.ok();
    assert_eq!(read["content"], "newer", "in the fork");
}

#[tokio::test]
async fn undo_under_review_takes_back_what_is_proposed() {
    let scene = reviewed(&["x = 1", "y = 1"]).await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let undo = |more: Value| {
        let mut arguments = more;
        arguments["path"] = path.into();
        agent.call("undo_changes", arguments)
    };
    let nothing = undo(json!({})).await.error();
    assert!(nothing.contains("changed nothing"), "{nothing}");
    let listed = agent.call("list_document_forks", json!({ "path": path })).await.ok();
    assert_eq!(listed["forks"], json!([]), "no fork is made for it");
    modify(agent, path, "c0", "x = 2").await.ok();
    modify(agent, path, "c1", "y = 2").await.ok();
    // The fork follows what a person types, which is not the agent's to take back.
    scene.human.splice_cell("c0", 5, 0, "  # mine");
    eventually("the fork follows", async || {
        (sources(agent, path).await == ["x = 2  # mine", "y = 2"]).then_some(())
    })
    .await;
    undo(json!({ "steps": 2 })).await.ok();
    assert_eq!(sources(agent, path).await, ["x = 1  # mine", "y = 1"]);
    undo(json!({ "redo": true })).await.ok();
    assert_eq!(sources(agent, path).await, ["x = 2  # mine", "y = 2"]);
    let none = undo(json!({ "redo": true })).await.error();
    assert!(none.contains("nothing to redo"), "{none}");
    scene.sees(&["x = 1  # mine", "y = 1"]).await;
    // Of the document itself nothing can be taken back by somebody under review, whoever made it.
    let person = Agent::connect_to(&scene.gateway.url("/mcp"), PERSON, Era::Modern).await;
    let history = person.call("get_document_history", json!({ "path": path })).await.ok();
    let agents = history["versions"].as_array().expect("versions").iter();
    assert_eq!(
        agents.filter(|version| version["kind"] == "agent").count(),
        0,
        "{history}"
    );
}

#[tokio::test]
async fn history_diff_and_restoring_under_review_are_of_what_is_proposed() {
    let scene = reviewed(&["x = 1", "y = 1"]).await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let person = Agent::connect_to(&scene.gateway.url("/mcp"), PERSON, Era::Modern).await;
    let modified = modify(&person, path, "c1", "y = 10").await;
    modified.ok();
    let history = async |more: Value| {
        let mut arguments = more;
        arguments["path"] = path.into();
        agent.call("get_document_history", arguments).await.ok()
    };
    let of_document = history(json!({})).await;
    let before = of_document["versions"].as_array().expect("versions").clone();
    assert_eq!(before.len(), 2, "nothing is proposed yet: {of_document}");
    modify(agent, path, "c0", "x = 2").await.ok();
    modify(agent, path, "c0", "x = 3").await.ok();

    // First what is proposed, then the document's own versions from before.
    let listed = history(json!({})).await;
    let versions = listed["versions"].as_array().expect("versions").clone();
    let authors: Vec<_> = versions.iter().map(|version| &version["author"]).collect();
    assert_eq!(authors, ["ana", "ana", "outside", "ida", "outside"], "{listed}");
    assert_eq!(versions[3..], before[..], "{listed}");
    let (mut page, mut before_id) = (Vec::new(), Value::Null);
    loop {
        let listed = history(json!({ "limit": 2, "before": before_id })).await;
        page.extend(listed["versions"].as_array().expect("versions").clone());
        before_id = page.last().expect("a version")["version_id"].clone();
        if listed["has_more"] == false {
            break;
        }
    }
    assert_eq!(page, versions, "page by page");
    let by_ida = history(json!({ "author": "ida" })).await;
    assert_eq!(by_ida["versions"].as_array().map(Vec::len), Some(1), "{by_ida}");

    let diff = |from: &Value| agent.call("diff_document", json!({ "path": path, "from": from }));
    let proposed = diff(&versions[1]["version_id"]).await;
    assert!(proposed.text().contains("-x = 2\n+x = 3"), "{}", proposed.text());
    let whole = diff(&before[1]["version_id"]).await;
    for part in ["-x = 1\n+x = 3", "-y = 1\n+y = 10"] {
        assert!(whole.text().contains(part), "{}", whole.text());
    }

    let restore = |version: &Value| {
        let arguments = json!({ "path": path, "version_id": version["version_id"] });
        agent.call("restore_document_version", arguments)
    };
    let restored = restore(&versions[1]).await;
    assert!(
        restored.texts.join("\n").contains("Under review"),
        "{:?}",
        restored.texts
    );
    restored.ok();
    assert_eq!(sources(agent, path).await, ["x = 2", "y = 10"]);
    restore(&before[1]).await.ok();
    assert_eq!(sources(agent, path).await, ["x = 1", "y = 1"]);
    agent.call("undo_changes", json!({ "path": path })).await.ok();
    assert_eq!(sources(agent, path).await, ["x = 2", "y = 10"]);
    scene.sees(&["x = 1", "y = 10"]).await;
    let unknown = json!({ "path": path, "version_id": "v0" });
    let unknown = agent.call("restore_document_version", unknown).await.error();
    assert!(unknown.contains("has no version"), "{unknown}");
}

/// The fields of a form as a person sees them: names and diffs.
fn fields(params: &Value) -> Vec<(String, String)> {
    let fields = params["requestedSchema"]["properties"].as_object().expect("fields");
    let diff = |field: &Value| field["description"].as_str().unwrap_or_default().to_owned();
    fields.iter().map(|(name, field)| (name.clone(), diff(field))).collect()
}

#[tokio::test]
async fn a_legacy_client_asks_its_person_which_cells_are_merged() {
    let scene = reviewed(&["x = 1", "y = 1"]).await;
    let path = scene.path.as_str();
    let url = scene.gateway.url("/mcp");
    let agent = Agent::able_to(json!({ "elicitation": {} }), &url, TOKEN, Era::Legacy).await;
    modify(&agent, path, "c0", "x = 2").await.ok();
    modify(&agent, path, "c1", "y = 2").await.ok();
    let id = review_fork(&agent, path).await;
    let call = json!({ "name": "merge_document_fork", "arguments": { "path": path, "fork_id": id } });
    for (number, answer, expected) in [
        (7, json!({ "action": "decline" }), ["x = 1", "y = 1"]),
        (
            8,
            json!({ "action": "accept", "content": { "c0": false, "c1": true } }),
            ["x = 1", "y = 2"],
        ),
        (
            9,
            json!({ "action": "accept", "content": { "c0": true } }),
            ["x = 2", "y = 2"],
        ),
    ] {
        let mut events = Events::new(agent.start(number, "tools/call", call.clone()).await);
        let (_, question) = events.next_message().await.expect("a question");
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let shown = fields(&question["params"]);
        assert!(
            shown
                .iter()
                .any(|(cell, diff)| cell == "c0" && diff.contains("-x = 1\n+x = 2")),
            "{shown:?}"
        );
        agent
            .send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer }))
            .await;
        let (_, answered) = events.next_message().await.expect("a result");
        assert!(
            answered["result"]["structuredContent"]["fork_id"] == id.as_str(),
            "{answered}"
        );
        scene.sees(&expected).await;
    }
    let listed = agent.call("list_document_forks", json!({ "path": path })).await.ok();
    assert_eq!(listed["forks"], json!([]), "nothing is left to be accepted");
}

#[tokio::test]
async fn a_modern_client_asks_its_person_in_a_second_round() {
    let scene = reviewed(&["x = 1", "y = 1"]).await;
    let path = scene.path.as_str();
    let able = json!({ "elicitation": { "form": {} } });
    let agent = Agent::able_to(able, &scene.gateway.url("/mcp"), TOKEN, Era::Modern).await;
    modify(&agent, path, "c0", "x = 2").await.ok();
    modify(&agent, path, "c1", "y = 2").await.ok();
    let id = review_fork(&agent, path).await;
    let mut params = json!({ "name": "merge_document_fork", "arguments": { "path": path, "fork_id": id } });
    let asked = agent.request("tools/call", params.clone()).await["result"].take();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let shown = fields(&asked["inputRequests"]["choice"]["params"]);
    assert_eq!(shown.len(), 2, "{asked}");
    assert_eq!(scene.human.sources(), ["x = 1", "y = 1"]);
    params["requestState"] = asked["requestState"].clone();
    let mut declined = params.clone();
    declined["inputResponses"] = json!({ "choice": { "action": "decline" } });
    let declined = agent.request("tools/call", declined).await["result"].take();
    assert!(declined.to_string().contains("declined"), "{declined}");
    params["inputResponses"] = json!({ "choice": { "action": "accept", "content": { "c1": true } } });
    let merged = agent.request("tools/call", params).await["result"].take();
    assert_eq!(
        merged["structuredContent"]["merged_cells"][0]["cell_id"], "c1",
        "{merged}"
    );
    scene.sees(&["x = 1", "y = 2"]).await;
}
