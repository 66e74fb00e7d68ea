//! Prompts: what there is, what they say, and which tools they name.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{
    Agent, Gateway, TOKEN,
    agent::ERAS,
    gateway::{everything, lab_server, server},
    lab,
    notebook::notebook,
    proxy::Proxy,
};

async fn text(agent: &Agent, name: &str, arguments: Value) -> String {
    let answer = agent
        .request("prompts/get", json!({ "name": name, "arguments": arguments }))
        .await;
    let messages = answer["result"]["messages"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    assert_eq!((messages.len(), &messages[0]["role"]), (1, &json!("user")));
    messages[0]["content"]["text"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn prompts_are_listed_and_told_in_both_eras() {
    let gateway = Gateway::start().await;
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        let listed = agent.request("prompts/list", json!({})).await;
        let prompts = listed["result"]["prompts"].as_array().expect("prompts").clone();
        let names: Vec<&str> = prompts.iter().filter_map(|prompt| prompt["name"].as_str()).collect();
        assert_eq!(
            names,
            [
                "explore_dataset",
                "explain_notebook",
                "fix_failing_cell",
                "notebook_report"
            ]
        );
        for prompt in &prompts {
            assert!(
                prompt["title"].is_string() && prompt["description"].is_string(),
                "{prompt}"
            );
            assert!(
                prompt["arguments"]
                    .as_array()
                    .is_some_and(|arguments| !arguments.is_empty()),
                "{prompt}"
            );
        }
        let fix = text(
            &agent,
            "fix_failing_cell",
            json!({ "path": "a/b.ipynb", "cell_id": "c7" }),
        )
        .await;
        assert!(fix.contains("a/b.ipynb") && fix.contains("\"c7\""), "{fix}");
        let explore = text(
            &agent,
            "explore_dataset",
            json!({ "dataset": "d.csv", "server": "lab" }),
        )
        .await;
        assert!(explore.contains("d.csv") && explore.contains("\"lab\""), "{explore}");
        for (name, arguments, words) in [
            ("explain_notebook", json!({}), "`path`"),
            (
                "explain_notebook",
                json!({ "path": "a.ipynb", "mood": "good" }),
                "`mood`",
            ),
            ("write_poem", json!({}), "notebook_report"),
        ] {
            let answer = agent
                .request("prompts/get", json!({ "name": name, "arguments": arguments }))
                .await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            assert!(
                answer["error"]["message"]
                    .as_str()
                    .is_some_and(|text| text.contains(words)),
                "{answer}"
            );
        }
    }
}

#[tokio::test]
async fn prompts_name_tools_that_there_are() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, ERAS[1]).await;
    let known: BTreeSet<String> = agent.tools().await.into_iter().collect();
    for (name, arguments) in [
        ("explore_dataset", json!({ "dataset": "d" })),
        ("explain_notebook", json!({ "path": "p" })),
        ("fix_failing_cell", json!({ "path": "p" })),
        ("notebook_report", json!({ "path": "p" })),
    ] {
        let told = text(&agent, name, arguments).await;
        let quoted: Vec<&str> = told.split('`').skip(1).step_by(2).collect();
        let tools: Vec<&&str> = quoted.iter().filter(|word| word.matches('_').count() > 0).collect();
        let words = ["execution_count", "if_revision", "cell_id", "max_cell_data"];
        let unknown: Vec<_> = tools
            .iter()
            .filter(|word| !known.contains(***word) && !words.contains(*word))
            .collect();
        assert!(!tools.is_empty() && unknown.is_empty(), "{name} names {unknown:?}");
    }
}

#[tokio::test]
async fn prompts_are_shown_to_those_who_have_their_tools() {
    let reader =
        "[[auth.tokens]]\nname = \"reader\"\ntenant = \"all\"\ntoken = \"token-of-reader\"\npermissions = [\"read\"]\n";
    let gateway = Gateway::configured(&format!("{}{}{reader}", lab_server("lab"), everything())).await;
    let reading = ["explain_notebook"].as_slice();
    for era in ERAS {
        for (selection, token, expected, remedy) in [
            (
                "?toolsets=classic&readonly=true",
                TOKEN,
                [].as_slice(),
                "connect without readonly=true, and add files,kernel,notebook to ?toolsets=",
            ),
            (
                "?toolsets=classic",
                TOKEN,
                &[],
                "add files,kernel,notebook to ?toolsets=",
            ),
            ("?readonly=true", TOKEN, reading, "connect without readonly=true"),
            (
                "",
                "token-of-reader",
                reading,
                "ask an operator for permission `write` and permission `execute`",
            ),
            ("?toolsets=notebook", TOKEN, reading, "add files,kernel to ?toolsets="),
            (
                "?toolsets=notebook,execution",
                TOKEN,
                &["explain_notebook", "fix_failing_cell"],
                "add files,kernel to ?toolsets=",
            ),
        ] {
            let agent = Agent::connect_to(&gateway.url(&format!("/mcp{selection}")), token, era).await;
            let listed = agent.request("prompts/list", json!({})).await;
            let prompts = listed["result"]["prompts"].as_array().expect("prompts");
            let names: Vec<&str> = prompts.iter().filter_map(|prompt| prompt["name"].as_str()).collect();
            assert_eq!(names, expected, "{selection}");
            let arguments = json!({ "name": "notebook_report", "arguments": { "path": "a.ipynb" } });
            let refused = agent.request("prompts/get", arguments).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
            let message = refused["error"]["message"].as_str().expect("a message");
            let told = "prompt `notebook_report` needs tools that are not listed for you; ";
            assert_eq!(message, format!("{told}{remedy}"), "{selection}");
            let refused = agent.request("prompts/get", json!({ "name": "no_such" })).await;
            let message = refused["error"]["message"].as_str().expect("a message");
            let available = match expected {
                [] => "none".to_owned(),
                names => names.join(", "),
            };
            assert_eq!(message, format!("Unknown prompt: no_such; available here: {available}"));
        }
    }
}

