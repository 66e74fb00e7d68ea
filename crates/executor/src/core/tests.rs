//! Orderings of events in a queue, its kernel and its document, written by hand.

mod cancelling;
mod kernels;
mod questions;
mod recording;
mod runs;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, SystemTime},
};

use jupyter_client::kernel::{Channel, Message};
use serde_json::{Value, json};
use store::ExecutionStatus;
use tokio::time::Instant;

use super::{
    Core, CoreSettings,
    actor::Actor,
    execution::{CellRun, Execution, Owner},
    input::{Code, Effect, FoundKernel, Input, KernelInfo, Moment},
    retained::RetainedBytes,
};

pub(crate) const INPUT_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn message(channel: Channel, msg_type: &str, parent: &str, content: Value) -> Message {
    Message {
        channel,
        msg_id: "m".to_owned(),
        msg_type: msg_type.to_owned(),
        parent_id: Some(parent.to_owned()),
        parent_session: None,
        header: json!({ "msg_id": "m" }),
        content,
        metadata: Value::Null,
        buffers: Vec::new(),
    }
}

pub(crate) fn status(parent: &str, state: &str) -> Message {
    message(Channel::Iopub, "status", parent, json!({ "execution_state": state }))
}

/// A message of the server about the kernel's process.
pub(crate) fn lifecycle(state: &str) -> Message {
    Message {
        parent_id: None,
        ..status("", state)
    }
}

pub(crate) fn shutdown_reply(restart: bool) -> Message {
    message(
        Channel::Iopub,
        "shutdown_reply",
        "theirs",
        json!({ "restart": restart }),
    )
}

pub(crate) fn reply(parent: &str, status: &str) -> Message {
    let content = json!({ "status": status, "ename": "ValueError", "evalue": "no", "execution_count": 3 });
    message(Channel::Shell, "execute_reply", parent, content)
}

pub(crate) fn interrupted_reply(parent: &str) -> Message {
    let content = json!({ "status": "error", "ename": "KeyboardInterrupt", "evalue": "" });
    message(Channel::Shell, "execute_reply", parent, content)
}

pub(crate) fn execute_input(parent: &str) -> Message {
    message(Channel::Iopub, "execute_input", parent, json!({ "execution_count": 3 }))
}

pub(crate) fn print(parent: &str, text: &str) -> Message {
    message(
        Channel::Iopub,
        "stream",
        parent,
        json!({ "name": "stdout", "text": text }),
    )
}

pub(crate) fn ask(parent: &str) -> Message {
    message(
        Channel::Stdin,
        "input_request",
        parent,
        json!({ "prompt": "name?", "password": false }),
    )
}

pub(crate) fn info_reply(parent: &str) -> Message {
    message(Channel::Shell, "kernel_info_reply", parent, json!({ "status": "ok" }))
}

pub(crate) fn owner(name: &str) -> Owner {
    Owner {
        tenant: "t".into(),
        principal: name.into(),
        name: name.to_owned(),
        max_open_rooms: 1,
    }
}

pub(crate) fn actor(name: &str) -> Actor {
    owner(name).actor()
}

pub(crate) fn kernel_info(id: &str, busy: bool) -> KernelInfo {
    KernelInfo {
        id: id.to_owned(),
        session: "own".to_owned(),
        started: false,
        busy,
    }
}

/// An execution of so many cells of a notebook.
pub(crate) fn cells(name: &str, count: usize) -> Execution {
    let cells = (0..count).map(|index| CellRun::cell(format!("{name}{index}"), index, 10_000));
    Execution::new(owner(name), "lab", None, cells.collect())
}

pub(crate) fn core(now: Moment) -> Core {
    let settings = CoreSettings {
        input_timeout: INPUT_TIMEOUT,
        shuts_down_started: false,
        is_kernel_private: false,
        id: "core".to_owned(),
    };
    Core::new(settings, RetainedBytes::default(), now)
}

