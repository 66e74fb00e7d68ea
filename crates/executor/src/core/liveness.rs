//! The one model of whether a kernel lives and whether it is busy. Does no I/O.
//!
//! A kernel answers `kernel_info` requests in the order of its queue, so the answer to one tells that its messages arrive,
//! that all before it is done, and that the kernel is free. Conclusions from the parts of an answer:
//!
//! | probe | sent when | answered by | then |
//! | --- | --- | --- | --- |
//! | [`Probe::NewProcess`] | another process is behind the connection; repeated | anything on iopub | code may be sent |
//! | [`Probe::Free`] | the kernel runs what somebody else sent | its reply | it is free |
//! | [`Probe::EndOf`] | the end of a run may have been missed | its reply and idle | nothing more comes of that run |
//!
//! A request to run something cannot be taken back once it is in the kernel's queue, so while the kernel is busy with something
//! else a probe waits there in its place, which harms nobody if it is not wanted any more.
//!
//! A kernel that says nothing for [`QUIET_LIMIT`] while something is expected of it is asked about over REST. One that is not
//! busy has ended what it was at: it is probed, and if it does not answer, the connection is renewed.

use std::{collections::VecDeque, time::Duration};

use jupyter_client::kernel::{Channel, Message, is_question};
use tokio::time::Instant;

use crate::policy::{MAX_OPEN_REQUESTS, PROBE_FIRST_PAUSE, PROBE_MAX_PAUSE, PROBE_RENEWS_AFTER, QUIET_LIMIT};

/// Prefix of the ids of probes of a new process, of which any may be answered.
const NEW_PROCESS: &str = "probe-";
/// Prefix of the ids of probes for a free kernel, which keep nobody waiting.
const FREE: &str = "free-";

#[derive(Debug)]
pub(crate) struct Liveness {
    /// Time of the last message from or to the kernel.
    last_contact: Instant,
    /// The requests that the kernel is working on, whoever sent them.
    open: VecDeque<String>,
    /// It was busy before its messages were received.
    busy_before: bool,
    /// At most one of each kind.
    probes: Vec<Probe>,
    /// The kernel has come to the probe that waited for it to be free.
    is_known_free: bool,
    /// The server is being asked about it.
    is_asking_server: bool,
    server_view: ServerView,
}

/// Accuracy of the server's view of the kernel's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerView {
    True,
    /// It was last told of the end of a request beside the queue, and so takes the kernel for idle.
    Misled,
}

#[derive(Debug)]
pub(crate) enum Probe {
    NewProcess {
        again_at: Instant,
        pause: Duration,
    },
    Free {
        msg_id: String,
    },
    EndOf {
        msg_id: String,
        run: String,
        /// Reason why the run may have no further messages.
        doubt: &'static str,
        replied: bool,
        idle: bool,
    },
}

/// A run that has no further messages, since the kernel has answered the probe after it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EndConfirmed {
    pub(crate) run: String,
    pub(crate) doubt: &'static str,
}

/// Probe that is due for a new process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DueProbe {
    Send(String),
    /// Also renews the connection before.
    RenewAndSend(String),
}

impl Liveness {
    /// Liveness of a kernel that may be busy when it is connected to.
    pub(crate) fn new(busy_before: bool, now: Instant) -> Self {
        Self {
            last_contact: now,
            open: VecDeque::new(),
            busy_before,
            probes: Vec::new(),
            is_known_free: false,
            is_asking_server: false,
            server_view: ServerView::True,
        }
    }

    /// Records that a message came from the kernel or was sent to it.
    pub(crate) fn on_contact(&mut self, now: Instant) {
        self.last_contact = now;
    }

    /// Records whether the kernel is busy, by its status messages.
    pub(crate) fn on_message(&mut self, message: &Message) -> Option<EndConfirmed> {
        let parent = message.parent_id.as_deref()?;
        if parent.starts_with(NEW_PROCESS) {
            if message.channel == Channel::Iopub {
                self.probes.retain(|probe| !matches!(probe, Probe::NewProcess { .. }));
            }
            return None;
        }
        if is_question(parent) {
            self.server_view = ServerView::Misled;
            return None;
        }
        self.on_free_probe(parent, message.channel);
        if message.channel == Channel::Iopub && message.msg_type == "status" && !parent.starts_with(FREE) {
            self.on_status(parent, message);
        }
        self.on_end_probe(parent, message)
    }

    fn on_free_probe(&mut self, parent: &str, channel: Channel) {
        let is_answered = |probe: &Probe| matches!(probe, Probe::Free { msg_id } if msg_id == parent);
        if channel == Channel::Shell && self.probes.iter().any(is_answered) {
            self.probes.retain(|probe| !is_answered(probe));
            (self.is_known_free, self.busy_before) = (true, false);
            self.open.clear();
        }
    }

