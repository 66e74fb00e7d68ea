//! Random sequences of inputs: whatever happens, every execution ends exactly once and as was seen, nothing is sent to a
//! kernel twice, and a kernel that behaves brings everything to its end.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use jupyter_client::kernel::Message;
use proptest::prelude::*;
use serde_json::json;
use store::ExecutionStatus;
use tokio::sync::oneshot;

use super::{
    Core,
    actor::Reason,
    execution::Execution,
    input::{Code, Effect, FoundKernel, Input, Moment, Obstacle, Rewritten},
    tests::{
        actor, ask, cells, core, execute_input, info_reply, interrupted_reply, kernel_info, lifecycle, prepared, print,
        reply, shutdown_reply, status,
    },
};
use crate::ExecutionError;

/// A driver that does what it is told when chance has it, and a kernel that says anything.
struct World {
    core: Core,
    now: Moment,
    executions: Vec<Arc<Execution>>,
    /// Inputs that the driver owes the core.
    owed: Vec<Owed>,
    probes: Vec<String>,
    /// Requests that were sent: the execution, the position, and the message id.
    sent: Vec<(String, usize, String)>,
    /// Kernel messages about each request.
    said: HashMap<String, Vec<&'static str>>,
    finished: HashSet<String>,
    /// The state of an execution when it ended.
    ends: HashMap<String, Vec<ExecutionStatus>>,
    next_kernel: usize,
    /// Executions of which some cell had no code.
    blank: HashSet<String>,
}

enum Owed {
    Kernel { earlier: Option<String> },
    Prepared(Arc<Execution>),
    EndArrived(String),
    EndRewritten(String),
    ServerAnswer,
}

impl World {
    fn new() -> Self {
        let now = Moment::now();
        Self {
            core: core(now),
            now,
            executions: Vec::new(),
            owed: Vec::new(),
            probes: Vec::new(),
            sent: Vec::new(),
            said: HashMap::new(),
            finished: HashSet::new(),
            ends: HashMap::new(),
            next_kernel: 1,
            blank: HashSet::new(),
        }
    }

