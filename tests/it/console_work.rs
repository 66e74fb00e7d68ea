//! Actions of people on the page: ending runs, undoing edits, restoring versions, and accepting changes cell by cell.

use serde_json::json;

use crate::{
    history::edit,
    support::{Agent, Era, TOKEN, console::Browser, eventually, gateway::lab_server, scene::Scene},
};

/// A notebook, and a person who is logged in with the token of the agent.
async fn scene(cells: &[&str]) -> (Scene, Browser) {
    let scene = Scene::notebook(cells).editing().set().await;
    let browser = Browser::logged_in(&scene.gateway.url(""), TOKEN).await;
    (scene, browser)
}

async fn modify(agent: &Agent, path: &str, fork: &str, cell: &str, content: &str) {
    let modifications = json!([{ "range": { "cell_id": cell }, "content": content }]);
    let modify = json!({ "path": path, "fork_id": fork, "modifications": modifications, "exec": false });
    agent.call("modify_nb_cells", modify).await.ok();
}

#[tokio::test]
async fn a_person_sees_the_output_of_a_run_and_ends_it() {
    let (scene, browser) =
        scene(&["import time\nfor n in range(9):\n    print('line', n, flush=True)\ntime.sleep(100)"]).await;
    let execution = scene.start(0).await;
    let page = eventually("the last lines", async || {
        let page = browser.get("/console").await;
        (page.shows("line 8") && page.shows("1 running")).then_some(page)
    })
    .await;
    assert!(!page.shows("line 1"), "only the last lines: {}", page.html);
    let run = browser.get(&format!("/console/run?id={execution}")).await;
    assert!(run.shows("line 1") && run.shows("line 8"), "{}", run.html);
    let cancelled = browser.submit(&page, "console/cancel", &[]).await;
    assert!(cancelled.shows("The execution was cancelled"), "{}", cancelled.html);
    assert!(
        !browser.get("/console").await.shows("The execution was cancelled"),
        "told once"
    );
    assert_eq!(scene.ended(&execution).await["status"], "cancelled");
}

#[tokio::test]
async fn a_person_answers_what_code_asks() {
    let (scene, browser) = scene(&["print('hello', input('Who are you?'))"]).await;
    let execution = scene.start(0).await;
    let path = format!("/console/run?id={execution}");
    let page = eventually("the question", async || {
        let page = browser.get(&path).await;
        page.shows("Who are you?</label>").then_some(page)
    })
    .await;
    browser.submit(&page, "console/answer", &[("input", "ana")]).await;
    let ended = scene.ended(&execution).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(browser.get(&path).await.shows("hello ana"));
}

#[tokio::test]
async fn a_person_sees_who_changed_what_undoes_it_and_restores_it() {
    let (scene, browser) = scene(&["a = 1\nb = 2", "c = 3"]).await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    scene.human.publish("Ben", true);
    edit(agent, path, "c0", "a = 1\nb = 22").await;
    let page = eventually("who is in it", async || {
        let page = browser.document(path, "").await;
        (page.shows("Ben") && page.shows("modify_nb_cells")).then_some(page)
    })
    .await;
    assert!(page.shows("/lab/tree/"), "a link that opens it: {}", page.html);
    let versions = page.links("&version=");
    let newest = browser.get(&page.path_of(&versions[0])).await;
    for shown in ["<ins>+b = 22\n</ins>", "<del>-b = 2\n</del>", "Restore this version"] {
        assert!(newest.shows(shown), "no {shown}: {}", newest.html);
    }
    let undone = browser.submit(&newest, "console/undo", &[]).await;
    assert!(undone.shows("Undid 1 version"), "{}", undone.html);
    scene.sees(&["a = 1\nb = 2", "c = 3"]).await;

    // The versions are the first, the edit, and what took it back.
    let page = browser.document(path, "").await;
    let edited = page.links("&version=")[1].clone();
    let edited = browser.get(&page.path_of(&edited)).await;
    let restored = browser.submit(&edited, "console/restore", &[]).await;
    assert!(restored.shows("Restored"), "{}", restored.html);
    scene.sees(&["a = 1\nb = 22", "c = 3"]).await;
}

#[tokio::test]
async fn a_person_accepts_one_of_three_changed_cells() {
    let (scene, browser) = scene(&["one", "two", "three"]).await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let forked = agent
        .call("fork_document", json!({ "path": path, "title": "Try <this>" }))
        .await
        .ok();
    let fork = forked["fork_id"].as_str().expect("an id");
    for (cell, content) in [("c0", "ONE"), ("c1", "TWO"), ("c2", "THREE")] {
        modify(agent, path, fork, cell, content).await;
    }
    let document = browser.document(path, "").await;
    assert!(
        document.shows("Try &lt;this&gt;") && document.shows("3 cells changed"),
        "{}",
        document.html
    );
    let review = document.links("console/fork?")[0].clone();
    let page = browser.get(&document.path_of(&review)).await;
    for shown in ["-one", "+ONE", "-three", "+THREE", "3 changed cells"] {
        assert!(page.shows(shown), "no {shown}: {}", page.html);
    }
    let none = browser.submit(&page, "console/merge", &[("take", "chosen")]).await;
    assert!(none.shows("Choose at least one cell"), "{}", none.html);
    let merged = browser
        .submit(&page, "console/merge", &[("take", "chosen"), ("cell", "c1")])
        .await;
    assert!(
        merged.shows("Merged 1 cell") && merged.shows("2 changed cells"),
        "{}",
        merged.html
    );
    scene.sees(&["one", "TWO", "three"]).await;

    // Nobody accepts what they did not see.
    modify(agent, path, fork, "c0", "SOMETHING ELSE").await;
    let stale = browser.submit(&merged, "console/merge", &[("take", "all")]).await;
    assert!(
        stale.shows("has changed since you looked") && stale.shows("+SOMETHING ELSE"),
        "{}",
        stale.html
    );
    assert_eq!(scene.human.sources(), ["one", "TWO", "three"]);
    let all = browser.submit(&stale, "console/merge", &[("take", "all")]).await;
    assert!(all.shows("the fork is gone"), "{}", all.html);
    scene.sees(&["SOMETHING ELSE", "TWO", "THREE"]).await;
}

