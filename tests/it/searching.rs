//! `search_documents`: where it looks, what it finds, and what it says of the rest.

use serde_json::{Value, json};

use crate::support::{Agent, Era, Gateway, TOKEN, gateway::lab_server, lab, notebook::notebook, scene::Scene};

fn found(answer: &Value) -> Vec<(String, Value, u64, String)> {
    let one = |one: &Value| {
        let text = |member: &str| one[member].as_str().expect(member).to_owned();
        (
            text("path"),
            one["index"].clone(),
            one["line"].as_u64().expect("a line"),
            text("text"),
        )
    };
    answer["matches"].as_array().expect("matches").iter().map(one).collect()
}

const OUTPUTS: &str = r##"{"cells": [
  {"cell_type": "markdown", "id": "intro-1", "metadata": {}, "source": ["# Sales\n", "about needles"]},
  {"cell_type": "code", "id": "code-22", "metadata": {}, "execution_count": 1, "source": "x = 1\nneedle = x",
   "outputs": [{"output_type": "stream", "name": "stdout", "text": ["a\n", "needle found\n"]},
               {"output_type": "display_data", "metadata": {}, "data": {"image/png": "needle", "text/plain": "<Figure>"}},
               {"output_type": "error", "ename": "KeyError", "evalue": "'needle'", "traceback": ["\u001b[31mKeyError\u001b[0m: 'needle'"]}]}
 ], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"##;

#[tokio::test]
async fn sources_outputs_and_files_are_searched_and_nothing_is_opened() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let agent = Agent::connect(&gateway, Era::Modern).await;
    folder.write("a.ipynb", OUTPUTS);
    folder.write("sub/notes.txt", "first\r\nThe NEEDLE\rneedle\u{2028}too\n");
    folder.write("sub/deep/mod.py", "def f():\n    return 'hay'\n");
    folder.write("Makefile", "needle:\n");
    let search = async |arguments: Value| {
        let mut arguments = arguments;
        arguments["path"] = arguments["path"]
            .as_str()
            .map_or_else(|| folder.name.clone(), |path| folder.path(path))
            .into();
        agent.call("search_documents", arguments).await
    };
    let paths = |answer: &Value| found(answer).into_iter().map(|(path, ..)| path).collect::<Vec<_>>();
    let answer = search(json!({ "query": "needle" })).await;
    let text = answer.text().to_owned();
    let all = answer.ok();
    let (nb, notes, make) = (
        folder.path("a.ipynb"),
        folder.path("sub/notes.txt"),
        folder.path("Makefile"),
    );
    assert_eq!(
        found(&all),
        [
            (make.clone(), Value::Null, 1, "needle:".to_owned()),
            (nb.clone(), json!(0), 2, "about needles".to_owned()),
            (nb.clone(), json!(1), 2, "needle = x".to_owned()),
            (notes.clone(), Value::Null, 2, "The NEEDLE".to_owned()),
            (notes.clone(), Value::Null, 3, "needle\u{2028}too".to_owned()),
        ]
    );
    assert_eq!(
        (&all["matches"][0]["cell_id"], &all["matches"][2]["cell_id"]),
        (&Value::Null, &json!("code-22"))
    );
    assert_eq!((&all["truncated"], &all["files_searched"]), (&json!(false), &json!(4)));
    let expected = format!(
        "5 matching lines in 3 of 4 files\n{make}\n1: needle:\n{nb}\n[0] intro-:2: about needles\n[1] code-2:2: needle = x\n\
         {notes}\n2: The NEEDLE\n3: needle\u{2028}too"
    );
    assert_eq!(text, expected);

    let outputs = search(json!({ "query": "needle", "where": "outputs" })).await;
    assert!(
        outputs
            .text()
            .contains("[1] code-2 output:2: needle found\n[1] code-2 output:1: KeyError: 'needle'"),
        "{}",
        outputs.text()
    );
    let outputs = outputs.ok();
    assert_eq!(
        (outputs["matches"].as_array().unwrap().len(), &outputs["files_searched"]),
        (2, &json!(1))
    );
    let error = &outputs["matches"][1];
    assert_eq!((&error["where"], &error["output"]), (&json!("output"), &json!(2)));
    assert_eq!(
        found(&search(json!({ "query": "needle", "where": "all" })).await.ok()).len(),
        7
    );
    assert_eq!(
        paths(&search(json!({ "query": "NEEDLE" })).await.ok()),
        [notes.as_str()],
        "capitals count"
    );
    assert_eq!(
        paths(&search(json!({ "query": r"^\s+return\b", "regex": true })).await.ok()),
        [folder.path("sub/deep/mod.py")]
    );
    assert_eq!(
        paths(&search(json!({ "query": "def f():\n    return" })).await.ok()).len(),
        1,
        "over lines"
    );
    for (path, expected) in [
        ("sub", vec![notes.clone(), notes.clone()]),
        ("sub/notes.txt", vec![notes.clone(), notes.clone()]),
        ("*.ipynb", vec![nb.clone(), nb.clone()]),
        ("**/*.txt", vec![notes.clone(), notes]),
        ("sub/*.py", vec![]),
    ] {
        assert_eq!(
            paths(&search(json!({ "query": "needle", "path": path })).await.ok()),
            expected,
            "{path}"
        );
    }
    let few = search(json!({ "query": "needle", "max_results": 2 })).await;
    assert!(few.text().contains("[there are more"), "{}", few.text());
    let few = few.ok();
    assert_eq!((found(&few).len(), &few["truncated"]), (2, &json!(true)));
    let none = search(json!({ "query": "nowhere to be found" })).await;
    assert_eq!(none.text(), "No match in 4 files");
    let open = agent.call("query_nb_sessions", json!({})).await.ok();
    assert!(!open.to_string().contains(&folder.name), "{open}");
}

