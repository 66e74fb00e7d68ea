//! A scene whose gateway is the binary, with a database that outlives it: to be killed and started again.

use std::process::Command;

use serde_json::Value;
use sqlx::SqlitePool;
use test_postgres::TestDatabase;

use super::{
    Agent, Era, Human, eventually, lab,
    lab::Folder,
    notebook::notebook,
    running::{Home, Running},
    scene::person,
};

pub struct ProcessScene {
    home: Home,
    pub folder: Folder,
    pub path: String,
    pub human: Human,
    /// URL by which gateways reach JupyterLab.
    url: String,
    /// None: a file in the home.
    database: Option<TestDatabase>,
}

impl ProcessScene {
    /// Sets the scene in a notebook of code cells.
    pub async fn new(cells: &[&str]) -> Self {
        Self::through(lab().url(), cells).await
    }

    /// Gateways reach JupyterLab by another way.
    pub async fn through(url: &str, cells: &[&str]) -> Self {
        let folder = lab().folder();
        let path = folder.write("run.ipynb", &notebook(cells));
        Self {
            home: Home::new(),
            human: Human::join(&path).await,
            folder,
            path,
            url: url.to_owned(),
            database: None,
        }
    }

    /// Gateways have their database in PostgreSQL.
    pub fn on_postgres(mut self) -> Self {
        self.database = Some(TestDatabase::create());
        self
    }

    /// Starts a gateway, and an agent that is connected to it.
    pub async fn gateway(&self) -> (Running, Agent) {
        Self::connected(self.serve()).await
    }

    fn serve(&self) -> Command {
        let mut command = self.home.serve_for(&self.url, lab().token());
        command.env("JMG__STORE__URL", self.store_url());
        command
    }

    async fn connected(command: Command) -> (Running, Agent) {
        let running = Running::start(command).await;
        let agent = Agent::connect_to(running.url(), running.token(), Era::Modern).await;
        (running, agent)
    }

    /// The same for a gateway that outlives a write beyond the size that its files may have.
    pub async fn unharmed_by_limits(&self) -> (Running, Agent) {
        let serve = self.serve();
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
            .arg(serve.get_program())
            .args(serve.get_args())
            .current_dir(serve.get_current_dir().expect("a folder"));
        for (name, value) in serve.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Self::connected(command).await
    }

    /// Waits until an execution is in the database with this status: records are written in the background.
    pub async fn recorded(&self, execution: &Value, status: &str) {
        let pool = SqlitePool::connect(&self.store_url()).await.expect("the database");
        let what = format!("{execution} is recorded as {status}");
        eventually(&what, async || {
            let query = sqlx::query_scalar("SELECT status FROM executions WHERE execution_id = $1");
            let found: Option<String> = query.bind(execution.as_str()).fetch_optional(&pool).await.ok()?;
            (found? == status).then_some(())
        })
        .await;
        pool.close().await;
    }

    /// The kernel of the notebook.
    pub async fn kernel(&self) -> String {
        let sessions: Value = person().get("api/sessions").await.json().await.expect("sessions");
        let mut sessions = sessions.as_array().expect("a list").iter();
        let session = sessions.find(|session| session["path"] == self.path.as_str());
        let id = session.and_then(|session| session["kernel"]["id"].as_str());
        id.expect("a kernel").to_owned()
    }

    /// Waits until somebody is connected to a kernel: while Jupyter connects somebody to one that has just become idle, it
    /// drops what the kernel says.
    pub async fn is_connected_to(&self, kernel: &str) {
        eventually("somebody is connected to the kernel", async || {
            let kernel: Value = person().get(&format!("api/kernels/{kernel}")).await.json().await.ok()?;
            (kernel["connections"].as_u64()? > 0).then_some(())
        })
        .await;
    }

    /// Waits until so many versions of documents are in the database.
    pub async fn has_versions(&self, count: i64) {
        let query = "SELECT count(*) FROM versions";
        let pool = match &self.database {
            Some(_) => None,
            None => Some(SqlitePool::connect(&self.store_url()).await.expect("the database")),
        };
        eventually(&format!("{count} versions are written"), async || {
            let found: i64 = match (&self.database, &pool) {
                (Some(database), _) => database.sql(query).trim().parse().expect("a number"),
                (None, pool) => sqlx::query_scalar(query).fetch_one(pool.as_ref()?).await.ok()?,
            };
            (found == count).then_some(())
        })
        .await;
        if let Some(pool) = pool {
            pool.close().await;
        }
    }

    fn store_url(&self) -> String {
        let database = self.database.as_ref().map(TestDatabase::url);
        database.unwrap_or_else(|| store::file_url(&self.home.path("gateway.db")))
    }
}
