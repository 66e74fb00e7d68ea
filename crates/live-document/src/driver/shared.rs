//! State that the task of an open document shares with its handles.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::{Fork, Host, file_sync::FileSeen, roster::Roster};
use crate::{
    CallingLine, RoomError, RoomKind, RoomStatus,
    core::{
        file_check::FileCheck,
        life::{CloseReason, Effect, Input},
        readings::Readings,
        state::State,
    },
};

pub(crate) struct Shared {
    pub(crate) server: Arc<Host>,
    pub(crate) kind: RoomKind,
    pub(crate) session_id: String,
    /// Creation time of the file, as Jupyter says it.
    pub(crate) created: Option<String>,
    pub(crate) state: RwLock<State>,
    pub(crate) status: watch::Sender<RoomStatus>,
    /// Rung when there is something to send.
    pub(crate) bell: Notify,
    /// Rung when somebody needs on disk what is in the document.
    pub(crate) save: Notify,
    pub(crate) file: Mutex<FileSeen>,
    pub(crate) closing: CancellationToken,
    /// Cancelled when closing must not wait for the server any longer.
    pub(crate) giving_up: CancellationToken,
    /// Time for which agents stay visible after their last activity here.
    pub(crate) presence: Duration,
    pub(crate) file_check: Mutex<FileCheck>,
    /// Ends when the server has answered where the file is, if calls wait for that.
    pub(crate) file_answer: Mutex<Option<CancellationToken>>,
    /// Users who were reported as present.
    pub(crate) roster: Mutex<Roster>,
    /// Changes when somebody comes or goes.
    pub(crate) roster_version: watch::Sender<u64>,
    /// Lines in which somebody may be called by name, as the document was opened, until somebody takes them.
    pub(crate) opening_lines: Mutex<Vec<CallingLine>>,
    /// Locked after the state, where both are.
    pub(crate) readings: Arc<Mutex<Readings>>,
    /// The fork that it is, unless it is the document of a file.
    pub(crate) fork: Option<Fork>,
}

impl Shared {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    /// The state, which knows what time it is.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, State> {
        let mut state = self.state.write();
        state.set_now(Instant::now());
        state
    }

    /// Tells the state machine that something happened.
    pub(crate) fn on(&self, input: Input<'_>) -> Vec<Effect> {
        self.state.write().on(input, Instant::now())
    }

    /// Makes versions of what was sent.
    pub(crate) fn tell_versions(&self) {
        if self.read().has_version_news() {
            self.write().tell_versions();
        }
    }

    /// Tells everybody that the document is over.
    pub(crate) fn end(&self, reason: CloseReason) {
        let path = self.read().path.clone();
        let error = match reason {
            CloseReason::Left => RoomError::Closed { path: path.to_string() },
            CloseReason::Lost(end) => end.into_error(&self.server, &path),
            CloseReason::CannotJoin(error) => error,
        };
        self.status.send_replace(RoomStatus::Disconnected(error));
    }

    pub(crate) fn path(&self) -> String {
        self.read().path.to_string()
    }
}
