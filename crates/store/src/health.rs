//! Health of the database: the outcome of what is written regularly.

use parking_lot::Mutex;

use crate::StoreError;

#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Reason why the last write failed.
    failure: Mutex<Option<String>>,
}

impl Health {
    pub(crate) fn on_write<T>(&self, result: &Result<T, StoreError>) {
        *self.failure.lock() = result.as_ref().err().map(ToString::to_string);
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }
}
