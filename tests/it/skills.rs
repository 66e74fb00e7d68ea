//! The extension for skills: what is listed is what can be read, byte by byte.

use jupyter_mcp_gateway::config::token::sha256_hex;
use serde_json::{Value, json};

use crate::support::{
    Agent, Gateway, TOKEN,
    agent::ERAS,
    gateway::{everything, lab_server},
};

const EXTENSION: &str = "io.modelcontextprotocol/skills";
const URI: &str = "skill://jupyter-notebooks/SKILL.md";

#[tokio::test]
async fn a_skill_is_listed_and_read_in_both_eras() {
    let gateway = Gateway::start().await;
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        let is_modern = era == ERAS[1];
        let introduced = agent.introduction().await;
        let declared = &introduced["capabilities"]["extensions"][EXTENSION];
        assert_eq!(*declared, json!({}), "{introduced}");

        let listed = agent.request("skills/list", json!({})).await["result"].take();
        let skill = &listed["skills"][0];
        assert_eq!(
            (listed["skills"].as_array().map(Vec::len), &skill["uri"]),
            (Some(1), &json!(URI))
        );
        assert_eq!(listed["resultType"] == "complete", is_modern, "{listed}");
        assert_eq!(
            listed["ttlMs"].is_u64() && listed["cacheScope"] == "private",
            is_modern,
            "{listed}"
        );
        let got = agent.request("skills/get", json!({ "uri": URI })).await;
        assert_eq!(got["result"]["skill"], *skill, "{got}");

        let read = agent.read(URI).await;
        let text = read["text"].as_str().expect("text");
        assert_eq!(read["mimeType"], "text/markdown");
        let file = json!({ "uri": URI, "digest": format!("sha256:{}", sha256_hex(text)), "size": text.len() });
        assert_eq!(skill["resources"], json!([file]));
        let front_matter = &skill["frontmatter"];
        assert_eq!(front_matter["name"], "jupyter-notebooks");
        let description = front_matter["description"].as_str().expect("a description");
        assert!(text.starts_with(&format!(
            "---\nname: jupyter-notebooks\ndescription: {description}\n---\n"
        )));

        let resources = agent.resources().await;
        let resource = resources
            .iter()
            .find(|resource| resource["uri"] == URI)
            .expect("listed");
        assert_eq!(
            [&resource["name"], &resource["description"], &resource["mimeType"]],
            [
                &json!("jupyter-notebooks"),
                &json!(description),
                &json!("text/markdown")
            ]
        );
    }
}

#[tokio::test]
async fn what_is_no_skill_here_is_refused() {
    let nobody = "[[auth.tokens]]\nname = \"nobody\"\ntenant = \"all\"\ntoken = \"token-of-nobody\"\npermissions = [\"write\"]\n";
    let gateway = Gateway::configured(&format!("{}{}{nobody}", lab_server("lab"), everything())).await;
    let code = |answer: &Value| answer["error"]["code"].as_i64();
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        for params in [
            json!({ "uri": "skill://other/SKILL.md" }),
            json!({ "uri": "notebook://list" }),
            json!({ "uri": 5 }),
            json!({}),
        ] {
            let refused = agent.request("skills/get", params.clone()).await;
            assert_eq!(code(&refused), Some(-32602), "{params}: {refused}");
        }
        let unknown = agent.request("skills/other", json!({})).await;
        assert_eq!(code(&unknown), Some(-32601), "{unknown}");
        for uri in [
            "skill://other/SKILL.md",
            "skill://jupyter-notebooks/other.md",
            "skill://",
        ] {
            agent.cannot_read(uri).await;
        }
        // It speaks of tools that these do not see.
        for (selection, token) in [("?toolsets=classic", TOKEN), ("", "token-of-nobody")] {
            let agent = Agent::connect_to(&gateway.url(&format!("/mcp{selection}")), token, era).await;
            let listed = agent.request("skills/list", json!({})).await;
            assert_eq!(listed["result"]["skills"], json!([]), "{selection}: {listed}");
            let refused = agent.request("skills/get", json!({ "uri": URI })).await;
            assert_eq!(code(&refused), Some(-32602), "{selection}: {refused}");
            agent.cannot_read(URI).await;
        }
    }
}
