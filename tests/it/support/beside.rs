//! A person and two agents in one document: what one of them does is known to be in the gateway when the other has seen it,
//! without the first having read it again.

use std::ops::Deref;

use serde_json::{Value, json};

use super::{
    Agent, Era,
    agent::ToolAnswer,
    eventually,
    gateway::{everything, server},
    lab,
    notebook::notebook,
    scene::Scene,
};

const BOB: &str = "test-token-of-bob";

/// A scene with a second agent, bob.
pub struct Beside {
    scene: Scene,
    pub bob: Agent,
}

impl Deref for Beside {
    type Target = Scene;

    fn deref(&self) -> &Scene {
        &self.scene
    }
}

impl Beside {
    /// Sets the scene in a notebook of code cells.
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
        let scene = Scene::of(name, content).configured(&config).selecting("?toolsets=all");
        let scene = scene.editing().set().await;
        let beside = Self {
            bob: Agent::connect_to(&scene.gateway.url("/mcp?toolsets=all"), BOB, Era::Legacy).await,
            scene,
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

    /// The document as bob sees it.
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
}
