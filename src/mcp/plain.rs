//! Requests that need nothing of their client but to wait for the answer. Of what rmcp makes for every request (a peer
//! to talk back to, channels, tasks) they need nothing, and it costs more than they do themselves.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::request::Parts;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetExtensions, GetMeta, JsonObject, JsonRpcMessage, MetaObject,
    ProtocolVersion, RequestId, RequestMetaObject,
};

use super::{
    Answer, Caller, headers,
    observe::{RequestInfo, known_version},
};
use crate::types::PermissionSet;

/// A server that answers plain requests by itself.
pub trait Answerer: Send + Sync {
    /// Begins to answer a request; gives back one that needs its client.
    fn begin(self: Arc<Self>, request: PlainRequest) -> Result<Begun, Box<PlainRequest>>;

    /// Cost of a request against the rates of its caller.
    fn cost(&self, request: &ClientRequest, caller: &Caller) -> u32;

    /// The permissions for which a caller can log in again, if they lack one that a request needs.
    fn step_up(&self, request: &ClientRequest, caller: &Caller) -> Option<StepUp>;

    /// The schema of a tool's arguments, if calls repeat some of them as headers.
    fn input_schema(&self, tool: &str, caller: &Caller) -> Option<Arc<JsonObject>>;
}

/// A request that is refused for want of a permission that its caller can get.
pub struct StepUp {
    /// What to log in for.
    pub(super) permissions: PermissionSet,
    pub(super) message: String,
}

/// A request with all that is known of it.
pub struct PlainRequest {
    pub(super) id: RequestId,
    pub(super) request: ClientRequest,
    /// The HTTP request, with the caller in its extensions.
    pub(super) parts: Parts,
}

/// A request that is being answered.
pub struct Begun {
    pub(super) id: RequestId,
    pub(super) answer: BoxFuture<'static, Written>,
    /// True if it may be dropped at any moment.
    pub(super) is_droppable: bool,
}

/// The JSON of a result.
pub enum Written {
    Answer(Box<Answer>),
    /// The same for many.
    Shared(Arc<str>),
}

impl PlainRequest {
    /// The message as rmcp's service takes it, which finds the HTTP request beside the parameters.
    pub(super) fn into_message(mut self) -> ClientJsonRpcMessage {
        self.request.extensions_mut().insert(self.parts);
        JsonRpcMessage::request(self.request, self.id)
    }

    pub(super) fn is_modern(&self) -> bool {
        headers::is_modern(&self.parts.headers)
    }

    /// Returns whether the request asks for nothing but an answer. Anything else that is unusual, valid or not, is
    /// left to rmcp.
    pub(super) fn wants_only_an_answer(&self) -> bool {
        let meta = self.meta();
        let is_sound = match self.is_modern() {
            true => meta.protocol_version() == Some(ProtocolVersion::V_2026_07_28) && headers::is_self_contained(meta),
            false => meta.protocol_version().is_none(),
        };
        is_sound && meta.get_progress_token().is_none()
    }

    fn meta(&self) -> &RequestMetaObject {
        self.request.get_meta()
    }
}

impl RequestInfo for PlainRequest {
    fn id(&self) -> &RequestId {
        &self.id
    }

    fn protocol_version(&self) -> &'static str {
        // Only the first version has no such header.
        let first = ProtocolVersion::V_2025_03_26;
        known_version(headers::text(&self.parts.headers, "mcp-protocol-version").unwrap_or(first.as_str()))
    }

    fn meta(&self) -> Option<&MetaObject> {
        Some(PlainRequest::meta(self))
    }

    fn parts(&self) -> Option<&Parts> {
        Some(&self.parts)
    }
}

impl Written {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            // A vector takes everything, and answers always serialise.
            Self::Answer(answer) => drop(serde_json::to_writer(out, answer)),
            Self::Shared(text) => out.extend_from_slice(text.as_bytes()),
        }
    }

    /// About how many bytes there are to write.
    pub(super) fn size_hint(&self) -> usize {
        match self {
            Self::Answer(answer) => answer.size_hint(),
            Self::Shared(text) => text.len(),
        }
    }
}
