//! A person and two agents in one document: what one of them does is known to be in the gateway when the other has seen it,
//! without the first having read it again.

use serde_json::{Value, json};

use super::{
    Agent, Era, Gateway, Human,
    agent::ToolAnswer,
    eventually,
    gateway::{everything, server},
    lab,
    lab::Folder,
    notebook::notebook,
};

const BOB: &str = "test-token-of-bob";

pub struct Beside {
    pub ana: Agent,
    pub bob: Agent,
    pub human: Human,
    pub folder: Folder,
    pub path: String,
    _gateway: Gateway,
}

impl Beside {
    /// In a notebook of code cells.
    pub async fn notebook(cells: &[&str]) -> Self {
        Self::through(lab().url(), "notebook.ipynb", &notebook(cells)).await
    }

    pub async fn text(text: &str) -> Self {
        Self::through(lab().url(), "text.md", text).await
    }

    /// The gateway reaches JupyterLab by another way.
    pub async fn through(url: &str, name: &str, content: &str) -> Self {
        let bob = format!(
            "[[auth.tokens]]\nname = \"bob\"\ntenant = \"all\"\ntoken = \"{BOB}\"\npermissions = [\"read\", \"write\", \"execute\"]\n"
        );
        let config = format!("{}{}{bob}", server("lab", url, lab().token()), everything());
        let gateway = Gateway::configured(&config).await;
        let folder = lab().folder();
        let path = folder.write(name, content);
        let human = Human::join(&path).await;
        let every = gateway.url("/mcp?toolsets=all");
        let beside = Self {
            ana: Agent::connect_to(&every, super::TOKEN, Era::Modern).await,
            bob: Agent::connect_to(&every, BOB, Era::Legacy).await,
            human,
            folder,
            path,
            _gateway: gateway,
        };
        // The room is open, so that it is seen what the person does from now on.
        beside.watch().await;
        beside.human.publish("Ida", true);
        eventually("the gateway knows the person", async || {
            let told = beside.watch().await["people"].to_string();
            told.contains("Ida").then_some(())
        })
        .await;
        beside
    }

    /// Calls a tool on the document as ana.
    pub async fn call(&self, tool: &str, mut arguments: Value) -> ToolAnswer {
        arguments["path"] = self.path.clone().into();
        self.ana.call(tool, arguments).await
    }

    pub async fn read(&self) -> Value {
        match self.path.ends_with(".ipynb") {
            true => self.call("read_nb_cells", json!({})).await.ok(),
            false => self.call("get_document_content", json!({})).await.ok(),
        }
    }

    pub async fn modify(&self, cell: &str, content: &str) -> ToolAnswer {
        let modifications = json!([{ "range": { "cell_id": cell }, "content": content }]);
        self.call("modify_nb_cells", json!({ "modifications": modifications }))
            .await
    }

    /// What bob sees of the document.
    pub async fn watch(&self) -> Value {
        let tool = match self.path.ends_with(".ipynb") {
            true => "read_nb_cells",
            false => "get_document_content",
        };
        self.bob.call(tool, json!({ "path": self.path })).await.ok()
    }

    /// Waits until the gateway has everything that the person sees.
    pub async fn heard(&self) {
        eventually("the gateway has what the person has", async || {
            let seen = self.watch().await;
            let sources = seen["cells"].as_array().map(|cells| {
                let source = |cell: &Value| cell["source"].as_str().unwrap_or_default().to_owned();
                cells.iter().map(source).collect::<Vec<_>>()
            });
            let is_same = match sources {
                Some(sources) => sources == self.human.sources(),
                None => seen["content"] == self.human.text(),
            };
            is_same.then_some(())
        })
        .await;
    }

    /// The person replaces part of a cell, and the gateway hears of it.
    pub async fn types(&self, cell: &str, at: u32, delete: u32, insert: &str) {
        self.human.splice_cell(cell, at, delete, insert);
        self.heard().await;
    }

    /// Waits until the person sees these sources.
    pub async fn shows(&self, sources: &[&str]) {
        let what = format!("the person sees {sources:?}");
        self.human.wait_for(&what, |human| human.sources() == sources).await;
    }
}