/// A core with a driver that does at once what it is told; what goes to the kernel is kept to be looked at.
pub(crate) struct Scene {
    pub(crate) core: Core,
    pub(crate) now: Moment,
    /// The requests to run something, by their ids.
    pub(crate) sent: Vec<String>,
    /// The ids of probes.
    pub(crate) probes: Vec<String>,
    pub(crate) interrupts: usize,
    pub(crate) renewals: usize,
    pub(crate) server_questions: usize,
    pub(crate) lookups: usize,
    pub(crate) writes: usize,
    /// Number of times that an execution was recorded.
    pub(crate) records: usize,
    /// Number of executions whose cells were shown as queued.
    pub(crate) marked: usize,
    /// The ids of executions that ended.
    pub(crate) finished: Vec<String>,
    /// Result of a lookup of the kernel.
    pub(crate) finds: KernelInfo,
    /// Number of clients connected to the kernel.
    pub(crate) listeners: i64,
    /// True if the cell's code can be read at once.
    pub(crate) prepares: bool,
    pub(crate) prepared: Vec<Arc<Execution>>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let now = Moment {
            at: Instant::now(),
            time: SystemTime::now(),
        };
        Self {
            core: core(now),
            now,
            sent: Vec::new(),
            probes: Vec::new(),
            interrupts: 0,
            renewals: 0,
            server_questions: 0,
            lookups: 0,
            writes: 0,
            records: 0,
            marked: 0,
            finished: Vec::new(),
            finds: kernel_info("k1", false),
            listeners: 1,
            prepares: true,
            prepared: Vec::new(),
        }
    }

    /// An execution of so many cells whose first was sent to the kernel.
    pub(crate) fn running(count: usize) -> (Self, Arc<Execution>) {
        let mut scene = Self::new();
        let execution = scene.execute(cells("ana", count));
        assert_eq!(scene.sent.len(), 1);
        (scene, execution)
    }

    /// One whose first cell was seen to begin.
    pub(crate) fn begun(count: usize) -> (Self, Arc<Execution>) {
        let (mut scene, execution) = Self::running(count);
        let run = scene.run();
        scene.says([status(&run, "busy"), execute_input(&run)]);
        (scene, execution)
    }

    pub(crate) fn execute(&mut self, execution: Execution) -> Arc<Execution> {
        let execution = Arc::new(execution);
        self.feed(Input::Execute(Arc::clone(&execution)));
        execution
    }

    pub(crate) fn says(&mut self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            self.feed(Input::Message(message));
        }
    }

    /// The latest request to run something.
    pub(crate) fn run(&self) -> String {
        self.sent.last().expect("a request").clone()
    }

    pub(crate) fn probe(&self) -> String {
        self.probes.last().expect("a probe").clone()
    }

    /// Answers the latest probe.
    pub(crate) fn answer_probe(&mut self) {
        let probe = self.probe();
        self.says([status(&probe, "busy"), info_reply(&probe), status(&probe, "idle")]);
    }

    /// Lets time pass, with all the ticks that fall into it.
    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.now.at + time;
        while let Some(at) = self.core.timer().filter(|at| *at <= until) {
            self.advance_to(at);
            self.feed(Input::Tick);
            let next = self.core.timer();
            assert!(next.is_none_or(|next| next > self.now.at), "a tick settles what is due");
        }
        self.advance_to(until);
    }

    fn advance_to(&mut self, at: Instant) {
        let by = at.saturating_duration_since(self.now.at);
        self.now = Moment {
            at: self.now.at + by,
            time: self.now.time + by,
        };
    }

    pub(crate) fn feed(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.core.on(input, self.now) {
                inputs.extend(self.carry_out(effect));
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::FindKernel => {
                self.lookups += 1;
                let connected = self.core.kernel.get().map(|kernel| kernel.id.clone());
                return Some(Input::KernelFound(Ok(match connected == Some(self.finds.id.clone()) {
                    true => FoundKernel::Same,
                    false => FoundKernel::Other(self.finds.clone()),
                })));
            }
            Effect::ReturnToKernel { kernel_id, .. } => {
                let info = kernel_info(&kernel_id, false);
                return Some(Input::KernelFound(Ok(FoundKernel::Earlier(info))));
            }
            Effect::Execute {
                msg_id, is_recorded, ..
            } => {
                self.records += usize::from(!is_recorded);
                self.sent.push(msg_id);
            }
            Effect::Record(_) | Effect::RecordOutputs(_) => self.records += 1,
            Effect::KernelInfo { msg_id } => self.probes.push(msg_id),
            Effect::SendAnswer {
                execution,
                value,
                reply,
                ..
            } => {
                return Some(Input::AnswerSent {
                    execution,
                    value,
                    reply,
                });
            }
            Effect::Answered(reply, result) => {
                let _ = reply.send(result);
            }
            Effect::Interrupt => self.interrupts += 1,
            Effect::RenewConnection => self.renewals += 1,
            Effect::AskServer => self.server_questions += 1,
            Effect::AskListeners => return Some(Input::Listeners(Some(self.listeners))),
            Effect::Prepare { execution, .. } if !self.prepares => self.prepared.push(execution),
            Effect::Prepare { execution, .. } => return Some(prepared(execution)),
            Effect::Write { run, .. } => {
                self.writes += 1;
                return Some(Input::Written(run.run));
            }
            Effect::WriteEnd { run, .. } => {
                self.writes += 1;
                return Some(Input::EndArrived {
                    run: run.run,
                    arrived: true,
                });
            }
            Effect::MarkQueued(..) => self.marked += 1,
            Effect::Finish(execution) => self.finished.push(execution.id.clone()),
            _ => {}
        }
        None
    }
}

/// The code of an execution's next cell.
pub(crate) fn prepared(execution: Arc<Execution>) -> Input {
    let code = Code {
        source: "1".to_owned(),
        replaces: None,
    };
    Input::Prepared {
        execution,
        unsaved: Vec::new(),
        code: Ok(code),
    }
}

/// Ends as expected, once, for a reason with these words.
#[track_caller]
pub(crate) fn assert_ended(scene: &Scene, execution: &Execution, status: ExecutionStatus, words: &str) {
    let snapshot = execution.snapshot();
    assert_eq!(snapshot.status, status, "{:?}", snapshot.reason);
    let reason = snapshot.reason.unwrap_or_default();
    assert!(reason.contains(words), "{reason:?} lacks {words:?}");
    let ends = scene.finished.iter().filter(|id| **id == execution.id).count();
    assert_eq!(ends, 1, "it ends once");
}

/// The text that an execution has put out.
pub(crate) fn text_of(execution: &Execution) -> String {
    let cells = execution.snapshot().cells;
    let outputs = cells.iter().flat_map(|cell| &cell.outputs);
    outputs.filter_map(|output| output["text"].as_str()).collect()
}
