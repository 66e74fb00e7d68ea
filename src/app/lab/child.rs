//! Owns the server's process and the two channels that `launch.py` documents:
//! its standard input, which tells it what to do, and its standard output,
//! which tells when it is ready and, by ending, that it is gone.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::output::{Follower, Sink};
use super::tree::kill_tree;

/// Time that the launcher may take, after the grace, to kill what is left.
const KILL_TIME: Duration = Duration::from_secs(2);

pub(super) enum Answer {
    Ready { url: String, token: String },
    Ended(ExitStatus),
    Nothing,
}

#[derive(Deserialize)]
struct Ready {
    url: String,
    token: String,
    info_file: PathBuf,
}

/// Kills the process and all below it when dropped.
pub(super) struct Running {
    child: Child,
    /// Kept open: the launcher takes its end for the death of this process.
    control: Option<ChildStdin>,
    answers: Receiver<String>,
    log: Option<Follower>,
    info_file: Option<PathBuf>,
}

impl Running {
    pub(super) fn spawn(mut command: Command, sink: Sink) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let control = child.stdin.take();
        let answers = follow_answers(child.stdout.take());
        let log = child.stderr.take();
        Ok(Self {
            child,
            control,
            answers,
            log: log.map(|stream| Follower::start(stream, sink)),
            info_file: None,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the server to listen. Without an answer the process is killed.
    pub(super) fn answer(&mut self, timeout: Duration) -> Answer {
        let line = self.answers.recv_timeout(timeout);
        if let Ok(Ok(ready)) = line.as_deref().map(serde_json::from_str::<Ready>) {
            self.info_file = Some(ready.info_file);
            return Answer::Ready {
                url: ready.url,
                token: ready.token,
            };
        }
        if line == Err(RecvTimeoutError::Disconnected)
            && let Ok(status) = self.child.wait()
        {
            return Answer::Ended(status);
        }
        self.kill();
        Answer::Nothing
    }

    /// The log's end, once the process is gone.
    pub(super) fn last_lines(&self, count: usize) -> String {
        self.log.as_ref().map(|log| log.last_lines(count)).unwrap_or_default()
    }

    pub(super) fn stop(&mut self, grace: Duration) {
        if !self.is_running() {
            return;
        }
        let asked = self
            .control
            .as_mut()
            .is_some_and(|control| writeln!(control, "stop {}", grace.as_secs_f64()).is_ok());
        if asked && self.has_left_by(Instant::now() + grace + KILL_TIME) {
            self.reap();
        } else {
            tracing::warn!(pid = self.pid(), "JupyterLab does not stop; killing it");
            self.kill();
        }
    }

    fn has_left_by(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        // The launcher answers once, and that answer has been taken.
        self.answers.recv_timeout(left) == Err(RecvTimeoutError::Disconnected)
    }

    fn kill(&mut self) {
        if self.is_running() {
            kill_tree(self.pid());
            // Where there is no shell, the server at least must go.
            let _ = self.child.kill();
        }
        self.reap();
    }

    fn reap(&mut self) {
        if let Err(error) = self.child.wait() {
            tracing::warn!(%error, "cannot wait for JupyterLab's end");
        }
        if let Some(path) = self.info_file.take() {
            // A server that stopped by itself has removed it.
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Hands on what the process says; the channel closes when it is gone.
fn follow_answers(stream: Option<ChildStdout>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stream) = stream {
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}
