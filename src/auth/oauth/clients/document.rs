//! Client id metadata documents: a client whose id is the URL of a document about it. The gateway fetches what a stranger
//! names, so it looks at the address first, connects to no other, follows nobody further, and reads little.

use std::{
    net::SocketAddr,
    num::NonZeroUsize,
    time::{Duration, Instant},
};

use lru::LruCache;
use parking_lot::Mutex;
use reqwest::{Response, header::CONTENT_TYPE, redirect::Policy};
use tokio::{
    net::lookup_host,
    sync::Semaphore,
    time::{Instant as Deadline, timeout_at},
};
use url::{Host, Url};

use super::{Client, addresses::is_public, description::Description};

const MAX_URL_BYTES: usize = 1024;
const MAX_DOCUMENT_BYTES: usize = 16 * 1024;
/// Time for all of it: the name, the connection and the answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Documents that are fetched at a time.
const MAX_FETCHES: usize = 8;
/// Documents that are remembered, and for how long.
const CACHED: NonZeroUsize = NonZeroUsize::new(512).unwrap();
const FRESH_FOR: Duration = Duration::from_secs(10 * 60);
/// A failure is remembered for a moment, so that nobody has the gateway knock again and again.
const REFUSED_FOR: Duration = Duration::from_secs(10);

/// Reason why a document about a client cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    #[error("{0}")]
    Url(&'static str),
    #[error("its host has an address that is not public")]
    PrivateAddress,
    #[error("its host cannot be found")]
    UnknownHost,
    #[error("it cannot be fetched")]
    Unreachable,
    #[error("it was not answered within {TIMEOUT:?}")]
    Timeout,
    #[error("its URL was answered with status {0}, and redirects are not followed")]
    Status(u16),
    #[error("it is larger than {MAX_DOCUMENT_BYTES} bytes")]
    TooLarge,
    #[error("it is not JSON")]
    NotJson,
    #[error("its client_id is not its URL")]
    OtherId,
    #[error("it asks for a way to authenticate that is not offered; `token_endpoint_auth_method` must be none")]
    AuthMethod,
    #[error("{0}")]
    Description(String),
    #[error("too many documents are being fetched; try again in a moment")]
    Busy,
}

type Answer = Result<Client, DocumentError>;

/// Fetches documents, and remembers them for a while.
pub(super) struct Documents {
    allow_private: bool,
    cached: Mutex<LruCache<String, (Answer, Instant)>>,
    fetches: Semaphore,
}

/// Returns whether a client id is a URL.
pub(super) fn is_url(client_id: &str) -> bool {
    client_id.starts_with("https://") || client_id.starts_with("http://")
}

impl Documents {
    pub(super) fn new(allow_private: bool) -> Self {
        Self {
            allow_private,
            cached: Mutex::new(LruCache::new(CACHED)),
            fetches: Semaphore::new(MAX_FETCHES),
        }
    }

    /// The client whose document is at a URL.
    pub(super) async fn client(&self, id: &str) -> Answer {
        let url = self.parse(id)?;
        if let Some((answer, until)) = self.cached.lock().get(id)
            && *until > Instant::now()
        {
            return answer.clone();
        }
        let _fetching = self.fetches.try_acquire().map_err(|_| DocumentError::Busy)?;
        let answer = self.fetch(id, &url).await;
        let fresh_for = if answer.is_ok() { FRESH_FOR } else { REFUSED_FOR };
        let until = Instant::now() + fresh_for;
        self.cached.lock().put(id.to_owned(), (answer.clone(), until));
        answer
    }

    /// A URL in the one form that can be an id.
    fn parse(&self, id: &str) -> Result<Url, DocumentError> {
        if id.len() > MAX_URL_BYTES {
            return Err(DocumentError::Url("its URL is too long"));
        }
        let url = Url::parse(id).map_err(|_| DocumentError::Url("its URL is not valid"))?;
        if url.scheme() != "https" && !self.allow_private {
            return Err(DocumentError::Url("its URL must start with https://"));
        }
        if url.path() == "/" || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
            return Err(DocumentError::Url(
                "its URL must have a path, and no fragment, user or password",
            ));
        }
        // What is not in its one form, with dots in its path or an upper-case host, could be one client under two ids.
        if url.as_str() != id {
            return Err(DocumentError::Url("its URL must be written in its normal form"));
        }
        Ok(url)
    }

    async fn fetch(&self, id: &str, url: &Url) -> Answer {
        let deadline = Deadline::now() + TIMEOUT;
        let fetched = timeout_at(deadline, async {
            let addresses = self.addresses(url).await?;
            let response = get(url, &addresses).await?;
            read(response).await
        });
        let body = fetched.await.map_err(|_| DocumentError::Timeout)??;
        client(id, url, &body)
    }

    /// The addresses of a host, of which none may be private.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, DocumentError> {
        let port = url.port_or_known_default().unwrap_or(443);
        let addresses: Vec<SocketAddr> = match url.host() {
            Some(Host::Ipv4(address)) => vec![(address, port).into()],
            Some(Host::Ipv6(address)) => vec![(address, port).into()],
            Some(Host::Domain(name)) => {
                let found = lookup_host((name, port))
                    .await
                    .map_err(|_| DocumentError::UnknownHost)?;
                found.collect()
            }
            None => Vec::new(),
        };
        if addresses.is_empty() {
            return Err(DocumentError::UnknownHost);
        }
        if !self.allow_private && addresses.iter().any(|address| !is_public(address.ip())) {
            return Err(DocumentError::PrivateAddress);
        }
        Ok(addresses)
    }
}

