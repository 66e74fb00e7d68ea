//! Notebooks that callers hand in with something that would run in the browser of whoever opens them.

use serde_json::{Value, json};

use crate::support::{Agent, Era, Gateway, Human, eventually, lab, notebook::whole_cells_on_disk};

/// A notebook that says that it may do everything.
fn armed() -> String {
    let display = |data: Value| json!({ "output_type": "display_data", "data": data, "metadata": {} });
    json!({
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": { "widgets": { "application/vnd.jupyter.widget-state+json": { "state": {} } } },
        "cells": [{
            "cell_type": "code",
            "id": "armed",
            "metadata": { "trusted": true, "tags": ["kept"] },
            "source": "1",
            "execution_count": 1,
            "outputs": [
                display(json!({ "text/html": "<script>alert('html')</script>", "text/plain": "shown" })),
                display(json!({ "application/javascript": "alert('script')" })),
                display(json!({ "image/svg+xml": "<svg onload=\"alert('svg')\"/>" })),
                display(json!({ "application/vnd.jupyter.widget-view+json": { "model_id": "alert" } })),
            ],
        }, {
            "cell_type": "markdown",
            "id": "words",
            "metadata": { "trusted": true },
            "source": "words",
        }],
    })
    .to_string()
}

fn is_disarmed(cells: &[Value]) -> bool {
    let text = Value::from(cells.to_vec()).to_string();
    let is_trusted = |cell: &Value| cell["metadata"]["trusted"] == true;
    text.contains("shown") && text.contains("kept") && !text.contains("alert") && !cells.iter().any(is_trusted)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_would_run_is_left_out_of_what_callers_write() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let created = folder.path("created.ipynb");
    let create = json!({ "path": created, "type": "notebook", "content": armed() });
    let told = agent.call("create_document", create).await.ok();
    let message = told["message"].as_str().expect("a message");
    assert!(
        message.contains("Left out") && message.contains("`trusted`"),
        "{message}"
    );
    let on_disk = whole_cells_on_disk(&folder.disk.join("created.ipynb")).expect("a notebook");
    assert!(is_disarmed(&on_disk), "{on_disk:?}");
    assert!(!folder.read("created.ipynb").contains("widget-state"));
    let human = Human::join(&created).await;
    assert!(is_disarmed(&[human.cell(0), human.cell(1)]), "{}", human.cell(0));

    let live = folder.notebook("live.ipynb");
    let human = Human::join(&live).await;
    let overwrite = json!({ "path": live, "content": armed() });
    let told = agent.call("overwrite_document", overwrite).await.ok();
    assert!(
        told["message"].as_str().expect("a message").contains("Left out"),
        "{told}"
    );
    human
        .wait_for("the person sees it", |human| {
            human.cells().len() == 2 && is_disarmed(&[human.cell(0), human.cell(1)])
        })
        .await;
    eventually("it is on disk", async || {
        let cells = whole_cells_on_disk(&folder.disk.join("live.ipynb"))?;
        is_disarmed(&cells).then_some(())
    })
    .await;
    let plain = json!({ "path": folder.path("plain.ipynb"), "type": "notebook" });
    let told = agent.call("create_document", plain).await.ok();
    assert!(!told["message"].as_str().expect("a message").contains("Left out"));
}
