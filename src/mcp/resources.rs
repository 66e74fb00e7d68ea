//! Resources as MCP describes them.

use rmcp::{
    ErrorData,
    model::{
        ListResourceTemplatesResult, ListResourcesResult, MetaObject, ReadResourceResult, Resource, ResourceContents,
        ResourceTemplate,
    },
};
use serde_json::json;

use crate::{
    error::{ClientError, ErrorKind},
    resources::{Body, Contents, Entry, Page, ResourceError, uri_templates},
};

pub(super) fn list(page: Page) -> ListResourcesResult {
    let mut result = ListResourcesResult::with_all_items(page.entries.into_iter().map(resource).collect());
    result.next_cursor = page.next;
    result
}

fn resource(entry: Entry) -> Resource {
    let resource = Resource::new(entry.uri, entry.name)
        .with_description(entry.description)
        .with_mime_type(entry.mime_type);
    match entry.metadata {
        Some(metadata) => resource.with_meta(MetaObject(metadata)),
        None => resource,
    }
}

pub(super) fn templates(with_names: bool) -> ListResourceTemplatesResult {
    let described = uri_templates(with_names).map(|shape| {
        let template = ResourceTemplate::new(shape.template, shape.name).with_description(shape.description);
        match shape.mime_type {
            Some(mime_type) => template.with_mime_type(mime_type),
            None => template,
        }
    });
    ListResourceTemplatesResult::with_all_items(described.collect())
}

pub(super) fn contents(read: Vec<Contents>) -> ReadResourceResult {
    let contents = read.into_iter().map(|read| {
        let contents = match read.body {
            Body::Text(text) => ResourceContents::text(text, read.uri),
            Body::Blob(base64) => ResourceContents::blob(base64, read.uri),
        };
        contents
            .with_mime_type(read.mime_type)
            .with_meta(MetaObject(read.metadata))
    });
    ReadResourceResult::new(contents.collect())
}

/// The code of "not found" differs between the eras; rmcp changes it for the newer one.
pub(super) fn failure(error: &ResourceError, uri: &str) -> ErrorData {
    let message = error.to_string();
    let data = Some(json!({ "uri": uri }));
    match error.kind() {
        ErrorKind::NotFound => ErrorData::resource_not_found(message, data),
        ErrorKind::InvalidArgument => ErrorData::invalid_params(message, data),
        ErrorKind::Forbidden => ErrorData::invalid_request(message, data),
        ErrorKind::Conflict | ErrorKind::Upstream | ErrorKind::Limit | ErrorKind::Internal => {
            ErrorData::internal_error(message, data)
        }
    }
}
