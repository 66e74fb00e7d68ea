//! Output of child processes: run one to its end, or follow one that stays.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::process::{LabError, LabLog};

/// More than any error message shows, little enough to keep.
const KEPT_LINES: usize = 200;

pub(super) struct Finished {
    pub(super) status: ExitStatus,
    pub(super) lines: Vec<String>,
}

/// Runs a command to its end, with both of its outputs as one stream of lines.
///
/// Its standard input is the lock file, which is empty. A lock belongs to the
/// open file, so it holds until the command has ended as well, and nobody
/// deletes the directory under a command whose gateway was killed.
pub(super) fn run(mut command: Command, lock: &File, on_line: &mut dyn FnMut(&str)) -> io::Result<Finished> {
    let (reader, writer) = io::pipe()?;
    command
        .stdin(lock.try_clone()?)
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let mut child = command.spawn()?;
    // It owns the writing ends, and the reader waits for the last of them.
    drop(command);
    let mut kept = VecDeque::new();
    for_each_line(reader, |line| {
        on_line(line);
        keep(&mut kept, line);
    });
    Ok(Finished {
        status: child.wait()?,
        lines: kept.into(),
    })
}

pub(super) fn tail(lines: &[String], count: usize) -> String {
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Follows a stream to its end in a thread, and remembers its last lines.
pub(super) struct Follower {
    kept: Arc<Mutex<VecDeque<String>>>,
    ended: Receiver<()>,
}

impl Follower {
    pub(super) fn start(stream: impl Read + Send + 'static, mut sink: Sink) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let (at_end, ended) = mpsc::channel();
        let shared = Arc::clone(&kept);
        thread::spawn(move || {
            for_each_line(stream, |line| {
                sink(line);
                keep(&mut shared.lock(), line);
            });
            drop(at_end);
        });
        Self { kept, ended }
    }

    /// The last lines of a process that is gone. What it started may keep the
    /// stream open, so the end is only waited for a moment.
    pub(super) fn last_lines(&self, count: usize) -> String {
        // Nothing is ever sent: both outcomes, the end and the timeout, are fine.
        let _ = self.ended.recv_timeout(Duration::from_secs(1));
        let kept = self.kept.lock();
        let lines: Vec<String> = kept.iter().cloned().collect();
        tail(&lines, count)
    }
}

/// Receiver of a log's lines.
pub(super) type Sink = Box<dyn FnMut(&str) + Send>;

pub(super) fn log_sink(log: &LabLog) -> Result<Sink, LabError> {
    Ok(match log {
        LabLog::Tracing => Box::new(|line| tracing::debug!(target: "jupyter", "{line}")),
        LabLog::File(path) => {
            let mut file = open_to_append(path).map_err(LabError::io(path))?;
            Box::new(move |line| {
                // A full disk must not stop the server, so the reading goes on.
                let _ = writeln!(file, "{line}");
            })
        }
    })
}

fn open_to_append(path: &Path) -> io::Result<File> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

fn for_each_line(stream: impl Read, mut on_line: impl FnMut(&str)) {
    let lines = BufReader::new(stream).split(b'\n');
    for line in lines.map_while(Result::ok) {
        on_line(String::from_utf8_lossy(&line).trim_end());
    }
}

fn keep(kept: &mut VecDeque<String>, line: &str) {
    if kept.len() == KEPT_LINES {
        kept.pop_front();
    }
    kept.push_back(line.to_owned());
}
