//! An agent at work as a person sees it in JupyterLab, in a browser.

use serde_json::{Value, json};

use crate::support::{Agent, Era, Gateway, TOKEN, browser::Page, eventually, notebook::notebook, own_lab::OwnLab};

const PATH: &str = "run.ipynb";

async fn call(agent: &Agent, tool: &str, mut arguments: Value) -> Value {
    let path = match tool == "update_cursor_position" {
        true => "document_path",
        false => "path",
    };
    arguments[path] = PATH.into();
    agent.call(tool, arguments).await.ok()
}

async fn modify(agent: &Agent, cell: &str, content: &str, fork: Option<&str>) {
    let modifications = json!([{ "range": { "cell_id": cell }, "content": content }]);
    let modify = json!({ "modifications": modifications, "fork_id": fork, "exec": false });
    call(agent, "modify_nb_cells", modify).await;
}

/// A condition of the page: somebody's cursor is in a cell, with the name at it and text selected before it.
fn points_into(cell: usize, name: &str) -> String {
    format!(
        "(() => {{
            const cell = document.querySelectorAll('.jp-Notebook .jp-Cell')[{cell}];
            const box = element => element.getBoundingClientRect();
            const cursors = [...cell.querySelectorAll('.jp-remote-cursor')].map(box);
            const marks = [...cell.querySelectorAll('.jp-remote-selection')].map(box);
            const flags = [...document.querySelectorAll('.jp-remote-userFlag')].filter(flag => flag.textContent.includes({name}));
            return cursors.some(cursor =>
                marks.some(mark => mark.width > 10 && Math.abs(mark.right - cursor.left) < 5)
                && flags.map(box).some(flag => Math.abs(flag.left - cursor.left) < 20 && Math.abs(flag.top - cursor.top) < 60));
        }})()",
        name = json!(name)
    )
}

#[tokio::test]
async fn a_person_sees_the_agent_its_edits_their_undo_and_what_is_merged() {
    let lab = OwnLab::start(&[]).await;
    let mut file: Value = notebook(&["x = 1\ny = 2", "print(x)", "print(y)"])
        .parse()
        .expect("json");
    // JupyterLab would ask for it.
    file["metadata"]["kernelspec"] = json!({ "name": "python3", "display_name": "Python 3" });
    lab.write(PATH, &file.to_string());
    let gateway = Gateway::to(&lab.url(), lab.token()).await;
    let url = gateway.url("/mcp?toolsets=default,awareness");
    let agent = Agent::connect_to(&url, TOKEN, Era::Modern).await;
    let mut page = Page::open(&format!("{}lab/tree/{PATH}?token={}", lab.url(), lab.token())).await;
    page.shows_cells(&["x = 1\ny = 2", "print(x)", "print(y)"]).await;

    // Cursor, selection and name, which move.
    for (cell, id) in [(0, "c0"), (1, "c1")] {
        let pointed = json!({
            "cell_id": id,
            "position": { "line": 0, "column": 5 },
            "selection": { "start": { "line": 0, "column": 0 }, "end": { "line": 0, "column": 5 } },
        });
        call(&agent, "update_cursor_position", pointed).await;
        page.shows("the agent's cursor and name", &points_into(cell, "ana"))
            .await;
    }
    page.shows("no cursor where it was", &format!("!{}", points_into(0, "ana")))
        .await;
    page.picture("cursor").await;
    page.run("await page.locator('[data-id=\"jp-collaboration-panel\"]').click()")
        .await;
    let listed =
        "[...document.querySelectorAll('.jp-Collaborator')].some(one => /ana.*run\\.ipynb/.test(one.textContent))";
    page.shows("the agent and its document in the list of collaborators", listed)
        .await;

    // An edit, with the person's typing in the same cell, and its undo.
    modify(&agent, "c0", "x = 10\ny = 2", None).await;
    page.shows_cells(&["x = 10\ny = 2", "print(x)", "print(y)"]).await;
    page.type_into(0, "  # mine").await;
    eventually("the agent reads what the person typed", async || {
        let read = call(&agent, "read_nb_cells", json!({})).await;
        (read["cells"][0]["source"] == "x = 10\ny = 2  # mine").then_some(())
    })
    .await;
    page.picture("edit").await;
    call(&agent, "undo_changes", json!({})).await;
    page.shows_cells(&["x = 1\ny = 2  # mine", "print(x)", "print(y)"])
        .await;
    page.picture("undo").await;

    // A fork, which the person does not see until one cell of it is merged.
    let forked = call(&agent, "fork_document", json!({ "title": "Try" })).await;
    let fork = forked["fork_id"].as_str().expect("an id");
    modify(&agent, "c1", "print(x + 1)", Some(fork)).await;
    modify(&agent, "c2", "print(y + 1)", Some(fork)).await;
    page.type_into(2, "  # mine too").await;
    let typed = ["x = 1\ny = 2  # mine", "print(x)", "print(y)  # mine too"];
    page.shows_cells(&typed).await;
    let merged = json!({ "fork_id": fork, "cell_ids": ["c1"] });
    let merged = call(&agent, "merge_document_fork", merged).await;
    assert_eq!(merged["fork_kept"], true, "{merged}");
    let expected = ["x = 1\ny = 2  # mine", "print(x + 1)", "print(y)  # mine too"];
    page.shows_cells(&expected).await;
    page.shows("the agent at what was merged", &points_into(1, "ana")).await;
    page.picture("merged").await;
    call(&agent, "merge_document_fork", json!({ "fork_id": fork })).await;
    page.shows_cells(&["x = 1\ny = 2  # mine", "print(x + 1)", "print(y + 1)  # mine too"])
        .await;
}
