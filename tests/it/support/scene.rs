//! The scene of most tests: a document, a person who has it open, an agent, and the gateway between them.

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    Agent, Era, Gateway, Human, TOKEN,
    agent::ToolAnswer,
    eventually,
    gateway::{everything, lab_server, server},
    jupyter::JupyterApi,
    lab,
    lab::Folder,
    notebook::{notebook, whole_cells_on_disk},
    tab::Tab,
};

pub struct Scene {
    pub agent: Agent,
    pub human: Human,
    pub folder: Folder,
    pub path: String,
    pub gateway: Gateway,
}

/// Builder of a scene.
pub struct SceneBuilder {
    name: String,
    content: String,
    config: String,
    selection: &'static str,
    era: Era,
    executes: bool,
}

impl SceneBuilder {
    /// More settings for the gateway.
    pub fn with(mut self, settings: &str) -> Self {
        self.config = format!("{settings}\n{}", self.config);
        self
    }

    /// The gateway reaches JupyterLab by another way.
    pub fn through(self, url: &str) -> Self {
        self.configured(&format!("{}{}", server("lab", url, lab().token()), everything()))
    }

    /// Sets exactly this config.
    pub fn configured(mut self, config: &str) -> Self {
        config.clone_into(&mut self.config);
        self
    }

    /// The agent speaks this era's protocol.
    pub fn era(mut self, era: Era) -> Self {
        self.era = era;
        self
    }

    /// The agent connects with this query.
    pub fn selecting(mut self, selection: &'static str) -> Self {
        self.selection = selection;
        self
    }

    /// The agent's edits are not executed unless it says so.
    pub fn editing(mut self) -> Self {
        self.executes = false;
        self
    }

    pub async fn set(self) -> Scene {
        let gateway = Gateway::configured(&self.config).await;
        let folder = lab().folder();
        let path = folder.write(&self.name, &self.content);
        let url = gateway.url(&format!("/mcp{}", self.selection));
        let mut agent = Agent::connect_to(&url, TOKEN, self.era).await;
        agent.executes = self.executes;
        Scene {
            human: Human::join(&path).await,
            agent,
            folder,
            path,
            gateway,
        }
    }
}

impl Scene {
    /// Sets the scene in a notebook of code cells, in the modern era.
    pub async fn new(cells: &[&str]) -> Self {
        Self::notebook(cells).set().await
    }

    pub fn notebook(cells: &[&str]) -> SceneBuilder {
        Self::of("run.ipynb", &notebook(cells))
    }

    /// Sets the scene in a file on the shared JupyterLab.
    pub fn of(name: &str, content: &str) -> SceneBuilder {
        SceneBuilder {
            name: name.to_owned(),
            content: content.to_owned(),
            config: format!("{}{}", lab_server("lab"), everything()),
            selection: "",
            era: Era::Modern,
            executes: true,
        }
    }

    /// Calls a tool on the notebook.
    pub async fn call(&self, tool: &str, mut arguments: Value) -> ToolAnswer {
        arguments["path"] = self.path.clone().into();
        self.agent.call(tool, arguments).await
    }

    /// Runs cells and waits for them.
    pub async fn run(&self, start: usize, end: usize) -> ToolAnswer {
        let ranges = json!([{ "start": start, "end": end }]);
        self.call("execute_nb_cells", json!({ "ranges": ranges })).await
    }

    /// Runs one cell without waiting for it; its execution's id.
    pub async fn start(&self, cell: usize) -> String {
        let run = json!({ "ranges": [{ "start": cell }], "timeout": 0 });
        id(&self.call("execute_nb_cells", run).await.structured)
    }

    /// Output of running code in the notebook's kernel.
    pub async fn code(&self, code: &str) -> String {
        let ran = self.call("run_code", json!({ "code": code })).await.ok();
        texts(&ran).concat()
    }

    /// Cancels an execution, which ends at once.
    pub async fn cancel(&self, id: &str) {
        let cancel = json!({ "execution_id": id });
        let cancelled = self.agent.call("cancel_execution", cancel).await.ok();
        assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    }

    /// An execution as it is when it has ended.
    pub async fn ended(&self, id: &str) -> Value {
        ended(&self.agent, id).await
    }

    /// Waits until the person sees these sources.
    pub async fn sees(&self, sources: &[&str]) {
        let what = format!("the person sees {sources:?}");
        self.human.wait_for(&what, |human| human.sources() == sources).await;
    }

