//! `execute_cell`, `insert_execute_code_cell`, `execute_code`.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Scene, jupyter, kernel_of, outputs};
use crate::support::{Era, agent::ERAS};

const IMAGE: &str = "import base64\nfrom IPython.display import Image, display\nprint('before')\n\
    display(Image(base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==')))\nprint('after')";

#[tokio::test]
async fn cells_are_executed_by_index_and_by_id() {
    for era in ERAS {
        let scene = Scene::with(era, &["x = 20", "print('hello')\nx + 22", "1 / 0", IMAGE]).await;
        let nothing = scene.outputs("execute_cell", json!({ "cell_index": 0 })).await;
        assert_eq!(nothing, ["[No output generated]"]);
        let more = json!({ "cell_index": 1, "timeout": 60, "stream": false, "progress_interval": 1 });
        assert_eq!(scene.outputs("execute_cell", more).await, ["hello", "42"]);
        // As older versions of the original call it.
        let older = json!({ "cell_index": 1, "timeout_seconds": 60, "stream": true });
        assert_eq!(scene.outputs("execute_cell", older).await, ["hello", "42"]);
        let failed = scene.call("execute_cell", json!({ "cell_index": 2 })).await;
        assert!(failed.is_error, "code that raised is a failure");
        assert_eq!(failed.structured["status"], "failed");
        assert!(
            outputs(&failed)[0].as_str().unwrap().contains("ZeroDivisionError"),
            "{failed:?}"
        );
        let shown = scene.call("execute_cell", json!({ "cell_index": 3 })).await;
        let shown = outputs(&shown);
        assert_eq!((&shown[0], &shown[2]), (&json!("before"), &json!("after")), "{shown:?}");
        assert_eq!(shown[1]["mimeType"], "image/png", "images stand in their place");
        let read = scene.call("read_cell", json!({ "cell_index": 1 })).await;
        let by_id = json!({ "cell_id": read.structured["cell_id"], "cell_index": 2, "timeout": 0 });
        assert_eq!(scene.outputs("execute_cell", by_id).await, ["hello", "42"]);
        for (arguments, expected) in [
            (json!({ "cell_index": 9 }), "9 is out of range"),
            (json!({}), "cell_index or cell_id"),
            (json!({ "cell_index": 0, "timeout": -1 }), "`timeout`"),
        ] {
            let error = scene.error("execute_cell", arguments).await;
            assert!(error.contains(expected), "{error}");
        }
        let note = json!({ "cell_index": 0, "cell_type": "markdown", "cell_source": "m" });
        scene.text("insert_cell", note).await;
        let error = scene.error("execute_cell", json!({ "cell_index": 0 })).await;
        assert!(error.contains("not code"), "{error}");
    }
}

#[tokio::test]
async fn cells_are_inserted_and_executed() {
    let scene = Scene::with(Era::Modern, &["a = 1"]).await;
    let insert = |index: i64, source: &str| json!({ "cell_index": index, "cell_source": source, "timeout": 60 });
    let made = scene.outputs("insert_execute_code_cell", insert(0, "40 + 2")).await;
    assert_eq!(made, ["42"]);
    let made = scene
        .outputs("insert_execute_code_cell", insert(-1, "print('end')"))
        .await;
    assert_eq!(made, ["end"]);
    assert_eq!(scene.firsts("nb").await, ["40 + 2", "a = 1", "print('end')"]);
    let error = scene.error("insert_execute_code_cell", insert(9, "x")).await;
    assert!(error.contains("allowed: 0 to 3, or -1"), "{error}");
    let failed = scene.call("insert_execute_code_cell", insert(1, "nope")).await;
    assert!(failed.is_error && failed.text().contains("NameError"), "{failed:?}");
    assert_eq!(scene.firsts("nb").await.len(), 4, "it was inserted all the same");
}

