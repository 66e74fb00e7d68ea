//! Live events of a server's files and kernels: renamed, deleted, written from outside, started. People do these
//! things in JupyterLab while a document is open here, and a room's own socket does not say.

use futures::StreamExt;
use serde::Deserialize;
use tokio_tungstenite::tungstenite::Message;

use super::{JupyterError, JupyterServer, socket::Socket};
use crate::DocPath;

/// Whose events these are, in the names of their schemas.
const CONTENTS: &str = "/contents_service/";
const KERNELS: &str = "/kernel_actions/";
const COLLABORATION: &str = "/jupyter_collaboration/session/";

/// Event of a file, a directory or a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    Renamed {
        from: DocPath,
        to: DocPath,
    },
    Deleted {
        path: DocPath,
    },
    /// The file of an open document was written from outside, and the document is made the same.
    Overwritten {
        path: DocPath,
    },
    KernelStarted {
        kernel_id: String,
    },
}

/// The stream of a server's events.
pub struct Feed(Socket);

#[derive(Deserialize)]
struct RawEvent {
    schema_id: String,
    action: Option<String>,
    path: Option<String>,
    source_path: Option<String>,
    kernel_id: Option<String>,
}

impl JupyterServer {
    pub async fn feed(&self) -> Result<Feed, JupyterError> {
        Ok(Feed(self.socket("api/events/subscribe", "api/events").await?))
    }
}

impl Feed {
    /// The next event of interest; `None` when the connection has ended.
    pub async fn next(&mut self) -> Option<ServerEvent> {
        while let Some(Ok(frame)) = self.0.next().await {
            if let Message::Text(text) = frame
                && let Some(event) = parse(&text)
            {
                return Some(event);
            }
        }
        None
    }
}

fn parse(text: &str) -> Option<ServerEvent> {
    let event: RawEvent = serde_json::from_str(text).ok()?;
    let is_of = |service: &str| event.schema_id.contains(service);
    if is_of(KERNELS) {
        let is_start = event.action.as_deref() == Some("start");
        let kernel_id = event.kernel_id.filter(|_| is_start);
        return kernel_id.map(|kernel_id| ServerEvent::KernelStarted { kernel_id });
    }
    let path = DocPath::parse(&event.path?).ok()?;
    match event.action.as_deref()? {
        "rename" if is_of(CONTENTS) => Some(ServerEvent::Renamed {
            from: DocPath::parse(&event.source_path?).ok()?,
            to: path,
        }),
        "delete" if is_of(CONTENTS) => Some(ServerEvent::Deleted { path }),
        "overwrite" if is_of(COLLABORATION) => Some(ServerEvent::Overwritten { path }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renames_and_deletions_are_understood_and_the_rest_ignored() {
        let schema = "https://events.jupyter.org/jupyter_server/contents_service/v1";
        let path = |raw| DocPath::parse(raw).expect("a path");
        let event = |rest: &str| parse(&format!(r#"{{"schema_id":"{schema}",{rest}}}"#));
        assert_eq!(
            event(r#""action":"delete","path":"/a.ipynb""#),
            Some(ServerEvent::Deleted { path: path("a.ipynb") })
        );
        assert_eq!(
            event(r#""action":"rename","path":"b.ipynb","source_path":"a.ipynb""#),
            Some(ServerEvent::Renamed {
                from: path("a.ipynb"),
                to: path("b.ipynb")
            })
        );
        assert_eq!(event(r#""action":"get","path":"a.ipynb""#), None);
        assert_eq!(parse("nonsense"), None);
        let kernel = |action: &str| {
            let schema = "https://events.jupyter.org/jupyter_server/kernel_actions/v1";
            parse(&format!(
                r#"{{"schema_id":"{schema}","action":"{action}","kernel_id":"k1","status":"success","msg":"Kernel k1 was started."}}"#
            ))
        };
        assert_eq!(
            kernel("start"),
            Some(ServerEvent::KernelStarted {
                kernel_id: "k1".to_owned()
            })
        );
        assert_eq!(kernel("shutdown"), None);
        let overwritten = r#"{"schema_id":"https://schema.jupyter.org/jupyter_collaboration/session/v1","level":"INFO",
            "room":"json:notebook:1","path":"a.ipynb","action":"overwrite","msg":"Out-of-band changes."}"#;
        assert_eq!(
            parse(overwritten),
            Some(ServerEvent::Overwritten { path: path("a.ipynb") })
        );
    }
}
