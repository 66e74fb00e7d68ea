//! The part of the document about cells: reading them, their outputs, changing them, and the advanced tools.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{Classic, HEADER};
use crate::support::{Era, Human, eventually};

/// "3", `formatter.py` and `cell.py`: tables and sources by the page.
#[tokio::test]
async fn reading() {
    let scene = Classic::set(Era::Modern).await;
    let cells: Vec<String> = (0..60).map(|index| format!("cell\t{index}\nmore\n")).collect();
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    let connected = scene.connect("a", &cells).await;
    assert!(
        connected
            .text()
            .ends_with("19\tcode\tNone\tcell\\t19...(2 lines hidden)"),
        "{connected:?}"
    );
    let listed = scene.call("list_cell", "a", json!({})).await;
    let head =
        format!("Showing cells 0-49 of 60 total cells\n\n{HEADER}\n0\tcode\tNone\tcell\\t0...(2 lines hidden)\n1\t");
    assert!(
        listed.text().starts_with(&head) && listed.text().lines().count() == 53,
        "{listed:?}"
    );
    let row = &listed.structured["cells"][1];
    assert_eq!((&row["id"], &row["hidden_lines"]), (&json!("c1"), &json!(2)));
    let rows = async |arguments: Value| {
        let listed = scene.call("list_cell", "a", arguments).await.ok();
        let cells = listed["cells"].as_array().unwrap();
        (cells.len(), cells[0]["index"].as_u64().unwrap())
    };
    assert_eq!(rows(json!({ "start_index": 10, "limit": 3 })).await, (3, 10));
    assert_eq!(rows(json!({ "start_index": 55 })).await, (5, 55));
    assert_eq!(rows(json!({ "limit": 0 })).await, (60, 0));
    let error = scene.call("list_cell", "a", json!({ "start_index": 60 })).await.error();
    assert!(error.contains("`start_index`") && error.contains("60 cells"), "{error}");

    let read = scene.call("read_notebook", "a", json!({ "start_index": 1 })).await;
    let head = "=====Showing cells 1-20 of 60 total cells=====\n\n=====Index: 1, Type: code, Execution Count: None=====\ncell\t1\nmore\n\n\n";
    assert!(read.text().starts_with(head), "{read:?}");
    assert_eq!(read.ok()["cells"].as_array().unwrap().len(), 20);
    let read = scene
        .call("read_notebook", "a", json!({ "start_index": 59, "limit": 0 }))
        .await;
    assert_eq!(read.ok()["cells"][0]["source"], "cell\t59\nmore\n");
    assert!(
        scene
            .call("read_notebook", "a", json!({ "start_index": 99 }))
            .await
            .is_error
    );
}

