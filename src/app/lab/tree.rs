//! Kills a process with everything below it. Kernels lead sessions of their
//! own, so a signal to the server's process group does not reach them.

use std::fs;
use std::process::{Command, Stdio};

type Pid = u32;

pub(super) fn kill_tree(root: Pid) {
    // A stopped process starts no more children while they are counted.
    signal("-STOP", &[root]);
    let mut family = vec![root];
    let table = process_table();
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        family.extend(table.iter().filter(|row| row.1 == parent).map(|row| row.0));
        next += 1;
    }
    signal("-KILL", &family);
}

/// Uses the shell's own `kill`: small containers have no program of that name.
fn signal(name: &str, pids: &[Pid]) {
    let sent = Command::new("sh")
        .args(["-c", "kill \"$@\"", "sh", name])
        .args(pids.iter().map(Pid::to_string))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if let Err(error) = sent {
        tracing::warn!(%error, "cannot send a signal to Jupyter's processes");
    }
}

/// All processes, each with its parent.
fn process_table() -> Vec<(Pid, Pid)> {
    if cfg!(target_os = "linux") {
        from_proc()
    } else {
        from_ps()
    }
}

fn from_proc() -> Vec<(Pid, Pid)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The command's name, in parentheses, may hold spaces and parentheses.
            let (_, rest) = stat.rsplit_once(')')?;
            Some((pid, rest.split_whitespace().nth(1)?.parse().ok()?))
        })
        .collect()
}

fn from_ps() -> Vec<(Pid, Pid)> {
    let Ok(listing) = Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output() else {
        return Vec::new();
    };
    String::from_utf8_lossy(&listing.stdout)
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sources_know_this_process() {
        let row = (std::process::id(), std::os::unix::process::parent_id());
        assert!(process_table().contains(&row));
        assert!(from_ps().contains(&row));
    }
}
