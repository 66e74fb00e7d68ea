//! What clients install instead of being configured: a plugin for Claude Code and a bundle for desktop clients.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, TIMEOUT, TOKEN,
    command::{Ended, ended},
    lab,
    node::{Packages, node_modules, real_node},
    operator_tools::{node, node_tools, project},
    within,
};

const PLUGIN: &str = "deploy/claude-code-plugin";
/// What the bundle brings, by its own lockfile.
const BRIDGE: Packages = Packages {
    name: "desktop-bundle",
    manifest: include_str!("../../deploy/desktop-bundle/package.json"),
    lockfile: include_str!("../../deploy/desktop-bundle/package-lock.json"),
};

fn read(path: &str) -> Value {
    let text = fs::read_to_string(project(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn run(command: &mut Command) -> Ended {
    ended(command.current_dir(project("")).output().expect("it runs"))
}

#[tokio::test]
async fn the_plugin_for_claude_code_leads_to_a_gateway() {
    let marketplace = read(".claude-plugin/marketplace.json");
    let listed = &marketplace["plugins"][0];
    let folder = listed["source"].as_str().unwrap();
    assert_eq!(folder, format!("./{PLUGIN}"));
    let plugin = read(&format!("{PLUGIN}/.claude-plugin/plugin.json"));
    assert_eq!(listed["name"], plugin["name"]);
    assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"));
    // The skill is the one that the gateway itself offers.
    let skill = "skills/jupyter-notebooks/SKILL.md";
    let (shared, own) = (
        fs::read_to_string(project(PLUGIN).join(skill)),
        fs::read_to_string(project(skill)),
    );
    assert_eq!(shared.unwrap(), own.unwrap());

    let gateway = Gateway::start().await;
    let asked = plugin["userConfig"].as_object().unwrap();
    assert_eq!(asked["token"]["sensitive"], true);
    let server = &read(&format!("{PLUGIN}/.mcp.json"))["mcpServers"]["jupyter"];
    let filled = |text: &Value| {
        let mut text = text.as_str().unwrap().to_owned();
        for key in asked.keys() {
            let value = if key == "url" {
                gateway.url("/mcp")
            } else {
                TOKEN.to_owned()
            };
            text = text.replace(&format!("${{user_config.{key}}}"), &value);
        }
        assert!(!text.contains("${"), "{text}");
        text
    };
    assert_eq!(server["type"], "http");
    let authorization = filled(&server["headers"]["Authorization"]);
    let token = authorization.strip_prefix("Bearer ").unwrap();
    let agent = Agent::connect_to(&filled(&server["url"]), token, Era::Legacy).await;
    let servers = agent.call("list_servers", json!({})).await.ok();
    assert_eq!(servers["servers"][0]["name"], "lab", "{servers}");
}

/// The tool for bundles.
fn mcpb(arguments: &[&str]) -> Ended {
    let mut command = node(&node_tools().join("@anthropic-ai/mcpb/dist/cli/cli.js"));
    run(command.args(arguments))
}

#[tokio::test]
async fn the_bundle_for_desktop_clients_leads_to_a_gateway() {
    let manifest = read("deploy/desktop-bundle/manifest.json");
    assert_eq!(
        (&manifest["manifest_version"], &manifest["version"]),
        (&json!("0.3"), &json!(env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(manifest["user_config"]["token"]["sensitive"], true);
    let valid = mcpb(&["validate", "deploy/desktop-bundle/manifest.json"]);
    assert_eq!(valid.code, Some(0), "{}{}", valid.stdout, valid.stderr);

    let modules = node_modules(&BRIDGE, &lab::venv());
    let folder = tempfile::tempdir().unwrap();
    let node = real_node(&lab::venv());
    let tool = node_tools().join("@anthropic-ai/mcpb/dist/cli/cli.js");
    let mut pack = Command::new("sh");
    pack.arg("deploy/desktop-bundle/pack.sh").arg(folder.path());
    pack.env("MODULES", &modules);
    let packed = run(pack.env("MCPB", format!("{} {}", node.display(), tool.display())));
    assert_eq!(packed.code, Some(0), "{}{}", packed.stdout, packed.stderr);
    let bundle = packed.stdout.lines().next_back().unwrap();
    let unpacked = folder.path().join("unpacked").display().to_string();
    let done = mcpb(&["unpack", bundle, &unpacked]);
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    assert!(Path::new(&unpacked).join("LICENSE-MIT").is_file());

    let gateway = Gateway::start().await;
    let mut client = tokio::process::Command::new(node);
    client.arg(project("tests/deploy/bundle.mjs")).arg(node_tools());
    client.args([&unpacked, &gateway.url("/mcp"), TOKEN]);
    client.env("MCP_REMOTE_CONFIG_DIR", folder.path()).kill_on_drop(true);
    let called = within(TIMEOUT, "a call through the bundle", client.output()).await;
    let called = ended(called.expect("it runs"));
    assert_eq!(called.code, Some(0), "{}", called.stderr);
    let answer: Value = serde_json::from_str(called.stdout.trim()).unwrap();
    let servers = &answer["result"]["structuredContent"]["servers"];
    assert_eq!(servers[0]["name"], "lab", "{answer}");
}
