//! Admission: limits on running and waiting executions, and messages for those that wait.
//!
//! An execution runs once it is the first in its queue and its kernel is free. One that waits behind another, behind what a person runs in
//! the same kernel, or for an answer to its question uses nothing, and counts as waiting.

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use jupyter_client::{DocPath, JupyterServer, counted, truncate};
use live_document::RoomKind;
use store::ExecutionStatus;

use super::{Claim, Engine, QueueKey};
use crate::{
    Execution, ExecutionCounts, ExecutionError, Owner, Snapshot,
    policy::{MAX_WAITING, MAX_WAITING_BYTES},
};

/// Number of executions that a refusal names.
const MAX_NAMED: usize = 5;
/// Characters of a question that are repeated to whoever waits for its answer.
const MAX_PROMPT: usize = 100;

/// The first execution in each queue, by its age.
type Heads = HashMap<QueueKey, (SystemTime, String)>;

impl Engine {
    /// Checks whether another execution of a notebook would be admitted, before work that it is to follow.
    pub fn has_room(&self, claim: &Claim, server: &JupyterServer, path: &DocPath) -> Result<(), ExecutionError> {
        let notebook = self.shared.notebooks.at(server.name(), path);
        self.check_room(claim, notebook.map(QueueKey::Notebook).as_ref(), 0)
    }

    /// Refuses an execution in a queue if too many run, or too many wait where it would have to wait.
    pub(super) fn check_room(&self, claim: &Claim, key: Option<&QueueKey>, bytes: usize) -> Result<(), ExecutionError> {
        let heads = self.heads();
        let (waiting, running) = self
            .executions_where(|other| other.owner.tenant == claim.owner.tenant)
            .into_iter()
            .partition::<Vec<_>, _>(|other| is_waiting(other, &heads));
        if key.is_some_and(|key| heads.contains_key(key)) {
            return check_waiting(claim, &waiting, bytes);
        }
        match running.len() >= claim.max_concurrent {
            true => Err(too_many(claim, &running)),
            false => Ok(()),
        }
    }

    /// Number of executions of a tenant that run, as its limit counts them.
    pub fn running_of(&self, tenant: &str) -> usize {
        let heads = self.heads();
        let of_tenant = self.executions_where(|execution| &*execution.owner.tenant == tenant);
        of_tenant
            .iter()
            .filter(|execution| !is_waiting(execution, &heads))
            .count()
    }

    /// Number of executions of all tenants, as their limits count them.
    pub fn counts(&self) -> ExecutionCounts {
        let heads = self.heads();
        let all = self.executions_where(|_| true);
        let (waiting, running): (Vec<_>, Vec<_>) = all.into_iter().partition(|execution| is_waiting(execution, &heads));
        ExecutionCounts {
            running: running.len(),
            waiting: waiting.len(),
            oldest: running
                .iter()
                .map(|execution| execution.age())
                .max()
                .unwrap_or_default(),
        }
    }

    /// An execution as it is now, and behind what it waits.
    pub fn snapshot(&self, viewer: &Owner, execution: &Execution) -> Snapshot {
        let mut snapshot = execution.snapshot();
        if !snapshot.status.is_finished() && snapshot.reason.is_none() {
            snapshot.reason = self.waits_behind(viewer, execution);
        }
        snapshot
    }

    /// Adds to an execution from the records behind what it waits, if it does.
    pub(super) fn add_wait(&self, viewer: &Owner, snapshot: &mut Snapshot) {
        if snapshot.status.is_finished() || snapshot.reason.is_some() {
            return;
        }
        if let Some(execution) = self.live(viewer, &snapshot.execution_id) {
            execution.update(&mut snapshot.cells);
            snapshot.status = execution.status();
            snapshot.reason = self.waits_behind(viewer, &execution);
        }
    }