    fn feed(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            for effect in self.core.on(input, self.now) {
                inputs.extend(self.carry_out(effect));
            }
        }
        let unsettled = self.core.recent.iter().filter(|ended| !ended.is_settled()).count();
        assert_eq!(self.core.unsettled, unsettled);
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::FindKernel => self.owed.push(Owed::Kernel { earlier: None }),
            Effect::ReturnToKernel { kernel_id, .. } => self.owed.push(Owed::Kernel {
                earlier: Some(kernel_id),
            }),
            Effect::AbandonLookup => self.owed.retain(|owed| !matches!(owed, Owed::Kernel { .. })),
            Effect::DropKernel => self.owed.retain(|owed| !matches!(owed, Owed::ServerAnswer)),
            Effect::Execute { execution, msg_id, .. } => self.on_sent(&execution, msg_id),
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
            Effect::AskServer => self.owed.push(Owed::ServerAnswer),
            Effect::AskListeners => return Some(Input::Listeners(Some(2))),
            Effect::Prepare { execution, .. } => self.owed.push(Owed::Prepared(execution)),
            Effect::Write { run, can_wait } => {
                return Some(match can_wait && self.probes.len() % 3 == 1 {
                    true => Input::WriteDelayed(run.run),
                    false => Input::Written(run.run),
                });
            }
            Effect::WriteEnd { run, .. } => self.owed.push(Owed::EndArrived(run.run)),
            Effect::RewriteEnd(run) => self.owed.push(Owed::EndRewritten(run.run)),
            Effect::AwaitEnd { run, .. } => self.owed.push(Owed::EndArrived(run)),
            Effect::Finish(execution) => {
                assert!(self.finished.insert(execution.id.clone()), "an execution ends once");
                assert!(execution.status().is_finished());
                self.ends.insert(execution.id.clone(), statuses(&execution));
            }
            _ => {}
        }
        None
    }

    /// Checks that nothing is sent twice, unless the kernel said that it dropped it and it was not seen to begin.
    fn on_sent(&mut self, execution: &Execution, msg_id: String) {
        let state = execution.lock();
        let position = state
            .cells
            .iter()
            .position(|cell| cell.msg_id.as_ref() == Some(&msg_id));
        let position = position.expect("a cell");
        drop(state);
        let same = |(id, at, _): &&(String, usize, String)| *id == execution.id && *at == position;
        for (_, _, earlier) in self.sent.iter().filter(same) {
            assert_ne!(*earlier, msg_id);
            let said = self.said.get(earlier).cloned().unwrap_or_default();
            assert!(said.contains(&"aborted") && !said.contains(&"begun"), "{said:?}");
        }
        self.sent.push((execution.id.clone(), position, msg_id));
    }

    /// Lets the kernel say something of a request.
    fn say(&mut self, what: u8, run: &str) {
        let (said, message): (&[&str], Message) = match what {
            0 => (&[], status(run, "busy")),
            1 => (&["begun"], execute_input(run)),
            2 => (&["begun"], print(run, "x")),
            3 => (&[], ask(run)),
            4 => (&["ok"], reply(run, "ok")),
            5 => (&["error"], reply(run, "error")),
            6 => (&["aborted"], reply(run, "aborted")),
            7 => (&["error"], interrupted_reply(run)),
            _ => (&[], status(run, "idle")),
        };
        // What a kernel says of a request after its end changes nothing.
        if self.core.active.as_ref().is_some_and(|active| active.run.msg_id == run) {
            self.said.entry(run.to_owned()).or_default().extend(said);
        }
        self.feed(Input::Message(message));
    }

    fn tick(&mut self, by: Duration) {
        self.now = Moment {
            at: self.now.at + by,
            time: self.now.time + by,
        };
        if self.core.timer().is_some_and(|at| at <= self.now.at) {
            self.feed(Input::Tick);
            let next = self.core.timer();
            assert!(next.is_none_or(|next| next > self.now.at), "a tick settles what is due");
        }
    }

    /// Pays something that the driver owes, well or badly.
    fn pay(&mut self, at: usize, is_good: bool) {
        if self.owed.is_empty() {
            return;
        }
        let owed = self.owed.remove(at % self.owed.len());
        if let (Owed::Prepared(execution), false) = (&owed, is_good) {
            self.blank.insert(execution.id.clone());
        }
        let input = match owed {
            Owed::Kernel { earlier } if is_good => Input::KernelFound(Ok(match earlier {
                Some(id) => FoundKernel::Earlier(kernel_info(&id, false)),
                None if self.core.kernel.get().is_some() && at.is_multiple_of(2) => FoundKernel::Same,
                None => {
                    self.next_kernel += 1;
                    FoundKernel::Other(kernel_info(&format!("k{}", self.next_kernel), at.is_multiple_of(3)))
                }
            })),
            Owed::Kernel { .. } => Input::KernelFound(Err(ExecutionError::Unknown { id: String::new() })),
            Owed::Prepared(execution) if is_good => prepared(execution),
            Owed::Prepared(execution) => Input::Prepared {
                execution,
                unsaved: vec!["a.py".to_owned()],
                code: match at % 4 {
                    0 => Err(Obstacle::NotebookGone),
                    1 => Err(Obstacle::CellGone),
                    2 => Err(Obstacle::NotCode),
                    _ => Ok(Code {
                        source: " ".to_owned(),
                        replaces: Some(1),
                    }),
                },
            },
            Owed::EndArrived(run) => Input::EndArrived { run, arrived: is_good },
            Owed::EndRewritten(run) => Input::EndRewritten {
                run,
                result: match (is_good, at % 2) {
                    (true, _) => Rewritten::Written,
                    (false, 0) => Rewritten::NotWritten,
                    (false, _) => Rewritten::Never,
                },
            },
            Owed::ServerAnswer => Input::ServerAnswered(match (is_good, at % 8) {
                (false, 0) => Ok(None),
                (is_busy, _) => {
                    let state = if is_busy { "busy" } else { "idle" };
                    let kernel = json!({ "id": "k", "name": "p", "execution_state": state, "connections": 1 });
                    Ok(Some(serde_json::from_value(kernel).expect("a kernel")))
                }
            }),
        };
        self.feed(input);
    }

    fn happen(&mut self, what: u8, which: usize) {
        let execution =
            (!self.executions.is_empty()).then(|| self.executions[which % self.executions.len().max(1)].clone());
        let run = self.sent.last().map(|(_, _, run)| run.clone());
        let any_run = (!self.sent.is_empty()).then(|| self.sent[which % self.sent.len().max(1)].2.clone());
        match (what, execution, run) {
            (0 | 1, ..) => {
                let mut execution = cells(["ana", "bo"][which % 2], which % 3 + 1);
                execution.stop_on_error = which % 4 < 2;
                let execution = Arc::new(execution);
                self.executions.push(Arc::clone(&execution));
                self.feed(Input::Execute(execution));
            }
            (2, Some(execution), _) => self.feed(Input::Cancel(execution)),
            (3, Some(execution), _) => {
                let (reply, _told) = oneshot::channel();
                self.feed(Input::Answer {
                    execution,
                    value: String::new(),
                    number: None,
                    reply,
                });
            }
            (4, ..) => self.feed(Input::Interrupted(actor("bo"))),
            (5, ..) if which == 0 => self.feed(Input::LeaveKernel(Reason::new("left"))),
            (6, ..) => self.feed(Input::ConnectionLost),
            (7, ..) => self.feed(Input::ConnectionRestored),
            (8, ..) if which == 0 => self.feed(Input::KernelGone("gone".to_owned())),
            (9, ..) => self.feed(Input::Message(lifecycle(["restarting", "dead", "starting"][which % 3]))),
            (10, ..) => self.feed(Input::Message(shutdown_reply(which.is_multiple_of(2)))),
            (11, ..) => self.feed(Input::Message(status("theirs", ["busy", "idle"][which % 2]))),
            (12 | 13, ..) => self.answer_probe(which),
            (14, ..) => self.tick(Duration::from_millis(30)),
            (15, ..) => self.tick(Duration::from_secs(which as u64)),
            (16..=19, ..) => self.pay(which, true),
            (20, ..) => self.pay(which, false),
            (21, ..) => self.feed(Input::KernelsChanged(self.now.at)),
            (22, ..) => {
                if let Some(run) = any_run {
                    self.say((which % 9).try_into().unwrap_or_default(), &run);
                }
            }
            (23.., _, Some(run)) => self.say(what - 23, &run),
            _ => {}
        }
    }

    fn answer_probe(&mut self, which: usize) {
        if let Some(probe) = self.probes.last().cloned() {
            if !which.is_multiple_of(4) {
                self.feed(Input::Message(info_reply(&probe)));
            }
            if which % 4 != 1 {
                self.feed(Input::Message(status(&probe, "idle")));
            }
        }
    }

    /// A kernel, a document and a server that behave bring everything to its end.
    fn drain_pending(&mut self) {
        self.feed(Input::ConnectionRestored);
        self.feed(Input::Message(status("theirs", "idle")));
        for _ in 0..300 {
            if self.core.is_idle() {
                break;
            }
            while !self.owed.is_empty() {
                let at = (0..self.owed.len()).find(|at| !matches!(self.owed[*at], Owed::ServerAnswer));
                self.pay(at.unwrap_or_default(), at.is_some());
            }
            for probe in std::mem::take(&mut self.probes) {
                self.feed(Input::Message(status(&probe, "busy")));
                self.feed(Input::Message(info_reply(&probe)));
                self.feed(Input::Message(status(&probe, "idle")));
            }
            if let Some(active) = self.core.active.as_ref().map(|active| active.run.msg_id.clone()) {
                for what in [0, 1, 4, 8] {
                    self.say(what, &active);
                }
            }
            self.tick(Duration::from_secs(1));
        }
        assert!(self.core.is_idle(), "everything comes to its end");
    }

    fn check_ends(&self) {
        for execution in &self.executions {
            assert!(self.finished.contains(&execution.id), "every execution ends");
            assert_eq!(self.ends[&execution.id], statuses(execution), "an end is for good");
            let state = execution.lock();
            for (position, cell) in state.cells.iter().enumerate() {
                let requests = self
                    .sent
                    .iter()
                    .filter(|(id, at, _)| *id == execution.id && *at == position);
                let said: Vec<&str> = requests
                    .filter_map(|(_, _, run)| self.said.get(run))
                    .flatten()
                    .copied()
                    .collect();
                let was_sent = cell.msg_id.is_some();
                let was_blank = self.blank.contains(&execution.id);
                match cell.state.status() {
                    ExecutionStatus::Completed => assert!(!was_sent || was_blank || said.contains(&"ok"), "{said:?}"),
                    ExecutionStatus::Lost => assert!(was_sent),
                    status => assert!(status.is_finished()),
                }
            }
        }
    }
}

fn statuses(execution: &Execution) -> Vec<ExecutionStatus> {
    let state = execution.lock();
    let cells = state.cells.iter().map(|cell| cell.state.status());
    std::iter::once(state.status).chain(cells).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_execution_ends_once_and_nothing_is_sent_twice(steps in prop::collection::vec((0u8..32, 0usize..12), 0..80)) {
        let mut world = World::new();
        for (what, which) in steps {
            world.happen(what, which);
        }
        world.drain_pending();
        world.check_ends();
    }
}
