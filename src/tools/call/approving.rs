//! Calls that a person must allow, by the rules of the tenant. Rules about the call as such are judged before its tool runs,
//! or when a document is opened that no argument names; rules about code where code is about to run, whichever tool runs
//! it. Code is compared with the allowed code once more before it is sent to a kernel, since cells can be edited while they wait.
//! `asking.rs` asks the person.

use std::{collections::HashSet, mem::take, sync::Arc, time::Duration};

use executor::{CodeGate, Execution};
use jupyter_client::{DocPath, JupyterServer};
use live_document::{CellKind, Edit, NewCell, Room, RoomKind};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use super::{
    Call,
    asking::{Matched, Question},
};
use crate::{
    approvals::{CallKey, Grant},
    auth::ApprovalRule,
    tools::{Effect, Output, ToolError},
};

/// Arguments that name documents.
pub(in crate::tools) const PATHS: [&str; 6] = [
    "path",
    "newPath",
    "copyPath",
    "notebook_path",
    "document_path",
    "root_path",
];
/// Time in which the people of a document that is opened just now become known: browsers say every 15 s who is there, and Jupyter
/// tells a newcomer nothing before.
const ARRIVAL: Duration = Duration::from_secs(16);

type CodeDigest = [u8; 32];
type ArgumentsDigest = [u8; 32];

/// Decisions about one call, and what is known of it.
#[derive(Default)]
pub(super) struct Approvals {
    /// Versions of the questions that a person has allowed.
    pub(super) granted: Vec<String>,
    /// What people at the page have allowed, which this call has taken.
    pub(super) taken: Vec<Grant>,
    /// Tells this call from others of the same tool.
    arguments: ArgumentsDigest,
    /// Code that a person has allowed.
    code: HashSet<CodeDigest>,
    /// Rules about the call that need no other look.
    judged: HashSet<usize>,
    /// Rules about code that hold while a person is there, and nobody is.
    idle: HashSet<usize>,
    /// True if the call runs the cells that it edits.
    runs_edits: bool,
    has_edited: bool,
    /// Decisions, for the audit.
    pub(super) decisions: Vec<String>,
}

impl Call {
    /// Sets which questions about this call were allowed in earlier rounds.
    pub fn with_granted(self, granted: Vec<String>) -> Self {
        self.approvals.lock().granted = granted;
        self
    }

    /// Versions of the questions about this call that a person has allowed.
    pub fn granted(&self) -> Vec<String> {
        self.approvals.lock().granted.clone()
    }

    /// Decisions of a person about the call, for the audit.
    pub(in crate::tools) fn approval(&self) -> Option<String> {
        let decisions = &self.approvals.lock().decisions;
        (!decisions.is_empty()).then(|| decisions.join("; "))
    }

    /// Names the call and what is asked about it.
    pub(super) fn key_of(&self, question: &str) -> CallKey {
        let mut key = Sha256::new();
        for part in [&self.principal.id, self.tool.unwrap_or_default(), question] {
            key.update(part.len().to_be_bytes());
            key.update(part);
        }
        key.update(self.approvals.lock().arguments);
        key.finalize().into()
    }

    /// Ends the use of what people have allowed. A call that waits for another answer has done nothing yet, and takes it again
    /// when it is repeated.
    pub(in crate::tools) fn settle_approvals(&self, result: &Result<Output, ToolError>) {
        let taken = take(&mut self.approvals.lock().taken);
        let Err(ToolError::Unanswered(question)) = result else {
            return;
        };
        // Where the client repeats the call by its state, that carries what was allowed.
        if question.form.is_none() || !self.client.asks_by_answering() {
            self.services.waiting.give_back(taken);
        }
    }

    fn only_reads(&self) -> bool {
        matches!(self.effect, None | Some(Effect::Read | Effect::Open | Effect::Present))
    }

    /// The rules about calls of this tool as such that were not judged yet.
    fn rules(&self) -> Vec<(usize, &ApprovalRule)> {
        // A call that takes up an execution does nothing that was not allowed when that began.
        if self.resumption.is_some() {
            return Vec::new();
        }
        let (tool, only_reads) = (self.tool.unwrap_or_default(), self.only_reads());
        let judged = &self.approvals.lock().judged;
        let rules = self.principal.tenant.approvals.iter();
        rules
            .filter(|(index, rule)| !rule.is_about_code() && rule.is_about(tool, only_reads) && !judged.contains(index))
            .collect()
    }

