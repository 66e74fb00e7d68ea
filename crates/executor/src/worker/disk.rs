//! The disk before a step runs: what its owner edited on the same server is saved first, so that a kernel imports what
//! was acknowledged.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture, future::join_all};

use super::Worker;
use crate::job::Execution;

/// Documents on their way to disk, and the execution that waits for them.
pub(super) struct Flush {
    execution: Arc<Execution>,
    /// Ends with the paths of those that could not be saved.
    saving: BoxFuture<'static, Vec<String>>,
}

impl Flush {
    pub(super) async fn done(&mut self) -> Vec<String> {
        (&mut self.saving).await
    }
}

impl Worker {
    /// Begins with a step, once what its owner edited on this server is on disk. The notebook itself need not be: its
    /// code comes from the live document.
    pub(super) async fn begin_after_flush(&mut self, execution: Arc<Execution>, step: usize) {
        let author = Arc::clone(&execution.owner.principal);
        let pool = &self.shared.pool;
        let rooms = pool.unsaved_of(self.server.name(), &author, self.path().as_ref());
        if rooms.is_empty() {
            return self.begin(execution, step).await;
        }
        let saving = async move {
            let save = rooms.iter().map(|room| async {
                let saved = room.save_edits_of(&author).await;
                (!saved).then(|| room.info().path.to_string())
            });
            join_all(save).await.into_iter().flatten().collect()
        };
        let saving = saving.boxed();
        self.flush = Some(Flush { execution, saving });
    }

    pub(super) async fn flushed(&mut self, unsaved: &[String]) {
        let Some(Flush { execution, .. }) = self.flush.take() else {
            return;
        };
        if !unsaved.is_empty() {
            execution.add_remark(format!(
                "your edits of {} could not be saved before this ran, so the code may have read older files",
                unsaved.join(", ")
            ));
        }
        let kernel = self.kernel.as_ref();
        let is_ready =
            kernel.is_some_and(|kernel| kernel.link.is_connected() && kernel.is_heard() && kernel.turns.is_free());
        if let Some(step) = execution.next_step().filter(|_| is_ready) {
            self.begin(execution, step).await;
        }
    }

    /// Forgets what was to be saved for an execution that is not the next any more.
    pub(super) fn forget_flush_of_other(&mut self) {
        let next = self.queue.front();
        self.flush
            .take_if(|flush| !next.is_some_and(|next| Arc::ptr_eq(next, &flush.execution)));
    }
}
