//! "Notebook Execution", by itself and around edits.

use serde_json::{Value, json};

use super::shared;
use crate::support::{Era, Human};

const ONE: &str = "execute_notebook_cell";
const BATCH: &str = "batch_execute_notebook_cells";
const UPDATE: &str = "batch_update_notebook_cells";
const INSERT: &str = "batch_insert_notebook_cells";
const DELETE: &str = "batch_delete_notebook_cells";

fn value(result: &Value) -> &str {
    result["outputs"][0]["data"]["text/plain"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
}

#[tokio::test]
async fn cells_are_executed_and_people_see_it() {
    let sources = ["print('one')", "2 + 2", "1 / 0", "print('never')"];
    let shared = shared(Era::Legacy, &sources).await;
    let done = shared.ok(ONE, json!({ "cell_id": "c1" })).await;
    assert_eq!(done["status"], "completed");
    assert_eq!((&done["cell_id"], &done["execution_count"]), (&json!("c1"), &json!(1)));
    assert_eq!(value(&done), "4");
    assert!(
        done["execution_id"].is_string() && done["description"].is_string(),
        "{done}"
    );
    let seen = |person: &Human| person.cell(1)["outputs"][0]["data"]["text/plain"] == "4";
    shared.human.wait_for("the output is seen", seen).await;
    let failed = shared.fails(ONE, json!({ "cell_id": "c2" })).await;
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["outputs"][0]["ename"], "ZeroDivisionError");
    for (more, names) in [
        (json!({ "cell_id": "nope" }), ["nope", "4 cells (c0, c1, c2, c3)"]),
        (json!({}), ["cell_id", "missing"]),
        (json!({ "cell_id": "c0", "timeout": -1 }), ["timeout", "-1"]),
    ] {
        shared.refused(ONE, more, &names).await;
    }

    let done = shared
        .ok(BATCH, json!({ "start_index": 0, "end_index": 1, "timeout": 60 }))
        .await;
    assert_eq!(
        (&done["executed_cells"], &done["status"]),
        (&json!(2), &json!("completed"))
    );
    assert_eq!(done["execution_results"][0]["outputs"][0]["text"], "one\n");
    let failed = shared.fails(BATCH, json!({ "cell_ids": ["c2", "c3"] })).await;
    assert_eq!(
        failed["execution_results"][1]["outputs"],
        json!([]),
        "an error stops the rest"
    );
    shared.refused(BATCH, json!({}), &["start_index", "cell_ids"]).await;
    shared
        .refused(BATCH, json!({ "start_index": 2, "end_index": 9 }), &["0 to 3"])
        .await;

    let slow = json!([{ "content": "import time; time.sleep(2); print('late')" }]);
    shared
        .ok(UPDATE, json!({ "start_index": 0, "updates": slow, "exec": false }))
        .await;
    let running = shared.ok(ONE, json!({ "cell_id": "c0", "timeout": 0.2 })).await;
    assert_eq!(running["status"], "running");
    let followed = json!({ "execution_id": running["execution_id"], "wait": 20 });
    let followed = shared.agent.call("get_execution", followed).await.ok();
    assert_eq!(followed["status"], "completed");
    let late = |person: &Human| person.cell(0)["outputs"][0]["text"] == "late\n";
    shared.human.wait_for("it goes on", late).await;
}

#[tokio::test]
async fn what_is_updated_or_inserted_is_executed() {
    let shared = shared(Era::Modern, &["pass"]).await;
    let updates = json!([{ "content": "seen = 5; seen" }]);
    let updated = shared
        .ok(UPDATE, json!({ "cell_ids": ["c0"], "updates": updates }))
        .await;
    assert_eq!(
        (&updated["executed"], &updated["status"]),
        (&json!(true), &json!("completed"))
    );
    assert_eq!(value(&updated["execution_results"][0]), "5");
    let cells = json!([{ "content": "# text", "cell_type": "markdown" }, { "content": "seen * 2" }]);
    let inserted = shared.ok(INSERT, json!({ "cells": cells })).await;
    assert_eq!(value(&inserted["execution_results"][0]), "10");
    let broken = shared.fails(INSERT, json!({ "cells": [{ "content": "oops(" }] })).await;
    assert_eq!(
        (&broken["status"], &broken["results"][0]["success"]),
        (&json!("failed"), &json!(true))
    );
    shared.sees(&["seen = 5; seen", "# text", "seen * 2", "oops("]).await;
    let text = json!([{ "content": "# only text", "cell_type": "markdown" }]);
    let text = shared.ok(INSERT, json!({ "cells": text })).await;
    assert_eq!(text["executed"], false, "there was nothing to execute");
    let cell_id = &text["results"][0]["cell_id"];
    shared
        .refused(ONE, json!({ "cell_id": cell_id }), &["cell_id", "code"])
        .await;
}

#[tokio::test]
async fn what_is_deleted_is_executed_before() {
    let sources = ["seen = 77", "seen * 2", "oops(", "# last", "import time; time.sleep(2)"];
    let shared = shared(Era::Legacy, &sources).await;
    let deleted = shared.ok(DELETE, json!({ "start_index": 0 })).await;
    assert_eq!(
        (&deleted["executed"], &deleted["status"]),
        (&json!(true), &json!("completed"))
    );
    shared.sees(&sources[1..]).await;
    assert_eq!(
        value(&shared.ok(ONE, json!({ "cell_id": "c1" })).await),
        "154",
        "what it did stays"
    );

    let failed = shared.fails(DELETE, json!({ "cell_ids": ["c2", "c3"] })).await;
    super::says(&failed, "Deleted 2 cells");
    shared.sees(&["seen * 2", sources[4]]).await;

    let cells = json!([{ "content": "# text", "cell_type": "markdown" }]);
    let text = shared.ok(INSERT, json!({ "cells": cells })).await;
    let chosen = json!({ "cell_ids": [text["results"][0]["cell_id"]] });
    let deleted = shared.ok(DELETE, chosen).await;
    assert_eq!(
        (&deleted["executed"], &deleted["results"][0]["success"]),
        (&json!(false), &json!(true))
    );
    shared.sees(&["seen * 2", sources[4]]).await;

    let going_on = shared.ok(DELETE, json!({ "cell_ids": ["c4"], "timeout": 0.2 })).await;
    assert_eq!(
        (&going_on["status"], &going_on["results"]),
        (&json!("running"), &json!([]))
    );
    super::says(&going_on, "Nothing was deleted yet");
    shared.sees(&["seen * 2", sources[4]]).await;
    shared.ok(DELETE, json!({ "cell_ids": ["c4"], "exec": false })).await;
    shared.sees(&["seen * 2"]).await;
}