    /// Waits until the person sees this in a cell's outputs.
    pub async fn shows(&self, cell: u32, text: &str) {
        let what = format!("the person sees {text:?}");
        self.human
            .wait_for(&what, |human| shown(&human.cell(cell)).contains(text))
            .await;
    }

    /// Waits until a cell looks as if it is running.
    pub async fn shows_running(&self, cell: u32) {
        self.human
            .wait_for("the cell runs", |human| {
                human.cell(cell)["execution_state"] == "running"
            })
            .await;
    }

    /// Waits until a cell looks idle, and returns the outputs that the person sees then.
    pub async fn idle_output(&self, cell: u32) -> String {
        self.human
            .wait_for("the cell is idle", |human| {
                human.cell(cell)["execution_state"] == "idle"
            })
            .await;
        shown(&self.human.cell(cell))
    }

    /// Waits until the file has these outputs in a cell.
    pub async fn saved(&self, file: &str, cell: usize, outputs: &str) {
        let file = self.folder.disk.join(file);
        eventually("the file has the outputs", async || {
            let cells = whole_cells_on_disk(&file)?;
            (shown(&cells[cell]) == outputs).then_some(())
        })
        .await;
    }

    /// The kernels that Jupyter has for documents of this scene's folder.
    pub async fn kernels(&self) -> Vec<(String, String)> {
        let sessions: Value = person().get("api/sessions").await.json().await.expect("sessions");
        let sessions = sessions.as_array().expect("a list").iter().map(|session| {
            let text = |pointer: &str| session.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            (text("/path").to_owned(), text("/kernel/id").to_owned())
        });
        let prefix = self.folder.path("");
        sessions.filter(|(path, _)| path.starts_with(&prefix)).collect()
    }

    /// The one kernel that there is.
    pub async fn kernel(&self) -> String {
        let kernels = self.kernels().await;
        assert_eq!(kernels.len(), 1, "{kernels:?}");
        kernels[0].1.clone()
    }

    /// Starts a second kernel for the notebook as JupyterLab does: under a name that nobody knows, which becomes the
    /// notebook's afterwards.
    pub async fn start_kernel_beside(&self) -> String {
        let session = json!({ "path": format!("{}-5e5510", self.folder.name), "name": "run.ipynb", "type": "notebook", "kernel": { "name": "python3" } });
        let started = person().send(Method::POST, "api/sessions", session).await;
        let started: Value = started.json().await.expect("a session");
        let named = format!("api/sessions/{}", started["id"].as_str().expect("an id"));
        person().send(Method::PATCH, &named, json!({ "path": self.path })).await;
        started["kernel"]["id"].as_str().expect("a kernel").to_owned()
    }

    /// The person sends code to the notebook's kernel, from a browser tab of their own.
    pub async fn tab(&self) -> Tab {
        Tab::open(&self.kernel().await).await
    }
}

/// The shared JupyterLab as a person's browser uses it.
pub fn person() -> JupyterApi {
    JupyterApi::new(lab().url(), lab().token())
}

pub async fn ended(agent: &Agent, id: &str) -> Value {
    let get = json!({ "execution_id": id, "wait": 60, "max_cell_output_size": 200_000_000 });
    agent.call("get_execution", get).await.structured
}

pub fn id(result: &Value) -> String {
    let id = result["execution_id"].as_str();
    id.unwrap_or_else(|| panic!("no execution: {result}")).to_owned()
}

/// The text of each output of a result.
pub fn texts(result: &Value) -> Vec<&str> {
    let outputs = result["outputs"].as_array().expect("outputs");
    outputs.iter().map(text).collect()
}

fn text(output: &Value) -> &str {
    let text = output["text"].as_str().or(output["data"]["text/plain"].as_str());
    text.or(output["ename"].as_str()).unwrap_or_default()
}

/// All text of a cell's outputs, of a live one or of one in a file.
pub fn shown(cell: &Value) -> String {
    let lines = |output: &Value| match (&output["text"], &output["data"]["text/plain"]) {
        (Value::Array(lines), _) | (_, Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => text(output).to_owned(),
    };
    cell["outputs"]
        .as_array()
        .map(|all| all.iter().map(lines).collect())
        .unwrap_or_default()
}
