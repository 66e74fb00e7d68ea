//! The notebook on behalf of the core: saving what was edited before a cell runs, writing outputs, also when the room was
//! closed or lost meanwhile, and what people see.

use std::{sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use live_document::{Acknowledgement, Room, RoomKind};
use tokio::time::{sleep, timeout};
use tracing::Instrument;

use super::{
    Driver,
    cell_writer::{Adopted, CellWriter},
};
use crate::{
    CodeGate,
    core::{
        execution::Execution,
        input::{Code, Effect, Input, Obstacle, Rewritten, RunId, Written},
    },
    policy::{END_ACKNOWLEDGE_TIMEOUT, RECORD_TIMEOUT, rewrite_pause},
};

/// Documents on their way to disk, and the execution that waits for them.
pub(super) struct Saving {
    execution: Arc<Execution>,
    position: usize,
    /// Ends with the paths of those that could not be saved.
    pub(super) saved: BoxFuture<'static, Vec<String>>,
}

/// Reason why there is no room to write to.
enum Unopened {
    ForNow,
    /// The notebook was deleted.
    ForEver,
}

impl Driver {
    pub(super) async fn carry_out_on_document(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Prepare { execution, position } => return self.prepare(execution, position),
            Effect::AdoptWritten(run) => return self.adopt_written(run),
            Effect::Write { run, can_wait } => return Some(self.write(run, can_wait)),
            Effect::WriteEnd { run, attempts } => return self.write_end(run, attempts),
            Effect::RewriteEnd(run) => return Some(self.rewrite_end(run).await),
            Effect::AwaitEnd { run, attempts } => {
                let end = self.writers.get_mut(&run).and_then(|writer| writer.end.take());
                self.arrivals.push(arrival(run, end, rewrite_pause(attempts)).boxed());
            }
            Effect::Forget(run) => {
                self.writers.remove(&run);
            }
            Effect::MarkQueued(execution, cells) => self.mark_queued(&execution, &cells).await,
            Effect::UnmarkQueued { execution, all } => self.unmark_queued(&execution, all),
            Effect::ShowPresence(shown) => {
                if let Some(room) = self.room() {
                    for (execution, activity) in shown {
                        let owner = &execution.owner;
                        room.show_activity(&owner.principal, &owner.name, activity);
                    }
                }
            }
            Effect::HidePresence(principal) => {
                if let Some(room) = self.room() {
                    room.end_execution(&principal);
                }
            }
            _ => {}
        }
        None
    }

    /// Saves what the owner edited on this server, so that the kernel imports what was acknowledged. The notebook itself
    /// need not be saved: its code comes from the live document.
    fn prepare(&mut self, execution: Arc<Execution>, position: usize) -> Option<Input> {
        let author = Arc::clone(&execution.owner.principal);
        let pool = &self.shared.pool;
        let rooms = pool.unsaved_of(self.server.name(), &author, self.path().as_ref());
        if rooms.is_empty() {
            return Some(self.prepared(execution, position, Vec::new()));
        }
        let saved = async move {
            let save = rooms.iter().map(|room| async {
                let saved = room.save_edits_of(&author).await;
                (!saved).then(|| room.info().path.to_string())
            });
            join_all(save).await.into_iter().flatten().collect()
        };
        let span = execution.span();
        self.saving = Some(Saving {
            execution,
            position,
            saved: saved.instrument(span).boxed(),
        });
        None
    }

    pub(super) async fn on_saved(&mut self, unsaved: Vec<String>) {
        if let Some(Saving {
            execution, position, ..
        }) = self.saving.take()
        {
            let prepared = self.prepared(execution, position, unsaved);
            self.feed(prepared).await;
        }
    }

    fn prepared(&self, execution: Arc<Execution>, position: usize, unsaved: Vec<String>) -> Input {
        let code = self.code(&execution, position);
        Input::Prepared {
            execution,
            unsaved,
            code,
        }
    }

    /// The code of a cell as it is sent, if it may be.
    fn code(&self, execution: &Execution, position: usize) -> Result<Code, Obstacle> {
        let code = self.found_code(execution, position)?;
        let is_allowed = |gate: &CodeGate| gate.allows(execution.path().as_ref(), &code.source);
        match execution.gate.as_ref().is_none_or(is_allowed) {
            true => Ok(code),
            false => Err(Obstacle::NotAllowed),
        }
    }

    fn found_code(&self, execution: &Execution, position: usize) -> Result<Code, Obstacle> {
        let cell = execution.with_cell(position, |cell| (cell.cell_id.clone(), cell.code.clone()));
        let (cell, code) = cell.ok_or(Obstacle::CellGone)?;
        if let Some(source) = code {
            return Ok(Code { source, replaces: None });
        }
        let room = self.room().ok_or(Obstacle::NotebookGone)?;
        let source = room.source_of(&cell).ok_or(Obstacle::CellGone)?;
        if !room.is_code(&cell) {
            return Err(Obstacle::NotCode);
        }
        let replaces = room.execution_count_of(&cell);
        Ok(Code { source, replaces })
    }

    fn adopt_written(&mut self, run: Written) -> Option<Input> {
        let room = self.room()?;
        let adopted = self.writer(&run).adopt(&run, &room);
        (adopted == Adopted::NotShown).then_some(Input::WriteWanted(run.run))
    }

    /// Writes what is new, but no more than the server can take.
    fn write(&mut self, run: Written, can_wait: bool) -> Input {
        if run.execution.kind != store::ExecutionKind::Cells {
            return Input::Written(run.run);
        }
        match self.room() {
            Some(room) if can_wait && room.has_unsent_changes() => return Input::WriteDelayed(run.run),
            Some(room) => {
                self.writer(&run).write(&run, &room);
            }
            None => {}
        }
        Input::Written(run.run)
    }

    /// Writes all that is left and that the run has ended, and waits for it to arrive.
    fn write_end(&mut self, run: Written, attempts: u32) -> Option<Input> {
        let room = self.room();
        let (is_there, end) = match &room {
            Some(room) => self.writer(&run).write(&run, room),
            None => (true, None),
        };
        if !is_there {
            return Some(Input::EndArrived {
                run: run.run,
                arrived: true,
            });
        }
        self.writer(&run);
        self.arrivals
            .push(arrival(run.run, end, rewrite_pause(attempts)).boxed());
        None
    }

    pub(super) async fn on_arrived(&mut self, run: RunId, arrived: bool) {
        let room = self.room();
        let Some(writer) = self.writers.get_mut(&run) else {
            return;
        };
        // A server that was restarted takes what was written before and then puts the file in its place.
        let was_replaced = room.is_some_and(|room| writer.is_behind(&room));
        let arrived = arrived && !was_replaced;
        if arrived {
            writer.settle();
        }
        self.feed(Input::EndArrived { run, arrived }).await;
    }

    /// Writes everything again, after the server came back without it.
    async fn rewrite_end(&mut self, run: Written) -> Input {
        let result = match self.reopened(&run).await {
            Ok(room) => {
                let writer = self.writer(&run);
                // What an earlier process wrote is seen only now, and is missing in the record.
                let is_new = writer.adopt(&run, &room) != Adopted::Nothing;
                writer.forget_written();
                let (is_there, end) = writer.write(&run, &room);
                let is_written = end.is_some();
                writer.end = end;
                if is_new {
                    self.shared.note_outputs(&run.execution);
                }
                match (is_there, is_written) {
                    (false, _) => Rewritten::Never,
                    (true, true) => Rewritten::Written,
                    (true, false) => Rewritten::NotWritten,
                }
            }
            Err(Unopened::ForNow) => Rewritten::NotWritten,
            Err(Unopened::ForEver) => Rewritten::Never,
        };
        Input::EndRewritten { run: run.run, result }
    }

    /// The notebook's room, opened again if it was closed meanwhile.
    async fn reopened(&mut self, run: &Written) -> Result<Room, Unopened> {
        if let Some(room) = self.room() {
            return Ok(room);
        }
        let path = self.path().ok_or(Unopened::ForEver)?;
        let account = run.execution.owner.account();
        let (pool, kind) = (&self.shared.pool, RoomKind::Notebook);
        let opened = match self.notebook().and_then(|notebook| notebook.fork_id()) {
            Some(fork_id) => pool.lease_fork(&self.server, &path, kind, &fork_id, &account).await,
            None => pool.lease(&self.server, &path, kind, &account).await,
        };
        let lease = opened.map_err(|error| match error.is_not_found() {
            true => Unopened::ForEver,
            false => Unopened::ForNow,
        })?;
        lease.connected().await.map_err(|_| Unopened::ForNow)?;
        let room = Room::clone(&lease);
        self.lease = Some(lease);
        Ok(room)
    }

    /// The room to write to: the one that is held, or one that happens to be open.
    fn room(&self) -> Option<Room> {
        if let Some(lease) = self.lease.as_ref().filter(|lease| lease.is_open()) {
            return Some(Room::clone(lease));
        }
        let (pool, notebook) = (&self.shared.pool, self.notebook()?);
        let lease = notebook.document().and_then(|document| pool.lease_document(&document));
        let by_path = || match notebook.fork_id() {
            Some(_) => None,
            None => pool.lease_open(self.server.name(), &notebook.path(), RoomKind::Notebook),
        };
        Some(Room::clone(&*lease.or_else(by_path)?))
    }

    fn writer(&mut self, run: &Written) -> &mut CellWriter {
        self.writers
            .entry(run.run.clone())
            .or_insert_with(|| CellWriter::new(run))
    }

    /// Shows cells as queued. That they are is on record before, so that a process that takes over can show them as they were.
    async fn mark_queued(&mut self, execution: &Execution, cells: &[String]) {
        let Some(room) = self.room() else { return };
        let idle = room.idle_cells(cells);
        execution.mark_queued(&idle);
        self.shared.note(execution);
        let _ = timeout(RECORD_TIMEOUT, self.shared.store.flush_if_possible()).await;
        if let Err(error) = room.mark_queued(&execution.owner.principal, &idle) {
            tracing::debug!(%error, "cells that wait cannot be shown so");
        }
    }

    fn unmark_queued(&self, execution: &Execution, all: bool) {
        let cells = execution.take_queued(all);
        if cells.is_empty() {
            return;
        }
        let room = self.room();
        let shown = room.map(|room| room.unmark_queued(&execution.owner.principal, &cells));
        if let Some(Err(error)) = shown {
            tracing::debug!(%error, "cells that did not run may still look as if they were to");
        }
    }
}

/// Waits until the server has the end of a run, or has had the time to say so; for a pause if it was not even told.
async fn arrival(run: RunId, end: Option<Acknowledgement>, pause: Duration) -> (RunId, bool) {
    let arrived = match end {
        Some(end) => timeout(END_ACKNOWLEDGE_TIMEOUT, end.arrived()).await == Ok(true),
        None => {
            sleep(pause).await;
            false
        }
    };
    (run, arrived)
}
