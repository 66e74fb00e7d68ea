//! An agent that inserts one cell after the other, each with a mark that no other has.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Dice, Plan, Site, path};

/// Request for one cell, with its answer.
#[derive(Debug, Clone)]
pub(super) struct CellRequest {
    pub(super) notebook: usize,
    pub(super) mark: String,
    pub(super) answer: Answer,
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

pub(super) async fn work(site: Arc<Site>, plan: Plan, number: usize, stop: CancellationToken) -> Vec<CellRequest> {
    let began = Instant::now();
    let agent = site.agent().await;
    let mut dice = Dice::new(plan.seed ^ (number as u64 + 1) << 32);
    let mut requests = Vec::new();
    while !stop.is_cancelled() {
        let notebook = usize::try_from(dice.below(plan.notebooks as u64)).expect("small");
        let mark = format!("'agent {number} cell {}'", requests.len());
        let kind = ["code", "markdown"][usize::from(dice.below(3) == 0)];
        let cells = json!([{ "type": kind, "content": mark }]);
        let executes = dice.below(100) < plan.executed_percent;
        let arguments = json!({
            "path": path(notebook), "position": dice.below(2), "cells": cells, "exec": executes, "timeout": 5,
        });
        let at = began.elapsed();
        let at_work = site.pause.read().await;
        let answer = match agent.attempt("insert_nb_cells", arguments).await {
            None => Answer::None,
            // What cannot be executed is there all the same.
            Some(answer) if answer.structured["cell_ids"].is_array() => answer_of(&answer.structured),
            Some(answer) => Answer::Refused(answer.text().to_owned()),
        };
        if let Answer::Acknowledged(_) = &answer {
            site.acknowledged.lock().await[notebook].insert(mark.clone());
        }
        drop(at_work);
        requests.push(CellRequest {
            notebook,
            mark,
            answer,
            at,
        });
        tokio::time::sleep(dice.millis(5..120)).await;
    }
    requests
}

fn answer_of(answer: &Value) -> Answer {
    let id = answer["cell_ids"][0].as_str();
    let id = id.unwrap_or_else(|| panic!("an id: {answer}")).to_owned();
    match answer["acknowledged"] == true {
        true => Answer::Acknowledged(id),
        false => Answer::Unconfirmed,
    }
}
