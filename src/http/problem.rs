//! Refusals of the edge as JSON: a word for programs, a sentence for people and models.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header::WWW_AUTHENTICATE};
use serde_json::json;

#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    error: &'static str,
    message: String,
    challenge: Option<String>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, error: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            error,
            message: message.into(),
            challenge: None,
        }
    }

    pub(super) fn unauthorized(message: impl Into<String>, challenge: String) -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            error: "unauthorized",
            message: message.into(),
            challenge: Some(challenge),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Json(json!({ "error": self.error, "message": self.message }));
        let mut response = (self.status, body).into_response();
        if let Some(Ok(challenge)) = self.challenge.map(HeaderValue::try_from) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
