//! Undo: exactly what one did is taken back, whoever worked in between, and in the same cell.

use serde_json::{Value, json};

use crate::{
    history::{each, edit, versions},
    support::{
        Agent, Era, Gateway, Human,
        engines::on_both_engines,
        eventually,
        gateway::{everything, lab_server},
        lab,
        notebook::notebook,
        scene::Scene,
    },
};

/// Waits until an agent sees what a person sees.
async fn agrees(agent: &Agent, path: &str, human: &Human) {
    eventually("the agent sees what the person typed", async || {
        let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        let sources = read["cells"]
            .as_array()?
            .iter()
            .map(|cell| cell["source"].as_str().unwrap_or_default().to_owned());
        (sources.collect::<Vec<_>>() == human.sources()).then_some(())
    })
    .await;
}

async fn undo(agent: &Agent, path: &str, more: Value) -> Value {
    let mut arguments = more;
    arguments["path"] = path.into();
    agent.call("undo_changes", arguments).await.ok()
}

on_both_engines! {
    twenty_edits_are_undone_and_the_persons_five_stay,
    everything_since_a_revision_is_undone,
    only_admins_undo_the_work_of_others,
}

async fn twenty_edits_are_undone_and_the_persons_five_stay(store: &str) {
    let scene = Scene::notebook(&["a\n", "b\n"]).with(store).editing().set().await;
    let (agent, human, path) = (&scene.agent, &scene.human, &scene.path);
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    human.publish("Ben", true);
    let mut expected = vec!["a\n".to_owned(), "b\n".to_owned()];
    for n in 0..25 {
        let cell = n % 2;
        let source = human.sources()[cell].clone();
        if n % 5 == 4 {
            let typed = format!("# ben {n}\n");
            // In the middle of what the agent wrote: after its last line but one.
            let at = source.trim_end().rfind('\n').map_or(0, |end| end + 1);
            human.splice_cell(&format!("c{cell}"), u32::try_from(at).unwrap(), 0, &typed);
            expected[cell].push_str(&typed);
            agrees(agent, path, human).await;
        } else {
            let changed = format!("{source}ana = {n}\n");
            edit(agent, path, &format!("c{cell}"), &changed).await;
            human
                .wait_for("the person sees it", |human| human.sources()[cell] == changed)
                .await;
        }
    }
    let all = human.sources();
    let undone = undo(agent, path, json!({ "steps": 20 })).await;
    human
        .wait_for("only the person's are left", |human| human.sources() == expected)
        .await;
    assert_eq!(
        each(&versions(agent, path).await, "tool")[0],
        "undo_changes",
        "{undone}"
    );
    let nothing = agent.call("undo_changes", json!({ "path": path })).await.error();
    assert!(
        nothing.contains("nothing to undo") && nothing.contains("Ben"),
        "{nothing}"
    );
    undo(agent, path, json!({ "redo": true })).await;
    human
        .wait_for("everything is back", |human| human.sources() == all)
        .await;
    // One after another is the same as all at once.
    for _ in 0..20 {
        undo(agent, path, json!({})).await;
    }
    human
        .wait_for("only the person's are left", |human| human.sources() == expected)
        .await;
}

async fn everything_since_a_revision_is_undone(store: &str) {
    let scene = Scene::notebook(&["a", "b"]).with(store).editing().set().await;
    let (agent, path) = (&scene.agent, &scene.path);
    let first = edit(agent, path, "c0", "first").await;
    edit(agent, path, "c1", "second").await;
    agent
        .call(
            "delete_nb_cells",
            json!({ "path": path, "ranges": [{ "cell_id": "c0" }] }),
        )
        .await
        .ok();
    scene.sees(&["second"]).await;
    undo(agent, path, json!({ "since_revision": first["revision"] })).await;
    scene.sees(&["first", "b"]).await;
    let unknown = json!({ "path": path, "since_revision": "nonsense" });
    let error = agent.call("undo_changes", unknown).await.error();
    assert!(
        error.contains("nonsense") && error.contains("its newest are"),
        "{error}"
    );
}

async fn only_admins_undo_the_work_of_others(store: &str) {
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["a", "b"]));
    let bob = "[[auth.tokens]]\nname = \"bob\"\ntenant = \"all\"\ntoken = \"token-of-bob\"\npermissions = [\"read\", \"write\"]\n";
    let gateway = Gateway::configured(&format!("{store}\n{}{}{bob}", lab_server("lab"), everything())).await;
    let ana = Agent::connect(&gateway, Era::Modern).await;
    let bob = Agent::with_token(&gateway, "token-of-bob", Era::Modern).await;
    edit(&bob, &path, "c0", "by bob").await;
    edit(&ana, &path, "c1", "by ana").await;
    let nothing = bob
        .call("undo_changes", json!({ "path": path, "author": "ana" }))
        .await
        .error();
    assert!(nothing.contains("`admin`"), "{nothing}");
    let unknown = ana
        .call("undo_changes", json!({ "path": path, "author": "eve" }))
        .await
        .error();
    assert!(unknown.contains("bob") && unknown.contains("ana"), "{unknown}");
    undo(&ana, &path, json!({ "author": "bob" })).await;
    let human = Human::join(&path).await;
    human
        .wait_for("bob's edit is taken back", |human| human.sources() == ["a", "by ana"])
        .await;
    for steps in [0, 1_000_000] {
        let error = bob
            .call("undo_changes", json!({ "path": path, "steps": steps }))
            .await
            .error();
        assert!(error.contains("`steps`"), "{error}");
    }
}
