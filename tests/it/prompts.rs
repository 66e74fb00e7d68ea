//! Prompts: what there is, what they say, and which tools they name.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Agent, Gateway, agent::ERAS, lab};

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
