//! Limits on the number of open rooms and their idle time, and documents of unusual size.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, eventually,
    gateway::{TOKEN, everything, server},
    lab,
    lab::Folder,
    notebook::{cells_on_disk, notebook},
    proxy::Proxy,
};

async fn behind_a_proxy(more: &str, tenant: &str) -> (Proxy, Gateway, Agent) {
    let proxy = Proxy::to(lab().address()).await;
    let servers = server("lab", &proxy.url(), lab().token());
    let tenants = everything().replace("name = \"all\"\n", &format!("name = \"all\"\n{tenant}\n"));
    let gateway = Gateway::configured(&format!("{more}\n{servers}{tenants}")).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    (proxy, gateway, agent)
}

fn notebooks(folder: &Folder, count: usize) -> Vec<String> {
    (0..count)
        .map(|index| folder.write(&format!("{index}.ipynb"), &notebook(&["zero"])))
        .collect()
}

async fn open_paths(agent: &Agent) -> Vec<String> {
    let listed = agent.call("query_nb_sessions", json!({})).await.ok();
    listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["path"].as_str().unwrap().to_owned())
        .collect()
}

async fn read(agent: &Agent, path: &str) -> Value {
    agent.call("read_nb_cells", json!({ "path": path })).await.ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_first_reads_open_one_room() {
    let (proxy, gateway, agent) = behind_a_proxy("", "").await;
    let folder = lab().folder();
    let path = &notebooks(&folder, 1)[0];
    let agents = join_all((0..100).map(|_| Agent::connect(&gateway, Era::Modern))).await;
    let answers = join_all(agents.iter().map(|agent| read(agent, path))).await;
    assert!(answers.iter().all(|answer| answer["cell_count"] == 1));
    assert_eq!(proxy.rooms_opened(), 1);
    assert_eq!(open_paths(&agent).await, std::slice::from_ref(path));
}

#[tokio::test]
async fn a_room_nobody_uses_is_closed_and_opened_again() {
    let (proxy, _gateway, agent) = behind_a_proxy("[sessions]\nidle_timeout = \"600ms\"", "").await;
    let folder = lab().folder();
    let path = &notebooks(&folder, 1)[0];
    let insert = json!({ "path": path, "position": 0, "cells": [{ "content": "kept" }] });
    agent.call("insert_nb_cells", insert).await.ok();
    let until = Instant::now() + Duration::from_millis(1500);
    while Instant::now() < until {
        assert_eq!(read(&agent, path).await["cell_count"], 2);
        // More often than the room may be idle.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(proxy.rooms_opened(), 1, "use keeps it open");
    eventually("it is closed", async || (proxy.rooms_open() == 0).then_some(())).await;
    assert!(open_paths(&agent).await.is_empty());
    assert_eq!(read(&agent, path).await["cells"][0]["source"], "kept");
    assert_eq!(proxy.rooms_opened(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn at_a_limit_the_least_used_idle_room_is_closed() {
    for (more, tenant, whose) in [
        ("[sessions]\nmax_open_rooms = 3", "", "in this gateway"),
        ("", "max_open_rooms = 3", "for your tenant"),
    ] {
        let (proxy, gateway, agent) = behind_a_proxy(more, tenant).await;
        let folder = lab().folder();
        let paths = notebooks(&folder, 5);
        for path in [&paths[0], &paths[1], &paths[2], &paths[0]] {
            read(&agent, path).await;
            // The times of the last uses are kept in milliseconds.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        read(&agent, &paths[3]).await;
        assert_eq!(open_paths(&agent).await, [&*paths[0], &paths[2], &paths[3]]);
        eventually("the victim's socket is closed", async || {
            (proxy.rooms_open() == 3).then_some(())
        })
        .await;

        // An edit whose echo is held up keeps its room in use.
        let busy = [&paths[0], &paths[2], &paths[3]];
        let people = join_all(busy.map(|path| Human::join(path))).await;
        join_all(busy.map(|path| read(&agent, path))).await;
        proxy.hold_rooms();
        let editors = join_all(busy.map(|path| {
            let url = gateway.url("/mcp");
            async move {
                let agent = Agent::connect_to(&url, TOKEN, Era::Modern).await;
                let insert = json!({ "path": path, "position": 0, "cells": [{ "content": "held" }] });
                agent.call("insert_nb_cells", insert).await
            }
        }));
        let refused = async {
            for person in &people {
                person
                    .wait_for("the edit is made", |person| person.sources()[0] == "held")
                    .await;
            }
            let error = agent.call("read_nb_cells", json!({ "path": paths[4] })).await.error();
            proxy.hold(false);
            error
        };
        let (held, error) = tokio::join!(editors, refused);
        assert!(
            error.contains("limit 3") && error.contains(whose) && error.contains("end_nb_session"),
            "{error}"
        );
        for answer in held {
            answer.ok();
        }
        read(&agent, &paths[4]).await;
        assert_eq!(open_paths(&agent).await.len(), 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_limit_holds_when_many_come_at_once() {
    let (proxy, gateway, agent) = behind_a_proxy("[sessions]\nmax_open_rooms = 3", "").await;
    let folder = lab().folder();
    let paths = notebooks(&folder, 12);
    for path in &paths[..3] {
        read(&agent, path).await;
    }
    let answers = join_all(paths.iter().map(|path| {
        let url = gateway.url("/mcp");
        async move {
            let agent = Agent::connect_to(&url, TOKEN, Era::Modern).await;
            agent.call("read_nb_cells", json!({ "path": path })).await
        }
    }))
    .await;
    let refused = answers
        .into_iter()
        .filter(|answer| answer.is_error)
        .map(|answer| answer.text().to_owned());
    assert!(
        refused
            .into_iter()
            .all(|text| text.contains("in this gateway") && text.contains("open now: "))
    );
    assert!(open_paths(&agent).await.len() <= 3);
    eventually("no more sockets than that", async || {
        (proxy.rooms_open() <= 3).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notebook_of_five_thousand_cells_is_read_and_edited() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let sources: Vec<String> = (0..5000).map(|index| format!("x_{index} = {index}")).collect();
    let path = folder.write(
        "many.ipynb",
        &notebook(&sources.iter().map(String::as_str).collect::<Vec<_>>()),
    );
    let started = Instant::now();
    let one = json!({ "path": path, "ranges": [{ "start": 4999 }] });
    let first = agent.call("read_nb_cells", one.clone()).await.ok();
    println!("5000 cells: opened in {:?}", started.elapsed());
    assert_eq!(
        (&first["cells"][0]["source"], &first["cell_count"]),
        (&json!("x_4999 = 4999"), &json!(5000))
    );
    let started = Instant::now();
    for _ in 0..20 {
        agent.call("read_nb_cells", one.clone()).await.ok();
    }
    println!("5000 cells: one is read in {:?}", started.elapsed() / 20);
    assert!(
        started.elapsed() / 20 < Duration::from_millis(100),
        "{:?}",
        started.elapsed() / 20
    );
    let started = Instant::now();
    let modifications = json!([{ "range": { "cell_id": "c2500" }, "content": "edited" }]);
    let edited = agent
        .call(
            "modify_nb_cells",
            json!({ "path": path, "modifications": modifications, "if_revision": first["revision"] }),
        )
        .await
        .ok();
    assert_eq!(edited["acknowledged"], true);
    println!("5000 cells: one is edited in {:?}", started.elapsed());
    let started = Instant::now();
    let deleted = agent
        .call(
            "delete_nb_cells",
            json!({ "path": path, "ranges": [{ "start": 10, "end": 2500 }, { "start": 2501, "end": 4990 }] }),
        )
        .await
        .ok();
    println!("5000 cells: 4979 are deleted in {:?}", started.elapsed());
    assert_eq!(
        (&deleted["deleted_cells"], &deleted["acknowledged"]),
        (&json!(4979), &json!(true))
    );
    let file = folder.disk.join("many.ipynb");
    let left = eventually("it is saved", async || {
        cells_on_disk(&file).filter(|cells| cells.len() == 21)
    })
    .await;
    assert_eq!(left[10].source, "edited");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notebook_of_fifty_megabytes_is_read_and_edited() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let mut large: Value = serde_json::from_str(&notebook(&["a", "b", "c", "d", "e"])).unwrap();
    for cell in large["cells"].as_array_mut().unwrap() {
        let data = json!({ "text/plain": "x".repeat(5_000_000) });
        cell["outputs"] = json!([
            { "output_type": "stream", "name": "stdout", "text": "0123456789".repeat(500_000) },
            { "output_type": "display_data", "data": data, "metadata": {} },
        ]);
    }
    let path = folder.write("large.ipynb", &large.to_string());
    let started = Instant::now();
    let read = agent
        .call(
            "read_nb_cells",
            json!({ "path": path, "ranges": [{ "start": 4 }], "max_cell_data": 100 }),
        )
        .await
        .ok();
    println!("50 MB: opened in {:?}", started.elapsed());
    assert_eq!(
        (&read["cells"][0]["source"], &read["truncated"]),
        (&json!("e"), &json!(true))
    );
    assert!(read.to_string().len() < 4000, "cut to what was asked for");
    let started = Instant::now();
    let modifications = json!([{ "range": { "start": 4 }, "content": "edited" }]);
    let edited = agent
        .call(
            "modify_nb_cells",
            json!({ "path": path, "modifications": modifications }),
        )
        .await
        .ok();
    println!("50 MB: edited in {:?}", started.elapsed());
    assert_eq!(edited["acknowledged"], true);
    let human = Human::join(&path).await;
    assert_eq!(human.sources(), ["a", "b", "c", "d", "edited"]);
    human.leave().await;
}
