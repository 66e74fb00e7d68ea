//! The line to Jupyter is cut, stays down or brings garbage, and several gateways share a room: nothing twice, nothing lost.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    rooms_recovery::{gateway_to, insert, read},
    support::{
        Human, eventually, lab,
        notebook::{cells_on_disk, notebook},
        proxy::Proxy,
    },
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_cut_again_and_again_loses_and_doubles_nothing() {
    let proxy = Proxy::to(lab().address()).await;
    let (_gateway, agent) = gateway_to(&proxy.url(), lab().token()).await;
    let folder = lab().folder();
    let path = folder.write("cut.ipynb", &notebook(&["zero"]));
    let human = Human::join(&path).await;
    let mut told = Vec::new();
    for step in 0..30 {
        let source = format!("step {step}");
        let cutting = async {
            if step % 3 == 0 {
                // At another moment of the edit each time.
                tokio::time::sleep(Duration::from_millis(step % 7)).await;
                proxy.cut();
            }
        };
        let (answer, ()) = tokio::join!(insert(&agent, &path, &source), cutting);
        if answer.is_error {
            assert!(step == 0 || answer.text().contains("try again"), "{}", answer.text());
        } else {
            told.push(source);
        }
    }
    assert!(told.len() >= 29, "{told:?}");
    human
        .wait_for("the person has all of it", |human| {
            told.iter().all(|source| human.sources().contains(source))
        })
        .await;
    eventually("and the gateway the same", async || {
        (read(&agent, &path).await == human.cells()).then_some(())
    })
    .await;
    assert_eq!(
        human
            .cells()
            .iter()
            .map(|cell| &cell.source)
            .collect::<HashSet<_>>()
            .len(),
        human.cells().len()
    );
    let cells = human.cells();
    eventually("and the file", async || {
        (cells_on_disk(&folder.disk.join("cut.ipynb"))? == cells).then_some(())
    })
    .await;
    assert_eq!(proxy.rooms_open(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_stays_down_is_said_to_be_down() {
    let proxy = Proxy::to(lab().address()).await;
    let (_gateway, agent) = gateway_to(&proxy.url(), lab().token()).await;
    let folder = lab().folder();
    let path = folder.write("down.ipynb", &notebook(&["zero"]));
    insert(&agent, &path, "before").await.ok();
    proxy.refuse(true);
    proxy.cut();
    eventually("the session is said to reconnect", async || {
        let session = agent.call("query_document_session", json!({ "path": path })).await.ok();
        (session["status"] == "disconnected").then_some(())
    })
    .await;
    let started = Instant::now();
    let error = insert(&agent, &path, "never").await.error();
    assert!(
        error.contains("nothing was changed") && error.contains("`lab`"),
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    proxy.refuse(false);
    insert(&agent, &path, "after").await.ok();
    let sources: Vec<String> = read(&agent, &path).await.into_iter().map(|cell| cell.source).collect();
    assert_eq!(sources, ["after", "before", "zero"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_document_that_is_cut_in_its_middle_is_not_taken_for_whole() {
    let proxy = Proxy::to(lab().address()).await;
    let (_gateway, agent) = gateway_to(&proxy.url(), lab().token()).await;
    let folder = lab().folder();
    let sources: Vec<String> = (0..400).map(|index| format!("{index}: {}", "x".repeat(1000))).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let path = folder.write("large.ipynb", &notebook(&sources));
    let human = Human::join(&path).await;
    proxy.cut_in_frame_over(100_000);
    let first = agent
        .call("read_nb_cells", json!({ "path": path, "ranges": [{ "start": 399 }] }))
        .await;
    assert!(proxy.has_cut_in_frame());
    assert!(first.is_error && first.text().contains("`lab`"), "{}", first.text());
    insert(&agent, &path, "new").await.ok();
    // The same while it comes back after a cut.
    proxy.cut_in_frame_over(100_000);
    proxy.cut();
    eventually("it is cut again", async || proxy.has_cut_in_frame().then_some(())).await;
    insert(&agent, &path, "newer").await.ok();
    human
        .wait_for("both are there", |human| human.cells().len() == 402)
        .await;
    assert_eq!(read(&agent, &path).await.len(), 402);
    assert_eq!(human.sources()[..2], ["newer", "new"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_share_one_room() {
    let (first_gateway, first) = gateway_to(lab().url(), lab().token()).await;
    let (_second_gateway, second) = gateway_to(lab().url(), lab().token()).await;
    let folder = lab().folder();
    let path = folder.write("two.ipynb", &notebook(&["zero"]));
    for step in 0..20 {
        let (one, two) = (format!("first {step}"), format!("second {step}"));
        let (one, two) = tokio::join!(insert(&first, &path, &one), insert(&second, &path, &two));
        assert_eq!(
            (&one.ok()["acknowledged"], &two.ok()["acknowledged"]),
            (&json!(true), &json!(true))
        );
    }
    let cells = eventually("both have the same", async || {
        let cells = read(&first, &path).await;
        (cells.len() == 41 && cells == read(&second, &path).await).then_some(cells)
    })
    .await;
    eventually("and the file", async || {
        (cells_on_disk(&folder.disk.join("two.ipynb"))? == cells).then_some(())
    })
    .await;
    first_gateway.drain().start();
    first_gateway.gone().await;
    insert(&second, &path, "alone").await.ok();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_frame_costs_one_room_and_only_until_the_next_call() {
    let proxy = Proxy::to(lab().address()).await;
    let (_gateway, agent) = gateway_to(&proxy.url(), lab().token()).await;
    let folder = lab().folder();
    let (bad, good) = (
        folder.write("bad.ipynb", &notebook(&["zero"])),
        folder.write("good.ipynb", &notebook(&["zero"])),
    );
    insert(&agent, &bad, "before").await.ok();
    let human = Human::join(&bad).await;
    for garbage in [
        &[0, 2, 0xff, 0xff, 0xff, 0xff][..],
        &[0, 2, 5, 1, 2, 3, 4, 5],
        &[0],
        &[],
        &[0, 0, 2, 0xff, 0xff],
        &[1, 3, 9, 9, 9],
        &[0x80],
    ] {
        proxy.inject(garbage);
        // Its room says something, and so the garbage arrives first.
        human.splice_cell("c0", 0, 0, ".");
        eventually("the garbage is sent", async || proxy.has_injected().then_some(())).await;
        let answer = insert(&agent, &bad, "in between").await;
        if answer.is_error {
            assert!(answer.text().contains("bad.ipynb"), "{}", answer.text());
        }
        insert(&agent, &good, "untroubled").await.ok();
        insert(&agent, &bad, "after").await.ok();
        eventually("the agent sees what the person sees", async || {
            (read(&agent, &bad).await == human.cells()).then_some(())
        })
        .await;
    }
    assert_eq!(human.cells().iter().filter(|cell| cell.source == "before").count(), 1);
    assert_eq!(human.cells().iter().filter(|cell| cell.source == "after").count(), 7);
}
