//! Text of answers for models: long outputs, running executions, and lists.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, eventually, lab,
    scene::{Scene, id, texts},
};

#[tokio::test]
async fn a_result_after_a_long_print_is_shown() {
    let scene = Scene::new(&["for n in range(2000):\n    print('line', n)\n6 * 7"]).await;
    let ran = scene.run(0, 1).await.ok();
    let result = &ran["execution_results"][0];
    let [printed, value] = texts(result)[..] else {
        panic!("{ran}");
    };
    assert_eq!(value, "42");
    assert!(
        printed.starts_with("line 0\nline 1\n") && printed.ends_with("line 1998\nline 1999\n"),
        "{printed}"
    );
    let size: usize = (0..2000).map(|n| format!("line {n}\n").len()).sum::<usize>() + 2;
    assert_eq!(
        (&result["original_size"], &result["truncated"]),
        (&json!(size), &json!(true))
    );
    let more = format!("get_execution(execution_id, max_cell_output_size={size})");
    assert!(printed.contains(&more), "{printed}");
    let get = json!({ "execution_id": id(&ran), "max_cell_output_size": size });
    let whole = scene.agent.call("get_execution", get).await.ok();
    assert_eq!(whole["cells"][0]["truncated"], false);
    let read = scene.call("read_nb_cells", json!({})).await.ok();
    let outputs = texts(&read["cells"][0]);
    assert!(outputs[0].contains("max_cell_data=") && outputs[0].ends_with("line 1999\n") && outputs[1] == "42");
}

#[tokio::test]
async fn what_runs_is_followed_by_its_newest_lines() {
    let code = "for n in range(3000):\n    print('epoch', n)\ninput('go? ')\nprint('epoch last')\n'done'";
    let scene = Scene::new(&[code]).await;
    let run = json!({ "ranges": [{ "start": 0 }], "timeout": 60 });
    let running = scene.call("execute_nb_cells", run).await.structured;
    assert_eq!(running["status"], "input_required", "{running}");
    let id = id(&running);
    // The question comes on another channel than the output, and may overtake it.
    let shown = eventually("all of it is shown", async || {
        let shown = scene
            .agent
            .call("get_execution", json!({ "execution_id": id }))
            .await
            .ok();
        shown.to_string().contains("epoch 2999").then_some(shown)
    })
    .await;
    let text = texts(&shown["cells"][0]).concat();
    assert!(text.starts_with("epoch 0\n"), "{text}");
    let since = shown["since"].clone();
    let nothing = json!({ "execution_id": id, "since": since });
    let nothing = scene.agent.call("get_execution", nothing).await.ok();
    assert_eq!(nothing["cells"][0]["outputs"], json!([]), "{nothing}");
    let answer = json!({ "execution_id": id, "since": since, "input": "yes", "wait": 60 });
    let rest = scene.agent.call("get_execution", answer).await.ok();
    assert_eq!(rest["status"], "completed");
    let new = texts(&rest["cells"][0]).concat();
    assert!(
        new.contains("epoch last\n") && new.ends_with("'done'") && !new.contains("epoch 2999"),
        "{new}"
    );
    assert!(rest["note"].is_null());
    let wrong = json!({ "execution_id": id, "since": "yesterday" });
    let refused = scene.agent.call("get_execution", wrong).await.error();
    assert!(
        refused.contains("since") && refused.contains("leave it out"),
        "{refused}"
    );
}

#[tokio::test]
async fn outputs_that_were_cleared_are_told_from_the_start() {
    let code = "from IPython.display import clear_output\nprint('old')\ninput('a')\nclear_output()\nprint('new')";
    let scene = Scene::new(&[code]).await;
    let run = json!({ "ranges": [{ "start": 0 }], "timeout": 60 });
    let asked = scene.call("execute_nb_cells", run).await.structured;
    // The question and what was printed before it come through different channels, in any order.
    let shown = eventually("what was printed before the question", async || {
        let so_far = json!({ "execution_id": id(&asked) });
        let shown = scene.agent.call("get_execution", so_far).await.structured;
        (texts(&shown["cells"][0]).concat() == "old\n").then_some(shown)
    })
    .await;
    let answer = json!({ "execution_id": id(&asked), "since": shown["since"], "input": "b", "wait": 60 });
    let rest = scene.agent.call("get_execution", answer).await.ok();
    assert_eq!(texts(&rest["cells"][0]).concat(), "new\n");
    assert!(
        rest["note"].as_str().is_some_and(|note| note.contains("cleared")),
        "{rest}"
    );
}

