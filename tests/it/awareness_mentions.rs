//! A person calls an agent by `@name`, and the agent that watches is told at once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, TOKEN, Watcher,
    agent::ERAS,
    eventually,
    gateway::{everything, lab_server},
    lab,
    lab::Folder,
    notebook::notebook,
};

const ACTIVITY: &str = "notebook://activity";

struct Called {
    _gateway: Gateway,
    ana: Agent,
    bot: Agent,
    folder: Folder,
}

/// Two agents, one of which is called.
async fn scene(era: Era) -> Called {
    let bot = "[[auth.tokens]]\nname = \"Helper-Bot\"\ntenant = \"all\"\ntoken = \"token-of-bot\"\n";
    let gateway = Gateway::configured(&format!("{}{}{bot}", lab_server("lab"), everything())).await;
    let url = gateway.url("/mcp?toolsets=default,awareness");
    Called {
        ana: Agent::connect_to(&url, TOKEN, era).await,
        bot: Agent::connect_to(&url, "token-of-bot", era).await,
        _gateway: gateway,
        folder: lab().folder(),
    }
}

async fn mentions(agent: &Agent) -> Vec<Value> {
    let answer = agent.call("get_user_activity", json!({ "limit": 200 })).await.ok();
    let all = answer["activities"].as_array().expect("activities").clone();
    all.into_iter()
        .filter(|activity| activity["activity_type"] == "mention")
        .collect()
}

/// Passes over what is still told of what happened before.
async fn quiet(watcher: &mut Watcher) {
    while watcher.next().await.is_some() {}
}

/// Waits until an agent has been told of so many mentions.
async fn told(watcher: &mut Watcher, agent: &Agent, count: usize) -> Vec<Value> {
    loop {
        watcher.updated(ACTIVITY).await;
        let found = mentions(agent).await;
        if found.len() >= count {
            assert_eq!(found.len(), count, "{found:?}");
            return found;
        }
    }
}

/// Other tests keep the machine busy.
const SOON: Duration = Duration::from_secs(2);
/// The longest that a mention may take where nothing keeps the machine busy.
const AT_ONCE: Duration = Duration::from_millis(250);
/// Attempts of which one must find the machine not busy.
const ATTEMPTS: usize = 20;

#[tokio::test]
async fn a_mention_takes_a_quarter_of_a_second_at_most() {
    let scene = scene(Era::Modern).await;
    let path = scene.folder.write("a.ipynb", &notebook(&["", "x"]));
    scene.bot.call("read_nb_cells", json!({ "path": path })).await.ok();
    let human = Human::join(&path).await;
    human.publish("Hanna", true);
    let mut watcher = Watcher::start(&scene.bot, Era::Modern, &[ACTIVITY]).await;
    quiet(&mut watcher).await;
    let mut fastest = [Duration::MAX; 2];
    for attempt in 0..ATTEMPTS {
        // In the middle, and at the end, where it is complete after a pause.
        for (cell, mention) in [(0, "@helper-bot look\n"), (1, "\n@helper-bot")] {
            let end = human.sources()[cell].encode_utf16().count();
            let typed = Instant::now();
            human.splice_cell(&format!("c{cell}"), u32::try_from(end).expect("short"), 0, mention);
            told(&mut watcher, &scene.bot, attempt * 2 + cell + 1).await;
            fastest[cell] = fastest[cell].min(typed.elapsed());
        }
        if fastest.iter().all(|took| *took < AT_ONCE) {
            break;
        }
    }
    assert!(fastest.iter().all(|took| *took < AT_ONCE), "{fastest:?}");
    human.leave().await;
}

#[tokio::test]
async fn a_name_typed_into_a_cell_is_told_at_once() {
    for era in ERAS {
        let scene = scene(era).await;
        let path = scene.folder.write("a.ipynb", &notebook(&["# start\n", "x"]));
        scene.bot.call("read_nb_cells", json!({ "path": path })).await.ok();
        let human = Human::join(&path).await;
        human.select("Hanna", Some("c0"), 0, 0);
        eventually("the person is seen", async || {
            let users = json!({ "document_path": path });
            let users = scene.bot.call("get_online_users", users).await.ok();
            users.to_string().contains("Hanna").then_some(())
        })
        .await;
        let mut watcher = Watcher::start(&scene.bot, era, &[ACTIVITY]).await;
        quiet(&mut watcher).await;
        human.type_into(0, 8, "# @helper-bot", Duration::from_millis(20)).await;
        let typed = Instant::now();
        human.splice_cell("c0", 21, 0, " ");
        let found = told(&mut watcher, &scene.bot, 1).await;
        // What is measured includes reading the activities, so that it is an upper bound.
        let took = typed.elapsed();
        assert!(took < SOON, "{took:?}");
        let mention = &found[0];
        let metadata = &mention["metadata"];
        assert_eq!(
            (&mention["user_name"], &mention["mentions_you"]),
            (&json!("Hanna"), &json!(true)),
            "{mention}"
        );
        assert_eq!(
            (
                &metadata["agent"],
                &metadata["cell_id"],
                &metadata["cell_index"],
                &metadata["line"]
            ),
            (&json!("Helper-Bot"), &json!("c0"), &json!(0), &json!(1)),
            "{mention}"
        );
        assert_eq!(mention["document_path"], path);
        human.type_into(0, 22, "please plot x", Duration::from_millis(10)).await;
        quiet(&mut watcher).await;
        eventually("the whole line is told in the end", async || {
            let found = mentions(&scene.bot).await;
            assert_eq!(found.len(), 1, "once, although typing went on: {found:?}");
            (found[0]["metadata"]["text"] == "# @helper-bot please plot x").then_some(())
        })
        .await;
        let of_other = mentions(&scene.ana).await;
        assert_eq!(of_other[0]["mentions_you"], false, "{of_other:?}");

        // Typed away and back at once it is another mention.
        human.splice_cell("c0", 10, 1, "");
        human.splice_cell("c0", 10, 0, "@");
        told(&mut watcher, &scene.bot, 2).await;
        human.leave().await;
    }
}