    /// The rules about code that this tool runs.
    fn code_rules(&self) -> impl Iterator<Item = (usize, &ApprovalRule)> {
        let tool = self.tool.unwrap_or_default();
        let rules = self.principal.tenant.approvals.iter();
        rules.filter(move |(_, rule)| rule.is_about_code() && rule.is_about(tool, false))
    }

    /// Has a person allow the call, if a rule demands it for the tool or a document that the arguments name.
    pub(in crate::tools) async fn approve_call(&self, arguments: &Map<String, Value>) -> Result<(), ToolError> {
        let written = serde_json::to_vec(arguments).unwrap_or_default();
        self.approvals.lock().arguments = Sha256::digest(written).into();
        let rules = self.rules();
        if rules.is_empty() {
            return Ok(());
        }
        let named = PATHS.iter().filter_map(|name| arguments.get(*name)?.as_str());
        let paths: Vec<DocPath> = named.filter_map(|raw| DocPath::parse(raw).ok()).collect();
        let server = self.server(arguments.get("server").and_then(Value::as_str)).ok();
        let tool = self.tool.unwrap_or_default();
        let mut matched = Vec::new();
        for (index, rule) in rules {
            let covered = paths.iter().find(|path| rule.covers(tool, Some(path)));
            if covered.is_none() && (!paths.is_empty() || rule.needs_person() || !rule.covers(tool, None)) {
                continue;
            }
            if rule.needs_person() {
                self.approvals.lock().judged.insert(index);
                let (Some(server), Some(path)) = (server, covered) else {
                    continue;
                };
                if !self.has_person(server, path).await {
                    continue;
                }
            }
            self.approvals.lock().judged.insert(index);
            matched.push(Matched { rule, code: None });
        }
        self.ask(&Question {
            server: server.map(|server| server.name()),
            paths: &paths,
            matched: &matched,
            arguments: Some(arguments),
        })
        .await
    }

    /// The same when a document is opened that no argument names.
    pub(super) async fn approve_document(&self, path: &DocPath, room: &Room) -> Result<(), ToolError> {
        let tool = self.tool.unwrap_or_default();
        let mut matched = Vec::new();
        for (index, rule) in self.rules() {
            if rule.covers(tool, Some(path)) {
                self.approvals.lock().judged.insert(index);
                if !rule.needs_person() || has_people(room).await {
                    matched.push(Matched { rule, code: None });
                }
            }
        }
        self.ask(&Question {
            server: Some(room.server().name()),
            paths: std::slice::from_ref(path),
            matched: &matched,
            arguments: None,
        })
        .await
    }

    /// Has a person allow code, if a rule demands it. Each piece comes with its place.
    pub(in crate::tools) async fn approve_code(
        &self,
        server: &Arc<JupyterServer>,
        path: Option<&DocPath>,
        code: &[(String, String)],
    ) -> Result<(), ToolError> {
        let tool = self.tool.unwrap_or_default();
        let mut matched = Vec::new();
        for (index, rule) in self.code_rules().filter(|(_, rule)| rule.covers(tool, path)) {
            if rule.needs_person() {
                let is_there = match path {
                    Some(path) => self.has_person(server, path).await,
                    None => false,
                };
                if !is_there {
                    self.approvals.lock().idle.insert(index);
                    continue;
                }
            }
            let is_new = |source: &str| !self.approvals.lock().code.contains(&digest(source));
            for (place, source) in code.iter().filter(|(_, source)| is_new(source)) {
                matched.extend(rule.find(source).map(|found| Matched {
                    rule,
                    code: Some((place, found, source)),
                }));
            }
        }
        if !matched.is_empty() && self.approvals.lock().has_edited {
            // To ask now would be too late: the document is changed already.
            return Err(ToolError::NotAsAllowed);
        }
        self.ask(&Question {
            server: Some(server.name()),
            paths: path.map(std::slice::from_ref).unwrap_or_default(),
            matched: &matched,
            arguments: None,
        })
        .await?;
        let allowed = matched.iter().filter_map(|matched| matched.code);
        let allowed = allowed.map(|(_, _, source)| digest(source));
        self.approvals.lock().code.extend(allowed);
        Ok(())
    }

    /// Tells that the cells that the call edits are to run then, so that it is asked before they are edited.
    pub(in crate::tools) fn set_runs_edits(&self) {
        self.approvals.lock().runs_edits = true;
    }

    /// Returns whether the cells that the call edits are to run, so that a person may have to allow that first.
    pub(super) fn must_approve_edits(&self) -> bool {
        self.has_rules() && self.approvals.lock().runs_edits
    }

