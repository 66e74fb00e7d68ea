//! The document of jupyterlab-rtc-mcp where it can be read in more than one way, on a real JupyterLab. What its tools do
//! beyond that is told by the tests of cells, rooms, files and executions.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway,
    agent::ERAS,
    gateway::{everything, lab_server},
    lab,
    notebook::notebook,
    own_lab::OwnLab,
};

fn members(value: &Value) -> Vec<&str> {
    let members = value.as_object().unwrap_or_else(|| panic!("{value}")).keys();
    members.map(String::as_str).collect()
}

/// "read_nb_cells": every cell has every member, no ranges are all cells, and both spellings of the limit are known.
#[tokio::test]
async fn reading_cells() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let output = json!({ "output_type": "stream", "name": "stdout", "text": "x".repeat(30) });
    let cell = json!({ "id": "c0", "cell_type": "code", "source": "print('x' * 30)", "metadata": {}, "outputs": [output], "execution_count": 3 });
    let file = json!({ "cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5 });
    let path = folder.write("a.ipynb", &file.to_string());
    for era in ERAS {
        let agent = Agent::executing(&gateway, era).await;
        let cells = json!([{ "type": "markdown", "content": "# words" }, { "cell_type": "raw", "content": "raw" }]);
        let insert = json!({ "path": path, "position": 1, "cells": cells });
        let inserted = agent.call("insert_nb_cells", insert).await.ok();
        assert_eq!(inserted["executed"], false, "there is nothing to execute: {inserted}");
        let read = agent
            .call("read_nb_cells", json!({ "path": path, "ranges": [] }))
            .await
            .ok();
        let whole = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        assert_eq!(read, whole, "no ranges are all cells");
        for cell in read["cells"].as_array().unwrap() {
            assert_eq!(
                members(cell),
                [
                    "cell_type",
                    "execution_count",
                    "id",
                    "index",
                    "metadata",
                    "outputs",
                    "source",
                    "truncated"
                ]
            );
        }
        let [code, markdown, raw] = [0, 1, 2].map(|index| &read["cells"][index]);
        assert_eq!(code["outputs"][0]["text"], "x".repeat(30));
        assert!(code["execution_count"] == 3 && markdown["execution_count"].is_null());
        assert_eq!((&markdown["outputs"], &raw["cell_type"]), (&json!([]), &json!("raw")));
        assert_eq!(read["max_cell_data"], 2048);
        for limit in ["maxCellData", "max_cell_data"] {
            let read = json!({ "path": path, "ranges": [{ "start": 0, "end": 1 }], limit: 5 });
            let read = agent.call("read_nb_cells", read).await.ok();
            assert_eq!((&read["max_cell_data"], &read["truncated"]), (&json!(5), &json!(true)));
            let cell = &read["cells"][0];
            assert_eq!(
                (&cell["source"], &cell["truncated"]),
                (&json!("print"), &json!({ "source": true, "outputs": [true] }))
            );
        }
        let ranges = json!([{ "start": 1, "end": 3 }]);
        agent
            .call("delete_nb_cells", json!({ "path": path, "ranges": ranges }))
            .await
            .ok();
    }
}

/// "maxCellOutputSize" and the code's spelling of it, wherever something is executed.
#[tokio::test]
async fn the_limit_of_outputs() {
    // A machine that is busy may need longer to start a kernel than other tests allow.
    let patient = lab_server("lab").replace("\"5s\"", "\"60s\"");
    let gateway = Gateway::configured(&format!("{patient}{}", everything())).await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["print('x' * 3000)"]));
    let agent = Agent::executing(&gateway, Era::Modern).await;
    for (tool, arguments) in [
        ("execute_nb_cells", json!({ "ranges": [{ "start": 0 }] })),
        (
            "modify_nb_cells",
            json!({ "modifications": [{ "range": { "start": 0 }, "content": "print('y' * 3000)" }] }),
        ),
        (
            "insert_nb_cells",
            json!({ "position": 1, "cells": [{ "content": "print('z' * 3000)" }] }),
        ),
    ] {
        for (limit, shown) in [("", 2000), ("maxCellOutputSize", 50), ("max_cell_output_size", 5000)] {
            let mut arguments = arguments.clone();
            arguments["path"] = path.as_str().into();
            if !limit.is_empty() {
                arguments[limit] = shown.into();
            }
            let ran = agent.call(tool, arguments).await.ok();
            let result = &ran["execution_results"][0];
            let text = result["outputs"][0]["text"].as_str().unwrap_or_else(|| panic!("{ran}"));
            assert_eq!(text.len(), shown.min(3001), "{tool} {limit}");
            assert_eq!(
                (&result["original_size"], &result["truncated"]),
                (&json!(3001), &json!(shown < 3001))
            );
        }
    }
}

