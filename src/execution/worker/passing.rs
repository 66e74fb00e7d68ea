//! What passes from one process of the gateway to the next: runs that this one leaves behind, or takes up.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use tokio::time::timeout;

use super::{Place, Worker};
use crate::{
    execution::{
        job::{Execution, Question},
        kernel::Kernel,
        piece::Piece,
    },
    jupyter::kernel::KernelEvent,
    store::StoredQuestion,
    types::{ExecutionKind, ExecutionStatus},
};

/// How long a kernel may take to shut down when the gateway leaves it.
const SHUTS_DOWN_WITHIN: Duration = Duration::from_secs(10);

impl Worker {
    /// Returns to the kernel of an earlier process and to the piece that ran there.
    pub(super) fn resume(&mut self, execution: Arc<Execution>) {
        let Some((step, msg_id, kernel_id, session)) = execution.resumable() else {
            execution.end_rest(
                ExecutionStatus::Cancelled,
                Some("the gateway was restarted before it was seen to run".to_owned()),
            );
            self.shared.finish(&execution);
            return;
        };
        let room = self.room().filter(|_| execution.kind == ExecutionKind::Cells);
        let mut piece = Piece::resume(Arc::clone(&execution), step, msg_id, room.as_ref());
        if let Some(open) = execution.open_question() {
            let StoredQuestion {
                prompt,
                password,
                header,
            } = open;
            let number = 0;
            let question = Question {
                prompt,
                password,
                number,
            };
            execution.asks(step, question, &header);
            piece.question = Some(header);
        }
        self.queue.push_front(execution);
        self.active = Some(piece);
        self.finding = Some(Kernel::return_to(Arc::clone(&self.server), kernel_id, session).boxed());
    }

    /// Closes what the worker had open. A kernel that served only the gateway is shut down, unless something runs in
    /// it that the next process is to take up.
    pub(super) async fn leave(mut self) {
        let Some(mut kernel) = self.kernel.take() else { return };
        kernel.link.close();
        // What the kernel said before it heard of the closing will not be said again.
        while let Some(event) = kernel.events.recv().await {
            if let KernelEvent::Message(message) = event {
                self.hear(message).await;
            }
        }
        let room = self.room();
        for piece in self.active.iter_mut().chain(&mut self.recent) {
            if piece.flush_at().is_some() {
                piece.flush(room.as_ref());
                if piece.must_be_stored() {
                    self.shared.note_outputs(&piece.execution);
                }
            }
        }
        if let Some(active) = &self.active {
            self.shared.note_outputs(&active.execution);
            return;
        }
        let ours = matches!(self.place, Place::Scratch { .. })
            || kernel.started && self.shared.settings.shutdown_started_kernels;
        if ours {
            let shut_down = self.server.shutdown_kernel(kernel.link.kernel_id());
            let _ = timeout(SHUTS_DOWN_WITHIN, shut_down).await;
        }
    }
}
