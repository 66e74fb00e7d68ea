//! Refusals of the edge as JSON: a word for programs, a sentence for people and models.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{
    HeaderValue, StatusCode,
    header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde_json::{Value, json};

use crate::limits::Refusal;

/// The code that clients of MCP know for "not authorised".
const UNAUTHORIZED: i32 = -32001;
/// Likewise for "forbidden".
const FORBIDDEN: i32 = -32003;
/// Likewise for "too many requests".
const TOO_MANY: i32 = -32000;

#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    body: Value,
    challenge: Option<HeaderValue>,
    retry_after: Option<u32>,
    closes: bool,
    limited: Option<Box<Refusal>>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, error: &'static str, message: impl Into<String>) -> Self {
        let message: String = message.into();
        Self {
            status,
            body: json!({ "error": error, "message": message }),
            challenge: None,
            retry_after: None,
            closes: false,
            limited: None,
        }
    }

    /// A refusal in the form in which MCP clients show what they are told. The request was not read, so it has no id.
    pub(super) fn unauthorized(message: &str, challenge: HeaderValue) -> Self {
        let error = json!({ "code": UNAUTHORIZED, "message": message });
        Self {
            status: StatusCode::UNAUTHORIZED,
            body: json!({ "jsonrpc": "2.0", "id": null, "error": error }),
            challenge: Some(challenge),
            retry_after: None,
            closes: false,
            limited: None,
        }
    }

    /// A refusal of somebody who is known and may do nothing here, in the same form.
    pub(super) fn forbidden(message: &str, challenge: Option<HeaderValue>) -> Self {
        let error = json!({ "code": FORBIDDEN, "message": message });
        Self {
            challenge,
            body: json!({ "jsonrpc": "2.0", "id": null, "error": error }),
            ..Self::new(StatusCode::FORBIDDEN, "forbidden", message)
        }
    }

    /// A refusal of what is too much at this moment. The request was not read, so it has no id.
    pub(super) fn limited(refusal: Refusal) -> Self {
        let seconds = refusal.retry_after().as_secs_f64();
        let data = json!({ "limit": refusal.limit(), "retry_after": seconds });
        let error = json!({ "code": TOO_MANY, "message": refusal.to_string(), "data": data });
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            body: json!({ "jsonrpc": "2.0", "id": null, "error": error }),
            challenge: None,
            retry_after: None,
            closes: false,
            limited: Some(Box::new(refusal)),
        }
    }

    /// A refusal in the form in which OAuth clients show what they are told.
    pub(super) fn oauth(message: &str) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            body: json!({ "error": "not_found", "error_description": message }),
            challenge: None,
            retry_after: None,
            closes: false,
            limited: None,
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// The same, which may be otherwise after so many seconds.
    pub(super) fn retry_after(self, seconds: u32) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// The same, after which the connection is closed.
    pub(super) fn closing(self) -> Self {
        Self { closes: true, ..self }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        let headers = response.headers_mut();
        if let Some(challenge) = self.challenge {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if let Some(refusal) = self.limited {
            refusal.describe(headers);
        }
        if self.closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
