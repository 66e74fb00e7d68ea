//! "Notebook Content Manipulation".

use serde_json::{Value, json};

use super::{merged, says, shared};
use crate::support::{Era, eventually};

const UPDATE: &str = "batch_update_notebook_cells";
const INSERT: &str = "batch_insert_notebook_cells";
const DELETE: &str = "batch_delete_notebook_cells";

/// Arguments of a call that only edits.
fn quietly(more: Value) -> Value {
    merged(json!({ "exec": false }), more)
}

fn x() -> Value {
    json!([{ "content": "x" }])
}

#[tokio::test]
async fn cells_are_updated_by_an_inclusive_range_or_by_ids() {
    let shared = shared(Era::Modern, &["a = 1", "b = 2", "c = 3"]).await;
    let update = async |more: Value| shared.ok(UPDATE, quietly(more)).await;
    let updates = json!([{ "content": "a = 10" }, { "content": "b = 20" }]);
    let answer = update(json!({ "start_index": 0, "end_index": 1, "updates": updates })).await;
    shared.sees(&["a = 10", "b = 20", "c = 3"]).await;
    says(&answer, "Updated 2 cells in notebook");
    says(&answer, "synchronized with all collaborators");
    says(&answer, "collaboration session");
    let confirmed = json!({ "success": true, "cell_id": "c1", "position": 1 });
    assert_eq!(answer["results"][1], confirmed);
    assert_eq!(
        (&answer["executed"], &answer["acknowledged"]),
        (&json!(false), &json!(true))
    );
    assert!(answer["revision"].is_string());

    let updates = json!([{ "content": "c = 30" }, { "content": "a = 11" }]);
    update(json!({ "cell_ids": ["c2", "c0"], "updates": updates })).await;
    shared.sees(&["a = 11", "b = 20", "c = 30"]).await;
    update(json!({ "start_index": 1, "end_index": 2, "updates": x() })).await;
    shared.sees(&["a = 11", "x", "x"]).await;
    update(json!({ "start_index": 2, "updates": [{ "content": "" }] })).await;
    shared.sees(&["a = 11", "x", ""]).await;
}

#[tokio::test]
async fn a_cell_can_become_another_kind_of_cell() {
    let shared = shared(Era::Legacy, &["a = 1", "b = 2"]).await;
    let becomes = async |kind: &str, source: &str| {
        let became = |person: &crate::support::Human| {
            let cell = &person.cells()[0];
            (&*cell.id, &*cell.cell_type, &*cell.source) == ("c0", kind, source)
        };
        shared.human.wait_for(kind, became).await;
    };
    let updates = json!([{ "content": "# A", "cell_type": "markdown" }]);
    shared
        .ok(UPDATE, quietly(json!({ "start_index": 0, "updates": updates })))
        .await;
    becomes("markdown", "# A").await;
    // The other vocabulary's name for it.
    let updates = json!([{ "type": "code" }]);
    shared
        .ok(UPDATE, quietly(json!({ "cell_ids": ["c0"], "updates": updates })))
        .await;
    becomes("code", "# A").await;
    assert_eq!(shared.human.cell(0)["outputs"], json!([]));
    shared.sees(&["# A", "b = 2"]).await;
}

#[tokio::test]
async fn updates_that_cannot_be_done_whole_change_nothing() {
    let shared = shared(Era::Modern, &["a = 1", "b = 2", "c = 3"]).await;
    for (more, names) in [
        (json!({ "updates": x() }), ["start_index", "cell_ids"]),
        (json!({ "end_index": 1, "updates": x() }), ["start_index", "cell_ids"]),
        (
            json!({ "start_index": 0, "cell_ids": ["c0"], "updates": x() }),
            ["start_index", "cell_ids"],
        ),
        (
            json!({ "start_index": 2, "end_index": 1, "updates": x() }),
            ["end_index", "inclusive"],
        ),
        (
            json!({ "start_index": 0, "end_index": 3, "updates": x() }),
            ["3 cells", "0 to 2"],
        ),
        (json!({ "start_index": -1, "updates": x() }), ["start_index", "-1"]),
        (
            json!({ "cell_ids": ["c0", "nope"], "updates": x() }),
            ["cell_ids[1]", "nope"],
        ),
        (
            json!({ "cell_ids": ["c0", "c0"], "updates": x() }),
            ["cell_ids[1]", "twice"],
        ),
        (json!({ "cell_ids": [], "updates": x() }), ["cell_ids", "at least one"]),
        (json!({ "start_index": 0 }), ["updates", "missing"]),
        (json!({ "start_index": 0, "updates": [] }), ["updates", "at least one"]),
        (json!({ "start_index": 0, "updates": [{}] }), ["updates[0]", "content"]),
        (
            json!({ "start_index": 0, "end_index": 2, "updates": [{ "content": "x" }, { "content": "y" }] }),
            ["updates", "one for each"],
        ),
        (
            json!({ "start_index": 0, "updates": [{ "content": "x", "cell_type": "poem" }] }),
            ["updates[0].cell_type", "markdown"],
        ),
        (
            json!({ "start_index": 0, "updates": [{ "content": 7 }] }),
            ["updates[0].content", "string"],
        ),
    ] {
        shared.refused(UPDATE, quietly(more), &names).await;
    }
    let revision = shared.ok("get_notebook", json!({})).await["revision"].clone();
    shared.human.splice_cell("c0", 0, 0, "# mine\n");
    eventually("the gateway has the person's edit", async || {
        let read = shared.ok("get_notebook", json!({})).await;
        (read["content"]["cells"][0]["source"] == "# mine\na = 1").then_some(())
    })
    .await;
    let stale = json!({ "cell_ids": ["c2", "c0"], "updates": x(), "if_revision": revision });
    shared.refused(UPDATE, quietly(stale), &["somebody else", "c0"]).await;
    shared.sees(&["# mine\na = 1", "b = 2", "c = 3"]).await;
}

