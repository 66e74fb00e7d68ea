//! Refusals of the edge as JSON: a word for programs, a sentence for people and models.

use std::time::Duration;

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{
    HeaderValue, StatusCode,
    header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde_json::{Value, json};

/// The code that clients of MCP know for "not authorised".
const UNAUTHORIZED: i32 = -32001;

#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    body: Value,
    challenge: Option<&'static str>,
    closes: bool,
    retry_after: Option<Duration>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, error: &'static str, message: impl Into<String>) -> Self {
        let message: String = message.into();
        Self {
            status,
            body: json!({ "error": error, "message": message }),
            challenge: None,
            closes: false,
            retry_after: None,
        }
    }

    /// A refusal in the form in which MCP clients show what they are told. The request was not read, so it has no id.
    pub(super) fn unauthorized(message: &str, challenge: &'static str) -> Self {
        let error = json!({ "code": UNAUTHORIZED, "message": message });
        Self {
            status: StatusCode::UNAUTHORIZED,
            body: json!({ "jsonrpc": "2.0", "id": null, "error": error }),
            challenge: Some(challenge),
            closes: false,
            retry_after: None,
        }
    }

    /// A refusal in the form in which OAuth clients show what they are told.
    pub(super) fn oauth(message: &str) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            body: json!({ "error": "not_found", "error_description": message }),
            challenge: None,
            closes: false,
            retry_after: None,
        }
    }

    /// The same, with the time after which the request may succeed.
    pub(super) fn retrying_after(self, retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
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
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if let Some(retry_after) = self.retry_after {
            // Rounded up, so that who waits so long is not refused again.
            let seconds = retry_after.as_millis().div_ceil(1000);
            headers.insert(
                RETRY_AFTER,
                HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX)),
            );
        }
        if self.closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
