//! A person's browser at the gateway's page, as far as it needs no script: it keeps cookies, follows redirects and sends
//! the forms that pages have.

use std::collections::HashMap;

use reqwest::{Client, RequestBuilder, Response, StatusCode, header::HeaderMap};
use url::form_urlencoded;

use super::{TIMEOUT, within};

pub struct Browser {
    http: Client,
    base: String,
}

/// A page as it came.
pub struct Page {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub html: String,
    pub url: String,
}

/// A form of a page.
pub struct Form {
    pub action: String,
    /// The fields that it has from the beginning.
    pub fields: HashMap<String, String>,
}

impl Browser {
    /// A browser in front of a gateway at a base URL without a slash at its end.
    pub fn at(base: &str) -> Self {
        Self {
            http: Client::builder().cookie_store(true).build().expect("a client"),
            base: base.to_owned(),
        }
    }

    /// The same, logged in.
    pub async fn logged_in(base: &str, token: &str) -> Self {
        let browser = Self::at(base);
        let page = browser.log_in(token).await;
        assert_eq!(page.status, 200, "{}", page.html);
        browser
    }

    pub async fn log_in(&self, token: &str) -> Page {
        let front = self.get("/").await;
        self.submit(&front, "console/login", &[("token", token)]).await
    }

    pub async fn get(&self, path: &str) -> Page {
        let request = self.http.get(format!("{}{path}", self.base));
        page(within(TIMEOUT, path, request.send()).await.expect("an answer")).await
    }

    /// Begins to follow a page.
    pub async fn follow(&self, path: &str) -> Response {
        let request = self.http.get(format!("{}{path}", self.base));
        within(TIMEOUT, path, request.send()).await.expect("an answer")
    }

    /// Sends a form of a page, filled in.
    pub async fn submit(&self, from: &Page, action: &str, filled: &[(&str, &str)]) -> Page {
        let form = from.form(action);
        let is_given = |name: &String| filled.iter().any(|(given, _)| given == name);
        let kept = form.fields.iter().filter(|(name, _)| !is_given(name));
        let mut fields: Vec<(&str, &str)> = kept.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        fields.extend(filled);
        let to = url::Url::parse(&from.url)
            .expect("a URL")
            .join(&form.action)
            .expect("a URL");
        self.post(to.path(), &fields).await
    }

    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let request = form(self.http.post(format!("{}{path}", self.base)), fields);
        page(within(TIMEOUT, path, request.send()).await.expect("an answer")).await
    }

    /// The page of a document, with more in its query.
    pub async fn document(&self, path: &str, more: &str) -> Page {
        self.get(&format!("/console/document?server=lab&path={path}{more}"))
            .await
    }
}

/// A request that sends a form.
pub fn form(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let body = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body)
}

async fn page(response: Response) -> Page {
    let (status, headers, url) = (
        response.status(),
        response.headers().clone(),
        response.url().to_string(),
    );
    let html = within(TIMEOUT, "the page", response.text()).await.expect("a page");
    Page {
        status,
        headers,
        html,
        url,
    }
}

impl Page {
    pub fn shows(&self, text: &str) -> bool {
        self.html.contains(text)
    }

    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    pub fn forms(&self) -> Vec<Form> {
        let forms = self.html.split("<form").skip(1);
        forms
            .map(|form| Form::of(form.split("</form>").next().unwrap_or_default()))
            .collect()
    }

    /// A form by the end of its action.
    pub fn form(&self, action: &str) -> Form {
        let found = self.forms().into_iter().find(|form| form.action.ends_with(action));
        found.unwrap_or_else(|| panic!("no form {action}: {}", self.html))
    }

    /// The value of the first field of a name.
    pub fn value(&self, name: &str) -> String {
        let fields = self.html.split("<input").skip(1);
        let found = fields.filter_map(|field| field.split('>').next());
        let mut found = found.filter(|field| attribute(field, "name").as_deref() == Some(name));
        found
            .next()
            .and_then(|field| attribute(field, "value"))
            .unwrap_or_default()
    }

    /// The addresses of links that have this in them, as they stand.
    pub fn links(&self, part: &str) -> Vec<String> {
        let hrefs = self.html.split("href=\"").skip(1);
        let hrefs = hrefs.filter_map(|rest| rest.split('"').next());
        hrefs.map(unescaped).filter(|href| href.contains(part)).collect()
    }

    /// The address to which a link leads, as a path.
    pub fn path_of(&self, link: &str) -> String {
        let to = url::Url::parse(&self.url).expect("a URL").join(link).expect("a URL");
        match to.query() {
            Some(query) => format!("{}?{query}", to.path()),
            None => to.path().to_owned(),
        }
    }
}

impl Form {
    /// Its fields with others.
    pub fn with<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let own = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        own.chain(more.iter().copied()).collect()
    }

    fn of(html: &str) -> Self {
        let inputs = html.split("<input").skip(1).filter_map(|input| {
            let input = input.split('>').next()?;
            let is_box = attribute(input, "type") == Some("checkbox".to_owned());
            (!is_box).then_some(())?;
            Some((attribute(input, "name")?, attribute(input, "value").unwrap_or_default()))
        });
        Self {
            action: attribute(html, "action").expect("an action"),
            fields: inputs.collect(),
        }
    }
}

fn attribute(html: &str, name: &str) -> Option<String> {
    let (_, rest) = html.split_once(&format!(" {name}=\""))?;
    rest.split('"').next().map(unescaped)
}

fn unescaped(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}
