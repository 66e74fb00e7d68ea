//! The page for people as they use it: in Chromium, with the keyboard alone, with everything that it shows kept up to date.

use serde_json::{Value, json};

use crate::{
    history::edit,
    support::{Agent, Gateway, TOKEN, console_page::ConsolePage, eventually, gateway::lab_server, scene::Scene},
};

const IDA: &str = "test-token-of-ida";
const BEN: &str = "test-token-of-ben";

/// Puts out lines until there is a file.
const LINES: &str = "import os, time\nn = 0\nwhile not os.path.exists('stop'):\n    n += 1\n    print('line', n, flush=True)\n    time.sleep(0.1)";

async fn modify(agent: &Agent, path: &str, fork: Option<&str>, cell: &str, content: &str) {
    let modifications = json!([{ "range": { "cell_id": cell }, "content": content }]);
    let modify = json!({ "path": path, "fork_id": fork, "modifications": modifications, "exec": false });
    agent.call("modify_nb_cells", modify).await.ok();
}

fn document(path: &str) -> String {
    format!("/console/document?server=lab&path={path}")
}

#[tokio::test]
async fn whoever_has_no_token_learns_how_to_connect_and_copies_it() {
    let gateway = Gateway::start().await;
    let mut console = ConsolePage::at(&gateway.url("")).await;
    console.shows("Agents at work in your notebooks").await;
    console.check("front").await;
    console
        .run("await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])")
        .await;
    for (what, copied) in [
        ("Copy the address", gateway.url("/mcp")),
        (
            "Copy Claude Code",
            format!(
                "claude mcp add --transport http jupyter \\\n  {} \\\n  --header \"Authorization: Bearer TOKEN\"",
                gateway.url("/mcp")
            ),
        ),
    ] {
        console.press(what, "Enter").await;
        let told = "const text = await page.locator('#announcements').textContent(); return text.includes('Copied') ? text : null";
        console.page.until("that it was copied", told).await;
        let held = console
            .run("return await page.evaluate(() => navigator.clipboard.readText())")
            .await;
        assert_eq!(held, copied.as_str());
        console
            .run("await page.evaluate(() => document.getElementById('announcements').textContent = '')")
            .await;
    }
    for client in ["Cursor", "VS Code"] {
        console.press(&format!("Copy {client}"), "Enter").await;
        let held = "const text = await page.evaluate(() => navigator.clipboard.readText());
                    return text.startsWith('{') ? JSON.parse(text) : null";
        let held = console.page.until("what was copied", held).await;
        let servers = held.get("mcpServers").or(held.get("servers")).expect("servers");
        assert_eq!(
            servers["jupyter"]["url"],
            gateway.url("/mcp").as_str(),
            "{client}: {held}"
        );
        console
            .run("await page.evaluate(() => navigator.clipboard.writeText(''))")
            .await;
    }
    console.had_no_problems().await;

    console
        .keys("await to('Token'); await page.keyboard.type('wrong'); await page.keyboard.press('Enter')")
        .await;
    console.shows("This token is not known here").await;
    console.check("wrong-token").await;
    console.log_in(TOKEN).await;
}

#[tokio::test]
async fn with_a_login_in_the_browser_the_address_is_enough() {
    let config = "[http]\npublic_url = \"http://127.0.0.1:9\"\n[auth.jwt]\nissuer = \"http://127.0.0.1:9/\"\n\
                  audience = \"http://127.0.0.1:9/mcp\"\n[auth.oauth]\nenabled = true\nclient_id = \"x\"\nclient_secret_env = \"S\"\n\
                  [[tenants]]\nname = \"t\"\n";
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("[store]\nurl = \"sqlite://{}/gateway.db\"\n", folder.path().display());
    let config = format!("{store}{config}{}", lab_server("lab"));
    let gateway = Gateway::on_port(0, &config, &[("S", "secret-of-the-client")]).await;
    let mut console = ConsolePage::at(&gateway.url("")).await;
    console.shows("The address is enough").await;
    console
        .shows("claude mcp add --transport http jupyter http://127.0.0.1:9/mcp")
        .await;
    console.check("front-login").await;
    console.press("With a token", "Enter").await;
    console.shows("Authorization: Bearer TOKEN").await;
    console.check("front-login-token").await;
    console.had_no_problems().await;
}

