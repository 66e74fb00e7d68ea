//! Pages that follow what goes on: their parts are made anew every moment, and those that are different are sent.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use bytes::Bytes;
use maud::{Markup, html};
use serde_json::json;
use tokio::{sync::mpsc, time::sleep};

use super::{Page, Reply, desk::Desk, document, overview, reply, run};
use crate::audit::{Decision, Outcome};

/// Time between two looks.
const PACE: Duration = Duration::from_millis(1_500);
/// Looks without news after which a comment is sent: proxies close silent connections.
const SILENCE: u32 = 10;
/// Parts that wait for a slow browser.
const QUEUE: usize = 8;

/// A part of a page that is kept up to date.
pub(super) struct Part {
    pub(super) id: &'static str,
    pub(super) content: Markup,
    /// A sentence for those who cannot see that something has changed; empty for what needs none.
    pub(super) news: String,
}

impl Part {
    pub(super) fn new(id: &'static str, content: Markup) -> Self {
        Self {
            id,
            content,
            news: String::new(),
        }
    }

    /// The part in its place.
    pub(super) fn region(&self) -> Markup {
        html! { div.part id=(self.id) data-version=(self.version()) data-news=(self.news) { (self.content) } }
    }

    fn version(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.content.0.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    fn event(&self) -> Bytes {
        let (version, html) = (self.version(), &self.content.0);
        let data = json!({ "id": self.id, "version": version, "html": html, "news": self.news });
        format!("event: part\ndata: {data}\n\n").into()
    }
}

/// Follows a page until the browser leaves, the session ends or the gateway does.
pub(super) fn follow(desk: &Desk, page: Page) -> Reply {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let services = &desk.console.services;
    let (leaving, revoked) = (services.last_call.clone(), desk.visitor.principal.revoked().clone());
    let desk = desk.clone();
    services.background.spawn(async move {
        let place = page.place();
        let (server, path) = place.map_or(("", ""), |place| (&place.server, &place.path));
        let record = desk.recorded(server, path);
        tokio::select! {
            () = send(&desk, &page, &sender) => {}
            () = sender.closed() => {}
            () = leaving.cancelled() => {}
            () = revoked.cancelled() => {}
        }
        if let Some(record) = record {
            record.end(Decision::Allowed, Outcome::Completed);
        }
    });
    reply::live(receiver)
}

async fn send(desk: &Desk, page: &Page, sender: &mpsc::Sender<Bytes>) {
    let mut sent: HashMap<&'static str, String> = HashMap::new();
    let mut silent = 0;
    while desk.console.sessions.goes_on(&desk.visitor.session).await {
        let mut events: Vec<Bytes> = Vec::new();
        for part in Box::pin(parts(desk, page)).await {
            let version = part.version();
            if sent.insert(part.id, version.clone()).as_ref() != Some(&version) {
                events.push(part.event());
            }
        }
        silent = if events.is_empty() { silent + 1 } else { 0 };
        if silent >= SILENCE {
            silent = 0;
            events.push(Bytes::from_static(b": still here\n\n"));
        }
        for event in events {
            if sender.send(event).await.is_err() {
                return;
            }
        }
        sleep(PACE).await;
    }
    // Whoever gets this gives way to the login form, and is not left with what they may no longer see.
    let _ = sender.send(Bytes::from_static(b"event: over\ndata: {}\n\n")).await;
}

async fn parts(desk: &Desk, page: &Page) -> Vec<Part> {
    match page {
        Page::Overview => Box::pin(overview::parts(desk)).await,
        Page::Document(place, chosen) => document::parts(desk, place, chosen.as_deref()).await,
        Page::Run(id) => run::parts(desk, id).await,
        Page::Connect | Page::Fork(..) | Page::Audit => Vec::new(),
    }
}
