//! Edits of cells and text, and their refusals, as agents and a person in the same document see them.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, eventually, lab,
    notebook::{cells_on_disk, notebook},
    scene::Scene,
};

/// A notebook of ten cells `0` to `9`, a person in it, and an agent.
async fn scene() -> Scene {
    let cells = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    Scene::notebook(&cells).editing().set().await
}

impl Scene {
    async fn revision(&self) -> Value {
        self.call("read_nb_cells", json!({})).await.ok()["revision"].take()
    }

    async fn gateway_has(&self, source: &str) {
        eventually(&format!("the gateway has {source:?}"), async || {
            let read = self.call("read_nb_cells", json!({})).await.ok();
            read["cells"]
                .as_array()
                .unwrap()
                .iter()
                .any(|cell| cell["source"] == source)
                .then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn deletes_take_ranges_and_ids_in_any_order() {
    let scene = scene().await;
    let ranges = json!([{ "start": 7, "end": 9 }, { "cell_id": "c1" }, { "start": 6, "end": 8 }, { "start": 3 }, { "cell_id": "c7" }]);
    let deleted = scene.call("delete_nb_cells", json!({ "ranges": ranges })).await.ok();
    assert_eq!(deleted["deleted_cells"], 5);
    assert_eq!(deleted["cell_ids"], json!(["c1", "c3", "c6", "c7", "c8"]));
    scene
        .human
        .wait_for("the person sees what is left", |human| {
            human.sources() == ["0", "2", "4", "5", "9"]
        })
        .await;
    let file = scene.folder.disk.join("run.ipynb");
    eventually("the file too", async || {
        (cells_on_disk(&file)?.len() == 5).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_done_whole_is_not_done_at_all() {
    let scene = scene().await;
    let revision = scene.revision().await;
    let before = scene.human.cells();
    let fine = json!({ "start": 0, "end": 2 });
    for (bad, hint) in [
        (json!({ "start": 10 }), "10 cells, 0 to 9"),
        (json!({ "start": 9, "end": 11 }), "out of range"),
        (json!({ "start": 2, "end": 2 }), "greater than `start`"),
        (json!({ "start": 5, "end": 3 }), "greater than `start`"),
        (json!({ "cell_id": "nobody" }), "nobody"),
        (json!({ "cell_id": "c0", "start": 1 }), "either"),
        (json!({ "end": 3 }), "either"),
        (json!({}), "either"),
        (json!({ "start": 1_u64 << 40 }), "out of range"),
    ] {
        for ranges in [json!([bad]), json!([fine, bad]), json!([bad, fine])] {
            let modifications: Vec<Value> = ranges
                .as_array()
                .unwrap()
                .iter()
                .map(|range| json!({ "range": range, "content": "x" }))
                .collect();
            for (tool, arguments) in [
                ("delete_nb_cells", json!({ "ranges": ranges })),
                ("modify_nb_cells", json!({ "modifications": modifications })),
                ("read_nb_cells", json!({ "ranges": ranges })),
            ] {
                let error = scene.call(tool, arguments.clone()).await.error();
                assert!(error.contains(hint), "{tool} {arguments}: {error}");
            }
        }
    }
    let cells = json!([{ "content": "new" }]);
    for (tool, arguments, hint) in [
        ("insert_nb_cells", json!({ "position": 11, "cells": cells }), "0 to 10"),
        (
            "insert_nb_cells",
            json!({ "position": { "cell_id": "nobody" }, "cells": cells }),
            "nobody",
        ),
        ("insert_nb_cells", json!({ "position": 0, "cells": [] }), "at least one"),
        (
            "insert_nb_cells",
            json!({ "position": 0, "cells": [{ "content": "a" }, { "type": "poem", "content": "b" }] }),
            "cells[1].type",
        ),
        (
            "insert_nb_cells",
            json!({ "position": 0, "cells": cells, "if_revision": "0-0" }),
            "read it again",
        ),
        (
            "delete_nb_cells",
            json!({ "ranges": [fine], "if_revision": "nonsense" }),
            "read it again",
        ),
        (
            "modify_nb_cells",
            json!({ "modifications": [{ "range": fine, "content": "x" }, { "range": { "cell_id": "c1" }, "content": "y" }] }),
            "twice",
        ),
        (
            "modify_nb_cells",
            json!({ "modifications": [{ "range": { "cell_id": "c1" }, "content": "x" }], "if_revision": "" }),
            "read it again",
        ),
    ] {
        let error = scene.call(tool, arguments.clone()).await.error();
        assert!(error.contains(hint), "{tool} {arguments}: {error}");
    }
    let future = format!("{}99", revision.as_str().unwrap());
    let error = scene
        .call("delete_nb_cells", json!({ "ranges": [fine], "if_revision": future }))
        .await
        .error();
    assert!(error.contains("not a current revision"), "{error}");
    assert_eq!(scene.revision().await, revision, "nothing changed");
    assert_eq!(scene.human.cells(), before);
}

#[tokio::test]
async fn an_edit_of_what_a_person_changed_meanwhile_is_refused() {
    let scene = scene().await;
    let revision = scene.revision().await;
    let modify = |cell: &str, revision: &Value| json!({ "modifications": [{ "range": { "cell_id": cell }, "content": format!("agent's {cell}") }], "if_revision": revision });
    scene.call("modify_nb_cells", modify("c1", &revision)).await.ok();
    scene.call("modify_nb_cells", json!({ "modifications": [{ "range": { "cell_id": "c1" }, "content": "own edits do not count" }], "if_revision": revision })).await.ok();

    scene.human.splice_cell("c2", 1, 0, " by hand");
    scene.gateway_has("2 by hand").await;
    let error = scene.call("modify_nb_cells", modify("c2", &revision)).await.error();
    assert!(error.contains("c2") && !error.contains("c1"), "{error}");
    let error = scene
        .call(
            "delete_nb_cells",
            json!({ "ranges": [{ "start": 1, "end": 4 }], "if_revision": revision }),
        )
        .await
        .error();
    assert!(error.contains("c2"), "{error}");
    let both = json!({ "modifications": [
        { "range": { "cell_id": "c4" }, "content": "not this either" }, { "range": { "cell_id": "c2" }, "content": "x" }], "if_revision": revision });
    assert!(scene.call("modify_nb_cells", both).await.error().contains("c2"));
    scene.call("modify_nb_cells", modify("c3", &revision)).await.ok();
    assert_eq!(scene.human.sources()[4], "4");

    scene.human.insert_cell(0, "above", "from above");
    scene.gateway_has("from above").await;
    for arguments in [
        json!({ "modifications": [{ "range": { "start": 5 }, "content": "x" }], "if_revision": revision }),
        json!({ "modifications": [{ "range": { "start": 5, "end": 7 }, "content": "x" }], "if_revision": revision }),
    ] {
        let error = scene.call("modify_nb_cells", arguments).await.error();
        assert!(error.contains("positions"), "{error}");
    }
    let cells = json!([{ "content": "new" }]);
    let error = scene
        .call(
            "insert_nb_cells",
            json!({ "position": 5, "cells": cells, "if_revision": revision }),
        )
        .await
        .error();
    assert!(error.contains("inserted or removed"), "{error}");
    let error = scene
        .call(
            "delete_nb_cells",
            json!({ "ranges": [{ "start": 5 }], "if_revision": revision }),
        )
        .await
        .error();
    assert!(error.contains("positions"), "{error}");
    // By id it does not matter where the cell is, and without a revision nothing is refused.
    scene.call("modify_nb_cells", modify("c5", &revision)).await.ok();
    let inserted = scene
        .call(
            "insert_nb_cells",
            json!({ "position": { "cell_id": "c5" }, "cells": cells, "if_revision": scene.revision().await }),
        )
        .await
        .ok();
    assert_eq!(inserted["position"], 6);
    scene
        .call(
            "modify_nb_cells",
            json!({ "modifications": [{ "range": { "start": 3 }, "content": "as asked" }] }),
        )
        .await
        .ok();
    let expected = [
        "from above",
        "0",
        "own edits do not count",
        "as asked",
        "agent's c3",
        "4",
        "new",
        "agent's c5",
        "6",
        "7",
        "8",
        "9",
    ];
    scene
        .human
        .wait_for("the person sees it all", |human| human.sources() == expected)
        .await;
}

#[tokio::test]
async fn another_connection_of_the_same_agent_is_no_stranger_but_another_agent_is() {
    let token = "token-of-bob";
    let bob = format!(
        "[[auth.tokens]]\nname = \"bob\"\ntenant = \"all\"\ntoken = \"{token}\"\npermissions = [\"read\", \"write\"]\n"
    );
    let gateway = Gateway::with(&bob).await;
    let folder = lab().folder();
    let path = folder.write("two.ipynb", &notebook(&["0"]));
    let ana = Agent::connect(&gateway, Era::Modern).await;
    let again = Agent::connect(&gateway, Era::Legacy).await;
    let bob = Agent::with_token(&gateway, token, Era::Legacy).await;
    let revision = ana.call("read_nb_cells", json!({ "path": path })).await.ok()["revision"].take();
    let edit = |content: &str| json!({ "path": path, "modifications": [{ "range": { "start": 0 }, "content": content }], "if_revision": revision });
    again
        .call("modify_nb_cells", edit("ana's second connection"))
        .await
        .ok();
    ana.call("modify_nb_cells", edit("ana's first connection")).await.ok();
    let error = bob.call("modify_nb_cells", edit("bob's")).await.error();
    assert!(error.contains("c0"), "{error}");
}

#[tokio::test]
async fn a_position_before_what_others_moved_means_what_it_meant() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let path = folder.write("moved.ipynb", &notebook(&["0", "1", "2"]));
    let (agent, human) = (Agent::connect(&gateway, Era::Modern).await, Human::join(&path).await);
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    human.insert_cell(2, "between", "between");
    eventually("the gateway has it", async || {
        let now = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        (now["cell_count"] == 4).then_some(())
    })
    .await;
    let modify = |start: usize| json!({ "path": path, "modifications": [{ "range": { "start": start }, "content": "agent" }], "if_revision": read["revision"] });
    agent.call("modify_nb_cells", modify(0)).await.ok();
    agent.call("modify_nb_cells", modify(1)).await.ok();
    let refused = agent.call("modify_nb_cells", modify(2)).await.error();
    assert!(
        refused.contains("positions from 2 on") && refused.contains("between"),
        "{refused}"
    );
    human
        .wait_for("the edits", |human| {
            human.sources() == ["agent", "agent", "between", "2"]
        })
        .await;
}
