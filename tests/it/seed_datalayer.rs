//! The vocabulary of datalayer's jupyter-mcp-server, tool by tool and parameter by parameter, on a real JupyterLab.

mod cells;
mod cited;
mod executing;
mod notebooks;
mod selection;
mod servers;

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, TOKEN,
    agent::ToolAnswer,
    gateway::{everything, lab_server},
    jupyter::JupyterApi,
    lab,
    lab::Folder,
    notebook::notebook,
};

const OTHER: &str = "token-of-somebody-else";
const HEADER: &str = "Index\tType\tCount\tFirst Line";

/// Two servers, and an agent that knows only these words.
struct Scene {
    gateway: Gateway,
    agent: Agent,
    folder: Folder,
}

impl Scene {
    async fn set(era: Era) -> Self {
        let other = format!("[[auth.tokens]]\nname = \"bob\"\ntenant = \"all\"\ntoken = \"{OTHER}\"\n");
        let servers = format!("{}{}", lab_server("lab"), lab_server("lab-b"));
        Self::configured(&format!("{servers}{}{other}", everything()), era).await
    }

    async fn configured(config: &str, era: Era) -> Self {
        let gateway = Gateway::configured(config).await;
        let agent = agent(&gateway, "", TOKEN, era).await;
        Self {
            gateway,
            agent,
            folder: lab().folder(),
        }
    }

    /// A scene with an active notebook of these code cells, called `nb`.
    async fn with(era: Era, cells: &[&str]) -> Self {
        let scene = Self::set(era).await;
        scene.activate("nb", cells).await;
        scene
    }

    /// Uses a notebook with these cells under a name.
    async fn activate(&self, name: &str, cells: &[&str]) -> String {
        let path = self.folder.write(&format!("{name}.ipynb"), &notebook(cells));
        self.text("use_notebook", json!({ "notebook_name": name, "notebook_path": path }))
            .await
    }

    async fn call(&self, tool: &str, arguments: Value) -> ToolAnswer {
        self.agent.call(tool, arguments).await
    }

    /// The text of an answer that is no failure, and the same that programs get.
    async fn text(&self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments).await;
        assert!(!answer.is_error, "{tool}: {answer:?}");
        assert_eq!(answer.structured["result"], answer.text(), "{tool}");
        answer.text().to_owned()
    }

    /// The outputs of an answer that is no failure.
    async fn outputs(&self, tool: &str, arguments: Value) -> Vec<Value> {
        let answer = self.call(tool, arguments).await;
        assert!(!answer.is_error, "{tool}: {answer:?}");
        outputs(&answer)
    }

    async fn error(&self, tool: &str, arguments: Value) -> String {
        let error = self.call(tool, arguments).await.error();
        let words = error.strip_prefix(&format!("Error executing tool {tool}: "));
        words.unwrap_or_else(|| panic!("{error}")).to_owned()
    }

    /// The first lines of the cells of a notebook.
    async fn firsts(&self, name: &str) -> Vec<String> {
        let text = self
            .text("read_notebook", json!({ "notebook_name": name, "limit": 0 }))
            .await;
        let rows = text.lines().skip_while(|line| *line != HEADER).skip(1);
        rows.map(|row| row.split('\t').nth(3).expect("a first line").to_owned())
            .collect()
    }
}

fn outputs(answer: &ToolAnswer) -> Vec<Value> {
    let structured = &answer.structured;
    assert_eq!(structured["result"], structured["outputs"], "{structured}");
    let outputs = structured["outputs"].as_array().expect("outputs").clone();
    assert_eq!(structured["count"], outputs.len(), "{structured}");
    let texts: Vec<&str> = outputs.iter().filter_map(Value::as_str).collect();
    assert_eq!(texts, answer.texts, "{structured}");
    assert_eq!(structured["images"], outputs.len() - texts.len(), "{structured}");
    outputs
}

async fn agent(gateway: &Gateway, selection: &str, token: &str, era: Era) -> Agent {
    let url = gateway.url(&format!("/mcp?toolsets=datalayer{selection}"));
    Agent::connect_to(&url, token, era).await
}

fn jupyter() -> JupyterApi {
    JupyterApi::new(lab().url(), lab().token())
}

/// The kernel that Jupyter says a notebook has.
async fn kernel_of(path: &str) -> Option<String> {
    let sessions: Vec<Value> = jupyter().get("api/sessions").await.json().await.expect("sessions");
    let session = sessions.iter().find(|session| session["path"] == path)?;
    session["kernel"]["id"].as_str().map(str::to_owned)
}