#[tokio::test]
async fn output_beyond_what_is_kept_counts_in_its_size() {
    let scene = Scene::notebook(&["print('x' * 4999)"])
        .with("[execution]\nmax_output_bytes = 2000")
        .set()
        .await;
    let ran = scene.run(0, 1).await.ok();
    let result = &ran["execution_results"][0];
    assert_eq!(
        (&result["original_size"], &result["truncated"]),
        (&json!(5000), &json!(true))
    );
}

#[tokio::test]
async fn executions_are_listed_in_a_line_each() {
    let cells = ["x = 1"; 30];
    let scene = Scene::new(&cells).await;
    scene.run(0, 30).await.ok();
    scene.call("run_code", json!({ "code": "1 / 0" })).await;
    let listed = scene.call("list_executions", json!({})).await;
    let lines: Vec<&str> = listed.text().lines().collect();
    assert_eq!(lines.len(), 2, "{}", listed.text());
    assert!(lines[1].contains("completed: 30 cells of"), "{}", lines[1]);
    let executions = listed.structured["executions"].as_array().expect("a list");
    for execution in executions {
        assert!(execution.to_string().len() < 500, "{execution}");
        for member in [
            "execution_id",
            "path",
            "server",
            "status",
            "cells",
            "started_at",
            "ended_at",
        ] {
            assert!(execution.get(member).is_some(), "{member}");
        }
    }
}

fn names(listing: &Value) -> Vec<&str> {
    let documents = listing["documents"].as_array().expect("documents");
    documents.iter().filter_map(|entry| entry["name"].as_str()).collect()
}

#[tokio::test]
async fn a_listing_has_every_kind_and_an_end() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    folder.notebook("a.ipynb");
    folder.write("sub/data.json", "{}");
    folder.write("sub/Makefile", "all:");
    for number in 0..60 {
        folder.write(&format!("file-{number:02}.csv"), "1");
    }
    let few = json!({ "path": folder.name, "max_results": 2 });
    let few = agent.call("list_documents", few).await.ok();
    assert_eq!(names(&few), ["a.ipynb", "file-00.csv"], "notebooks are documents");
    assert_eq!(
        few["description"],
        "Found 62 documents (showing first 2 results); max_results=62 shows all"
    );
    let all = agent.call("list_documents", json!({ "path": folder.name })).await.ok();
    assert_eq!(names(&all).len(), 50);
    let list = async |arguments: Value| agent.call("list_documents", arguments).await.ok();
    let text = list(json!({ "path": folder.path("sub"), "file_type": "text" })).await;
    assert_eq!(names(&text), ["Makefile", "data.json"]);
    let part = folder.name.clone() + "/sub/da";
    assert_eq!(names(&list(json!({ "path_filter": part })).await), ["data.json"]);
    let glob = list(json!({ "path_filter": format!("{}/**/*.json", folder.name) })).await;
    assert_eq!(names(&glob), ["data.json"]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_loop_of_links_is_not_followed() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    folder.notebook("a/b/n.ipynb");
    for link in ["loop-1", "loop-2", "b/loop-3"] {
        std::os::unix::fs::symlink(folder.disk.join("a"), folder.disk.join("a").join(link)).expect("a link");
    }
    let found = agent.call("list_nbs", json!({ "path": folder.name })).await.ok();
    let notebooks = found["notebooks"].as_array().expect("notebooks");
    assert_eq!(notebooks.len(), 1, "{found}");
    assert_eq!(notebooks[0]["path"], folder.path("a/b/n.ipynb"));
    let skipped = found["skipped"].as_array().expect("skipped");
    assert_eq!(skipped.len(), 3, "{found}");
    assert!(
        skipped[0].as_str().is_some_and(|why| why.contains("as if linked")),
        "{found}"
    );
}

