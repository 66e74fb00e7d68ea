//! How outputs get into the notebook that people look at, also when its room was closed or lost meanwhile.

use std::time::Duration;

use futures::FutureExt;
use jupyter_client::DocPath;
use live_document::{Acknowledgement, Room, RoomKind};
use tokio::time::{Instant, sleep, timeout};

use super::{Place, Worker};
use crate::piece::Piece;

/// How long the end of a run may take to reach the server before it is written once more.
const ARRIVES_WITHIN: Duration = Duration::from_secs(30);

impl Worker {
    /// Writes what is due, but no more than the server can take.
    pub(super) fn flush(&mut self) {
        let now = Instant::now();
        self.flush_where(
            |piece| piece.flush_at().is_some_and(|due| due <= now),
            |piece, room| !piece.waits_in_line(room),
        );
    }

    /// Writes what is not written yet, due or not.
    pub(super) fn flush_unwritten(&mut self) {
        self.flush_where(|piece| piece.flush_at().is_some(), |_, _| true);
    }

    fn flush_where(
        &mut self,
        is_wanted: impl Fn(&Piece) -> bool,
        may_be_written: impl Fn(&mut Piece, Option<&Room>) -> bool,
    ) {
        let mut pieces = self.active.iter().chain(&self.recent);
        // A room counts as used when somebody takes it, so it is left alone where nothing is written.
        if !pieces.any(&is_wanted) {
            return;
        }
        let room = self.room();
        let pieces = self.active.iter_mut().chain(&mut self.recent);
        for piece in pieces.filter(|piece| is_wanted(piece)) {
            if !may_be_written(piece, room.as_ref()) {
                continue;
            }
            piece.flush(room.as_ref());
            if piece.must_be_stored() {
                self.shared.note_outputs(&piece.execution);
            } else if piece.must_be_noted() {
                self.shared.note(&piece.execution);
            }
        }
    }

    /// The end of a run is with the server, or was lost with its document and is written again.
    pub(super) async fn settled(&mut self, msg_id: &str, arrived: bool) {
        let Some(at) = self.recent.iter().position(|piece| piece.run.msg_id == msg_id) else {
            return;
        };
        // A server that was restarted takes what was written before and then puts the file in its place.
        let replaced = self.room().is_some_and(|room| self.recent[at].is_behind(&room));
        if arrived && !replaced {
            self.recent[at].settled = true;
            return self.forget_excess();
        }
        let reopened = self.reopened(at).await;
        let piece = &mut self.recent[at];
        let acknowledgement = match &reopened {
            Ok(room) => {
                // What an earlier process wrote is seen only now, and is missing in the record.
                if piece.adopt(room) {
                    self.shared.note_outputs(&piece.execution);
                }
                piece.write_again(room)
            }
            Err(_) => None,
        };
        if matches!(reopened, Err(Unopened::ForEver)) || !piece.may_try_again(acknowledgement.is_some()) {
            piece.settled = true;
            tracing::warn!(path = ?self.path(), "cannot write the outputs of a cell to its notebook");
            return;
        }
        let pause = piece.pause();
        self.settling
            .push(settle(msg_id.to_owned(), acknowledgement, pause).boxed());
    }

    /// The notebook's room, opened again if it was closed meanwhile.
    async fn reopened(&mut self, at: usize) -> Result<Room, Unopened> {
        if let Some(room) = self.room() {
            return Ok(room);
        }
        let path = self.path().ok_or(Unopened::ForEver)?;
        let account = self.recent[at].execution.owner.account();
        let opening = self
            .shared
            .pool
            .lease(&self.server, &path, RoomKind::Notebook, &account);
        let lease = opening.await.map_err(|error| match error.is_not_found() {
            true => Unopened::ForEver,
            false => Unopened::ForNow,
        })?;
        lease.connected().await.map_err(|_| Unopened::ForNow)?;
        let room = Room::clone(&lease);
        self.lease = Some(lease);
        Ok(room)
    }

    /// The room to write to: the one that is held, or one that happens to be open.
    pub(super) fn room(&self) -> Option<Room> {
        if let Some(lease) = self.lease.as_ref().filter(|lease| lease.is_open()) {
            return Some(Room::clone(lease));
        }
        let path = self.path()?;
        let lease = self
            .shared
            .pool
            .lease_open(self.server.name(), &path, RoomKind::Notebook)?;
        Some(Room::clone(&lease))
    }

    pub(super) fn path(&self) -> Option<DocPath> {
        match &self.place {
            Place::Notebook(path) => Some(
                self.lease
                    .as_ref()
                    .map_or_else(|| path.clone(), |room| room.info().path),
            ),
            Place::Scratch { .. } => None,
        }
    }
}

/// Why there is no room to write to.
enum Unopened {
    ForNow,
    /// The notebook was deleted.
    ForEver,
}

/// Waits until the server has the end of a run, or has had the time to say so; for a pause if it was not even told.
pub(super) async fn settle(
    msg_id: String,
    acknowledgement: Option<Acknowledgement>,
    pause: Duration,
) -> (String, bool) {
    let arrived = match acknowledgement {
        Some(acknowledgement) => timeout(ARRIVES_WITHIN, acknowledgement.arrived()).await == Ok(true),
        None => {
            sleep(pause).await;
            false
        }
    };
    (msg_id, arrived)
}
