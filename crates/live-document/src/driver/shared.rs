//! What the task of an open document and those who hold it share.

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::{Host, file_check::FileCheck, file_sync::FileSeen};
use crate::{
    RoomKind, RoomStatus,
    core::{readings::Readings, state::State},
};

pub(crate) struct Shared {
    pub(crate) server: Arc<Host>,
    pub(crate) kind: RoomKind,
    pub(crate) session_id: String,
    /// When the file was made, as Jupyter says it.
    pub(crate) created: Option<String>,
    pub(crate) state: RwLock<State>,
    pub(crate) status: watch::Sender<RoomStatus>,
    /// Rung when there is something to send.
    pub(crate) bell: Notify,
    /// Rung when the room must be joined anew.
    pub(crate) moved: Notify,
    /// Rung when somebody needs on disk what is in the document.
    pub(crate) save: Notify,
    pub(crate) file: Mutex<FileSeen>,
    pub(crate) closing: CancellationToken,
    /// How long agents are shown after the last time they did something here.
    pub(crate) presence: Duration,
    pub(crate) file_check: Mutex<FileCheck>,
    /// Locked after the state, where both are.
    pub(crate) readings: Arc<Mutex<Readings>>,
}

impl Shared {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    pub(crate) fn readings(&self) -> MutexGuard<'_, Readings> {
        self.readings.lock()
    }

    pub(crate) fn path(&self) -> String {
        self.read().path.to_string()
    }
}