/// "3", `cell.py`: outputs of every kind. `ALLOW_IMG`, `MAX_WIDTH` and `MAX_HEIGHT` are `[images]` here.
#[tokio::test]
async fn outputs() {
    let scene = Classic::set(Era::Modern).await;
    let plot = "import base64, struct, zlib\nfrom IPython.display import Image\ndef chunk(kind, data):\n    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))\nwide = struct.pack('>IIBBBBB', 1400, 700, 8, 0, 0, 0, 0)\nImage(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', wide) + chunk(b'IDAT', zlib.compress(bytes(1401) * 700)) + chunk(b'IEND', b''))";
    scene.connect("a", &[plot, "print('\\x1b[31mred\\x1b[0m')"]).await.ok();
    let call = json!({ "name": "execute_cell", "arguments": { "notebook_name": "a", "cell_index": 0 } });
    let result = scene.agent.request("tools/call", call).await["result"].take();
    let image = &result["content"][2];
    assert_eq!(
        (&image["type"], &image["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
    assert!(
        result["content"][1]["text"]
            .as_str()
            .unwrap()
            .contains("[image 1 attached]"),
        "{result}"
    );
    assert_eq!(size(&image["data"]), (700, 350));
    let call = json!({ "name": "read_cell", "arguments": { "notebook_name": "a", "cell_index": 0 } });
    let read = scene.agent.request("tools/call", call).await["result"].take();
    assert_eq!(read["content"][0]["text"], plot);
    assert_eq!(read["content"][1]["text"], "Current execution count: 1");
    assert_eq!(size(&read["content"][3]["data"]), (700, 350));
    let bare = scene
        .call("read_cell", "a", json!({ "cell_index": 0, "return_output": false }))
        .await;
    assert_eq!(bare.texts.len(), 2, "{bare:?}");
    let ran = scene.call("execute_cell", "a", json!({ "cell_index": 1 })).await;
    assert_eq!(ran.texts[1], "red\n", "colours are for terminals");
    assert!(scene.call("read_cell", "a", json!({ "cell_index": 2 })).await.is_error);
}

fn size(base64: &Value) -> (u32, u32) {
    let bytes = BASE64_STANDARD
        .decode(base64.as_str().expect("base64"))
        .expect("base64");
    let image = image::load_from_memory(&bytes).expect("an image");
    (image.width(), image.height())
}

/// "3", the basic tools of cells: changes, with what is around them afterwards.
#[tokio::test]
async fn editing() {
    let scene = Classic::set(Era::Modern).await;
    let cells: Vec<String> = (0..20).map(|index| format!("cell {index}")).collect();
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    scene.connect("a", &cells).await.ok();
    let insert = async |index: Value, location: Value| {
        let arguments =
            json!({ "cell_index": index, "cell_type": "code", "cell_content": "new", "location": location });
        scene.call("insert_cell", "a", arguments).await
    };
    let below = insert(json!(10), Value::Null).await;
    let head = format!("Insert successful!\nSurrounding cells information:\n{HEADER}\n6\tcode\tNone\tcell 6\n");
    assert!(
        below.text().starts_with(&head) && below.text().contains("\n11\tcode\tNone\tnew\n"),
        "{below:?}"
    );
    assert_eq!(below.text().lines().count(), 13, "ten rows");
    let below = below.ok();
    assert_eq!(
        (&below["cell_index"], &below["acknowledged"]),
        (&json!(11), &json!(true))
    );
    assert_eq!(insert(json!(0), json!("above")).await.ok()["cell_index"], 0);
    assert_eq!(
        insert(json!({ "cell_id": "c19" }), json!("below")).await.ok()["cell_index"],
        22
    );
    assert_eq!(insert(json!(23), Value::Null).await.ok()["cell_index"], 23, "the end");
    let error = insert(json!(25), Value::Null).await.error();
    assert!(error.contains("0 to 24"), "{error}");
    let error = insert(json!(-2), Value::Null).await.error();
    assert!(error.contains("-1 for the end"), "{error}");
    assert!(insert(json!(0), json!("beside")).await.error().contains("`above`"));
    let raw = json!({ "cell_index": 0, "cell_type": "poem", "cell_content": "" });
    assert!(scene.call("insert_cell", "a", raw).await.error().contains("`markdown`"));

    let deleted = scene.call("delete_cell", "a", json!({ "cell_index": 12 })).await;
    let head =
        format!("Delete successful!\nDeleted cell content:\nnew\nSurrounding cells information:\n{HEADER}\n7\tcode");
    assert!(
        deleted.text().starts_with(&head) && deleted.text().lines().count() == 15,
        "{deleted:?}"
    );
    let error = scene
        .call("delete_cell", "a", json!({ "cell_index": 23 }))
        .await
        .error();
    assert!(error.contains("0 to 22"), "{error}");

    let overwrite = json!({ "cell_index": 1, "cell_content": "cell 0\nand more" });
    let overwritten = scene.call("overwrite_cell", "a", overwrite).await;
    assert_eq!(
        overwritten.text(),
        "Overwrite successful!\n\n```diff\n@@ -1 +1,2 @@\n cell 0\n+and more\n```"
    );
    assert_eq!(overwritten.ok()["cell_id"], "c0");
    let read = scene.call("read_notebook", "a", json!({ "limit": 2 })).await.ok();
    assert_eq!(read["cells"][1]["source"], "cell 0\nand more");

    let human = Human::join(&scene.folder.path("a.ipynb")).await;
    human.insert_cell(0, "intruder", "mine");
    eventually("the agent sees it", async || {
        let listed = scene.call("list_cell", "a", json!({ "limit": 1 })).await;
        listed.text().contains("mine").then_some(())
    })
    .await;
    for (tool, more) in [
        ("delete_cell", json!({})),
        ("overwrite_cell", json!({ "cell_content": "x" })),
        ("insert_cell", json!({ "cell_content": "x", "cell_type": "code" })),
        ("execute_cell", json!({})),
    ] {
        let mut arguments = json!({ "cell_index": 1, "if_revision": read["revision"] });
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let error = scene.call(tool, "a", arguments).await.error();
        assert!(error.contains("inserted or removed cells"), "{tool}: {error}");
    }
}

/// "3", the advanced tools, by their names of today and of old.
#[tokio::test]
async fn advanced_tools() {
    let scene = Classic::set(Era::Legacy).await;
    scene.connect("a", &["# Title"]).await.ok();
    let appended = scene
        .call(
            "append_execute_code_cell",
            "a",
            json!({ "cell_content": "x = 6\nx * 7" }),
        )
        .await;
    assert_eq!(
        appended.texts,
        ["Cell index 1: Successfully appended 1 cell and executed cells", "42"]
    );
    let old = json!({ "cell_type": "code", "cell_content": "x", "timeout": 30 });
    let appended = scene.call("append_execute_cell", "a", old).await;
    assert_eq!(
        (appended.texts[1].as_str(), &appended.structured["cell_index"]),
        ("6", &json!(2))
    );
    let text = json!({ "cell_type": "markdown", "cell_content": "the end" });
    let appended = scene.call("append_execute_cell", "a", text).await;
    assert_eq!(appended.texts, ["Cell index 3: Successfully appended 1 cell"]);
    let failed = scene
        .call("append_execute_code_cell", "a", json!({ "cell_content": "nothing" }))
        .await;
    assert!(failed.is_error && failed.texts[1].contains("NameError"), "{failed:?}");

    for name in ["execute_temporary_code", "execute_temporary_cell"] {
        let ran = scene.call(name, "a", json!({ "cell_content": "print(x)" })).await;
        assert_eq!(ran.texts, ["Temporary code was executed", "6\n"]);
    }
    let slow = json!({ "cell_content": "import time\ntime.sleep(30)", "timeout": 0.5 });
    let running = scene.call("execute_temporary_code", "a", slow).await;
    assert!(running.texts[1].starts_with("[TIMEOUT: "), "{running:?}");
    scene.call("restart_notebook", "a", json!({})).await.ok();
    let listed = scene.call("list_cell", "a", json!({})).await;
    assert!(
        listed.text().contains("of 5 total cells"),
        "temporary code is not stored: {listed:?}"
    );
}
