//! The pages that people see: what a client asks for, and why a login goes no further. Nothing runs in them, nobody
//! frames them, and whatever others have written is text.

use std::{fmt::Write as _, sync::LazyLock};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{
    HeaderValue,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use sha2::{Digest, Sha256};

use super::status;
use crate::{
    auth::oauth::{Consent, ErrorCode, OAuthError},
    types::Permission,
};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;\
     color:#1c1c1c;background:#fff}h1{font-size:1.4rem}dt{color:#555}dd{margin:0 0 .8rem;font-weight:600;\
     overflow-wrap:anywhere}label{display:block;margin:.4rem 0}button{font:inherit;padding:.5rem 1.4rem;\
     margin:1rem .6rem 0 0;border:1px solid #555;border-radius:.3rem;background:#f3f3f3;cursor:pointer}\
     button[value=allow]{background:#0b57d0;border-color:#0b57d0;color:#fff}.note{color:#7a4b00}\
     @media(prefers-color-scheme:dark){body{background:#1c1c1c;color:#eee}dt{color:#aaa}.note{color:#f0c060}\
     button{background:#333;color:#eee}}";

/// No form-action: browsers would hold the client's redirect to it, too, and whatever comes after that.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    format!("default-src 'none'; style-src 'sha256-{hash}'; frame-ancestors 'none'; base-uri 'none'")
});

/// The page on which a person decides.
pub(super) fn consent(consent: &Consent, action: &str) -> Response {
    let client = match &consent.client_host {
        Some(host) => format!("{} ({})", escaped(&consent.client_name), escaped(host)),
        None => escaped(&consent.client_name),
    };
    let mut body = format!(
        "<h1>Allow {client} to work in Jupyter for you?</h1>\
         <dl><dt>You are logged in as</dt><dd>{}</dd><dt>Tenant</dt><dd>{}</dd>\
         <dt>Your answer is sent to</dt><dd>{}</dd></dl>",
        escaped(&consent.person),
        escaped(&consent.tenant),
        escaped(&consent.redirect_host),
    );
    if consent.client_host.is_none() {
        body += "<p class=\"note\">The client has given itself this name; nobody has checked it. Go on only if you have \
                 just started the login from it.</p>";
    }
    let _ = write!(
        body,
        "<form method=\"post\" action=\"{}\"><input type=\"hidden\" name=\"ticket\" value=\"{}\"><p>It may:</p>",
        escaped(action),
        escaped(&consent.ticket)
    );
    for (permission, scope) in &consent.scopes {
        let _ = write!(
            body,
            "<label><input type=\"checkbox\" name=\"scope\" value=\"{scope}\" checked> {}</label>",
            meaning(*permission)
        );
    }
    body += "<button name=\"decision\" value=\"allow\">Allow</button>\
             <button name=\"decision\" value=\"deny\">Deny</button></form>";
    page(http::StatusCode::OK, "Log in", &body)
}

/// Describes a permission to a person.
fn meaning(permission: Permission) -> &'static str {
    match permission {
        Permission::Read => "read notebooks and files",
        Permission::Write => "change notebooks and files",
        Permission::Execute => "run code, with everything that your Jupyter account can reach",
        Permission::Admin => "administer: undo the changes of others, and what else is for administrators",
    }
}

/// The page that says why a login goes no further.
pub(super) fn refused(error: &OAuthError) -> Response {
    let status = match error.code {
        // Nobody is to log in with a header here.
        ErrorCode::InvalidClient => http::StatusCode::BAD_REQUEST,
        code => status(code),
    };
    let body = format!(
        "<h1>This login cannot go on</h1><p>{}</p><p>Error: <code>{}</code></p>",
        escaped(&error.description),
        error.code.as_str()
    );
    page(status, "Login failed", &body)
}

fn page(status: http::StatusCode, title: &str, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} - Jupyter MCP gateway</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>{body}</body></html>"
    );
    let policy = HeaderValue::from_str(&POLICY).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"));
    let fixed = HeaderValue::from_static;
    let headers = [
        (CONTENT_TYPE, fixed("text/html; charset=utf-8")),
        (CONTENT_SECURITY_POLICY, policy),
        (X_FRAME_OPTIONS, fixed("DENY")),
        (X_CONTENT_TYPE_OPTIONS, fixed("nosniff")),
        (CACHE_CONTROL, fixed("no-store")),
        // The page's own form must be known for one of this origin.
        (REFERRER_POLICY, fixed("same-origin")),
    ];
    (status, headers, Body::from(html)).into_response()
}

/// Text that stands for itself in HTML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // What changes the direction of text could show one host for another.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {}
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_text() {
        assert_eq!(
            escaped("<script>alert(\"1\")</script> & 'b\u{202e}c'"),
            "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;bc&#39;"
        );
    }
}
