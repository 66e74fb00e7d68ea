//! Addresses at which people open documents in a browser. They carry no token: whoever follows one logs in as usual.

use reqwest::{Method, StatusCode};

use super::{Document, DocumentKind, JupyterError, JupyterServer};
use crate::DocPath;

/// The page behind which JupyterLab shows everything.
const LAB: &str = "lab";

/// Builder of the addresses of a server's documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    /// Without a slash at the end.
    base: String,
    /// Otherwise Jupyter Notebook has a page for each kind of document.
    has_lab: bool,
}

impl Links {
    pub fn to(&self, document: &Document) -> String {
        let path = DocPath::parse(&document.path).unwrap_or_else(|_| DocPath::root());
        self.to_path(&path, document.kind)
    }

    /// The address of what is at a path.
    pub fn to_path(&self, path: &DocPath, kind: DocumentKind) -> String {
        let view = match kind {
            _ if self.has_lab => "lab/tree",
            DocumentKind::Notebook => "notebooks",
            DocumentKind::File => "edit",
            DocumentKind::Directory => "tree",
        };
        format!("{}/{view}/{}", self.base, path.to_url_path())
    }
}

impl JupyterServer {
    /// The addresses by which people reach what is on this server.
    pub async fn links(&self) -> Links {
        // A server that does not say is asked again next time; nearly all have it.
        let has_lab = self.has_lab.get_or_try_init(|| self.look_for_lab()).await;
        Links {
            base: self.public_base_url().to_owned(),
            has_lab: has_lab.copied().unwrap_or(true),
        }
    }

    /// The same without asking the server, which is taken for one with JupyterLab unless it is known to have none.
    pub fn known_links(&self) -> Links {
        Links {
            base: self.public_base_url().to_owned(),
            has_lab: self.has_lab.get().copied().unwrap_or(true),
        }
    }

    async fn look_for_lab(&self) -> Result<bool, JupyterError> {
        let response = self.answer(self.request(Method::GET, LAB)).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(false),
            status if status.is_success() || status.is_redirection() => Ok(true),
            status => Err(JupyterError::Refused {
                server: self.name().to_owned(),
                status: status.as_u16(),
                message: "its pages cannot be read".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_have_the_page_of_their_kind() {
        let links = |has_lab| Links {
            base: "https://jupyter.example.org/user/ana".to_owned(),
            has_lab,
        };
        let document = |kind: &str| {
            let document = json!({ "name": "x", "path": "a b/ü#?%.ipynb", "type": kind });
            serde_json::from_value::<Document>(document).expect("a document")
        };
        for (kind, page) in [("notebook", "notebooks"), ("file", "edit"), ("directory", "tree")] {
            let path = "a%20b/%C3%BC%23%3F%25.ipynb";
            let base = "https://jupyter.example.org/user/ana";
            assert_eq!(links(true).to(&document(kind)), format!("{base}/lab/tree/{path}"));
            assert_eq!(links(false).to(&document(kind)), format!("{base}/{page}/{path}"));
        }
    }
}
