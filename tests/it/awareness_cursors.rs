//! Awareness, "Cursor and Selection Tracking" of jupyter-collaboration-mcp: both ways, in code points.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Human,
    agent::{ERAS, ToolAnswer},
    eventually,
    notebook::notebook,
    scene::Scene,
};

const AWARE: &str = "?toolsets=default,awareness";

async fn cursors(scene: &Scene) -> Value {
    let arguments = json!({ "document_path": scene.path });
    scene.agent.call("get_user_cursors", arguments).await.ok()
}

async fn cursor_of(scene: &Scene, name: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    eventually(&format!("the cursor of {name}"), async || {
        let answer = cursors(scene).await;
        let found = answer["cursors"].as_array().expect("cursors").iter();
        found
            .filter(|cursor| cursor["name"] == name)
            .find(|cursor| is_it(cursor))
            .cloned()
    })
    .await
}

async fn point(scene: &Scene, arguments: Value) -> ToolAnswer {
    let mut arguments = arguments;
    arguments["document_path"] = scene.path.clone().into();
    scene.agent.call("update_cursor_position", arguments).await
}

#[tokio::test]
async fn where_people_are_is_told_by_cell_line_and_column() {
    for era in ERAS {
        let cells = ["first", "αβ𝄞 = 1\nsecond line"];
        let scene = Scene::notebook(&cells).selecting(AWARE).era(era).set().await;
        scene.human.select("Hanna", Some("c1"), 0, 4);
        let hanna = cursor_of(&scene, "Hanna", |_| true).await;
        for (member, value) in [
            ("user_id", json!("Hanna")),
            ("is_agent", json!(false)),
            ("cell_id", json!("c1")),
            ("cell_index", json!(1)),
            ("line", json!(0)),
            ("column", json!(3)),
            ("position", json!({ "line": 0, "column": 3 })),
            (
                "selection",
                json!({ "start": { "line": 0, "column": 0 }, "end": { "line": 0, "column": 3 } }),
            ),
        ] {
            assert_eq!(hanna[member], value, "{member} counts code points: {hanna}");
        }
        scene.human.select("Hanna", Some("c1"), 20, 20);
        let hanna = cursor_of(&scene, "Hanna", |cursor| cursor["line"] == 1).await;
        assert_eq!(
            (&hanna["column"], &hanna["selection"]),
            (&json!(11), &Value::Null),
            "the end: {hanna}"
        );
        scene.human.select("Hanna", Some("c1"), 12, 9);
        let hanna = cursor_of(&scene, "Hanna", |cursor| cursor["selection"].is_object()).await;
        let selection = json!({ "start": { "line": 1, "column": 0 }, "end": { "line": 1, "column": 3 } });
        assert_eq!(
            (&hanna["position"], &hanna["selection"]),
            (&selection["start"], &selection),
            "backwards: {hanna}"
        );
        let other = Human::join(&scene.path).await;
        other.publish("Otto", true);
        eventually("who has no cursor is told", async || {
            let answer = cursors(&scene).await;
            let named = answer["without_cursor"].as_array().expect("names").clone();
            named.contains(&json!("Otto")).then_some(())
        })
        .await;
        other.leave().await;
    }
}

#[tokio::test]
async fn an_agents_cursor_and_selection_move_in_everybodys_page() {
    for era in ERAS {
        let cells = ["first", "alpha = 1\nβ𝄞ta = 2\n"];
        let scene = Scene::notebook(&cells).selecting(AWARE).era(era).set().await;
        scene.human.publish("Hanna", true);
        let moved = json!({
            "position": { "line": 1, "column": 4 },
            "selection": { "start": { "line": 1, "column": 0 }, "end": { "line": 1, "column": 4 } },
            "cell_id": "c1",
        });
        let moved = point(&scene, moved).await.ok();
        assert_eq!(
            (&moved["success"], &moved["cell_index"]),
            (&json!(true), &json!(1)),
            "{moved}"
        );
        let selected = |text: &'static str| move |human: &Human| human.selected("ana") == [text];
        scene.human.wait_for("it is selected", selected("β𝄞ta")).await;
        let own = cursor_of(&scene, "ana", |cursor| cursor["selection"].is_object()).await;
        assert_eq!(
            (&own["is_agent"], &own["line"], &own["column"]),
            (&json!(true), &json!(1), &json!(4)),
            "{own}"
        );
        // What others type moves it along.
        scene.human.splice_cell("c1", 0, 0, "# more\n");
        let own = cursor_of(&scene, "ana", |cursor| cursor["line"] == 2).await;
        assert_eq!(own["column"], 4, "{own}");
        scene.human.wait_for("it stays selected", selected("β𝄞ta")).await;

        // Without a cell it stays in the one where it is.
        let beside = json!({
            "position": { "line": 0, "column": 0 },
            "selection": { "start": { "line": 1, "column": 0 }, "end": { "line": 1, "column": 5 } },
        });
        let moved = point(&scene, beside).await.ok();
        assert_eq!(moved["cell_id"], "c1", "{moved}");
        let both = |human: &Human| human.selected("ana") == ["alpha", ""];
        scene.human.wait_for("a selection beside the cursor", both).await;
        let moved = point(
            &scene,
            json!({ "position": { "line": 0, "column": 5 }, "cell_index": 0 }),
        )
        .await
        .ok();
        assert_eq!(moved["cell_id"], "c0", "{moved}");
        let own = cursor_of(&scene, "ana", |cursor| cursor["cell_index"] == 0).await;
        assert_eq!((&own["column"], &own["selection"]), (&json!(5), &Value::Null), "{own}");
    }
}