    fn waits_behind(&self, viewer: &Owner, execution: &Execution) -> Option<String> {
        if execution.is_awaiting_kernel() {
            let (cell, who) = self.persons_run(execution);
            return Some(format!(
                "waiting for {cell} that {who} runs in the same kernel; interrupt_nb_kernel would end that; \
                 cancel_execution ends yours"
            ));
        }
        if execution.status() != ExecutionStatus::Queued {
            return None;
        }
        let key = QueueKey::of(execution);
        let mut ahead = self.executions_where(|other| age(other) < age(execution) && QueueKey::of(other) == key);
        ahead.sort_unstable_by_key(|other| age(other));
        let first = ahead.first()?;
        let more = match ahead.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "waiting for {}{more}{}",
            name(viewer, first),
            advice(viewer, first)
        ))
    }

    /// The cell that a person runs in the notebook of an execution, and the person's name, as far as the notebook shows it.
    fn persons_run(&self, execution: &Execution) -> (String, String) {
        let somebody = "somebody else".to_owned();
        let pool = &self.shared.pool;
        let open = |path: DocPath| pool.find(&execution.server, &path, RoomKind::Notebook);
        let Some(open) = execution.path().and_then(open) else {
            return ("code".to_owned(), somebody);
        };
        let here = self.executions_where(|other| QueueKey::of(other) == QueueKey::of(execution));
        let is_agents = |cell: &String| here.iter().any(|other| other.has_cell(cell));
        let mut running = open.room.running_cells().into_iter().filter(|cell| !is_agents(cell));
        let cell = running.find_map(|cell| open.room.position_of(&cell));
        let mut people = open.room.people().into_iter();
        match (cell, people.next(), people.next()) {
            (Some(cell), Some(person), None) => (format!("cell {cell}"), person.name),
            (Some(cell), ..) => (format!("cell {cell}"), somebody),
            (None, ..) => ("code".to_owned(), somebody),
        }
    }

    fn executions_where(&self, is_wanted: impl Fn(&Execution) -> bool) -> Vec<Arc<Execution>> {
        let wanted = self.shared.live.iter().filter(|live| is_wanted(&live.execution));
        wanted.map(|live| Arc::clone(&live.execution)).collect()
    }

    fn heads(&self) -> Heads {
        let mut heads = Heads::new();
        for live in &self.shared.live {
            let age = age(&live.execution);
            let head = heads
                .entry(QueueKey::of(&live.execution))
                .or_insert_with(|| age.clone());
            if age < *head {
                *head = age;
            }
        }
        heads
    }
}

fn age(execution: &Execution) -> (SystemTime, String) {
    (execution.created_at, execution.id.clone())
}

fn is_waiting(execution: &Execution, heads: &Heads) -> bool {
    match execution.status() {
        ExecutionStatus::InputRequired => true,
        _ if execution.is_awaiting_kernel() => true,
        ExecutionStatus::Queued => heads.get(&QueueKey::of(execution)) != Some(&age(execution)),
        _ => false,
    }
}

/// Refuses more than a principal may have waiting. Only their own count, so that nobody is kept from waiting by others.
fn check_waiting(claim: &Claim, waiting: &[Arc<Execution>], bytes: usize) -> Result<(), ExecutionError> {
    let own: Vec<_> = waiting.iter().filter(|other| claim.owner.owns(other)).collect();
    let held: usize = own.iter().map(|other| other.code_bytes()).sum();
    let what = if own.len() >= MAX_WAITING {
        counted(own.len(), "execution")
    } else if !own.is_empty() && held + bytes > MAX_WAITING_BYTES {
        format!("{} with {held} bytes of code", counted(own.len(), "execution"))
    } else {
        return Ok(());
    };
    Err(ExecutionError::Waiting {
        what,
        waiting: listed(own.iter().map(|execution| execution.describe()).collect()),
    })
}

/// Says what runs: the caller's own by name, and of others only how many.
fn too_many(claim: &Claim, running: &[Arc<Execution>]) -> ExecutionError {
    let (own, others): (Vec<_>, Vec<_>) = running.iter().partition(|execution| claim.owner.owns(execution));
    let mut named: Vec<String> = own.iter().map(|execution| execution.describe()).collect();
    if !others.is_empty() {
        named.push(format!("{} of others", others.len()));
    }
    ExecutionError::Limit {
        limit: claim.max_concurrent,
        running: named.join(", "),
        advice: match own.is_empty() {
            true => "try again when one of them has ended",
            false => "wait for one with get_execution or end one with cancel_execution",
        },
    }
}

fn listed(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Names what is ahead of somebody, in words that they can use: an id only if it is their own.
fn name(viewer: &Owner, ahead: &Execution) -> String {
    let cell = ahead.running_cell().map(|index| format!("cell {index}"));
    match viewer.owns(ahead) {
        true => match cell {
            Some(cell) => format!("your execution {} ({cell})", ahead.id),
            None => format!("your execution {}", ahead.id),
        },
        false => format!(
            "{} that {} runs here",
            cell.as_deref().unwrap_or("code"),
            ahead.owner.name
        ),
    }
}

/// Advice on how to go on.
fn advice(viewer: &Owner, ahead: &Execution) -> String {
    let question = ahead.question();
    match (viewer.owns(ahead), question) {
        (true, Some(question)) => format!(
            "; it asks {:?}: answer with get_execution(execution_id=\"{id}\", input=...), or end it with \
             cancel_execution(execution_id=\"{id}\")",
            truncate(question.prompt.trim().to_owned(), MAX_PROMPT).text,
            id = ahead.id
        ),
        (true, None) => ", which cancel_execution ends".to_owned(),
        (false, Some(_)) => "; it waits for an answer to its question".to_owned(),
        (false, None) => String::new(),
    }
}
