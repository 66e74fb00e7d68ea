//! Processes as the system sees them: who is whose child, who is alive, and signals.

use std::process::Command;

/// The processes that `parent` has started.
pub fn children(parent: u32) -> Vec<u32> {
    let parent = parent.to_string();
    ps(&["-A", "-o", "pid=,ppid="])
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .filter(|(_, ppid)| ppid.trim() == parent)
        .filter_map(|(pid, _)| pid.parse().ok())
        .collect()
}

/// A process that nobody has reaped yet does not count.
pub fn is_alive(pid: u32) -> bool {
    let state = ps(&["-o", "stat=", "-p", &pid.to_string()]);
    !state.is_empty() && !state.starts_with('Z')
}

pub fn command_line(pid: u32) -> String {
    ps(&["-o", "args=", "-p", &pid.to_string()])
}

/// The command lines of all processes.
pub fn all_command_lines() -> String {
    ps(&["-A", "-o", "args="])
}

/// Sends a signal such as `-TERM`. The shell's own `kill`, because small containers have no other.
pub fn send_signal(name: &str, pid: u32) {
    let sent = Command::new("sh")
        .args(["-c", "kill \"$@\"", "sh", name, &pid.to_string()])
        .status()
        .expect("a shell");
    assert!(sent.success(), "kill {name} {pid}");
}

fn ps(arguments: &[&str]) -> String {
    let output = Command::new("ps").args(arguments).output().expect("ps runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The most memory that a process has had so far.
#[cfg(target_os = "linux")]
pub fn peak_bytes(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kilobytes.expect("a number") * 1024
}

/// Memory that a process takes.
pub fn resident_bytes(pid: u32) -> usize {
    let kilobytes = ps(&["-o", "rss=", "-p", &pid.to_string()]);
    kilobytes.parse::<usize>().expect("a number") * 1024
}
