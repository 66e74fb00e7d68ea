//! Owns the resources: three that are fixed and one template.

use rmcp::{ErrorData, model::*};
use serde_json::json;

use super::content::PNG;

const STATIC_TEXT: &str = "test://static-text";
const STATIC_BINARY: &str = "test://static-binary";
/// Only ever subscribed to by the suite, but a client cannot watch what it cannot read.
const WATCHED: &str = "test://watched-resource";

pub(super) fn list() -> Vec<Resource> {
    vec![
        Resource::new(STATIC_TEXT, "Static text")
            .with_description("A text that never changes")
            .with_mime_type("text/plain"),
        Resource::new(STATIC_BINARY, "Static binary")
            .with_description("An image that never changes")
            .with_mime_type("image/png"),
        Resource::new(WATCHED, "Watched text")
            .with_description("A text to subscribe to")
            .with_mime_type("text/plain"),
    ]
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("test://template/{id}/data", "Data by id")
            .with_description("Repeats the id of its address")
            .with_mime_type("application/json"),
    ]
}

/// rmcp turns the code of the error into -32602 for modern clients (SEP-2164). The address in the
/// error's data is ours to add.
pub(super) fn read(uri: &str) -> Result<ResourceContents, ErrorData> {
    match uri {
        STATIC_TEXT => {
            let text = "This is the content of the static text resource.";
            Ok(ResourceContents::text(text, uri).with_mime_type("text/plain"))
        }
        STATIC_BINARY => Ok(ResourceContents::blob(PNG, uri).with_mime_type("image/png")),
        WATCHED => Ok(ResourceContents::text("Nothing has changed.", uri).with_mime_type("text/plain")),
        _ => {
            let id = template_id(uri)
                .ok_or_else(|| ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri }))))?;
            let data = json!({
                "id": id,
                "templateTest": true,
                "data": format!("Data for ID: {id}"),
            });
            Ok(ResourceContents::text(data.to_string(), uri).with_mime_type("application/json"))
        }
    }
}

/// The `{id}` of an address of the template.
fn template_id(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}
