//! Positions and splices in text of every script, for documents and for cells.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, eventually, lab,
    notebook::{cells_on_disk, notebook},
};

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
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("cells.ipynb", &notebook(&["0", "1"]));
    let human = Human::join(&path).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
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
        agent
            .call(
                "modify_nb_cells",
                json!({ "path": path, "modifications": modifications }),
            )
            .await
            .ok();
        let read = agent
            .call(
                "read_nb_cells",
                json!({ "path": path, "ranges": [{ "cell_id": "c0" }] }),
            )
            .await
            .ok();
        assert_eq!(read["cells"][0]["source"], model);
        human
            .wait_for("the person sees the same", |human| human.sources()[0] == model)
            .await;
    }
    let file = folder.disk.join("cells.ipynb");
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
        assert!(error.contains("after the revision that you named"), "{error}");
    }
    agent.call("insert_document_text", insert(7, &moved)).await.ok();
    human
        .wait_for("only that one", |human| human.text() == "1 two!!!")
        .await;
}
