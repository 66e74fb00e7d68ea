//! A browser: cookies, redirects and forms, and nothing else.

use std::collections::HashMap;

use regex::Regex;
use reqwest::{
    Client, Response, StatusCode,
    header::{HeaderMap, LOCATION},
    redirect::Policy,
};
use url::Url;

use super::CALLBACK;

pub struct Browser(Client);

/// The page at which a browser ends.
#[derive(Debug)]
pub enum Page {
    /// The client's redirect URI, with the answer in its query.
    Answer(HashMap<String, String>),
    Html(HtmlPage),
}

/// A page that was shown.
#[derive(Debug)]
pub struct HtmlPage {
    pub url: Url,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub html: String,
}

impl Page {
    #[track_caller]
    pub fn answer(self) -> HashMap<String, String> {
        match self {
            Self::Answer(answer) => answer,
            Self::Html(shown) => panic!("no answer but {}: {}", shown.url, shown.html),
        }
    }

    #[track_caller]
    pub fn shown(self) -> HtmlPage {
        match self {
            Self::Html(shown) => shown,
            Self::Answer(answer) => panic!("no page but {answer:?}"),
        }
    }
}

impl HtmlPage {
    /// Where its form goes.
    pub fn action(&self) -> Url {
        let action = Regex::new("<form[^>]* action=\"([^\"]*)\"").expect("a pattern");
        let action = &action
            .captures(&self.html)
            .unwrap_or_else(|| panic!("no form: {}", self.html))[1];
        self.url.join(&action.replace("&amp;", "&")).expect("a URL")
    }

    /// The hidden fields of its form, and the boxes that are ticked.
    pub fn fields(&self) -> Vec<(String, String)> {
        let input = Regex::new("<input type=\"(?:hidden|checkbox)\" name=\"([^\"]+)\" value=\"([^\"]*)\"");
        let found = input.expect("a pattern");
        let found = found.captures_iter(&self.html);
        found.map(|field| (field[1].to_owned(), field[2].to_owned())).collect()
    }
}

impl Browser {
    pub fn new() -> Self {
        crate::support::jupyter::install_tls();
        let client = Client::builder().cookie_store(true).redirect(Policy::none()).no_proxy();
        Self(client.build().expect("a client"))
    }

    /// Goes to a URL, and wherever it leads to.
    pub async fn open(&self, url: &str) -> Page {
        let url = Url::parse(url).expect("a URL");
        let answer = self.0.get(url.clone()).send().await.expect("an answer");
        self.follow(url, answer).await
    }

    /// Sends the form of a page, with more fields.
    pub async fn submit(&self, page: &HtmlPage, more: &[(&str, &str)]) -> Page {
        let mut fields = page.fields();
        fields.extend(
            more.iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        self.post(&page.action(), &fields, None).await
    }

    /// Sends a form, as from a page of an origin.
    pub async fn post(&self, url: &Url, fields: &[(String, String)], origin: Option<&str>) -> Page {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let mut request = self.0.post(url.clone()).body(body);
        request = request.header("content-type", "application/x-www-form-urlencoded");
        let own = url.origin().ascii_serialization();
        request = request.header("origin", origin.unwrap_or(&own));
        let answer = request.send().await.expect("an answer");
        self.follow(url.clone(), answer).await
    }

    async fn follow(&self, mut url: Url, mut answer: Response) -> Page {
        for _ in 0..20 {
            if !answer.status().is_redirection() {
                return Page::Html(HtmlPage {
                    url,
                    status: answer.status(),
                    headers: answer.headers().clone(),
                    html: answer.text().await.expect("text"),
                });
            }
            let location = answer.headers()[LOCATION].to_str().expect("text");
            url = url.join(location).expect("a URL");
            if url.as_str().starts_with(CALLBACK) {
                return Page::Answer(url.query_pairs().into_owned().collect());
            }
            answer = self.0.get(url.clone()).send().await.expect("an answer");
        }
        panic!("redirected again and again: {url}");
    }

    /// Where a URL redirects to.
    pub async fn first_redirect(&self, url: &str) -> String {
        let answer = self.0.get(url).send().await.expect("an answer");
        answer.headers()[LOCATION].to_str().expect("text").to_owned()
    }

    /// Logs in at the provider or the Hub, and stops at the gateway's page or wherever else it ends.
    pub async fn log_in(&self, url: &str, account: &str) -> Page {
        let mut page = self.open(url).await;
        // Pages that come again are those of a login that fails.
        for _ in 0..10 {
            let Page::Html(shown) = &page else { return page };
            let filled: &[(&str, &str)] = match shown.url.path() {
                path if path.starts_with("/interaction/") => &[("login", account), ("password", "x")],
                "/hub/login" => &[("username", account), ("password", "x")],
                "/hub/api/oauth2/authorize" if shown.status == StatusCode::OK => &[],
                _ => return page,
            };
            page = self.submit(shown, filled).await;
        }
        panic!("the login comes to no end: {page:?}");
    }

    /// Logs in and allows what is asked for.
    pub async fn allow(&self, url: &str, account: &str) -> HashMap<String, String> {
        let consent = self.log_in(url, account).await.shown();
        self.submit(&consent, &[("decision", "allow")]).await.answer()
    }
}
