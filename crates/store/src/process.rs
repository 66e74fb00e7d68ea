//! Processes as another process of the same host can look for them.

use std::{fs, path::Path};

use rustix::{
    io::Errno,
    process::{Pid, getpid, test_kill_process},
    system::uname,
};

/// A process that can be told from all others, also from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    /// Those with the same value see each other's numbers.
    pub(crate) host: String,
    pub(crate) pid: i64,
    /// Start time of the process, in a unit of the host; 0 where that cannot be known.
    pub(crate) started: i64,
}

/// Liveness of another process, as far as it can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Liveness {
    Running,
    Ended,
    /// It is on another host, or the system does not tell.
    Unknown,
}

impl Process {
    /// The process that asks.
    pub(crate) fn current() -> Self {
        Self::with_pid(getpid())
    }

    fn with_pid(pid: Pid) -> Self {
        Self {
            host: host(),
            pid: pid.as_raw_nonzero().get().into(),
            started: started(pid).map_or(0, |status| status.started),
        }
    }

    /// A child of the process that asks.
    #[cfg(test)]
    pub(crate) fn of(pid: u32) -> Self {
        Self::with_pid(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap())
    }

    /// Liveness of it, as the asking process can tell.
    pub(crate) fn liveness(&self, asking: &Self) -> Liveness {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let Some(pid) = pid.filter(|_| self.host == asking.host) else {
            return Liveness::Unknown;
        };
        match started(pid) {
            Some(found) if found.started == self.started && !found.is_zombie => Liveness::Running,
            Some(_) => Liveness::Ended,
            None if test_kill_process(pid) == Err(Errno::SRCH) => Liveness::Ended,
            None => Liveness::Unknown,
        }
    }
}

struct Status {
    started: i64,
    is_zombie: bool,
}

/// Linux tells of each process when it was started after the system was.
fn started(pid: Pid) -> Option<Status> {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name may have spaces and parentheses; what follows its last one does not.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    Some(Status {
        started: fields.nth(18)?.parse().ok()?,
        is_zombie: matches!(state, "Z" | "X"),
    })
}

/// On Linux numbers of processes mean the same as long as the system runs, within a namespace; containers that share
/// a directory may have different ones.
fn host() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let namespace = fs::read_link(Path::new("/proc/self/ns/pid"));
    match (boot, namespace) {
        (Ok(boot), Ok(namespace)) => format!("{} {}", boot.trim(), namespace.display()),
        _ => uname().nodename().to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_ended_is_told_from_one_that_runs() {
        let us = Process::current();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(child.id());
        assert_ne!(process.liveness(&us), Liveness::Ended);
        child.kill().unwrap();
        // It is not waited for yet, which makes no difference where the system tells.
        if us.started != 0 {
            assert_eq!(us.liveness(&us), Liveness::Running);
            while process.liveness(&us) != Liveness::Ended {
                std::thread::yield_now();
            }
        }
        child.wait().unwrap();
        assert_eq!(process.liveness(&us), Liveness::Ended);
    }

    #[test]
    fn another_process_with_the_same_number_and_another_host_are_not_taken_for_it() {
        let us = Process::current();
        let elsewhere = Process {
            host: "elsewhere".into(),
            ..us.clone()
        };
        assert_eq!(elsewhere.liveness(&us), Liveness::Unknown);
        let earlier = Process {
            started: us.started - 1,
            ..us.clone()
        };
        if us.started != 0 {
            assert_eq!(earlier.liveness(&us), Liveness::Ended);
        }
    }
}
