//! Hand-over from one process of the gateway to the next: runs that are left behind, and runs that are resumed.

use std::{sync::Arc, time::SystemTime};

use super::{
    Core,
    active_run::{ActiveRun, Origin},
    completion::End,
    execution::Execution,
    input::Effect,
    kernel::KernelState,
};

impl Core {
    /// Returns to the kernel of an earlier process and to the cell that ran there.
    pub(super) fn resume(&mut self, execution: Arc<Execution>) {
        let Some(earlier) = execution.earlier_run() else {
            execution.end_left_behind("the gateway restarted before this ran");
            return self.finish(&execution);
        };
        let active = ActiveRun::resume(Arc::clone(&execution), earlier.position, earlier.msg_id);
        if self.active.is_some() {
            // Two processes shared the notebook; only one connection can be taken up.
            let why = "the gateway restarted and returned to another run of the same notebook";
            return self.end(active, End::lost(why.to_owned()));
        }
        self.active = Some(active);
        self.queue.push_front(Arc::clone(&execution));
        self.kernel = KernelState::Wanted;
        self.effects.push(Effect::ReturnToKernel {
            execution,
            kernel_id: earlier.kernel_id,
            session: earlier.session,
        });
    }

    /// Continues where an earlier process was.
    pub(super) fn on_returned(&mut self) {
        let Some(active) = &self.active else { return };
        if active.run.is_shown() {
            self.effects.push(Effect::AdoptWritten(active.run.written()));
        }
        // Nobody could be told to interrupt it before.
        if active.run.execution.is_cancelled() {
            self.effects.push(Effect::Interrupt);
        }
        self.resume_question();
        // Jupyter keeps what a kernel says only while nobody else listens to it, so that there may be a gap.
        self.effects.push(Effect::AskListeners);
        // It may have ended meanwhile.
        self.probe_end("the gateway restarted, so it is unknown how the run ended");
    }

    /// Records that some output of the run may not have been received; where that is because the gateway was down, its
    /// cell says so too.
    pub(super) fn mark_gap(&mut self) {
        let Some(active) = &mut self.active else { return };
        let execution = Arc::clone(&active.run.execution);
        let (Origin::Earlier { is_gap_told }, Some(since)) = (&mut active.origin, execution.last_noted) else {
            return execution.mark_gaps();
        };
        if std::mem::replace(is_gap_told, true) {
            return;
        }
        let (since, until) = (clock(since), clock(self.now.time));
        let lost = format!("output between {since} and {until} UTC may be lost: the gateway was down");
        active.say(&format!("[jupyter-mcp-gateway: {lost}]\n"), self.now.at);
        execution.add_remark(lost);
    }

    /// Begins nothing more: queued cells are cancelled, the run in the kernel is left to the next process.
    pub(super) fn on_stop(&mut self) {
        self.is_stopping = true;
        for execution in &self.queue {
            self.effects.push(Effect::UnmarkQueued {
                execution: Arc::clone(execution),
                all: true,
            });
            self.effects.push(Effect::Record(Arc::clone(execution)));
        }
    }

    /// Writes the last outputs. A kernel that served only the gateway is shut down, unless something runs in it that
    /// the next process is to take up.
    pub(super) fn on_drained(&mut self) {
        self.write_rest();
        if let Some(active) = &self.active {
            let execution = Arc::clone(&active.run.execution);
            return self.effects.push(Effect::RecordOutputs(execution));
        }
        let Some(kernel) = self.kernel.get() else { return };
        let (kernel_id, settings) = (kernel.id.clone(), &self.settings);
        if settings.is_kernel_private || kernel.started && settings.shuts_down_started {
            self.effects.push(Effect::ShutDownKernel { kernel_id });
        } else if kernel.started {
            self.effects.push(Effect::RetireIfReplaced { kernel_id });
        }
    }
}

/// The time of day.
fn clock(time: SystemTime) -> String {
    let time = humantime::format_rfc3339_seconds(time).to_string();
    let (_, clock) = time.split_once('T').unwrap_or_default();
    clock.trim_end_matches('Z').to_owned()
}