/// An object is an object: serde would take its members in a row as well.
#[tokio::test]
async fn ranges_are_objects() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["zero", "one"]));
    let agent = Agent::connect(&gateway, Era::Modern).await;
    for (tool, arguments, named) in [
        ("read_nb_cells", json!({ "ranges": [[0, 1]] }), "`ranges[0]`"),
        (
            "delete_nb_cells",
            json!({ "ranges": [{ "start": 0 }, [1]] }),
            "`ranges[1]`",
        ),
        (
            "modify_nb_cells",
            json!({ "modifications": [{ "range": [0], "content": "x" }] }),
            "`modifications[0].range`",
        ),
        (
            "insert_nb_cells",
            json!({ "position": ["c0"], "cells": [{ "content": "x" }] }),
            "`position`",
        ),
        (
            "insert_nb_cells",
            json!({ "position": 0, "cells": [["code", "x"]] }),
            "`cells[0]`",
        ),
    ] {
        let mut arguments = arguments;
        arguments["path"] = path.as_str().into();
        let error = agent.call(tool, arguments).await.error();
        assert!(
            error.contains(named) && error.contains("expected an object"),
            "{tool}: {error}"
        );
    }
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert_eq!(read["cell_count"], 2, "nothing changed");
}

/// "get_document_info": each kind of document has all members, and says what it is.
#[tokio::test]
async fn documents_of_each_kind() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    folder.notebook("n.ipynb");
    folder.write("t.md", "# Document Content");
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    for (name, kind, format, mimetype) in [
        ("n.ipynb", "notebook", "json", json!("application/x-ipynb+json")),
        ("t.md", "file", "text", json!("text/markdown")),
        ("", "directory", "json", Value::Null),
    ] {
        let path = folder.path(name).trim_end_matches('/').to_owned();
        let info = agent.call("get_document_info", json!({ "path": path })).await.ok();
        assert_eq!(
            members(&info),
            [
                "created",
                "format",
                "last_modified",
                "mimetype",
                "name",
                "path",
                "size",
                "type",
                "url",
                "writable"
            ]
        );
        assert_eq!(
            (&info["type"], &info["format"], &info["mimetype"]),
            (&json!(kind), &json!(format), &mimetype)
        );
    }
}

/// A directory is no document. Jupyter itself must not be asked for its room: it would go on to tell nobody of edits in
/// any room that is open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_is_not_opened() {
    let lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &notebook(&["zero"]));
    lab.write("t.md", "text");
    for directory in ["folder", "folder.ipynb"] {
        std::fs::create_dir(lab.file(directory)).unwrap();
    }
    let gateway = Gateway::to(&lab.url(), lab.token()).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let edit = async || {
        let text = json!({ "path": "t.md", "position": 0, "text": "more " });
        let text = agent.call("insert_document_text", text).await.ok();
        let cells = json!([{ "range": { "start": 0 }, "content": text["revision"] }]);
        let cells = json!({ "path": "n.ipynb", "modifications": cells });
        let cells = agent.call("modify_nb_cells", cells).await.ok();
        assert_eq!(
            (&text["acknowledged"], &cells["acknowledged"]),
            (&json!(true), &json!(true))
        );
    };
    edit().await;
    for (tool, arguments) in [
        ("get_document_content", json!({ "path": "folder" })),
        ("read_nb_cells", json!({ "path": "folder.ipynb" })),
        (
            "insert_document_text",
            json!({ "path": "folder", "position": 0, "text": "x" }),
        ),
    ] {
        let error = agent.call(tool, arguments).await.error();
        assert!(error.contains("it is a directory; list_documents"), "{tool}: {error}");
    }
    edit().await;
}