#[tokio::test]
async fn a_created_notebook_is_what_the_answer_says() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let path = folder.path("new.ipynb");
    let created = agent.call("create_notebook", json!({ "path": path })).await.ok();
    assert_eq!(
        (&created["cell_count"], &created["kernel_name"]),
        (&json!(1), &json!("python3"))
    );
    assert!(
        created["message"]
            .as_str()
            .is_some_and(|text| text.contains("1 empty code cell")),
        "{created}"
    );
    let read = async || agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert_eq!(read().await["cell_count"], 1);
    let cells = json!([{ "content": "# one", "type": "markdown" }, { "content": "two = 2" }]);
    let insert = json!({ "path": path, "position": 0, "cells": cells, "exec": false });
    agent.call("insert_nb_cells", insert).await.ok();
    let now = read().await;
    let sources: Vec<_> = now["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .map(|cell| cell["source"].clone())
        .collect();
    assert_eq!(sources, ["# one", "two = 2"], "the empty cell does not stay");
    // One that is there because somebody wants it stays.
    let more = json!({ "path": path, "position": 2, "cells": [{ "content": "" }], "exec": false });
    agent.call("insert_nb_cells", more).await.ok();
    assert_eq!(read().await["cell_count"], 3);
}

#[tokio::test]
async fn a_directory_is_deleted_only_on_request_and_its_kernels_end() {
    let scene = Scene::new(&["1"]).await;
    scene.folder.notebook("keep.ipynb");
    scene.folder.notebook("gone/deep/n.ipynb");
    scene.folder.write("gone/x.txt", "x");
    let run = async |path: String| {
        let code = json!({ "code": "1", "path": path });
        scene.agent.call("run_code", code).await.ok();
    };
    run(scene.folder.path("keep.ipynb")).await;
    run(scene.folder.path("gone/deep/n.ipynb")).await;
    let gone = scene.folder.path("gone");
    let refused = scene
        .agent
        .call("delete_document", json!({ "path": gone }))
        .await
        .error();
    assert!(
        refused.contains("3 documents") && refused.contains("recursive=true"),
        "{refused}"
    );
    assert!(scene.folder.has("gone/x.txt"));
    let delete = json!({ "path": gone, "recursive": true });
    let deleted = scene.agent.call("delete_document", delete).await.ok();
    assert_eq!(
        (&deleted["deleted_inside"], &deleted["ended_kernels"]),
        (&json!(3), &json!(1))
    );
    assert!(!scene.folder.has("gone"));
    let left = eventually("the kernel has ended", async || {
        let left = scene.kernels().await;
        (left.len() == 1).then_some(left)
    })
    .await;
    assert_eq!(left[0].0, scene.folder.path("keep.ipynb"));
    let keep = json!({ "path": scene.folder.path("keep.ipynb") });
    let deleted = scene.agent.call("delete_document", keep).await.ok();
    assert!(
        deleted["message"]
            .as_str()
            .is_some_and(|text| text.ends_with("; its kernel was ended"))
    );
    eventually("both have ended", async || {
        scene.kernels().await.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_url_of_a_document_opens_in_a_browser() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    folder.notebook("ü #1?.ipynb");
    folder.write("a b.txt", "x");
    folder.write("sub/x.txt", "x");
    let listed = agent.call("list_documents", json!({ "path": folder.name })).await.ok();
    for document in listed["documents"].as_array().expect("documents") {
        let url = document["url"].as_str().expect("a url");
        let rest = url.strip_prefix(lab().url()).expect("of the server");
        assert!(rest.starts_with("lab/tree/") && !url.contains("token"), "{url}");
        let page = crate::support::scene::person().get(rest).await;
        assert_eq!(page.status(), 200, "{url}");
    }
    let path = folder.path("ü #1?.ipynb");
    let url = listed["documents"].as_array().expect("documents").iter();
    let url = url.filter(|document| document["path"] == path.as_str());
    let url = url.map(|document| document["url"].clone()).next();
    let found = agent.call("nb_path_from_url", json!({ "url": url })).await.ok();
    assert_eq!(found["notebook_path"], path, "and leads back");
}

#[tokio::test]
async fn links_are_below_the_public_url() {
    let server = crate::support::gateway::server("lab", lab().url(), lab().token());
    let public = "public_url = \"https://jupyter.example.org/user/ana\"\n";
    let config = format!("{server}{public}{}", crate::support::gateway::everything());
    let gateway = Gateway::configured(&config).await;
    let agent = Agent::executing(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let path = folder.path("n.ipynb");
    let created = agent.call("create_notebook", json!({ "path": path })).await.ok();
    let url = format!("https://jupyter.example.org/user/ana/lab/tree/{path}");
    assert_eq!(created["url"], url);
    for url in [url, format!("{}lab/tree/{path}", lab().url())] {
        let found = agent.call("nb_path_from_url", json!({ "url": url })).await.ok();
        assert_eq!(found["notebook_path"], path);
        assert_eq!(found["base_url"], "https://jupyter.example.org/user/ana");
    }
}
