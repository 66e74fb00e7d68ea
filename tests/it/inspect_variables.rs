//! `inspect_variables`: what it tells of a kernel, and that the kernel and its notebook do not notice.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, TOKEN, eventually,
    gateway::lab_server,
    scene::{Scene, texts},
};

const VARIABLES: &str = r#"
import json as j, re, fractions
from collections import namedtuple
half = fractions.Fraction(1, 2)
class Loud:
    def __init__(self): self.lr = 0.5
    def __repr__(self): raise ValueError("do not look")
    def fit(self, x): pass
class Slow:
    def __repr__(self):
        import time; time.sleep(60)
    def __len__(self):
        import time; time.sleep(60)
Point = namedtuple("Point", "x y")
number, text, loud, slow = 5, "hé\n" * 1000, Loud(), Slow()
numbers, nested, point = list(range(1000000)), {"a": [1, {"b": 2}]}, Point(1, "u")
lazy = (print("computed") for _ in range(3))
def area(width, height=1): "Width by height."
_private = 1
"#;

fn variable<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let all = answer["variables"].as_array().expect("variables");
    let found = all.iter().find(|variable| variable["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {answer}"))
}

#[tokio::test]
async fn variables_are_told_without_running_their_code() {
    let scene = Scene::new(&[VARIABLES]).await;
    scene.run(0, 1).await.ok();
    let answer = scene.call("inspect_variables", json!({})).await;
    let text = answer.text().to_owned();
    let all = answer.ok();
    println!("{text}");
    for (name, kind, shape, preview) in [
        ("number", "int", json!(null), "5"),
        ("nested", "dict", json!([1]), "{'a': [1, {'b': 2}]}"),
        ("point", "Point", json!([2]), "Point(x=1, y='u')"),
        ("loud", "Loud", json!(null), "Loud(lr=0.5)"),
        ("slow", "Slow", json!(null), "<Slow>"),
        ("lazy", "generator", json!(null), "<generator>"),
        ("area", "function", json!(null), "area(width, height)"),
        ("j", "module", json!(null), "json"),
    ] {
        let told = variable(&all, name);
        assert_eq!((&told["type"], &told["shape"]), (&json!(kind), &shape), "{told}");
        assert_eq!(told["preview"], preview);
    }
    let numbers = variable(&all, "numbers");
    assert_eq!(
        (&numbers["shape"], numbers["size"].as_u64() > Some(1_000_000)),
        (&json!([1_000_000]), true)
    );
    assert!(numbers["preview"].as_str().unwrap().starts_with("[0, 1, 2") && numbers.to_string().len() < 300);
    let names = all["variables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap());
    let hidden = ["_private", "In", "Out", "get_ipython", "exit", "quit", "open"];
    assert!(names.into_iter().all(|name| !hidden.contains(&name)), "{all}");
    assert!(text.contains("\nnested: dict [1] = {'a': [1, {'b': 2}]}\n"), "{text}");
    assert!(text.contains("modules: j (json), re"), "{text}");
    assert!(text.contains("\nimported: namedtuple (collections)"), "{text}");
    assert!(text.contains("\nPoint: type = class Point(tuple)"), "{text}");
}

#[tokio::test]
async fn one_variable_is_told_in_detail_and_an_unknown_one_is_an_error() {
    let scene = Scene::new(&[VARIABLES]).await;
    scene.run(0, 1).await.ok();
    let one = async |name: &str| scene.call("inspect_variables", json!({ "name": name })).await;
    let loud = one("loud").await.ok();
    let attributes = &variable(&loud, "loud")["attributes"];
    assert_eq!(
        attributes[0],
        json!({ "name": "lr", "type": "float", "preview": "0.5" })
    );
    assert_eq!(attributes[1]["preview"], "fit(self, x)");
    assert_eq!(variable(&one("area").await.ok(), "area")["doc"], "Width by height.");
    let imported = one("namedtuple").await;
    assert!(
        imported.text().contains("namedtuple: function = namedtuple(typename"),
        "{imported:?}"
    );
    let half = variable(&one("half").await.ok(), "half")["attributes"].clone();
    assert!(half.is_null(), "no methods of a library: {half}");
    let text = one("text").await.ok();
    assert!(
        variable(&text, "text")["preview"].as_str().unwrap().len() > 1000,
        "{text}"
    );
    assert_eq!(variable(&one("_private").await.ok(), "_private")["preview"], "1");
    let unknown = one("nmber").await.error();
    assert!(
        unknown.contains("no variable \"nmber\"") && unknown.contains("number"),
        "{unknown}"
    );
    let odd = one("x'); import os #\"\n").await.error();
    assert!(odd.contains("no variable"), "{odd}");
}

#[tokio::test]
async fn a_kernel_is_looked_into_while_a_cell_runs_and_nobody_notices() {
    let state = "import json\nprint(json.dumps([len(In), get_ipython().execution_count, len(fired), Out, _, __, \
                 sorted(name for name in globals() if not name.startswith('_i'))]))";
    let scene = Scene::new(&[
        "import threading, time\n7",
        "fired = []\nget_ipython().events.register('post_execute', lambda: fired.append(1))",
        "def talk():\n    for _ in range(20): print('thread', flush=True); time.sleep(0.1)\n\
         threading.Thread(target=talk).start()\n\
         for step in range(40): print('main', step, flush=True); time.sleep(0.05)\n\
         'done'",
        state,
        state,
    ])
    .await;
    scene.run(0, 2).await.ok();
    let running = scene.start(2).await;
    scene.shows(2, "main 3\n").await;
    let asked = Instant::now();
    for _ in 0..5 {
        let all = scene.call("inspect_variables", json!({})).await.ok();
        assert_eq!(variable(&all, "step")["type"], "int");
    }
    let listed = scene.agent.call("list_kernels", json!({})).await.ok();
    let kernels = listed["kernels"].as_array().expect("kernels").iter();
    let own = kernels.filter(|kernel| kernel["path"] == scene.path.as_str());
    assert_eq!(
        own.map(|kernel| &kernel["state"]).collect::<Vec<_>>(),
        ["busy"],
        "{listed}"
    );
    let execution = scene
        .agent
        .call("get_execution", json!({ "execution_id": running }))
        .await
        .ok();
    assert_eq!(execution["status"], "running", "answered after {:?}", asked.elapsed());
    let ended = scene.ended(&running).await;
    assert_eq!(ended["status"], "completed");
    eventually("all that the cell and its thread put out is in the cell", async || {
        let shown = crate::support::scene::shown(&scene.human.cell(2));
        (shown.matches("main").count() == 40 && shown.matches("thread").count() == 20 && shown.contains("'done'"))
            .then_some(())
    })
    .await;
    let told = async |cell: usize| {
        let ran = scene.run(cell, cell + 1).await.ok();
        let printed = texts(&ran["execution_results"][0]).concat();
        serde_json::from_str::<Value>(&printed).expect("JSON")
    };
    let before = told(3).await;
    scene.call("inspect_variables", json!({})).await.ok();
    scene.call("inspect_variables", json!({ "name": "step" })).await.ok();
    let after = told(4).await;
    for counted in 0..3 {
        let (before, after) = (&before[counted], &after[counted]);
        assert_eq!(
            after.as_i64(),
            before.as_i64().map(|count| count + 1),
            "one cell has run"
        );
    }
    assert_eq!(before[2], 2, "callbacks were called for the cells and for nothing else");
    assert_eq!((&before[4], &before[5]), (&json!("done"), &json!(7)));
    for kept in 3..7 {
        assert_eq!(after[kept], before[kept]);
    }
}

#[tokio::test]
async fn without_a_kernel_there_are_no_variables_and_none_is_started() {
    let scene = Scene::new(&["1"]).await;
    let answer = scene.call("inspect_variables", json!({})).await;
    assert!(answer.text().contains("no kernel runs"), "{}", answer.text());
    assert_eq!(answer.ok()["variables"], json!([]));
    let named = scene.call("inspect_variables", json!({ "name": "x" })).await.error();
    assert!(named.contains("no kernel runs"), "{named}");
    assert!(scene.kernels().await.is_empty());
    for (path, why) in [
        ("gone.ipynb", "does not exist"),
        ("a.txt", ".ipynb"),
        ("", "name a file"),
    ] {
        let path = if path.is_empty() {
            String::new()
        } else {
            scene.folder.path(path)
        };
        let refused = scene
            .agent
            .call("inspect_variables", json!({ "path": path }))
            .await
            .error();
        assert!(refused.contains(why), "{refused}");
    }
}

#[tokio::test]
async fn another_agents_kernel_is_reached_by_a_connection_of_its_own() {
    let scene = Scene::new(&["x = 41"]).await;
    scene.run(0, 1).await.ok();
    let other = crate::support::Gateway::start().await;
    let agent = Agent::connect(&other, Era::Modern).await;
    let all = agent
        .call("inspect_variables", json!({ "path": scene.path }))
        .await
        .ok();
    assert_eq!(variable(&all, "x")["preview"], "41");
    assert_eq!(scene.code("x + 1").await, "42");
}

#[tokio::test]
async fn who_may_not_execute_may_not_look() {
    let reader = format!(
        "{}[[tenants]]\nname = \"all\"\n[[auth.tokens]]\nname = \"ana\"\ntenant = \"all\"\ntoken = \"{TOKEN}\"\npermissions = [\"read\"]\n",
        lab_server("lab")
    );
    let scene = Scene::notebook(&["1"]).configured(&reader).set().await;
    assert!(!scene.agent.tools().await.contains(&"inspect_variables".to_owned()));
    let refused = tokio::time::timeout(
        Duration::from_secs(30),
        scene.agent.request(
            "tools/call",
            json!({ "name": "inspect_variables", "arguments": { "path": scene.path } }),
        ),
    )
    .await
    .expect("an answer");
    assert!(refused.to_string().contains("execute"), "{refused}");
}