/// Asks the host at the addresses that were looked at, and nobody else: no proxy, no redirect.
async fn get(url: &Url, addresses: &[SocketAddr]) -> Result<Response, DocumentError> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .resolve_to_addrs(url.host_str().unwrap_or_default(), addresses)
        .build()
        .map_err(|_| DocumentError::Unreachable)?;
    let request = client.get(url.clone()).header("accept", "application/json");
    let response = request.send().await.map_err(|_| DocumentError::Unreachable)?;
    if response.status() != 200 {
        return Err(DocumentError::Status(response.status().as_u16()));
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    match kind.ends_with("/json") || kind.ends_with("+json") {
        true => Ok(response),
        false => Err(DocumentError::NotJson),
    }
}

async fn read(mut response: Response) -> Result<Vec<u8>, DocumentError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| DocumentError::Unreachable)? {
        if body.len() + chunk.len() > MAX_DOCUMENT_BYTES {
            return Err(DocumentError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The client that a document describes.
fn client(id: &str, url: &Url, body: &[u8]) -> Answer {
    if !jupyter_client::is_shallow_json(body) {
        return Err(DocumentError::NotJson);
    }
    let described: Description = serde_json::from_slice(body).map_err(|_| DocumentError::NotJson)?;
    if described.client_id.as_deref() != Some(id) {
        return Err(DocumentError::OtherId);
    }
    let method = described.token_endpoint_auth_method.as_deref();
    if method.is_some_and(|method| method != "none") {
        return Err(DocumentError::AuthMethod);
    }
    described
        .check()
        .map_err(|error| DocumentError::Description(error.to_string()))?;
    Ok(described.into_client(id, url.host_str().map(str::to_owned)))
}

/// Reads a document, and its text as the URL of one.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzz(body: &[u8]) {
    const ID: &str = "https://app.example.org/client.json";
    let documents = Documents::new(false);
    if let Ok(url) = documents.parse(ID)
        && let Ok(client) = client(ID, &url, body)
    {
        assert_eq!(client.id, ID);
    }
    if let Ok(Ok(url)) = std::str::from_utf8(body).map(|id| documents.parse(id)) {
        assert_eq!(url.scheme(), "https");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(id: &str) -> Option<DocumentError> {
        Documents::new(false).client(id).await.err()
    }

    #[tokio::test]
    async fn only_addresses_of_the_internet_are_asked() {
        for id in [
            "https://127.0.0.1/client.json",
            "https://[::1]/client.json",
            "https://[::ffff:127.0.0.1]/client.json",
            "https://169.254.169.254/latest/meta-data",
            "https://10.0.0.1:8443/client.json",
            "https://100.64.1.1/client.json",
        ] {
            let id = Url::parse(id).expect("a URL");
            assert_eq!(refusal(id.as_str()).await, Some(DocumentError::PrivateAddress), "{id}");
        }
    }

    #[tokio::test]
    async fn an_id_is_a_url_in_its_one_form() {
        for id in [
            "http://app.example.org/client.json",
            "https://app.example.org",
            "https://app.example.org/",
            "https://app.example.org/a/../client.json",
            "https://APP.example.org/client.json",
            "https://app.example.org:443/client.json",
            "https://ana@app.example.org/client.json",
            "https://app.example.org/client.json#x",
            "https://2130706433/client.json",
            "https://0x7f.1/client.json",
        ] {
            let refused = refusal(id).await;
            assert!(matches!(refused, Some(DocumentError::Url(_))), "{id}: {refused:?}");
        }
    }

    #[test]
    fn a_document_is_about_the_client_that_names_it() {
        let id = "https://app.example.org/client.json";
        let url = Url::parse(id).expect("a URL");
        let read = |document: serde_json::Value| client(id, &url, document.to_string().as_bytes());
        let redirect_uris = ["http://127.0.0.1/cb"];
        let good = serde_json::json!({ "client_id": id, "client_name": "App\u{7}", "redirect_uris": redirect_uris });
        let found = read(good.clone()).expect("a client");
        assert_eq!(
            (found.name.as_str(), found.host.as_deref()),
            ("App", Some("app.example.org"))
        );
        for (member, value, refused) in [
            (
                "client_id",
                "https://app.example.org/other.json".into(),
                DocumentError::OtherId,
            ),
            ("client_id", serde_json::Value::Null, DocumentError::OtherId),
            (
                "token_endpoint_auth_method",
                "private_key_jwt".into(),
                DocumentError::AuthMethod,
            ),
            ("redirect_uris", "x".into(), DocumentError::NotJson),
        ] {
            let mut bad = good.clone();
            bad[member] = value;
            assert_eq!(read(bad), Err(refused), "{member}");
        }
        let mut bad = good.clone();
        bad["redirect_uris"] = serde_json::json!(["javascript:alert(1)"]);
        assert!(matches!(read(bad), Err(DocumentError::Description(_))));
    }
}