#[tokio::test]
async fn a_person_watches_a_run_live_and_ends_it() {
    let scene = Scene::notebook(&[LINES, "x = 1"]).editing().set().await;
    scene.human.publish("Ben", true);
    let execution = scene.start(0).await;
    let mut console = ConsolePage::logged_in(&scene.gateway.url("")).await;
    for shown in [
        "1 running",
        "Ben",
        "Jupyter Server",
        "up",
        "Open in Jupyter",
        "Limits of all",
    ] {
        console.shows(shown).await;
    }
    let link = console
        .run("return await page.getByRole('link', { name: /^Open in Jupyter/ }).first().getAttribute('href')")
        .await;
    assert!(link.as_str().is_some_and(|link| link.contains("/lab/tree/")), "{link}");
    // The last lines grow by themselves, and the focus stays where it is meanwhile.
    console.keys("await to('Cancel')").await;
    let tail = "return await page.locator('.run pre.output').textContent().catch(() => null)";
    let first = console.page.until("output", tail).await;
    for _ in 0..2 {
        eventually("more output", async || {
            let now = console.run(tail).await;
            (now.is_string() && now != first).then_some(())
        })
        .await;
    }
    let focused = console
        .run("return await page.evaluate(() => document.activeElement.textContent)")
        .await;
    assert!(
        focused.as_str().is_some_and(|text| text.starts_with("Cancel")),
        "{focused}"
    );
    console.check("overview").await;

    console
        .keys("await page.keyboard.press('Escape'); await to('Cancel'); await page.keyboard.press('Enter')")
        .await;
    console.shows("The execution was cancelled").await;
    console.shows("cancelled").await;
    console.check("run").await;
    assert_eq!(scene.ended(&execution).await["status"], "cancelled");

    // What is said while the page is open comes without asking for it.
    console.go("/console").await;
    console.shows("Live").await;
    edit(&scene.agent, &scene.path, "c1", "x = 2").await;
    console.shows("1 cell").await;
    console.go("/console/connect").await;
    console.check("connect").await;
    console.had_no_problems().await;
}

#[tokio::test]
async fn a_person_answers_code_that_asks() {
    let scene = Scene::notebook(&["print('hello', input('Who are you? '))"]).set().await;
    let execution = scene.start(0).await;
    let mut console = ConsolePage::logged_in(&scene.gateway.url("")).await;
    console.go(&format!("/console/run?id={execution}")).await;
    // It comes by itself to a page that is open before the code asks.
    console.shows("The code asks for input").await;
    console.shows("input required").await;
    console.check("input").await;
    console
        .keys("await to('Who are you?'); await page.keyboard.type('ida'); await page.keyboard.press('Enter')")
        .await;
    console.shows("The answer was sent").await;
    console.shows("hello ida").await;
    console.had_no_problems().await;
}

