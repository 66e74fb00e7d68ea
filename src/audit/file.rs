//! Records as JSON lines in a file. Whoever notes one never waits: they queue up, and one task appends them in their order.
//! The file is opened for each batch, so that one that was moved away is begun anew.

use std::{
    collections::VecDeque,
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};

/// Bytes that may wait to be written; then the line that has waited longest is given up.
const MAX_WAITING: usize = 16 * 1024 * 1024;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Longest wait on close for a disk that does not take the remaining lines.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A file to which lines are appended.
#[derive(Debug)]
pub struct AuditFile {
    path: PathBuf,
    state: Mutex<State>,
    noted: Notify,
    /// Changes whenever lines were written, or could not be.
    progress: watch::Sender<()>,
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<String>,
    bytes: usize,
    /// True while some are being written.
    is_writing: bool,
    /// Reason why the last attempt to write failed.
    failure: Option<String>,
}

impl AuditFile {
    /// Checks that the file can be appended to, and makes it where there is none.
    pub fn open(path: &Path) -> io::Result<Self> {
        append(path)?;
        Ok(Self {
            path: path.to_owned(),
            state: Mutex::default(),
            noted: Notify::new(),
            progress: watch::Sender::default(),
            lost: AtomicU64::new(0),
        })
    }

    /// Returns whether a line that is noted now will be written: the last ones were, and there is room to wait.
    pub fn can_take(&self) -> bool {
        let state = self.state.lock();
        state.failure.is_none() && state.bytes < MAX_WAITING
    }

    /// Number of lines that could not be kept.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Takes a line without its end.
    pub(super) fn note(&self, line: &str) {
        let mut state = self.state.lock();
        state.waiting.push_back(format!("{line}\n"));
        state.bytes += line.len() + 1;
        let mut given_up = 0;
        while state.bytes > MAX_WAITING {
            let Some(oldest) = state.waiting.pop_front() else { break };
            state.bytes -= oldest.len();
            given_up += 1;
        }
        drop(state);
        if given_up > 0 && self.lost.fetch_add(given_up, Ordering::Relaxed).is_multiple_of(1000) {
            tracing::error!(file = %self.path.display(), "records are lost: too many lines are waiting");
        }
        self.noted.notify_one();
    }

    /// Writes what is noted, for ever.
    pub async fn write(&self) {
        let mut pause = FIRST_PAUSE;
        // What a failed attempt left of a batch goes before what came later.
        let mut batch = Vec::new();
        loop {
            if batch.is_empty() {
                batch = self.next_batch().await;
            }
            let path = self.path.clone();
            let written = tokio::task::spawn_blocking(move || {
                let result = append_all(&path, &mut batch);
                (result, batch)
            });
            let Ok((result, rest)) = written.await else {
                return;
            };
            batch = rest;
            match result {
                Ok(()) => {
                    self.on_written();
                    pause = FIRST_PAUSE;
                }
                Err(error) => {
                    tracing::error!(file = %self.path.display(), %error, "the audit file cannot be written; trying again");
                    self.state.lock().failure = Some(error.to_string());
                    self.progress.send_replace(());
                    sleep(pause).await;
                    pause = LONGEST_PAUSE.min(pause * 2);
                }
            }
        }
    }

    /// Waits until everything that was noted is written, unless the disk does not take it.
    pub async fn flush(&self) {
        let mut progress = self.progress.subscribe();
        let is_over = |state: &State| state.waiting.is_empty() && !state.is_writing;
        let wait = async { while !is_over(&self.state.lock()) && progress.changed().await.is_ok() {} };
        if timeout(CLOSE_TIMEOUT, wait).await.is_err() {
            tracing::error!(file = %self.path.display(), "the audit file could not be written before the gateway left");
        }
    }

    async fn next_batch(&self) -> Vec<u8> {
        loop {
            {
                let mut state = self.state.lock();
                if !state.waiting.is_empty() {
                    state.bytes = 0;
                    state.is_writing = true;
                    return state.waiting.drain(..).collect::<String>().into_bytes();
                }
            }
            self.noted.notified().await;
        }
    }

    fn on_written(&self) {
        let mut state = self.state.lock();
        state.is_writing = false;
        if state.failure.take().is_some() {
            tracing::info!(file = %self.path.display(), "the audit file can be written again");
        }
        drop(state);
        self.progress.send_replace(());
    }
}

/// The file, which only its owner may read: it tells who works where on what.
fn append(path: &Path) -> io::Result<std::fs::File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Appends bytes, of which those stay that could not be written.
fn append_all(path: &Path, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut file = append(path)?;
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => drop(bytes.drain(..written)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // Pipes and terminals have no disk behind them.
    match file.sync_data() {
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, sync::Arc};

    use tokio::task::JoinSet;

    use super::*;

    async fn eventually(mut is_so: impl FnMut() -> bool) {
        let wait = async {
            while !is_so() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(30), wait).await.expect("in time");
    }

    #[tokio::test]
    async fn lines_come_in_their_order_and_a_file_that_was_moved_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        fs::write(&path, "before\n").unwrap();
        let file = Arc::new(AuditFile::open(&path).unwrap());
        let writer = Arc::clone(&file);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { writer.write().await });
        for n in 0..1000 {
            file.note(&n.to_string());
        }
        file.flush().await;
        let expected: String = (0..1000).map(|n| format!("{n}\n")).collect();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("before\n{expected}"));
        fs::rename(&path, folder.path().join("audit.jsonl.1")).unwrap();
        file.note("after");
        file.flush().await;
        assert_eq!(fs::read_to_string(&path).unwrap(), "after\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_disk_that_is_full_is_told_and_what_waits_is_written_when_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("audit"), folder.path().join("target"));
        std::os::unix::fs::symlink("/dev/full", &link).unwrap();
        let file = Arc::new(AuditFile::open(&link).unwrap());
        let writer = Arc::clone(&file);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { writer.write().await });
        assert!(file.can_take());
        file.note("first");
        eventually(|| !file.can_take()).await;
        file.note("second");
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        eventually(|| file.can_take()).await;
        file.flush().await;
        assert_eq!(fs::read_to_string(&target).unwrap(), "first\nsecond\n");
        assert_eq!(file.lost(), 0);
    }

    #[tokio::test]
    async fn what_finds_no_room_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let file = AuditFile::open(&folder.path().join("audit")).unwrap();
        let line = "x".repeat(MAX_WAITING / 4 - 1);
        for _ in 0..6 {
            file.note(&line);
        }
        assert_eq!(file.lost(), 2);
        assert!(!file.can_take());
        assert!(AuditFile::open(&folder.path().join("none/audit")).is_err());
    }
}