    fn on_status(&mut self, parent: &str, message: &Message) {
        self.server_view = ServerView::True;
        if is_state(message, "busy") {
            if self.open.len() == MAX_OPEN_REQUESTS {
                self.open.pop_front();
            }
            self.open.push_back(parent.to_owned());
        } else if is_state(message, "idle") {
            self.open.retain(|open| open != parent);
        }
    }

    fn on_end_probe(&mut self, parent: &str, message: &Message) -> Option<EndConfirmed> {
        let answered = self.probes.iter_mut().position(|probe| match probe {
            Probe::EndOf {
                msg_id, replied, idle, ..
            } if msg_id == parent => {
                *replied |= message.channel == Channel::Shell;
                *idle |= message.channel == Channel::Iopub && is_state(message, "idle");
                *replied && *idle
            }
            _ => false,
        })?;
        match self.probes.remove(answered) {
            Probe::EndOf { run, doubt, .. } => Some(EndConfirmed { run, doubt }),
            _ => None,
        }
    }

    /// Records that another process is behind the connection. What it says first is missed until Jupyter has found its way to it, so
    /// nothing must be run there before it was heard.
    pub(crate) fn on_new_process(&mut self, now: Instant) {
        *self = Self {
            is_asking_server: self.is_asking_server,
            ..Self::new(false, now)
        };
        self.probes.push(Probe::NewProcess {
            again_at: now + PROBE_FIRST_PAUSE,
            pause: PROBE_FIRST_PAUSE,
        });
    }

    /// Returns whether the process behind the connection answers.
    pub(crate) fn is_heard(&self) -> bool {
        !self
            .probes
            .iter()
            .any(|probe| matches!(probe, Probe::NewProcess { .. }))
    }

    /// Returns whether the kernel would begin with a request at once, as far as is known.
    pub(crate) fn is_free(&self) -> bool {
        self.is_known_free || self.open.is_empty() && !self.busy_before && !self.is_free_awaited()
    }

    /// Returns whether something waits for the kernel to be free.
    pub(crate) fn is_free_awaited(&self) -> bool {
        self.probes.iter().any(|probe| matches!(probe, Probe::Free { .. }))
    }

    /// The probe to be sent that waits for the kernel to be free, unless one does.
    pub(crate) fn probe_free(&mut self, id: &str, now: Instant) -> Option<String> {
        if self.is_known_free || self.is_free_awaited() {
            return None;
        }
        let msg_id = format!("{FREE}{id}");
        self.last_contact = now;
        self.probes.push(Probe::Free { msg_id: msg_id.clone() });
        Some(msg_id)
    }

    /// Forgets that the kernel is free, since it was sent something, or the probe for it, which may have been lost.
    pub(crate) fn reset_free_probe(&mut self) {
        self.is_known_free = false;
        self.probes.retain(|probe| !matches!(probe, Probe::Free { .. }));
    }

    /// Begins a probe that is answered after everything about a run. Returns the probe to be sent.
    pub(crate) fn probe_end_of(&mut self, id: &str, run: &str, doubt: &'static str) -> String {
        let msg_id = format!("end-{id}");
        self.forget_end_probe();
        self.probes.push(Probe::EndOf {
            msg_id: msg_id.clone(),
            run: run.to_owned(),
            doubt,
            replied: false,
            idle: false,
        });
        msg_id
    }

    pub(crate) fn forget_end_probe(&mut self) {
        self.probes.retain(|probe| !matches!(probe, Probe::EndOf { .. }));
    }

    /// Returns whether the kernel was probed after a run and has not answered.
    pub(crate) fn is_end_probed(&self, of: &str) -> bool {
        self.probes
            .iter()
            .any(|probe| matches!(probe, Probe::EndOf { run, .. } if run == of))
    }

    /// The time of the next probe of a new process.
    pub(crate) fn probe_at(&self) -> Option<Instant> {
        self.probes.iter().find_map(|probe| match probe {
            Probe::NewProcess { again_at, .. } => Some(*again_at),
            _ => None,
        })
    }

    /// Takes the probe of a new process that is due.
    pub(crate) fn take_due_probe(&mut self, id: &str, now: Instant, is_connected: bool) -> Option<DueProbe> {
        self.probes.iter_mut().find_map(|probe| match probe {
            Probe::NewProcess { again_at, pause } if *again_at <= now => {
                let renews = *pause >= PROBE_RENEWS_AFTER && is_connected;
                *pause = (*pause * 2).min(PROBE_MAX_PAUSE);
                *again_at = now + *pause;
                let msg_id = format!("{NEW_PROCESS}{id}");
                Some(match renews {
                    true => DueProbe::RenewAndSend(msg_id),
                    false => DueProbe::Send(msg_id),
                })
            }
            _ => None,
        })
    }

    /// The time at which the server is asked about a kernel that owes something.
    pub(crate) fn asks_server_at(&self) -> Option<Instant> {
        (!self.is_asking_server).then(|| self.last_contact + QUIET_LIMIT)
    }

    pub(crate) fn on_server_asked(&mut self) {
        self.is_asking_server = true;
    }