#[tokio::test]
async fn a_person_accepts_one_of_three_changed_cells_undoes_an_agent_and_restores_a_version() {
    let scene = Scene::notebook(&["one = 1", "two = 2\nkept = True", "three = 3"])
        .editing()
        .set()
        .await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let forked = json!({ "path": path, "title": "Rename everything", "description": "Longer names, as you asked" });
    let forked = agent.call("fork_document", forked).await.ok();
    let fork = forked["fork_id"].as_str().expect("an id");
    modify(agent, path, Some(fork), "c0", "first = 1").await;
    modify(agent, path, Some(fork), "c1", "second = 2\nkept = True").await;
    modify(agent, path, Some(fork), "c2", "third = 3").await;

    let mut console = ConsolePage::logged_in(&scene.gateway.url("")).await;
    console.press(path, "Enter").await;
    console.shows("3 cells changed").await;
    console.check("document").await;
    console.press("Rename everything", "Enter").await;
    console.shows("3 changed cells").await;
    console.press("Merge chosen cells", "Enter").await;
    console.shows("Choose at least one cell").await;
    console
        .keys("await to('Cell 1'); await page.keyboard.press('Space');")
        .await;
    console.check("fork").await;
    console.press("Merge chosen cells", "Enter").await;
    console.shows("Merged 1 cell").await;
    console.shows("2 changed cells").await;
    scene.sees(&["one = 1", "second = 2\nkept = True", "three = 3"]).await;

    // An agent's edit is undone, and what a person typed in the same cell stays.
    edit(agent, path, "c0", "one = 111").await;
    scene.sees(&["one = 111", "second = 2\nkept = True", "three = 3"]).await;
    scene.human.splice_cell("c0", 9, 0, "  # mine");
    scene
        .sees(&["one = 111  # mine", "second = 2\nkept = True", "three = 3"])
        .await;
    console.go(&document(path)).await;
    console.shows("modify_nb_cells").await;
    console.press("Undo", "Enter").await;
    console.shows("Undid 1 version").await;
    scene
        .sees(&["one = 1  # mine", "second = 2\nkept = True", "three = 3"])
        .await;

    // The first version that is listed last is the document as it was before all that.
    console.go(&document(path)).await;
    console
        .run("await page.locator('ol.versions li a').last().click(); await page.waitForURL(/version=/)")
        .await;
    console.shows("first version").await;
    console.check("first-version").await;
    console.press("Restore this version", "Enter").await;
    console.shows("Restored").await;
    scene.sees(&["one = 1", "two = 2\nkept = True", "three = 3"]).await;
    console
        .run("await page.locator('ol.versions li a').first().click(); await page.waitForURL(/version=/)")
        .await;
    console.shows("-second = 2").await;
    console.shows("+two = 2").await;
    console.check("version").await;
    console.go("/console/audit").await;
    for shown in [
        "merge_document_fork",
        "undo_changes",
        "restore_document_version",
        "allowed",
    ] {
        console.shows(shown).await;
    }
    let rows = "return await page.locator('tbody tr').count()";
    let calls = console.run(rows).await.as_i64();
    console.check("audit").await;
    console.press("Looks at pages too", "Space").await;
    console.press("Show", "Enter").await;
    eventually("more rows", async || {
        (console.run(rows).await.as_i64() > calls).then_some(())
    })
    .await;
    console.had_no_problems().await;
}

/// Ana, an agent under rules; Ben, an admin of the same tenant.
fn ruled() -> String {
    let token = |name: &str, token: &str, permissions: &str| {
        format!(
            "[[auth.tokens]]\nname = \"{name}\"\ntenant = \"team\"\ntoken = \"{token}\"\npermissions = [{permissions}]\n"
        )
    };
    format!(
        "{}[[tenants]]\nname = \"team\"\n[[tenants.approvals]]\ncode = '^\\s*!|pip install'\n[[tenants.approvals]]\n\
         tools = [\"delete_document\"]\n{}{}",
        lab_server("lab"),
        token("ana", TOKEN, "\"read\", \"write\", \"execute\""),
        token("ben", BEN, "\"read\", \"admin\""),
    )
}

#[tokio::test]
async fn somebody_else_allows_what_an_agent_asks_for() {
    let scene = Scene::notebook(&["x = 1"]).configured(&ruled()).set().await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let mut console = ConsolePage::with_token(&scene.gateway.url(""), BEN).await;
    console.shows("Live").await;
    let code = "# Needed for the plots\n!touch allowed\nprint('<b>done</b>')";
    let run = json!({ "path": path, "code": code });
    let told = agent.call("run_code", run.clone()).await.error();
    assert!(told.contains("It waits as request"), "{told}");
    // It comes by itself to the page that is open.
    console.shows("Waiting for approval").await;
    for shown in [
        "ana wants to call run_code",
        "code that matches",
        "!touch allowed",
        "print('<b>done</b>')",
        "token:ana",
    ] {
        console.shows(shown).await;
    }
    let delete = json!({ "path": path });
    agent.call("delete_document", delete.clone()).await.error();
    console.shows("delete_document").await;
    console.check("approvals").await;

    // The call that waits goes on when somebody allows it.
    let waiting = agent.call("run_code", run);
    let allowing = async {
        console.press("Allow once: run_code of ana", "Enter").await;
        console.shows("Allowed run_code of ana, once").await;
    };
    let (ran, ()) = tokio::join!(waiting, allowing);
    assert_eq!(ran.ok()["status"], "completed");
    assert!(scene.folder.has("allowed"));
    console.press("Refuse: delete_document of ana", "Enter").await;
    console.shows("Refused delete_document of ana").await;
    console.shows_no("Waiting for approval").await;
    let told = agent.call("delete_document", delete).await.error();
    assert!(told.contains("ben did not allow this"), "{told}");
    assert!(scene.folder.has("run.ipynb"));
    console.had_no_problems().await;
}