    /// Returns whether the tenant has rules at all: few have, and nobody else is to wait for them.
    pub(in crate::tools) fn has_rules(&self) -> bool {
        !self.principal.tenant.approvals.is_empty()
    }

    /// Has a person allow the code that edits make.
    pub(super) async fn approve_edits(&self, room: &Room, edits: &[Edit]) -> Result<(), ToolError> {
        let planned: Vec<(String, String)> = edits.iter().flat_map(|edit| planned_code(room, edit)).collect();
        self.approve_code(room.server(), Some(&room.info().path), &planned)
            .await
    }

    pub(super) fn note_edited(&self) {
        self.approvals.lock().has_edited = true;
    }

    /// The final check of the code that this call runs.
    pub(super) fn code_gate(&self) -> Option<CodeGate> {
        self.code_rules().next()?;
        let (tenant, tool) = (Arc::clone(&self.principal.tenant), self.tool.unwrap_or_default());
        let approvals = Arc::clone(&self.approvals);
        Some(CodeGate::new(move |path, code| {
            let approvals: &Mutex<Approvals> = &approvals;
            let state = approvals.lock();
            let forbids = |(index, rule): (usize, &ApprovalRule)| {
                rule.is_about_code()
                    && rule.is_about(tool, false)
                    && rule.covers(tool, path)
                    && !state.idle.contains(&index)
                    && rule.find(code).is_some()
            };
            state.code.contains(&digest(code)) || !tenant.approvals.iter().any(forbids)
        }))
    }

    /// Runs code that is not stored, in the kernel of a notebook or in one of the principal's own.
    pub(in crate::tools) async fn run_code(
        &self,
        server: &Arc<JupyterServer>,
        path: Option<&DocPath>,
        kernel_name: Option<&str>,
        code: String,
    ) -> Result<Arc<Execution>, ToolError> {
        let pieces = [("the code".to_owned(), code)];
        Box::pin(self.approve_code(server, path, &pieces)).await?;
        let [(_, code)] = pieces;
        let engine = self.engine();
        Ok(engine.run_code(&self.claim(), server, path, kernel_name, code).await?)
    }

    /// Returns whether a person is in a document, which is opened to see that.
    async fn has_person(&self, server: &Arc<JupyterServer>, path: &DocPath) -> bool {
        let kind = match path.as_str().ends_with(".ipynb") {
            true => RoomKind::Notebook,
            false => RoomKind::Text,
        };
        let Ok(room) = self.pool().lease(server, path, kind, &self.account()).await else {
            return false;
        };
        room.connected().await.is_ok() && has_people(&room).await
    }
}

/// Returns whether people are in a document. Those of one that was opened just now become known a moment later.
async fn has_people(room: &Room) -> bool {
    let opened = room.listening_since().elapsed().unwrap_or_default();
    let deadline = Instant::now() + ARRIVAL.saturating_sub(opened);
    loop {
        if !room.people().is_empty() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// The code that an edit makes, with its place.
fn planned_code(room: &Room, edit: &Edit) -> Vec<(String, String)> {
    let of_new = |cells: &[NewCell]| {
        let code = cells.iter().filter(|cell| cell.kind == CellKind::Code);
        code.map(|cell| ("a new cell".to_owned(), cell.source.clone()))
            .collect()
    };
    let of_cell = |cell: &str, source: Option<String>| {
        let place = match room.position_of(cell) {
            Some(position) => format!("cell {position}"),
            None => "a cell".to_owned(),
        };
        source.map(|source| (place, source)).into_iter().collect()
    };
    match edit {
        Edit::InsertCells { cells, .. }
        | Edit::InsertBefore { cells, .. }
        | Edit::InsertAfter { cells, .. }
        | Edit::AppendCells { cells } => of_new(cells),
        Edit::SetSource { cell, source } => of_cell(cell, Some(source.clone())),
        Edit::SetKind {
            cell,
            kind: CellKind::Code,
            source,
        } => of_cell(cell, source.clone().or_else(|| room.source_of(cell))),
        Edit::ReplaceText {
            cell: Some(cell),
            old,
            new,
            all,
        } => {
            let replaced = room.source_of(cell).map(|source| match (old.is_empty(), all) {
                (true, _) => new.clone(),
                (false, true) => source.replace(old, new),
                (false, false) => source.replacen(old, new, 1),
            });
            of_cell(cell, replaced)
        }
        // Their code is seen when it is about to run, and then it is too late to ask.
        _ => Vec::new(),
    }
}

pub(super) fn digest(code: &str) -> CodeDigest {
    Sha256::digest(code.as_bytes()).into()
}
