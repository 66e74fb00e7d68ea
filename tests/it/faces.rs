//! The two faces of an answer: text and images for models, structured content for programs.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::support::{Agent, Era, Gateway, agent::ERAS, lab, notebook::notebook};

async fn call(agent: &Agent, tool: &str, arguments: Value) -> Value {
    let call = json!({ "name": tool, "arguments": arguments });
    agent.request("tools/call", call).await["result"].take()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
}

/// Returns whether answers have structured content, and whether tools have a schema of it.
async fn has_structured(agent: &Agent) -> (bool, bool) {
    let answer = call(agent, "get_base_url", json!({})).await;
    assert!(text(&answer).starts_with("http://"), "{answer}");
    let listed = agent.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{listed}"));
    let with_schema = tools.iter().filter(|tool| !tool["outputSchema"].is_null()).count();
    assert!(with_schema == 0 || with_schema == tools.len(), "all tools or none");
    (!answer["structuredContent"].is_null(), with_schema > 0)
}

#[tokio::test]
async fn clients_that_hide_text_beside_structured_content_get_text_only() {
    let gateway = Gateway::start().await;
    let url = |query: &str| gateway.url(&format!("/mcp{query}"));
    for era in ERAS {
        for (client, query, expected) in [
            ("test", "", true),
            ("claude-code", "", false),
            ("codex-mcp-client", "", false),
            ("opencode", "", false),
            ("github-copilot-developer", "", false),
            ("Visual Studio Code", "", false),
            ("Visual Studio Code - Insiders", "", false),
            ("my-claude-code", "", true),
            ("test", "?structured=false", false),
            ("claude-code", "?structured=true", true),
        ] {
            let agent = Agent::introduced_as(client, &url(query), era).await;
            assert_eq!(
                has_structured(&agent).await,
                (expected, expected),
                "{client} {query} {era:?}"
            );
        }
    }
}

#[tokio::test]
async fn operators_choose_which_clients_get_text_only() {
    let gateway = Gateway::with("[mcp]\ncontent_only_clients = [\"te\"]\n").await;
    for era in ERAS {
        let url = gateway.url("/mcp");
        let agents = [("test", false), ("claude-code", true)];
        for (client, expected) in agents {
            let agent = Agent::introduced_as(client, &url, era).await;
            assert_eq!(has_structured(&agent).await, (expected, expected), "{client}");
        }
    }
}

#[tokio::test]
async fn a_plot_is_an_image_and_a_print_is_a_line() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["print('hello')", PLOT]));
    for era in ERAS {
        let agent = Agent::introduced_as("claude-code", &gateway.url("/mcp"), era).await;
        let run = json!({ "path": path, "ranges": [{ "start": 0 }] });
        let printed = call(&agent, "execute_nb_cells", run).await;
        assert!(text(&printed).ends_with("hello"), "{printed}");
        assert!(text(&printed).len() <= 120, "{printed}");
        assert!(printed["structuredContent"].is_null(), "{printed}");
        let plotted = call(
            &agent,
            "execute_nb_cells",
            json!({ "path": path, "ranges": [{ "start": 1 }] }),
        )
        .await;
        let image = &plotted["content"][1];
        assert_eq!(
            (&image["type"], &image["mimeType"]),
            (&json!("image"), &json!("image/png"))
        );
        let bytes = BASE64_STANDARD.decode(image["data"].as_str().unwrap()).unwrap();
        assert_eq!(image::load_from_memory(&bytes).unwrap().width(), 3);
        let read = call(&agent, "read_nb_cells", json!({ "path": path })).await;
        assert_eq!(read["content"][1]["type"], "image", "{read}");
        let without = call(&agent, "read_nb_cells", json!({ "path": path, "images": false })).await;
        assert_eq!(without["content"].as_array().unwrap().len(), 1, "{without}");
    }
}

/// Shows a picture of 3 x 2 pixels without a library for plots.
const PLOT: &str = "import struct, zlib\nfrom IPython.display import Image\n\ndef chunk(kind, data):\n    body = kind + data\n    return struct.pack('>I', len(data)) + body + struct.pack('>I', zlib.crc32(body))\n\nrows = b''.join(b'\\0' + b'\\xff\\0\\0' * 3 for _ in range(2))\nImage(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 3, 2, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))";

