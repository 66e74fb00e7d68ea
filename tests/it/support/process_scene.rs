//! A scene whose gateway is the binary, with a database that outlives it: to be killed and started again.

use super::{
    Agent, Era, Human, lab,
    lab::Folder,
    notebook::notebook,
    running::{Home, Running},
};

pub struct ProcessScene {
    home: Home,
    pub folder: Folder,
    pub path: String,
    pub human: Human,
    /// How gateways reach JupyterLab.
    url: String,
}

impl ProcessScene {
    /// In a notebook of code cells.
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
        }
    }

    /// Starts a gateway, and an agent that is connected to it.
    pub async fn gateway(&self) -> (Running, Agent) {
        let running = Running::start(self.home.serve_for(&self.url, lab().token())).await;
        let agent = Agent::connect_to(running.url(), running.token(), Era::Modern).await;
        (running, agent)
    }
}