/// The original interrupts what takes longer and loses what it put out; here it goes on and can be followed.
#[tokio::test]
async fn what_takes_longer_than_the_timeout_goes_on() {
    let scene = Scene::with(
        Era::Legacy,
        &["import time\nprint('first', flush=True)\ntime.sleep(2)\nprint('last')"],
    )
    .await;
    let answer = scene
        .call("execute_cell", json!({ "cell_index": 0, "timeout": 1 }))
        .await;
    assert!(!answer.is_error, "{answer:?}");
    let told = outputs(&answer);
    let last = told.last().and_then(Value::as_str).unwrap();
    assert!(
        last.starts_with("[TIMEOUT ERROR: not finished after 1 seconds"),
        "{told:?}"
    );
    let id = answer.structured["execution_id"].as_str().unwrap();
    assert!(
        last.contains(id) && last.contains("get_execution") && last.contains("cancel_execution"),
        "{last}"
    );
    let ended = scene
        .call("get_execution", json!({ "execution_id": id, "wait": 60 }))
        .await
        .ok();
    assert_eq!(ended["status"], "completed", "{ended}");
    let read = scene.outputs("read_cell", json!({ "cell_index": 0 })).await;
    assert_eq!(read[2], "first\nlast");
    let code = json!({ "code": "import time; time.sleep(60)", "timeout": 0.2 });
    let answer = scene.call("execute_code", code).await;
    assert!(
        outputs(&answer)[0].as_str().unwrap().starts_with("[TIMEOUT ERROR"),
        "{answer:?}"
    );
    let id = answer.structured["execution_id"].clone();
    scene.call("cancel_execution", json!({ "execution_id": id })).await.ok();
}

#[tokio::test]
async fn code_runs_in_the_active_notebooks_kernel_and_in_others() {
    for era in ERAS {
        let scene = Scene::set(era).await;
        // Without a notebook in a kernel of one's own.
        let run = async |code: &str| scene.outputs("execute_code", json!({ "code": code })).await;
        assert_eq!(run("alone = 1\nalone").await, ["1"]);
        scene.activate("nb", &["words = 'in the notebook'"]).await;
        scene.outputs("execute_cell", json!({ "cell_index": 0 })).await;
        assert_eq!(run("words").await, ["'in the notebook'"]);
        let magic = run("%who str").await;
        assert!(magic[0].as_str().unwrap().contains("words"), "{magic:?}");
        let shell = run("!echo 'Hello from shell'").await;
        assert!(shell[0].as_str().unwrap().contains("Hello from shell"), "{shell:?}");
        assert_eq!(scene.firsts("nb").await.len(), 1, "nothing is stored");
        let failed = scene.call("execute_code", json!({ "code": "1 / 0" })).await;
        assert!(
            failed.is_error && failed.text().contains("ZeroDivisionError"),
            "{failed:?}"
        );
        // In a kernel by its id: a notebook's, and one that belongs to nothing.
        let kernel = kernel_of(&scene.folder.path("nb.ipynb")).await.expect("a kernel");
        scene.activate("other", &[]).await;
        let there = json!({ "code": "words", "kernel_id": kernel, "timeout": 60, "progress_interval": 5 });
        assert_eq!(scene.outputs("execute_code", there).await, ["'in the notebook'"]);
        let started: Value = jupyter()
            .send(Method::POST, "api/kernels", json!({}))
            .await
            .json()
            .await
            .unwrap();
        let raw = started["id"].as_str().unwrap();
        for (code, shown) in [("raw = 5\nraw", "5"), ("raw + 1", "6")] {
            let in_raw = json!({ "code": code, "kernel_id": raw });
            assert_eq!(scene.outputs("execute_code", in_raw).await, [shown]);
        }
        let error = scene
            .error("execute_code", json!({ "code": "1", "kernel_id": "no-such" }))
            .await;
        assert!(
            error.contains("no kernel \"no-such\"") && error.contains("list_kernels"),
            "{error}"
        );
        jupyter()
            .send(Method::DELETE, &format!("api/kernels/{raw}"), Value::Null)
            .await;
    }
}
