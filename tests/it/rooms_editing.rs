//! What edits of cells and text do and refuse, as agents and a person in the same document see it.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, eventually, lab,
    lab::Folder,
    notebook::{cells_on_disk, notebook},
};

/// A notebook of ten cells `0` to `9`, a person in it, and an agent.
struct Scene {
    agent: Agent,
    human: Human,
    folder: Folder,
    path: String,
    _gateway: Gateway,
}

async fn scene() -> Scene {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write(
        "ten.ipynb",
        &notebook(&["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]),
    );
    let human = Human::join(&path).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    Scene {
        agent,
        human,
        folder,
        path,
        _gateway: gateway,
    }
}

impl Scene {
    async fn call(&self, tool: &str, mut arguments: Value) -> crate::support::agent::ToolAnswer {
        arguments["path"] = self.path.clone().into();
        self.agent.call(tool, arguments).await
    }

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
    let file = scene.folder.disk.join("ten.ipynb");
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
    assert!(error.contains("not a revision"), "{error}");
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

/// Characters of one to four bytes, one and two UTF-16 units, and such that join.
const ALPHABET: [char; 12] = [
    'a', '\n', 'é', 'ß', '漢', '字', '🎉', '👩', '\u{200d}', '💻', '\u{301}', '\u{fe0f}',
];

/// A fixed sequence of numbers that looks random (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(below).unwrap()).unwrap()
    }

    fn text(&mut self, up_to: usize) -> String {
        (0..self.roll(up_to + 1))
            .map(|_| ALPHABET[self.roll(ALPHABET.len())])
            .collect()
    }
}

#[tokio::test]
async fn text_positions_count_code_points_at_every_offset() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let start = "a🎉漢e\u{301}👩\u{200d}💻ß";
    let path = folder.write("text.md", start);
    let human = Human::join(&path).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let mut model: Vec<char> = start.chars().collect();
    for offset in 0..=start.chars().count() {
        let at = offset * 2;
        agent
            .call(
                "insert_document_text",
                json!({ "path": path, "position": at, "text": "|" }),
            )
            .await
            .ok();
        model.insert(at, '|');
    }
    let mut dice = Dice(7);
    for _ in 0..80 {
        let position = dice.roll(model.len() + 1);
        let length = dice.roll((model.len() - position).min(6) + 1);
        let text = dice.text(5);
        match dice.roll(3) {
            0 => {
                agent
                    .call(
                        "insert_document_text",
                        json!({ "path": path, "position": position, "text": text }),
                    )
                    .await
                    .ok();
                model.splice(position..position, text.chars());
            }
            1 => {
                agent
                    .call(
                        "delete_document_text",
                        json!({ "path": path, "position": position, "length": length }),
                    )
                    .await
                    .ok();
                model.drain(position..position + length);
            }
            _ => {
                let arguments = json!({ "path": path, "position": position, "length": length, "text": text });
                agent.call("replace_document_text", arguments).await.ok();
                model.splice(position..position + length, text.chars());
            }
        }
        let read = agent.call("get_document_content", json!({ "path": path })).await.ok();
        assert_eq!(read["content"], model.iter().collect::<String>());
        assert_eq!(read["content_length"], model.len());
    }
    let end = model.len();
    for (tool, arguments) in [
        (
            "insert_document_text",
            json!({ "path": path, "position": end + 1, "text": "x" }),
        ),
        (
            "delete_document_text",
            json!({ "path": path, "position": end, "length": 1 }),
        ),
        (
            "replace_document_text",
            json!({ "path": path, "position": 0, "length": end + 1, "text": "x" }),
        ),
    ] {
        agent.call(tool, arguments).await.error();
    }
    let expected: String = model.iter().collect();
    human
        .wait_for("the person sees the same", |human| human.text() == expected)
        .await;
    eventually("so does the file", async || {
        (folder.read("text.md") == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn cells_of_any_script_are_spliced_between_whole_characters() {
    let scene = scene().await;
    let mut dice = Dice(11);
    let mut model = String::from("0");
    for _ in 0..80 {
        let characters: Vec<char> = model.chars().collect();
        let from = dice.roll(characters.len() + 1);
        let to = from + dice.roll((characters.len() - from).min(4) + 1);
        model = characters[..from]
            .iter()
            .chain(&dice.text(4).chars().collect::<Vec<_>>())
            .chain(&characters[to..])
            .collect();
        let modifications = json!([{ "range": { "cell_id": "c0" }, "content": model }]);
        scene
            .call("modify_nb_cells", json!({ "modifications": modifications }))
            .await
            .ok();
        let read = scene
            .call("read_nb_cells", json!({ "ranges": [{ "cell_id": "c0" }] }))
            .await
            .ok();
        assert_eq!(read["cells"][0]["source"], model);
        scene
            .human
            .wait_for("the person sees the same", |human| human.sources()[0] == model)
            .await;
    }
    let file = scene.folder.disk.join("ten.ipynb");
    eventually("so does the file", async || {
        (cells_on_disk(&file)?[0].source == model).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_text_edit_after_somebody_elses_is_refused() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("text.txt", "one two");
    let human = Human::join(&path).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let revision = agent.call("get_document_content", json!({ "path": path })).await.ok()["revision"].take();
    let insert =
        |at: usize, revision: &Value| json!({ "path": path, "position": at, "text": "!", "if_revision": revision });
    let own = agent.call("insert_document_text", insert(7, &revision)).await.ok();
    agent.call("insert_document_text", insert(8, &revision)).await.ok();
    human
        .wait_for("the agent's words", |human| human.text() == "one two!!")
        .await;
    human.splice_text(0, 3, "1");
    let moved = eventually("the gateway has the person's words", async || {
        let read = agent.call("get_document_content", json!({ "path": path })).await.ok();
        (read["content"] == "1 two!!").then(|| read["revision"].clone())
    })
    .await;
    for stale in [&revision, &own["revision"]] {
        let error = agent.call("insert_document_text", insert(3, stale)).await.error();
        assert!(error.contains("changed it since"), "{error}");
    }
    agent.call("insert_document_text", insert(7, &moved)).await.ok();
    human
        .wait_for("only that one", |human| human.text() == "1 two!!!")
        .await;
}
