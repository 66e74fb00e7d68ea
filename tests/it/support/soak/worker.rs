//! An agent that inserts one cell after the other, each with a mark that no other has, runs some of them, and deletes those that
//! it inserted long ago.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    super::{Era, agent::ERAS, agent::ToolAnswer},
    Dice, Plan,
    client::Client,
    site::{Site, path},
};

/// The file to which each cell that runs adds its mark.
pub(super) const RAN: &str = "ran";

/// Request for one cell, with its answer.
#[derive(Debug, Clone)]
pub(super) struct CellRequest {
    pub(super) notebook: usize,
    /// What the cell adds to [`RAN`] if it runs.
    pub(super) mark: String,
    pub(super) source: String,
    pub(super) answer: Answer,
    /// The caller was told that it has run to its end.
    pub(super) is_completed: bool,
    pub(super) deletion: Deletion,
    pub(super) at: Duration,
}

#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// Jupyter has it, under this id.
    Acknowledged(String),
    /// Done, but not confirmed.
    Unconfirmed,
    Refused(String),
    /// No answer came.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deletion {
    Not,
    /// Nobody knows whether it was done.
    Asked,
    Acknowledged,
}

pub(super) async fn work(site: Arc<Site>, plan: Plan, number: usize, stop: CancellationToken) -> Vec<CellRequest> {
    let began = Instant::now();
    let mut client = Client::new(Arc::clone(&site), number % plan.tokens, era(number));
    let mut dice = Dice::new(plan.seed ^ (number as u64 + 1) << 32);
    let (mut requests, mut own): (Vec<CellRequest>, VecDeque<usize>) = (Vec::new(), VecDeque::new());
    loop {
        tokio::time::sleep(dice.millis(5..plan.pause.max(6))).await;
        client.connect(&stop).await;
        if stop.is_cancelled() {
            return requests;
        }
        let cut = (dice.below(100) < plan.cut_percent).then(|| dice.millis(0..150));
        let at_work = site.pause.read().await;
        if own.len() >= plan.cells {
            let oldest = own.pop_front().expect("there are some");
            delete(&site, &mut client, &mut requests[oldest], cut).await;
        } else {
            let request = insert(&site, &mut client, &mut dice, &plan, (number, requests.len()), cut).await;
            if let Answer::Acknowledged(_) = request.answer {
                own.push_back(requests.len());
            }
            requests.push(CellRequest {
                at: began.elapsed(),
                ..request
            });
        }
        drop(at_work);
    }
}

/// The eras take turns, also among those who share a token.
fn era(number: usize) -> Era {
    ERAS[(number + number / 2) % 2]
}

async fn insert(
    site: &Site,
    client: &mut Client,
    dice: &mut Dice,
    plan: &Plan,
    (agent, count): (usize, usize),
    cut: Option<Duration>,
) -> CellRequest {
    let notebook = dice.index(plan.notebooks);
    let mark = format!("agent {agent} cell {count}");
    let executes = dice.below(100) < plan.executed_percent;
    let kind = ["code", "markdown"][usize::from(!executes && dice.below(3) == 0)];
    let source = match executes {
        true => format!("with open('{RAN}', 'a') as ran: print('{mark}', file=ran)"),
        false => format!("'{mark}'"),
    };
    let cells = json!([{ "type": kind, "content": source }]);
    let arguments = json!({
        "path": path(notebook), "position": dice.below(2), "cells": cells, "exec": executes, "timeout": 5,
    });
    let (mut answer, mut is_completed) = (Answer::None, false);
    if let Some(answered) = client.call("insert_nb_cells", arguments, cut).await {
        is_completed = answered.structured["status"] == "completed";
        answer = answer_of(&answered);
    }
    if let Answer::Acknowledged(_) = &answer {
        let mut promises = site.promises[notebook].lock().expect("no panic");
        promises.inserted.insert(source.clone());
    }
    CellRequest {
        notebook,
        mark,
        source,
        answer,
        is_completed,
        deletion: Deletion::Not,
        at: Duration::ZERO,
    }
}

async fn delete(site: &Site, client: &mut Client, request: &mut CellRequest, cut: Option<Duration>) {
    let Answer::Acknowledged(id) = &request.answer else {
        return;
    };
    let promises = &site.promises[request.notebook];
    request.deletion = Deletion::Asked;
    promises.lock().expect("no panic").inserted.remove(&request.source);
    let arguments = json!({ "path": path(request.notebook), "ranges": [{ "cell_id": id }] });
    let answered = client.call("delete_nb_cells", arguments, cut).await;
    if answered.is_some_and(|answered| !answered.is_error && is_acknowledged(&answered.structured)) {
        request.deletion = Deletion::Acknowledged;
        promises
            .lock()
            .expect("no panic")
            .deleted
            .insert(request.source.clone());
    }
}

fn answer_of(answered: &ToolAnswer) -> Answer {
    // What cannot be executed is there all the same.
    if !answered.structured["cell_ids"].is_array() {
        return Answer::Refused(answered.text().to_owned());
    }
    let id = answered.structured["cell_ids"][0].as_str();
    let id = id
        .unwrap_or_else(|| panic!("an id: {}", answered.structured))
        .to_owned();
    match is_acknowledged(&answered.structured) {
        true => Answer::Acknowledged(id),
        false => Answer::Unconfirmed,
    }
}

fn is_acknowledged(answer: &Value) -> bool {
    answer["acknowledged"] == true
}
