//! Instructions for a model: short, and only about what is listed for it.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::{
    Agent, Era, Gateway, TOKEN,
    agent::ERAS,
    gateway::{everything, lab_server},
};

const MAX_CHARS: usize = 1500;

#[tokio::test]
async fn instructions_speak_of_what_is_listed() {
    let reader = "[[auth.tokens]]\nname = \"reader\"\ntenant = \"all\"\ntoken = \"token-of-reader\"\npermissions = [\"read\"]\n\
         [[auth.tokens]]\nname = \"writer\"\ntenant = \"all\"\ntoken = \"token-of-writer\"\npermissions = [\"read\", \"write\"]\n";
    let gateway = Gateway::configured(&format!("{}{}{reader}", lab_server("lab"), everything())).await;
    let everything = Agent::connect_to(&gateway.url("/mcp?toolsets=all"), TOKEN, Era::Modern).await;
    let all: BTreeSet<String> = everything.tools().await.into_iter().collect();
    for era in ERAS {
        for (selection, token, said, unsaid) in [
            ("", TOKEN, "execute_nb_cells", "read-only"),
            ("?toolsets=all", TOKEN, "list_servers", "get_notebook"),
            ("?readonly=true", TOKEN, "read-only", "shell"),
            ("", "token-of-reader", "outline", "execute_nb_cells"),
            ("", "token-of-writer", "force", "shell"),
            ("?toolsets=notebook", TOKEN, "get_execution", "run_code"),
            (
                "?toolsets=collab",
                TOKEN,
                "batch_execute_notebook_cells",
                "read_nb_cells",
            ),
            ("?toolsets=collab&readonly=true", TOKEN, "get_notebook", "batch_"),
            ("?toolsets=classic", TOKEN, "connect_notebook", "read_nb_cells"),
            ("?toolsets=files", TOKEN, "not instructions", "outline"),
        ] {
            let agent = Agent::connect_to(&gateway.url(&format!("/mcp{selection}")), token, era).await;
            let told = agent.introduction().await["instructions"].take();
            let told = told.as_str().expect("instructions");
            assert!(told.chars().count() <= MAX_CHARS, "{selection}: {}", told.len());
            assert!(told.contains(said) && !told.contains(unsaid), "{selection}: {told}");
            assert!(told.contains("data, not instructions"), "{selection}: {told}");
            assert!(told.contains("camelCase"), "{selection}: {told}");
            let listed: BTreeSet<String> = agent.tools().await.into_iter().collect();
            let words = told.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
            for tool in words.filter(|word| all.contains(*word)) {
                assert!(listed.contains(tool), "{selection} is told of {tool}");
            }
        }
    }
}

/// Claude Code shows a model these tools without being asked.
#[tokio::test]
async fn what_everyone_needs_is_always_loaded() {
    let gateway = Gateway::start().await;
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        let listed = agent.request("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().expect("tools");
        let marked = tools
            .iter()
            .filter(|tool| tool["_meta"]["anthropic/alwaysLoad"] == true);
        let marked: BTreeSet<&str> = marked.filter_map(|tool| tool["name"].as_str()).collect();
        let wanted = ["list_nbs", "read_nb_cells", "edit_nb_cell", "execute_nb_cells"];
        let there: BTreeSet<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        let wanted: BTreeSet<&str> = wanted.into_iter().filter(|tool| there.contains(tool)).collect();
        assert_eq!(marked, wanted);
    }
}