#[tokio::test]
async fn a_name_at_the_end_is_told_when_typing_pauses() {
    let scene = scene(Era::Modern).await;
    let path = scene.folder.write("notes.md", "about ");
    scene
        .bot
        .call("get_document_content", json!({ "path": path }))
        .await
        .ok();
    let human = Human::join(&path).await;
    human.publish("Hanna", true);
    let mut watcher = Watcher::start(&scene.bot, Era::Modern, &[ACTIVITY]).await;
    quiet(&mut watcher).await;
    let typed = Instant::now();
    human.splice_text(6, 0, "@HELPER-BOT");
    let found = told(&mut watcher, &scene.bot, 1).await;
    let took = typed.elapsed();
    // The reading is included here too.
    assert!(took < SOON, "{took:?}");
    let metadata = &found[0]["metadata"];
    assert_eq!(
        (&metadata["text"], &metadata["line"]),
        (&json!("about @HELPER-BOT"), &json!(0))
    );
    assert!(metadata["cell_id"].is_null(), "{metadata}");
    human.leave().await;
}

#[tokio::test]
async fn addresses_other_names_and_what_was_there_before_are_no_mentions() {
    let scene = scene(Era::Modern).await;
    let path = scene
        .folder
        .write("a.ipynb", &notebook(&["# @helper-bot was here\n", ""]));
    scene.bot.call("read_nb_cells", json!({ "path": path })).await.ok();
    let human = Human::join(&path).await;
    human.publish("Hanna", true);
    human.splice_cell("c0", 0, 0, "more ");
    human.splice_cell("c1", 0, 0, "mail x@helper-bot.org or @helper-bots or @nobody \n");
    human.splice_cell("c1", 0, 0, "# @ana look\n");
    let mut found = Vec::new();
    while found.is_empty() {
        found = mentions(&scene.ana).await;
    }
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["metadata"]["agent"], "ana");
    assert!(
        found[0]["mentions_you"] == true && found[0]["metadata"]["text"] == "# @ana look",
        "{found:?}"
    );
    human.leave().await;
}

#[tokio::test]
async fn agents_call_each_other_too() {
    let scene = scene(Era::Modern).await;
    let path = scene.folder.write("a.ipynb", &notebook(&["1"]));
    let mut watcher = Watcher::start(&scene.bot, Era::Modern, &[ACTIVITY]).await;
    // Nobody has the notebook open before.
    let content = "# @Helper-Bot, check this; I am @ana\n1";
    let modify = json!({ "path": path, "modifications": [{ "range": { "start": 0 }, "content": content }] });
    scene.ana.call("modify_nb_cells", modify).await.ok();
    let found = told(&mut watcher, &scene.bot, 1).await;
    assert_eq!(
        (&found[0]["user_id"], &found[0]["is_agent"]),
        (&json!("token:ana"), &json!(true))
    );
    assert_eq!(found[0]["metadata"]["text"], "# @Helper-Bot, check this; I am @ana");
}

#[tokio::test]
async fn a_watcher_can_be_called_in_the_notebooks_that_it_used_however_long_ago() {
    let bot = "[[auth.tokens]]\nname = \"bot\"\ntenant = \"all\"\ntoken = \"token-of-bot\"\n";
    let settings = "[sessions]\nidle_timeout = \"1s\"";
    let gateway = Gateway::configured(&format!("{settings}\n{}{}{bot}", lab_server("lab"), everything())).await;
    let url = gateway.url("/mcp?toolsets=default,awareness");
    let (ana, bot) = (
        Agent::connect_to(&url, TOKEN, Era::Modern).await,
        Agent::connect_to(&url, "token-of-bot", Era::Modern).await,
    );
    let folder = lab().folder();
    let [first, second, unused] = ["a", "b", "c"].map(|name| folder.write(&format!("{name}.ipynb"), &notebook(&[""])));
    bot.call("read_nb_cells", json!({ "path": first })).await.ok();
    let mut watcher = Watcher::start(&bot, Era::Modern, &[ACTIVITY]).await;
    bot.call("read_nb_cells", json!({ "path": second })).await.ok();
    ana.call("read_nb_cells", json!({ "path": unused })).await.ok();
    eventually("what nobody watches is closed", async || {
        let sessions = ana
            .call("get_active_sessions", json!({ "document_path": unused }))
            .await
            .ok();
        (sessions["total"] == 0).then_some(())
    })
    .await;
    for (count, path) in [&first, &second].into_iter().enumerate() {
        let human = Human::join(path).await;
        human.splice_cell("c0", 0, 0, "@bot look\n");
        told(&mut watcher, &bot, count + 1).await;
        human.leave().await;
    }
}
