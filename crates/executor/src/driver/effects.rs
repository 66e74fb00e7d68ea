//! Carries out the effects of the core.

use std::sync::Arc;

use futures::FutureExt;
use jupyter_client::{
    DocPath, JupyterError,
    kernel::{ExecuteRequest, KernelError},
};
use live_document::Room;
use store::ExecutionKind;
use tokio::time::{Instant, timeout};
use tracing::Instrument;

use super::{
    Driver, Place,
    copies::keep_copy,
    kernel_finder::{Wanted, find, persist, return_to},
};
use crate::{
    core::{
        actor::Reason,
        execution::Execution,
        input::{Effect, Input, Reply},
    },
    policy::{KERNEL_RETIRE_TIMEOUT, KERNEL_SHUTDOWN_TIMEOUT, LISTENERS_TIMEOUT, SENDING_RECORDED_WITHIN},
};

impl Driver {
    /// Carries out one effect. Returns the inputs that follow from it at once.
    pub(super) async fn carry_out(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::FindKernel => self.find_kernel(),
            Effect::ReturnToKernel {
                execution,
                kernel_id,
                session,
            } => self.return_to_kernel(&execution, kernel_id, session),
            Effect::DropKernel => (self.connection, self.asking) = (None, None),
            Effect::AbandonLookup => self.finding = None,
            Effect::Execute {
                execution,
                msg_id,
                code,
                is_recorded,
            } => {
                if !is_recorded {
                    self.shared.note(&execution);
                }
                return self.execute(&execution, msg_id, code, is_recorded).await;
            }
            Effect::KernelInfo { msg_id } => {
                if let Some(connection) = &self.connection {
                    // If the connection is cut the core probes again.
                    let _ = connection.link.kernel_info(&msg_id).await;
                }
            }
            Effect::SendAnswer {
                execution,
                header,
                value,
                reply,
            } => return self.send_answer(execution, &header, value, reply).await,
            Effect::CommMsg(update) => {
                if let Some(connection) = &self.connection {
                    // What a widget captured is in the record in any case.
                    let _ = connection.link.comm_msg(update).await;
                }
            }
            Effect::Interrupt => self.interrupt(),
            Effect::RenewConnection => {
                if let Some(connection) = &self.connection {
                    connection.link.renew();
                }
            }
            Effect::AskServer => self.ask_server(),
            Effect::AskListeners => return self.ask_listeners().await,
            Effect::RetireKernel { .. } | Effect::ShutDownKernel { .. } | Effect::RetireIfReplaced { .. } => {
                self.end_kernel(effect).await;
            }
            Effect::Record(execution) => self.shared.note(&execution),
            Effect::RecordOutputs(execution) => self.shared.note_outputs(&execution),
            Effect::KeepCopy(execution) => {
                keep_copy(Arc::clone(&self.server), Arc::clone(&execution)).await;
                return Some(Input::CopyKept(execution));
            }
            Effect::Finish(execution) => self.shared.finish(&execution),
            Effect::PickedUp { execution, process } => {
                let (history, owner) = (&self.shared.history, &execution.owner);
                if let Some(notice) = history.on_picked_up(self.server.name(), &self.place, owner, &process) {
                    execution.notify(notice);
                }
            }
            Effect::KernelEnded { kernel_id, reason } => {
                self.shared.history.on_ended(&kernel_id, &reason);
                if let Place::Notebook(notebook) = &self.place {
                    self.shared.process_ends.record(notebook);
                }
            }
            Effect::Answered(reply, result) => {
                // Whoever asked may be gone; the answer counts all the same.
                let _ = reply.send(result);
            }
            to_document => return self.carry_out_on_document(to_document).await,
        }
        None
    }

    fn find_kernel(&mut self) {
        let wanted = match &self.place {
            Place::Notebook(notebook) => Wanted::Notebook {
                path: self.path().unwrap_or_else(|| notebook.path()),
                room: self.lease.as_ref().map(|lease| Room::clone(lease)),
            },
            Place::Scratch { kernel_name } => Wanted::Scratch {
                kernel_name: kernel_name.clone(),
                directory: DocPath::root(),
            },
            Place::Copy { original, kernel_name } => Wanted::Scratch {
                kernel_name: kernel_name.clone(),
                directory: original.path().parent(),
            },
        };
        let starter = self.core.next_owner();
        let connection = self.connection.as_ref();
        let connected = connection.map(|connection| connection.link.kernel_id().to_owned());
        let finding = find(Arc::clone(&self.server), wanted, starter, connected);
        self.finding = Some(finding.instrument(self.core.next_span()).boxed());
    }

    fn return_to_kernel(&mut self, execution: &Arc<Execution>, kernel_id: String, session: String) {
        let is_shown = execution.kind == ExecutionKind::Cells;
        let notebook = self.notebook().filter(|_| is_shown);
        let notebook = notebook.map(|notebook| (Arc::clone(notebook), execution.owner.account()));
        let (shared, server) = (Arc::clone(&self.shared), Arc::clone(&self.server));
        let returning = return_to(shared, server, notebook, kernel_id, session);
        self.finding = Some(returning.instrument(execution.span()).boxed());
    }

    async fn execute(
        &mut self,
        execution: &Arc<Execution>,
        msg_id: String,
        code: String,
        is_recorded: bool,
    ) -> Option<Input> {
        let connection = self.connection.as_ref()?;
        let request = ExecuteRequest {
            code,
            silent: false,
            store_history: execution.kind != ExecutionKind::Code,
            allow_stdin: true,
            // Requests of other clients are theirs to stop; the rest of this batch waits here.
            stop_on_error: false,
        };
        self.shared.note_run(execution);
        let (history, kernel_id) = (&self.shared.history, connection.link.kernel_id());
        if let Some(notice) = history.on_run(self.server.name(), &self.place, &execution.owner, kernel_id) {
            execution.notify(notice);
        }
        if !is_recorded {
            // A process that comes after this one must not take it for one that never ran.
            let recorded = self.shared.store.flush_if_possible();
            let _ = timeout(SENDING_RECORDED_WITHIN, recorded).await;
        }
        let span = self.shared.on_sending(execution, kernel_id);
        execution.set_run_span(&msg_id, &span);
        match connection.link.execute(&msg_id, &request).instrument(span).await {
            // A request that was cut off may have arrived; the kernel's messages after the reconnection tell.
            Ok(()) | Err(KernelError::Reconnecting { .. }) => None,
            Err(error) => Some(Input::NotSent {
                msg_id,
                error: error.to_string(),
            }),
        }
    }

    async fn send_answer(
        &mut self,
        execution: Arc<Execution>,
        header: &serde_json::Value,
        value: String,
        reply: Reply,
    ) -> Option<Input> {
        let connection = self.connection.as_ref()?;
        match connection.link.reply_input(header, &value).await {
            Ok(()) => Some(Input::AnswerSent {
                execution,
                value,
                reply,
            }),
            Err(error) => {
                let _ = reply.send(Err(error.into()));
                None
            }
        }
    }

    /// Interrupts the kernel without waiting for it; the end of the run tells.
    fn interrupt(&self) {
        let Some(connection) = &self.connection else { return };
        let (server, id) = (Arc::clone(&self.server), connection.link.kernel_id().to_owned());
        self.shared.tasks.spawn(async move {
            if let Err(error) = server.interrupt_kernel(&id).await {
                tracing::warn!(%error, kernel = id, "cannot interrupt a kernel");
            }
        });
    }

    fn ask_server(&mut self) {
        let Some(connection) = &self.connection else { return };
        let (server, id) = (Arc::clone(&self.server), connection.link.kernel_id().to_owned());
        self.asking = Some(async move { server.kernel(&id).await }.boxed());
    }

    async fn ask_listeners(&mut self) -> Option<Input> {
        let connection = self.connection.as_ref()?;
        let asked = timeout(LISTENERS_TIMEOUT, self.server.kernel(connection.link.kernel_id())).await;
        let kernel = asked.ok().and_then(Result::ok).flatten();
        Some(Input::Listeners(kernel.and_then(|kernel| kernel.connections)))
    }

    pub(super) async fn end_kernel(&mut self, effect: Effect) {
        match (effect, self.path()) {
            (Effect::ShutDownKernel { kernel_id }, _) => {
                let unused = Reason::new("your kernel was shut down after it had not been used for a while");
                self.shared.history.on_ended(&kernel_id, &unused);
                // Jupyter cannot end a kernel that has just died before it has started it again.
                let is_restarting = |error: &JupyterError| matches!(error, JupyterError::Refused { status: 500.., .. });
                let until = Instant::now() + KERNEL_SHUTDOWN_TIMEOUT;
                let shut_down = persist(until, || self.server.shutdown_kernel(&kernel_id), is_restarting);
                let _ = timeout(KERNEL_SHUTDOWN_TIMEOUT, shut_down).await;
            }
            (Effect::RetireKernel { kernel_id }, Some(path)) => {
                let _ = timeout(KERNEL_RETIRE_TIMEOUT, self.server.retire_kernel(&kernel_id, &path)).await;
            }
            (Effect::RetireIfReplaced { kernel_id }, Some(path)) => {
                let retired = async {
                    match self.server.session_of(&path).await {
                        Ok(Some(session)) if session.kernel.id != kernel_id => {
                            self.server.retire_kernel(&kernel_id, &path).await;
                        }
                        _ => {}
                    }
                };
                let _ = timeout(KERNEL_SHUTDOWN_TIMEOUT, retired).await;
            }
            _ => {}
        }
    }
}
