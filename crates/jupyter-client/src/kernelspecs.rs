//! The kernels a server can start.

use std::collections::BTreeMap;

use reqwest::Method;
use serde::Deserialize;

use super::{JupyterError, JupyterServer};

#[derive(Debug, Clone)]
pub struct Kernelspec {
    pub name: String,
    pub display_name: String,
    pub language: String,
    /// The folder of the kernel's resources as the server gives it, empty if it gives none.
    pub path: String,
    pub is_default: bool,
}

#[derive(Deserialize)]
struct Listing {
    #[serde(default)]
    default: String,
    kernelspecs: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    spec: Spec,
    #[serde(default)]
    resources: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default)]
    display_name: String,
    #[serde(default)]
    language: String,
}

impl JupyterServer {
    pub async fn kernelspecs(&self) -> Result<Vec<Kernelspec>, JupyterError> {
        let listing: Listing = self
            .json(self.request(Method::GET, "api/kernelspecs"), "api/kernelspecs")
            .await?;
        let default = listing.default;
        let kernelspec = |(name, entry): (String, Entry)| Kernelspec {
            display_name: entry.spec.display_name,
            language: entry.spec.language,
            path: resource_folder(&entry.resources),
            is_default: name == default,
            name,
        };
        Ok(listing.kernelspecs.into_iter().map(kernelspec).collect())
    }
}

/// Jupyter names files such as `/kernelspecs/python3/logo-64x64.png`, never the folder itself.
fn resource_folder(resources: &BTreeMap<String, String>) -> String {
    let file = resources.values().next();
    file.and_then(|file| file.rsplit_once('/'))
        .map(|(folder, _)| folder.to_owned())
        .unwrap_or_default()
}
