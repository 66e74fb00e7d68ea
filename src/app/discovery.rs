//! Finds the Jupyter servers that run on this machine, as `jupyter server list`
//! does: from the files that each leaves in Jupyter's runtime directory. Asks
//! the servers nothing, and changes nothing.

use std::cmp::Reverse;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use jupyter_client::Secret;
use serde::Deserialize;

/// One running server. Its token is a secret, so it cannot be printed whole.
#[derive(Clone, PartialEq, Eq)]
pub struct FoundServer {
    /// `[a-z0-9-]+`, different for each server found.
    pub name: String,
    /// Ends in a slash.
    pub url: String,
    /// Empty if the server wants a password, or nothing.
    pub token: Secret,
    pub root_dir: String,
    pub has_password: bool,
}

impl fmt::Debug for FoundServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundServer")
            .field("name", &self.name)
            .field("url", &self.url)
            .field("root_dir", &self.root_dir)
            .field("has_password", &self.has_password)
            .finish_non_exhaustive()
    }
}

/// This user's servers, the one started last first. A JupyterLab that the
/// gateway has started itself is among them.
pub fn running_servers() -> Vec<FoundServer> {
    let home = env::home_dir().unwrap_or_default();
    let dir = runtime_dir(&home, cfg!(target_os = "macos"), |name| env::var_os(name));
    servers_in(&dir)
}

/// The servers whose files are in `dir` and whose processes are alive.
pub fn servers_in(dir: &Path) -> Vec<FoundServer> {
    let mut found: Vec<(SystemTime, ServerInfo)> = info_files(dir)
        .into_iter()
        .filter_map(|path| Some((modified(&path), read_info(&path)?)))
        .filter(|(_, info)| info.has_tcp_port() && is_alive(info.pid))
        .collect();
    found.sort_by_key(|(time, _)| Reverse(*time));
    let mut servers: Vec<FoundServer> = Vec::new();
    for (_, info) in found {
        // The classic notebook's file can stand beside its server's.
        if servers.iter().all(|other| other.url != info.url()) {
            let name = unused_name(info.port, &servers);
            servers.push(info.into_server(name));
        }
    }
    servers
}

/// Jupyter's rules (`jupyter_core.paths.jupyter_runtime_dir`).
fn runtime_dir(home: &Path, macos: bool, var: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let dir = |name: &str| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let platform_dirs = dir("JUPYTER_PLATFORM_DIRS").is_some_and(|value| {
        let value = value.to_string_lossy().to_lowercase();
        !["no", "n", "false", "off", "0", "0.0"].contains(&value.as_str())
    });
    let data_dir = || match (macos, platform_dirs) {
        (true, false) => home.join("Library/Jupyter"),
        (true, true) => dir("XDG_DATA_HOME")
            .unwrap_or_else(|| home.join("Library/Application Support"))
            .join("Jupyter"),
        // Elsewhere both rules come to the same.
        (false, _) => dir("XDG_DATA_HOME")
            .unwrap_or_else(|| home.join(".local/share"))
            .join("jupyter"),
    };
    dir("JUPYTER_RUNTIME_DIR").unwrap_or_else(|| dir("JUPYTER_DATA_DIR").unwrap_or_else(data_dir).join("runtime"))
}

/// Server file as Jupyter writes it. Servers before 2019 call the root otherwise.
#[derive(Deserialize)]
struct ServerInfo {
    pid: u32,
    port: u16,
    url: String,
    hostname: Option<String>,
    base_url: Option<String>,
    #[serde(default)]
    secure: bool,
    sock: Option<String>,
    token: Option<String>,
    #[serde(alias = "notebook_dir")]
    root_dir: Option<String>,
    #[serde(default)]
    password: bool,
}

impl ServerInfo {
    fn has_tcp_port(&self) -> bool {
        self.sock.as_deref().unwrap_or_default().is_empty()
    }

    /// A server on all addresses names the machine, which need not resolve
    /// here, while loopback always reaches it.
    fn url(&self) -> String {
        let everywhere = ["0.0.0.0", "::", "*", ""];
        let url = match self.hostname.as_deref() {
            Some(host) if everywhere.contains(&host) => {
                let scheme = if self.secure { "https" } else { "http" };
                let base = self.base_url.as_deref().unwrap_or("/");
                format!("{scheme}://127.0.0.1:{}{base}", self.port)
            }
            _ => self.url.clone(),
        };
        format!("{}/", url.trim_end_matches('/'))
    }

    fn into_server(self, name: String) -> FoundServer {
        FoundServer {
            name,
            url: self.url(),
            token: Secret::new(self.token.unwrap_or_default()),
            root_dir: self.root_dir.unwrap_or_default(),
            has_password: self.password,
        }
    }
}

fn unused_name(port: u16, taken: &[FoundServer]) -> String {
    let free = |name: &String| taken.iter().all(|server| server.name != *name);
    let first = format!("local-{port}");
    if free(&first) {
        return first;
    }
    let mut numbered = (2u32..).map(|number| format!("{first}-{number}"));
    numbered.find(free).unwrap_or(first)
}

fn info_files(dir: &Path) -> Vec<PathBuf> {
    // Without the directory no server has ever run here.
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let is_info = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".json") && (name.starts_with("jpserver-") || name.starts_with("nbserver-"))
    };
    entries.flatten().map(|entry| entry.path()).filter(is_info).collect()
}

