//! The JupyterLab that all tests share. It is started by the first test that needs it and ends with
//! the test process, however that ends.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use jupyter_mcp_gateway::app::lab::{Lab, LabLog, LabOptions, Venv, VenvSpec};

pub struct SharedLab {
    lab: Lab,
    root: PathBuf,
    /// Removes the folders once this process and JupyterLab have ended.
    _sweeper: Child,
}

/// The environment of the tests: that of `--with-jupyter` and what the tests add, or one with an
/// older jupyter-collaboration.
pub fn venv() -> Venv {
    static VENV: LazyLock<Venv> = LazyLock::new(|| {
        let mut spec = VenvSpec::lab();
        spec.name = "test";
        spec.requirements = format!("{}\n{}", spec.requirements, include_str!("../../requirements.txt"));
        if let Ok(version) = std::env::var("JMG_TEST_COLLABORATION") {
            let file = format!("{}/tests/compat/{version}.txt", env!("CARGO_MANIFEST_DIR"));
            spec.name = "compat";
            spec.requirements = std::fs::read_to_string(&file).expect("a version that is listed there");
            spec.constraints = String::new();
        }
        Venv::ensure(&spec, &mut |line| println!("{line}")).expect("the test environment")
    });
    VENV.clone()
}

/// Returns whether Jupyter saves when it is told to. Before jupyter-collaboration 4 it saved a second after the
/// last change, whatever people wanted, and nobody could ask for more.
pub fn saves_as_told() -> bool {
    !std::env::var("JMG_TEST_COLLABORATION").is_ok_and(|version| version.starts_with("3."))
}

pub fn lab() -> &'static SharedLab {
    static LAB: LazyLock<SharedLab> = LazyLock::new(SharedLab::start);
    &LAB
}

impl SharedLab {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("a folder").keep();
        let root = dir.join("notebooks");
        let mut options = LabOptions::new(&root);
        options.log = LabLog::File(dir.join("jupyter.log"));
        options.state_dir = Some(dir.join("state"));
        let lab = Lab::start(&venv(), options).expect("JupyterLab");
        Self {
            root,
            _sweeper: sweep_afterwards(&dir, lab.pid()),
            lab,
        }
    }

    pub fn url(&self) -> &str {
        self.lab.url()
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        self.url().trim_start_matches("http://").trim_end_matches('/')
    }

    pub fn token(&self) -> &str {
        self.lab.token()
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A folder of this test's own on the shared server.
    pub fn folder(&self) -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let disk = self.root().join(&name);
        std::fs::create_dir(&disk).expect("a fresh folder");
        Folder { name, disk }
    }
}

/// Cleans up what the whole run shares and never drops. Another process does so: the
/// end of this process closes the shell's input.
fn sweep_afterwards(dir: &Path, lab: u32) -> Child {
    let script = "trap '' HUP INT TERM; cat; while kill -0 \"$1\"; do sleep 0.1; done; rm -rf \"$2\"";
    Command::new("sh")
        .args(["-c", script, "sh", &lab.to_string()])
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell")
}

/// A folder on the server, by its path there and on disk.
pub struct Folder {
    pub name: String,
    pub disk: PathBuf,
}

impl Folder {
    /// The path on the server of something in the folder.
    pub fn path(&self, inner: &str) -> String {
        format!("{}/{inner}", self.name)
    }

    pub fn write(&self, inner: &str, content: &str) -> String {
        let file = self.disk.join(inner);
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("folders");
        std::fs::write(file, content).expect("a file");
        self.path(inner)
    }

    pub fn read(&self, inner: &str) -> String {
        std::fs::read_to_string(self.disk.join(inner)).expect("a file")
    }

    pub fn has(&self, inner: &str) -> bool {
        self.disk.join(inner).exists()
    }

    /// A minimal valid notebook.
    pub fn notebook(&self, inner: &str) -> String {
        self.write(inner, r#"{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}"#)
    }
}