#[tokio::test]
async fn whoever_is_reviewed_accepts_nothing_of_their_own_and_is_told_who_does() {
    let config = format!(
        "{}[[tenants]]\nname = \"agents\"\nreview = \"required\"\n[[tenants]]\nname = \"people\"\n\
         [[auth.tokens]]\nname = \"ana\"\ntenant = \"agents\"\ntoken = \"{TOKEN}\"\npermissions = [\"read\", \"write\"]\n\
         [[auth.tokens]]\nname = \"ida\"\ntenant = \"people\"\ntoken = \"{IDA}\"\npermissions = [\"read\", \"write\"]\n",
        lab_server("lab")
    );
    let scene = Scene::notebook(&["x = 1", "y = 1"])
        .configured(&config)
        .editing()
        .set()
        .await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    edit(agent, path, "c0", "x = 2").await;
    edit(agent, path, "c1", "y = 2").await;
    let mut own = ConsolePage::logged_in(&scene.gateway.url("")).await;
    own.go(&document(path)).await;
    own.press("Review: ana", "Enter").await;
    own.shows("somebody else accepts these").await;
    assert!(!own.text().await.contains("Merge"), "{}", own.text().await);
    own.check("own-review").await;

    let mut others = ConsolePage::with_token(&scene.gateway.url(""), IDA).await;
    others.go(&document(path)).await;
    others.press("Review: ana", "Enter").await;
    others.shows("Merge chosen cells").await;
    others
        .keys("await to('Cell 0'); await page.keyboard.press('Space');")
        .await;
    others.press("Merge chosen cells", "Enter").await;
    others.shows("Merged 1 cell").await;
    scene.sees(&["x = 2", "y = 1"]).await;
    others.had_no_problems().await;
}

#[tokio::test]
async fn much_of_everything_fits_a_phone() {
    let long = "a_very_long_name_of_a_variable_that_nobody_would_ever_break_into_pieces_".repeat(4);
    let scene = Scene::of(
        &format!("folder of {}.ipynb", "measurements-".repeat(9)),
        &crate::support::notebook::notebook(&[&format!("{long} = 1"), &format!("print('{}')", "y".repeat(900))]),
    )
    .editing()
    .set()
    .await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    scene
        .human
        .publish(&"Wolfeschlegelsteinhausenbergerdorff".repeat(2), true);
    scene.run(1, 2).await.ok();
    edit(agent, path, "c0", &format!("{long} = 2")).await;
    let forked = json!({ "path": path, "title": &long[..180] });
    let forked = agent.call("fork_document", forked).await.ok();
    let fork = forked["fork_id"].as_str().expect("an id").to_owned();
    modify(agent, path, Some(&fork), "c0", &format!("{long}{long} = 3")).await;
    let mut console = ConsolePage::logged_in(&scene.gateway.url("")).await;
    let place = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("server", "lab")
        .append_pair("path", path)
        .finish();
    let listed = agent.call("list_executions", json!({})).await.ok();
    let run = listed["executions"][0]["execution_id"]
        .as_str()
        .expect("an execution")
        .to_owned();
    let version = agent.call("get_document_history", json!({ "path": path })).await.ok();
    let version = version["versions"][0]["version_id"].as_str().map(str::to_owned);
    for (name, page) in [
        ("long-overview", "/console".to_owned()),
        (
            "long-document",
            format!("/console/document?{place}&version={}", version.unwrap_or_default()),
        ),
        ("long-fork", format!("/console/fork?{place}&fork={fork}")),
        ("long-run", format!("/console/run?id={run}")),
        ("long-audit", "/console/audit".to_owned()),
        ("lost", "/console/nowhere".to_owned()),
    ] {
        console.go(&page).await;
        console.check(name).await;
    }
    let lost: Value = console
        .run("return problems.filter(problem => !problem.includes('404'))")
        .await;
    assert_eq!(lost, json!([]));
}