#[tokio::test]
async fn cells_are_inserted_where_they_are_meant_before_the_call() {
    let shared = shared(Era::Legacy, &["a", "b"]).await;
    let cells = json!([{ "content": "one" }, { "content": "two", "cell_type": "markdown" }]);
    let answer = shared
        .ok(INSERT, quietly(json!({ "start_position": 1, "cells": cells })))
        .await;
    shared.sees(&["a", "one", "two", "b"]).await;
    says(&answer, "Inserted 2 cells");
    says(&answer, "synchronized with all collaborators");
    let confirmed = json!({ "success": true, "cell_id": shared.ids()[2], "position": 2 });
    assert_eq!(answer["results"][1], confirmed);
    let kinds = [1, 2].map(|index| shared.human.cells()[index].cell_type.clone());
    assert_eq!(kinds, ["code", "markdown"], "code by default");

    let cells = json!([{ "content": "y" }, { "content": "v" }, { "content": "w" }, { "content": "z" }]);
    let answer = shared
        .ok(INSERT, quietly(json!({ "positions": [4, 0, 1, -1], "cells": cells })))
        .await;
    shared.sees(&["v", "a", "w", "one", "two", "b", "y", "z"]).await;
    let results = answer["results"].as_array().expect("results");
    let positions: Vec<&Value> = results.iter().map(|result| &result["position"]).collect();
    assert_eq!(positions, [6, 0, 2, 7]);
    shared
        .ok(INSERT, quietly(json!({ "cells": [{ "content": "last" }] })))
        .await;
    let all = ["v", "a", "w", "one", "two", "b", "y", "z", "last"];
    shared.sees(&all).await;

    for (more, names) in [
        (json!({ "start_position": 0 }), ["cells", "missing"]),
        (json!({ "cells": [] }), ["cells", "at least one"]),
        (json!({ "start_position": 10, "cells": x() }), ["10", "0 to 9"]),
        (
            json!({ "start_position": -2, "cells": x() }),
            ["start_position", "-1 to append"],
        ),
        (
            json!({ "positions": [0, 99], "cells": [{ "content": "x" }, { "content": "y" }] }),
            ["99", "0 to 9"],
        ),
        (
            json!({ "positions": [0, 1], "cells": x() }),
            ["positions", "one for each"],
        ),
        (
            json!({ "positions": [0], "start_position": 0, "cells": x() }),
            ["positions", "start_position"],
        ),
        (
            json!({ "cells": [{ "content": "x", "cell_type": "poem" }] }),
            ["cells[0].cell_type", "code"],
        ),
    ] {
        shared.refused(INSERT, quietly(more), &names).await;
    }
    shared.sees(&all).await;
}

#[tokio::test]
async fn cells_are_deleted_by_an_inclusive_range_or_by_ids() {
    let shared = shared(Era::Modern, &["0", "1", "2", "3", "4", "5", "6"]).await;
    let answer = shared
        .ok(DELETE, quietly(json!({ "start_index": 1, "end_index": 2 })))
        .await;
    shared.sees(&["0", "3", "4", "5", "6"]).await;
    says(&answer, "Deleted 2 cells");
    says(&answer, "synchronized with all collaborators");
    assert_eq!(answer["results"][1], json!({ "success": true, "cell_id": "c2" }));
    let answer = shared
        .ok(DELETE, quietly(json!({ "cell_ids": ["c6", "c0", "c0", "c4"] })))
        .await;
    shared.sees(&["3", "5"]).await;
    assert_eq!(answer["results"].as_array().map(Vec::len), Some(3), "each once");
    shared.ok(DELETE, quietly(json!({ "start_index": 1 }))).await;
    shared.sees(&["3"]).await;
    for (more, names) in [
        (json!({}), ["start_index", "cell_ids"]),
        (json!({ "start_index": 0, "end_index": 1 }), ["1 cell", "out of range"]),
        (json!({ "cell_ids": ["c3", "nope"] }), ["cell_ids[1]", "nope"]),
    ] {
        shared.refused(DELETE, quietly(more), &names).await;
    }
    shared.sees(&["3"]).await;
}