#[tokio::test]
async fn a_notebook_is_read_in_three_views() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let output = json!({ "output_type": "stream", "name": "stdout", "text": "one \"1\"\ntwo\n" });
    let cells = json!([
        { "id": "0123456789ab", "cell_type": "markdown", "source": "# Title\n\nwords", "metadata": {} },
        { "id": "0123abcdef00", "cell_type": "code", "source": "print('a')\nprint(\"b\")", "metadata": {}, "outputs": [output], "execution_count": 3 },
    ]);
    let file = json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5 });
    let path = folder.write("a.ipynb", &file.to_string());
    let agent = Agent::introduced_as("claude-code", &gateway.url("/mcp"), Era::Modern).await;
    let read = async |view: &str| {
        let answer = call(&agent, "read_nb_cells", json!({ "path": path, "view": view })).await;
        let text = text(&answer).to_owned();
        let (facts, rest) = text.split_once('\n').unwrap_or_else(|| panic!("{text}"));
        assert!(facts.starts_with(&format!("{path}: 2 cells, revision ")), "{facts}");
        rest.to_owned()
    };
    assert_eq!(
        read("outline").await,
        "[0] 012345 markdown # Title (3 lines)\n[1] 0123ab code [3] print('a') (2 lines) -> text 2 lines: one \"1\""
    );
    assert_eq!(
        read("brief").await,
        "--- [0] 012345 markdown\n# Title\n\nwords\n--- [1] 0123ab code [3]\nprint('a')\nprint(\"b\")\n-> text 2 lines: one \"1\""
    );
    assert_eq!(
        read("full").await,
        "--- [0] 012345 markdown\n# Title\n\nwords\n--- [1] 0123ab code [3]\nprint('a')\nprint(\"b\")\n--- out\none \"1\"\ntwo"
    );
    let wrong = call(&agent, "read_nb_cells", json!({ "path": path, "view": "outlines" })).await;
    assert!(wrong["isError"] == true && text(&wrong).contains("outline"), "{wrong}");
}

#[tokio::test]
async fn what_exceeds_the_budget_is_named_with_the_call_that_gets_it() {
    let gateway = Gateway::with("[answers]\nmax_text_bytes = 4096\n").await;
    let folder = lab().folder();
    let sources: Vec<String> = (0..40).map(|n| format!("# {n}\n{}", "x = 1\n".repeat(50))).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let path = folder.write("a.ipynb", &notebook(&sources));
    let agent = Agent::introduced_as("claude-code", &gateway.url("/mcp"), Era::Modern).await;
    let (mut next, mut seen) = (json!(null), 0);
    for _ in 0..40 {
        let answer = call(&agent, "read_nb_cells", json!({ "path": path, "ranges": next })).await;
        let text = text(&answer);
        assert!(text.len() <= 4096, "{}", text.len());
        seen += text.matches("--- [").count();
        let Some((_, call)) = text.rsplit_once("read_nb_cells(ranges=") else {
            break;
        };
        next = serde_json::from_str(call.trim_end_matches(")]")).unwrap_or_else(|error| panic!("{error}: {call}"));
    }
    assert_eq!(seen, 40, "every cell was shown once");
}

/// An agent like Claude Code, and a notebook of code cells.
async fn model(gateway: &Gateway, path: &str, sources: &[&str]) -> (Agent, String) {
    let file = lab().folder().write(path, &notebook(sources));
    let agent = Agent::introduced_as("claude-code", &gateway.url("/mcp"), Era::Modern).await;
    (agent, file)
}

#[tokio::test]
async fn empty_cells_are_told_as_empty_and_not_as_cells_that_did_not_run() {
    let gateway = Gateway::start().await;
    let sources = ["1", "", "x = 1", "print('a')", "", "2", "3"];
    let (agent, path) = model(&gateway, "empty.ipynb", &sources).await;
    let all = call(&agent, "execute_nb_cells", json!({ "path": path })).await;
    assert!(
        text(&all).starts_with("5 of 5 cells ran, 4 with output, 2 empty\n"),
        "{all}"
    );
    assert!(!text(&all).contains("not run"), "{all}");
    let one = call(
        &agent,
        "execute_nb_cells",
        json!({ "path": path, "ranges": [{ "start": 1 }] }),
    )
    .await;
    assert!(text(&one).ends_with("[ ]: empty"), "{one}");
    let copy = call(&agent, "run_notebook", json!({ "path": path })).await;
    assert!(text(&copy).contains("5 of 5 code cells ran"), "{copy}");
    let nothing = call(&agent, "run_code", json!({ "path": path, "code": " " })).await;
    assert_eq!(text(&nothing), "nothing to run: the code is empty");
}

#[tokio::test]
async fn what_is_cut_of_the_output_of_code_can_be_asked_for() {
    let gateway = Gateway::start().await;
    let (agent, path) = model(&gateway, "long.ipynb", &["1"]).await;
    let code = "for i in range(900): print('line', i)";
    let cut = call(&agent, "run_code", json!({ "path": path, "code": code })).await;
    let (_, more) = text(&cut).rsplit_once('\n').expect("lines");
    let quoted: Vec<&str> = more.split('"').collect();
    assert!(
        more.starts_with("[more: get_execution(") && !text(&cut).contains("line 450\n"),
        "{cut}"
    );
    let size: usize = more
        .rsplit_once('=')
        .expect("a size")
        .1
        .trim_end_matches(")]")
        .parse()
        .expect("a number");
    let rest = json!({ "execution_id": quoted[1], "max_cell_output_size": size });
    let whole = call(&agent, "get_execution", rest).await;
    assert!(
        text(&whole).contains("line 450\n") && text(&whole).ends_with("line 899"),
        "{whole}"
    );
}