fn read_info(path: &Path) -> Option<ServerInfo> {
    let read = fs::read(path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
    if let Err(error) = &read {
        tracing::warn!(path = %path.display(), %error, "skipping a Jupyter runtime file");
    }
    read.ok()
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path)
        .and_then(|data| data.modified())
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// A server that was killed leaves its file behind.
fn is_alive(pid: u32) -> bool {
    if cfg!(target_os = "linux") {
        return Path::new("/proc").join(pid.to_string()).exists();
    }
    Command::new("ps")
        .args(["-p", &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    fn write(dir: &Path, name: &str, age: u64, content: serde_json::Value) {
        let path = dir.join(name);
        fs::write(&path, content.to_string()).unwrap();
        let time = SystemTime::now() - Duration::from_secs(age);
        File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(time))
            .unwrap();
    }

    fn info(pid: u32, port: u16, token: &str) -> serde_json::Value {
        serde_json::json!({
            "pid": pid, "port": port, "url": format!("http://localhost:{port}/"), "token": token,
            "hostname": "localhost", "base_url": "/", "secure": false, "sock": "",
            "root_dir": "/home/ana", "password": false, "version": "2.21.1",
        })
    }

    fn dead_pid() -> u32 {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn live_servers_are_found_newest_first() {
        let dir = tempfile::tempdir().unwrap();
        let me = std::process::id();
        write(dir.path(), "jpserver-1.json", 60, info(me, 8888, "old"));
        write(dir.path(), "jpserver-2.json", 10, info(me, 8889, "new"));
        write(dir.path(), "jpserver-3.json", 0, info(dead_pid(), 8890, "dead"));
        write(dir.path(), "other.json", 0, info(me, 8891, "other"));
        fs::write(dir.path().join("jpserver-4.json"), "{\"pid\": ").unwrap();
        fs::write(dir.path().join("jpserver-2-open.html"), "<html>").unwrap();

        let found = servers_in(dir.path());
        let names: Vec<_> = found.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["local-8889", "local-8888"]);
        assert_eq!(found[0].token.expose(), "new");
        assert_eq!(found[0].url, "http://localhost:8889/");
        assert_eq!(found[0].root_dir, "/home/ana");
        assert!(!format!("{found:?}").contains("new"));
    }

    #[test]
    fn unusual_servers_are_understood() {
        let dir = tempfile::tempdir().unwrap();
        let me = std::process::id();
        let mut everywhere = info(me, 8888, "t");
        everywhere["hostname"] = "0.0.0.0".into();
        everywhere["url"] = "http://some-host:8888/user/ana/".into();
        everywhere["base_url"] = "/user/ana/".into();
        write(dir.path(), "jpserver-1.json", 1, everywhere);
        let mut same_port = info(me, 8888, "");
        same_port["url"] = "http://127.0.0.2:8888".into();
        same_port["password"] = true.into();
        write(dir.path(), "jpserver-2.json", 2, same_port);
        let mut unix_socket = info(me, 0, "t");
        unix_socket["sock"] = "/run/jupyter.sock".into();
        write(dir.path(), "jpserver-3.json", 3, unix_socket);
        let classic = serde_json::json!({
            "pid": me, "port": 9000, "url": "http://localhost:9000/", "notebook_dir": "/srv",
        });
        write(dir.path(), "nbserver-4.json", 4, classic);

        let found = servers_in(dir.path());
        let urls: Vec<_> = found.iter().map(|server| (&*server.name, &*server.url)).collect();
        assert_eq!(
            urls,
            [
                ("local-8888", "http://127.0.0.1:8888/user/ana/"),
                ("local-8888-2", "http://127.0.0.2:8888/"),
                ("local-9000", "http://localhost:9000/"),
            ]
        );
        assert!(found[1].has_password);
        assert_eq!(found[2].root_dir, "/srv");
    }

    #[test]
    fn without_a_directory_nothing_is_found() {
        assert_eq!(servers_in(Path::new("/nonexistent/runtime")), []);
    }

    #[test]
    fn the_runtime_directory_follows_jupyters_rules() {
        let dir = |macos, vars: &[(&str, &str)]| {
            let var = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, v)| v.into());
            runtime_dir(Path::new("/home/ana"), macos, var).display().to_string()
        };
        let platform = ("JUPYTER_PLATFORM_DIRS", "1");
        let xdg = ("XDG_DATA_HOME", "/data");
        assert_eq!(dir(false, &[]), "/home/ana/.local/share/jupyter/runtime");
        assert_eq!(dir(false, &[xdg]), "/data/jupyter/runtime");
        assert_eq!(dir(false, &[xdg, platform]), "/data/jupyter/runtime");
        assert_eq!(dir(true, &[xdg]), "/home/ana/Library/Jupyter/runtime");
        assert_eq!(
            dir(true, &[platform]),
            "/home/ana/Library/Application Support/Jupyter/runtime"
        );
        assert_eq!(dir(true, &[("JUPYTER_PLATFORM_DIRS", "off")]), dir(true, &[]));
        let data = ("JUPYTER_DATA_DIR", "/d");
        assert_eq!(dir(false, &[data, xdg]), "/d/runtime");
        assert_eq!(dir(true, &[data, ("JUPYTER_RUNTIME_DIR", "/r")]), "/r");
        assert_eq!(dir(false, &[("JUPYTER_RUNTIME_DIR", "")]), dir(false, &[]));
    }
}