#[tokio::test]
async fn a_person_discards_a_fork() {
    let (scene, browser) = scene(&["one"]).await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let forked = agent.call("fork_document", json!({ "path": path })).await.ok();
    let fork = forked["fork_id"].as_str().expect("an id");
    let page = browser
        .get(&format!("/console/fork?server=lab&path={path}&fork={fork}"))
        .await;
    assert!(page.shows("changes nothing"), "{}", page.html);
    let gone = browser.submit(&page, "console/discard", &[]).await;
    assert!(gone.shows("Discarded fork"), "{}", gone.html);
    let listed = agent.call("list_document_forks", json!({ "path": path })).await.ok();
    assert_eq!(listed["forks"], json!([]));
}

const ADMIN: &str = "test-token-of-ben";
const PERSON: &str = "test-token-of-ida";

/// Ana and Ben, who are under review, she as an agent and he as an admin too; and Ida, who is not.
fn reviewed() -> String {
    let token = |name: &str, tenant: &str, token: &str, permissions: &str| {
        format!(
            "[[auth.tokens]]\nname = \"{name}\"\ntenant = \"{tenant}\"\ntoken = \"{token}\"\npermissions = [{permissions}]\n"
        )
    };
    format!(
        "{}[[tenants]]\nname = \"agents\"\nreview = \"required\"\n[[tenants]]\nname = \"people\"\n{}{}{}",
        lab_server("lab"),
        token("ana", "agents", TOKEN, "\"read\", \"write\""),
        token("ben", "agents", ADMIN, "\"read\", \"write\", \"admin\""),
        token("ida", "people", PERSON, "\"read\", \"write\""),
    )
}

#[tokio::test]
async fn edits_under_review_are_accepted_by_somebody_else() {
    let scene = Scene::notebook(&["one", "two"])
        .configured(&reviewed())
        .editing()
        .set()
        .await;
    let (agent, path, base) = (&scene.agent, scene.path.as_str(), scene.gateway.url(""));
    edit(agent, path, "c0", "ONE").await;
    edit(agent, path, "c1", "TWO").await;
    let own = Browser::logged_in(&base, TOKEN).await;
    let document = own.document(path, "").await;
    assert!(document.shows("waits for review"), "{}", document.html);
    let review = document.path_of(&document.links("console/fork?")[0]);
    let page = own.get(&review).await;
    assert!(
        page.shows("+ONE") && page.shows("somebody else accepts these") && !page.shows("Merge"),
        "{}",
        page.html
    );
    // The page and the tools say the same, whatever a script sends.
    let (form, shown) = (page.form("console/discard"), page.value("shown"));
    let forged = own
        .post("/console/merge", &form.with(&[("take", "all"), ("shown", &shown)]))
        .await;
    assert!(
        forged.shows("Nothing was merged: your edits are under review"),
        "{}",
        forged.html
    );
    assert_eq!(scene.human.sources(), ["one", "two"]);

    for (token, cell, expected) in [(PERSON, "c0", ["ONE", "two"]), (ADMIN, "c1", ["ONE", "TWO"])] {
        let other = Browser::logged_in(&base, token).await;
        let page = other.get(&review).await;
        let merged = other
            .submit(&page, "console/merge", &[("take", "chosen"), ("cell", cell)])
            .await;
        assert!(merged.shows("Merged 1 cell"), "{}", merged.html);
        scene.sees(&expected).await;
    }
}

#[tokio::test]
async fn an_admin_under_review_accepts_of_others_what_they_did_not_write() {
    let scene = Scene::notebook(&["one", "two"])
        .configured(&reviewed())
        .editing()
        .set()
        .await;
    let (ana, path) = (&scene.agent, scene.path.as_str());
    let ben = Agent::with_token(&scene.gateway, ADMIN, Era::Modern).await;
    let modified = |fork: Option<&str>, content: &str| {
        let modifications = json!([{ "range": { "cell_id": "c1" }, "content": content }]);
        ben.call(
            "modify_nb_cells",
            json!({ "path": path, "fork_id": fork, "modifications": modifications, "exec": false }),
        )
    };
    edit(ana, path, "c0", "ONE").await;
    modified(None, "TWO").await.ok();
    let listed = ben.call("list_document_forks", json!({ "path": path })).await.ok();
    let fork_of = |name: &str| {
        let forks = listed["forks"].as_array().expect("forks");
        let fork = forks.iter().find(|fork| fork["author"] == name);
        fork.unwrap_or_else(|| panic!("no fork of {name}: {listed}"))["fork_id"]
            .as_str()
            .expect("an id")
            .to_owned()
    };
    let merge = |fork: String| ben.call("merge_document_fork", json!({ "path": path, "fork_id": fork }));
    let told = merge(fork_of("ben")).await.error();
    assert!(told.contains("under review"), "{told}");
    // Nobody puts something of their own among what they may accept.
    let told = modified(Some(&fork_of("ana")), "SLIPPED IN").await.error();
    assert!(told.contains("is not yours"), "{told}");
    merge(fork_of("ana")).await.ok();
    scene.sees(&["ONE", "two"]).await;
}