#[tokio::test]
async fn a_notebook_that_is_not_open_is_completed_from_its_file() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("closed.ipynb", &notebook(&["zero", "one"]));
    let agent = Agent::connect(&gateway, ERAS[1]).await;
    let prompt = |name: &str| json!({ "type": "ref/prompt", "name": name });
    for spelling in [path.clone(), format!("/{path}"), format!("./{path}")] {
        let known = json!({ "path": spelling });
        let ids = agent.complete(prompt("fix_failing_cell"), "cell_id", "", known).await;
        assert_eq!(ids, ["c0", "c1"], "{spelling}");
        let beginning = spelling.strip_suffix("osed.ipynb").expect("a beginning");
        let paths = agent
            .complete(prompt("explain_notebook"), "path", beginning, json!({}))
            .await;
        assert_eq!(paths, [path.as_str()], "{beginning}");
    }
    let sessions = agent
        .call("query_nb_sessions", json!({ "root_path": folder.name }))
        .await
        .ok();
    assert_eq!(sessions["sessions"], json!([]), "nothing was opened");
}

#[tokio::test]
async fn a_server_that_hangs_has_nothing_to_complete_with() {
    let proxy = Proxy::to(lab().address()).await;
    // Slower than completion is willing to wait.
    let slow = server("lab", &proxy.url(), lab().token()).replace("5s", "60s");
    let gateway = Gateway::configured(&format!("{slow}{}", everything())).await;
    let agent = Agent::connect(&gateway, ERAS[1]).await;
    proxy.hold(true);
    let prompt = json!({ "type": "ref/prompt", "name": "fix_failing_cell" });
    let started = std::time::Instant::now();
    assert!(agent.complete(prompt.clone(), "path", "", json!({})).await.is_empty());
    let known = json!({ "path": "a.ipynb" });
    assert!(agent.complete(prompt, "cell_id", "", known).await.is_empty());
    assert!(
        started.elapsed() < std::time::Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn arguments_are_completed_from_what_is_there() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    folder.notebook("deep/first.ipynb");
    folder.notebook("deep/other.ipynb");
    folder.write("deep/data.csv", "a,b\n");
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        let prompt = |name: &str| json!({ "type": "ref/prompt", "name": name });
        let explain = || prompt("explain_notebook");
        assert_eq!(agent.complete(explain(), "server", "", json!({})).await, ["lab"]);
        assert!(agent.complete(explain(), "server", "x", json!({})).await.is_empty());
        let inside = folder.path("de");
        assert_eq!(
            agent.complete(explain(), "path", &inside, json!({})).await,
            [folder.path("deep/")]
        );
        let deep = folder.path("deep/");
        let found = agent
            .complete(explain(), "path", &deep, json!({ "server": "lab" }))
            .await;
        assert_eq!(
            found,
            [folder.path("deep/first.ipynb"), folder.path("deep/other.ipynb")]
        );
        let found = agent
            .complete(prompt("explore_dataset"), "dataset", &deep, json!({}))
            .await;
        assert_eq!(found, [folder.path("deep/data.csv")]);
        assert!(
            agent.complete(explain(), "audience", "", json!({})).await.is_empty(),
            "free text"
        );
        let path = folder.path("deep/first.ipynb");
        let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        let ids = agent
            .complete(prompt("fix_failing_cell"), "cell_id", "", json!({ "path": path }))
            .await;
        assert_eq!(json!(ids), json!([read["cells"][0]["id"]]));
        for (reference, argument) in [
            (prompt("no_such"), "path"),
            (explain(), "no_such"),
            (json!({ "type": "ref/resource", "uri": "notebook://{x}" }), "x"),
        ] {
            let params = json!({ "ref": reference, "argument": { "name": argument, "value": "" } });
            let answer = agent.request("completion/complete", params).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
    }
}
