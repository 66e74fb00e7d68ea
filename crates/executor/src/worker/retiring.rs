//! Two workers of one notebook, because somebody used its new name before it was known to have one: the second hands
//! what waits to the first, and leaves when what it runs has ended.

use live_document::{RoomKind, pool::Lease};
use tokio::sync::mpsc;

use super::{Command, Worker};

impl Worker {
    /// Hands over what waits. What has begun is ended here.
    pub(super) async fn retire(&mut self, successor: mpsc::Sender<Command>) {
        self.successor = Some(successor);
        let has_begun = |step: usize| step > 0;
        for execution in std::mem::take(&mut self.queue) {
            if execution.next_step().is_none_or(has_begun) {
                self.queue.push_back(execution);
                continue;
            }
            let command = Command::Submit(execution, self.another_lease());
            if let Some(Command::Submit(execution, _)) = self.pass_on(command).await {
                self.queue.push_back(execution);
            }
        }
    }

    /// Passes what is to be run on to the worker that takes over, if there is one; else returns it.
    pub(super) async fn pass_on(&mut self, command: Command) -> Option<Command> {
        let execution = match &command {
            Command::Submit(execution, _) | Command::Resume(execution) => execution.clone(),
            _ => return Some(command),
        };
        let Some(successor) = self.successor.clone() else {
            return Some(command);
        };
        let here = execution.lock().worker.replace(successor.clone());
        match successor.send(command).await {
            Ok(()) => None,
            Err(mpsc::error::SendError(command)) => {
                // It has left, so that this one is the only one.
                self.successor = None;
                execution.lock().worker = here;
                Some(command)
            }
        }
    }

    fn another_lease(&self) -> Option<Lease> {
        let path = self.path()?;
        let pool = &self.shared.pool;
        pool.lease_open(self.server.name(), &path, RoomKind::Notebook)
    }
}
