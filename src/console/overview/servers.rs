//! Servers up or down. A look at one is kept for a moment and renewed behind the page, so that a server that hangs does not
//! hold up what is shown of the others.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::join_all;
use jupyter_client::JupyterServer;
use maud::html;
use parking_lot::Mutex;
use tokio_util::task::TaskTracker;

use crate::console::{
    desk::Desk,
    live::Part,
    markup::{Tone, nothing, state},
};

/// Time for which a look is new.
const FRESH_FOR: Duration = Duration::from_secs(5);

/// The last look at each server, by its name.
#[derive(Clone, Default)]
pub(in crate::console) struct ServerLooks {
    looks: Arc<Mutex<HashMap<String, Look>>>,
}

#[derive(Clone)]
struct Look {
    since: Instant,
    found: Found,
}

/// The version of a server, or why it cannot be used.
type Found = Result<String, String>;

impl ServerLooks {
    async fn of(&self, server: &Arc<JupyterServer>, background: &TaskTracker) -> Found {
        let known = self.looks.lock().get(server.name()).cloned();
        let Some(known) = known else {
            return self.look(server).await;
        };
        if known.since.elapsed() >= FRESH_FOR {
            // Marked as new at once, so that others do not look too.
            self.keep(server, known.found.clone());
            let (looks, server) = (self.clone(), Arc::clone(server));
            background.spawn(async move { drop(looks.look(&server).await) });
        }
        known.found
    }

    async fn look(&self, server: &JupyterServer) -> Found {
        let status = server.status().await;
        let found = status.map(|status| status.version).map_err(|error| error.to_string());
        self.keep(server, found.clone());
        found
    }

    fn keep(&self, server: &JupyterServer, found: Found) {
        let since = Instant::now();
        self.looks
            .lock()
            .insert(server.name().to_owned(), Look { since, found });
    }
}

pub(super) async fn part(desk: &Desk) -> Part {
    let (looks, background) = (&desk.console.looks, &desk.console.services.background);
    let servers = desk.scope.servers();
    let found = join_all(servers.iter().map(|server| looks.of(server, background))).await;
    let down = found.iter().filter(|found| found.is_err()).count();
    let content = html! {
        section aria-labelledby="servers-head" {
            div.head { h2 #servers-head { "Servers" } }
            @if servers.is_empty() { (nothing("Your tenant has no servers.")) }
            @else { p.quiet { "Jupyter may ask for a login of its own." } }
            ul.servers {
                @for (server, found) in servers.iter().zip(&found) {
                    li {
                        div.head {
                            a href=(server.public_base_url()) target="_blank" rel="noopener noreferrer" {
                                (server.name()) span.hidden { " (opens Jupyter)" }
                            }
                            @match found {
                                Ok(_) => { (state("up", Tone::Good)) }
                                Err(_) => { (state("down", Tone::Bad)) }
                            }
                        }
                        @match found {
                            Ok(version) => { p.quiet { "Jupyter Server " (version) } }
                            Err(error) => { p.problem { (error) } }
                        }
                    }
                }
            }
        }
    };
    Part {
        news: match down {
            0 => "All servers are up".to_owned(),
            down => format!("{down} of {} servers down", servers.len()),
        },
        ..Part::new("servers", content)
    }
}