#[tokio::test]
async fn open_documents_are_searched_as_they_stand() {
    let scene = Scene::of("run.ipynb", &notebook(&["old = 1"])).set().await;
    let modify = json!({ "modifications": [{ "range": { "start": 0 }, "content": "fresh = 2" }], "exec": false });
    let done = scene.call("modify_nb_cells", modify).await;
    assert!(!done.is_error, "{}", done.text());
    let search = async |query: &str| found(&scene.call("search_documents", json!({ "query": query })).await.ok()).len();
    assert_eq!((search("fresh").await, search("old").await), (1, 0));
}

#[tokio::test]
async fn what_cannot_be_searched_is_an_error_or_is_told() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    folder.write("huge.csv", &"x,y\n".repeat(5 * 1024 * 1024));
    folder.write("broken.ipynb", "{\"cells\": [");
    folder.write("data.bin", "\0needle");
    folder.write(".hidden/a.txt", "needle");
    folder.write("node_modules/a.txt", "needle");
    folder.write("fine.txt", "needle");
    let search = async |arguments: Value| agent.call("search_documents", arguments).await;
    let all = search(json!({ "query": "needle", "path": folder.name })).await;
    let text = all.text().to_owned();
    let all = all.ok();
    assert_eq!(found(&all).len(), 1, "{all}");
    assert!(
        text.contains("huge.csv: 20 MB, limit 16 MB") && text.contains("broken.ipynb: no valid notebook"),
        "{text}"
    );
    for (arguments, why) in [
        (json!({ "query": "" }), "`query`: empty"),
        (json!({ "query": "(", "regex": true }), "unclosed group"),
        (json!({ "query": "x", "where": "everywhere" }), "source"),
        (json!({ "query": "x", "max_results": 0 }), "between 1 and"),
        (json!({ "query": "x", "path": folder.path("none") }), "does not exist"),
        (json!({ "query": "x", "path": "a/{b" }), "`path`"),
        (json!({ "query": "x", "path": "../etc" }), ".."),
        (json!({}), "query"),
    ] {
        let refused = search(arguments.clone()).await.error();
        assert!(refused.contains(why), "{arguments}: {refused}");
    }
}

#[tokio::test]
async fn what_may_not_be_read_is_not_searched() {
    let folder = lab().folder();
    folder.write("open/a.txt", "needle");
    folder.write("open/secret.txt", "needle");
    folder.write("closed/b.txt", "needle");
    let name = &folder.name;
    let config = format!(
        "{}[[tenants]]\nname = \"all\"\n[[auth.tokens]]\nname = \"ana\"\ntenant = \"all\"\ntoken = \"{TOKEN}\"\n\
         permissions = [\"read\"]\npaths = [\"{name}/open/**\", \"!**/secret.txt\"]\n",
        lab_server("lab")
    );
    let gateway = Gateway::configured(&config).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    for path in ["", name.as_str(), "**/*.txt"] {
        let all = agent
            .call("search_documents", json!({ "query": "needle", "path": path }))
            .await
            .ok();
        let paths: Vec<String> = found(&all).into_iter().map(|(path, ..)| path).collect();
        assert_eq!(paths, [folder.path("open/a.txt")], "{path}");
        assert!(!all.to_string().contains("closed"), "{all}");
    }
    for path in [
        "closed",
        "closed/b.txt",
        "closed/none.txt",
        "open/secret.txt",
        "closed/*.txt",
    ] {
        let refused = agent
            .call(
                "search_documents",
                json!({ "query": "needle", "path": folder.path(path) }),
            )
            .await;
        let refused = refused.error();
        assert!(refused.contains("path rules"), "{path}: {refused}");
    }
}