#[tokio::test]
async fn what_was_told_of_a_run_is_not_told_again() {
    let gateway = Gateway::start().await;
    let sources = [
        "print('first')",
        "import time\nfor i in range(1000): print('step', i); time.sleep(0.1)",
        "print('last')",
    ];
    let (agent, path) = model(&gateway, "watched.ipynb", &sources).await;
    // A kernel takes its time to start on a busy machine.
    call(&agent, "run_code", json!({ "path": path, "code": "1" })).await;
    let begun = call(&agent, "execute_nb_cells", json!({ "path": path, "timeout": 4 })).await;
    let (told, how) = text(&begun).rsplit_once('\n').expect("lines");
    assert!(
        told.contains("first\n") && how.starts_with("running; get_execution("),
        "{begun}"
    );
    let quoted: Vec<&str> = how.split('"').collect();
    let (id, since) = (quoted[1], quoted[3]);
    let next = call(
        &agent,
        "get_execution",
        json!({ "execution_id": id, "since": since, "wait": 1 }),
    )
    .await;
    assert!(
        !text(&next).contains("first") && !text(&next).contains("no output"),
        "{next}"
    );
    assert!(
        text(&next).contains(" running\nstep ") && !text(&next).contains("step 0\n"),
        "{next}"
    );
    let cancelled = call(&agent, "cancel_execution", json!({ "execution_id": id })).await;
    assert_eq!(text(&cancelled), "The execution was cancelled");
    let ended = call(&agent, "get_execution", json!({ "execution_id": id, "since": since })).await;
    assert!(text(&ended).ends_with("\ncancelled"), "{ended}");
    let listed = call(&agent, "list_executions", json!({ "path": path })).await;
    let line = text(&listed).lines().next().expect("the newest");
    assert!(
        line.starts_with(&format!("{id} cancelled: 3 cells of {path}, 2")) && line.len() < 140,
        "{line}"
    );
}

#[tokio::test]
async fn files_are_listed_in_lines_and_binary_ones_are_named_by_their_resource() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    folder.write("notes.md", "# Notes\n");
    let agent = Agent::introduced_as("claude-code", &gateway.url("/mcp"), Era::Modern).await;
    let picture =
        json!({ "path": folder.path("p.png"), "content_base64": BASE64_STANDARD.encode([137, 80, 78, 71, 0, 255]) });
    call(&agent, "create_document", picture).await;
    let listed = call(&agent, "list_documents", json!({ "path": folder.name })).await;
    let lines: Vec<&str> = text(&listed).lines().collect();
    assert_eq!(lines.len(), 2, "{listed}");
    assert!(
        lines[0].starts_with(&format!("{}  8 bytes  20", folder.path("notes.md"))),
        "{listed}"
    );
    let found = call(
        &agent,
        "list_documents",
        json!({ "path_filter": format!("{}/*.png", folder.name) }),
    )
    .await;
    assert!(
        text(&found).contains(&format!("\n{}  6 bytes", folder.path("p.png"))),
        "{found}"
    );
    let info = json!({ "path": folder.path("p.png"), "include_content": true });
    let info = call(&agent, "get_document_info", info).await;
    let last = info["content"]
        .as_array()
        .and_then(|parts| parts.last())
        .expect("parts");
    let resource = format!("[binary: resource file:///documents/lab/{}]", folder.path("p.png"));
    assert_eq!(last["text"], resource.as_str(), "{info}");
}

#[tokio::test]
async fn long_lines_are_cut_in_the_line_and_cells_are_named_in_short() {
    let gateway = Gateway::start().await;
    let (agent, path) = model(&gateway, "lines.ipynb", &["1"]).await;
    let source = format!("from module import {}\n2", "name, ".repeat(30));
    let cells = json!([{ "type": "code", "content": source }]);
    let inserted = json!({ "path": path, "position": -1, "exec": false, "cells": cells });
    let inserted = call(&agent, "insert_nb_cells", inserted).await;
    let line = text(&inserted).lines().last().expect("lines");
    assert!(
        line.starts_with("+[1] ") && line.ends_with("... (2 lines)"),
        "{inserted}"
    );
    let unknown = call(
        &agent,
        "read_nb_cells",
        json!({ "path": path, "ranges": [{ "cell_id": "nowhere" }] }),
    )
    .await;
    assert!(text(&unknown).len() < 120, "{unknown}");
    for (ranges, expected) in [
        (
            json!([0, 1]),
            "argument `ranges[0]`: expected an object with `cell_id`, `end`, `start`, not 0",
        ),
        (
            json!("0-3"),
            "expected an array of objects with `cell_id`, `end`, `start`",
        ),
    ] {
        let refused = call(&agent, "read_nb_cells", json!({ "path": path, "ranges": ranges })).await;
        assert!(text(&refused).contains(expected), "{refused}");
    }
    let none = call(&agent, "clear_nb_outputs", json!({ "path": path, "ranges": [] })).await;
    assert!(
        none["isError"] == true && text(&none).contains("name at least one"),
        "{none}"
    );
}