    /// Returns whether the server may take a busy kernel for idle. Requests beside the queue are answered while a
    /// cell runs, and Jupyter takes the end of any request for that of the kernel's work.
    pub(crate) fn is_server_misled(&self) -> bool {
        self.server_view == ServerView::Misled
    }

    pub(crate) fn on_server_answered(&mut self, now: Instant) {
        (self.is_asking_server, self.last_contact) = (false, now);
    }
}

fn is_state(message: &Message, state: &str) -> bool {
    message.content.get("execution_state").is_some_and(|said| said == state)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::tests::{message, status};

    fn reply(parent: &str) -> Message {
        message(Channel::Shell, "kernel_info_reply", parent, json!({}))
    }

    fn liveness(busy_before: bool) -> Liveness {
        Liveness::new(busy_before, Instant::now())
    }

    #[test]
    fn an_idle_kernel_is_asked_nothing() {
        let mut kernel = liveness(false);
        assert!(kernel.is_free());
        kernel.on_message(&status("theirs", "busy"));
        kernel.on_message(&status("control", "busy"));
        kernel.on_message(&status("control", "idle"));
        assert!(!kernel.is_free(), "it is still at the first");
        kernel.on_message(&status("theirs", "idle"));
        assert!(kernel.is_free());
    }

    #[test]
    fn a_question_beside_the_queue_is_no_work_and_misleads_the_server() {
        let mut kernel = liveness(false);
        kernel.on_message(&status("run", "busy"));
        kernel.on_message(&status("ask-1", "busy"));
        kernel.on_message(&status("ask-1", "idle"));
        assert!(!kernel.is_free() && kernel.is_server_misled());
        kernel.on_message(&status("run", "idle"));
        assert!(kernel.is_free() && !kernel.is_server_misled());
        kernel.on_message(&status("ask-2", "busy"));
        assert!(kernel.is_free());
    }

    #[test]
    fn a_probe_is_answered_behind_all_that_was_queued() {
        let mut kernel = liveness(true);
        let probe = kernel.probe_free("1", Instant::now()).expect("a probe");
        assert_eq!(kernel.probe_free("2", Instant::now()), None, "one is enough");
        kernel.on_message(&status("theirs", "busy"));
        kernel.on_message(&status("theirs", "idle"));
        assert!(
            !kernel.is_free() && kernel.is_free_awaited(),
            "more of theirs may be in the queue"
        );
        kernel.on_message(&reply(&probe));
        assert!(kernel.is_free() && !kernel.is_free_awaited());
        kernel.reset_free_probe();
        kernel.on_message(&status(&probe, "busy"));
        assert!(kernel.is_free(), "what was only a probe keeps nobody waiting");
    }

    #[test]
    fn a_kernel_that_is_never_idle_is_asked_each_time() {
        let mut kernel = liveness(false);
        for n in 0..100 {
            kernel.on_message(&status(&n.to_string(), "busy"));
        }
        assert_eq!(kernel.open.len(), MAX_OPEN_REQUESTS);
        let probe = kernel.probe_free("1", Instant::now()).expect("a probe");
        kernel.on_message(&reply(&probe));
        assert!(kernel.is_free());
    }

    #[test]
    fn the_end_of_a_run_is_certain_with_both_halves_of_an_answer_in_either_order() {
        for reply_first in [true, false] {
            let mut kernel = liveness(false);
            let probe = kernel.probe_end_of("1", "run", "doubt");
            let (reply, idle) = (reply(&probe), status(&probe, "idle"));
            let (first, second) = if reply_first { (&reply, &idle) } else { (&idle, &reply) };
            assert_eq!(kernel.on_message(first), None);
            assert!(kernel.is_end_probed("run") && !kernel.is_end_probed("other"));
            let (run, doubt) = ("run".to_owned(), "doubt");
            assert_eq!(kernel.on_message(second), Some(EndConfirmed { run, doubt }));
            assert!(!kernel.is_end_probed("run"));
        }
    }

    #[test]
    fn a_new_process_is_probed_until_it_is_heard_and_by_another_connection_after_a_while() {
        let start = Instant::now();
        let mut kernel = liveness(true);
        kernel.on_new_process(start);
        let (mut now, mut sent, mut renewed) = (start, Vec::new(), 0);
        while now < start + Duration::from_secs(10) {
            now = kernel.probe_at().expect("a time");
            match kernel
                .take_due_probe(&sent.len().to_string(), now, true)
                .expect("a probe")
            {
                DueProbe::Send(id) => sent.push(id),
                DueProbe::RenewAndSend(id) => {
                    renewed += 1;
                    sent.push(id);
                }
            }
            assert_eq!(kernel.take_due_probe("again", now, true), None);
        }
        assert!(renewed > 0 && sent.len() > 5 && !kernel.is_heard());
        kernel.on_message(&reply(&sent[0]));
        assert!(!kernel.is_heard(), "outputs would still be missed");
        kernel.on_message(&status(&sent[0], "busy"));
        assert!(kernel.is_heard() && kernel.probe_at().is_none() && kernel.is_free());
    }
}