#[tokio::test]
async fn text_documents_have_cursors_too() {
    let scene = Scene::of("notes.md", "one\ntwo\n").selecting(AWARE).set().await;
    scene.human.select("Hanna", None, 4, 7);
    let hanna = cursor_of(&scene, "Hanna", |_| true).await;
    assert_eq!(
        (&hanna["line"], &hanna["column"], &hanna["cell_id"]),
        (&json!(1), &json!(3), &Value::Null),
        "{hanna}"
    );
    let end = json!({ "position": { "line": 2, "column": 0 } });
    point(&scene, end).await.ok();
    let own = cursor_of(&scene, "ana", |_| true).await;
    assert_eq!((&own["line"], &own["column"]), (&json!(2), &json!(0)), "{own}");
    let selection =
        json!({ "position": { "line": 0, "column": 3 }, "selection": { "start": { "line": 0, "column": 0 } } });
    point(&scene, selection).await.ok();
    scene
        .human
        .wait_for("it is selected", |human| human.selected("ana") == ["one"])
        .await;
    let error = point(
        &scene,
        json!({ "position": { "line": 0, "column": 0 }, "cell_id": "c0" }),
    )
    .await
    .error();
    assert!(error.contains("no cells"), "{error}");
}

#[tokio::test]
async fn what_is_out_of_range_names_the_range_and_nothing_moves() {
    let scene = Scene::of("run.ipynb", &notebook(&["ab", "cd"]))
        .selecting(AWARE)
        .set()
        .await;
    let at = |line: i64, column: i64| json!({ "line": line, "column": column });
    for (arguments, told) in [
        (json!({ "position": at(0, 0) }), "c0, c1"),
        (json!({ "position": at(0, 3), "cell_id": "c0" }), "columns 0 to 2"),
        (json!({ "position": at(1, 0), "cell_id": "c0" }), "lines are 0 to 0"),
        (json!({ "position": at(-1, 0), "cell_id": "c0" }), "count from 0"),
        (json!({ "position": at(0, 0), "cell_id": "c9" }), "c9"),
        (json!({ "position": at(0, 0), "cell_index": 2 }), "0 to 1"),
        (
            json!({ "position": at(0, 0), "cell_id": "c0", "cell_index": 0 }),
            "either",
        ),
        (
            json!({ "position": at(0, 0), "cell_id": "c0", "selection": { "end": at(0, 9) } }),
            "columns 0 to 2",
        ),
        (json!({ "position": { "line": 0 }, "cell_id": "c0" }), "column"),
        (json!({ "cell_id": "c0" }), "position"),
    ] {
        let error = point(&scene, arguments.clone()).await.error();
        assert!(error.contains(told), "{arguments}: {error}");
    }
    let here = cursors(&scene).await;
    assert_eq!(here["cursors"], json!([]), "{here}");
    let missing = json!({ "document_path": "no/such.ipynb" });
    scene.agent.call("get_user_cursors", missing).await.error();
    let error = scene.agent.call("get_user_cursors", json!({})).await.error();
    assert!(error.contains("document_path"), "{error}");
}

#[tokio::test]
async fn an_agent_that_only_reads_may_point() {
    let scene = Scene::notebook(&["ab"]).set().await;
    let url = scene.gateway.url("/mcp?toolsets=awareness&readonly=true");
    let reader = Agent::connect_to(&url, crate::support::TOKEN, Era::Modern).await;
    let arguments = json!({ "document_path": scene.path, "position": { "line": 0, "column": 1 } });
    let moved = reader.call("update_cursor_position", arguments).await.ok();
    assert_eq!(moved["cell_id"], "c0", "the only cell is meant: {moved}");
    scene
        .human
        .wait_for("the cursor is seen", |human| human.sees("ana"))
        .await;
    let tools = reader.tools().await;
    assert!(!tools.contains(&"broadcast_user_activity".to_owned()), "{tools:?}");
}
