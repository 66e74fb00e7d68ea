//! Starting a server: the request, and the Hub's progress until the server is ready or has failed.

use std::{pin::pin, time::Duration};

use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};

use super::{Hub, HubError, HubName, unreachable};
use crate::{Secret, cut_middle, without_ansi};

/// The Hub answers a start at once, or when a spawner that is slow to begin has begun.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The Hub says something every eight seconds, if only that it is still there.
const QUIET_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause before the progress of a start is asked for, and again if the Hub has not begun with it.
const NOT_BEGUN_PAUSE: Duration = Duration::from_millis(200);
/// A start that the Hub has accepted has begun by then.
const BEGUN_WITHIN: Duration = Duration::from_secs(20);
/// Longest wait for the reason why a start has failed, which the Hub tells at once.
const FAILURE_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest event; spawners put whole log lines into them.
const MAX_EVENT_BYTES: usize = 256 * 1024;
/// Characters of a message that are of use to somebody.
const MAX_MESSAGE: usize = 1000;

/// Progress of a start, in the Hub's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnProgress {
    pub percent: Option<u8>,
    pub message: String,
}

#[derive(Debug, Deserialize)]
struct Event {
    #[serde(default)]
    progress: Option<f64>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    ready: bool,
    #[serde(default)]
    failed: bool,
}

/// The Hub's answer to a request to start a server.
enum Started {
    Ready,
    /// It is at it.
    Pending,
}

impl Hub {
    /// Starts a server and waits until it is ready. One that is running is ready; one that is being started is followed.
    pub async fn start(
        &self,
        token: &Secret,
        name: &HubName,
        told: &mpsc::Sender<SpawnProgress>,
    ) -> Result<(), HubError> {
        let mut asking = pin!(self.ask_to_start(token, name));
        // The Hub may hold back its answer until the server has nearly started, while it tells of progress.
        let mut following = Box::pin(self.follow(token, name, told));
        let (mut is_accepted, mut has_ended_early) = (false, false);
        loop {
            tokio::select! {
                started = &mut asking, if !is_accepted => match started {
                    Err(error @ HubError::Failed { .. }) => return Err(self.failure(token, name).await.unwrap_or(error)),
                    Err(error) => return Err(error),
                    Ok(Started::Ready) => return Ok(()),
                    Ok(Started::Pending) => {
                        is_accepted = true;
                        if std::mem::take(&mut has_ended_early) {
                            following = Box::pin(self.follow(token, name, told));
                        }
                    }
                },
                ended = &mut following, if !has_ended_early => match ended {
                    Ok(()) => return Ok(()),
                    // Perhaps the end of an earlier start, of which the Hub tells until this one has begun.
                    Err(_) if !is_accepted => has_ended_early = true,
                    // It starts all the same.
                    Err(HubError::Token { .. }) => return Err(HubError::Silent),
                    Err(error) => return Err(error),
                },
            }
        }
    }

    async fn ask_to_start(&self, token: &Secret, name: &HubName) -> Result<Started, HubError> {
        let request = self.request(Method::POST, &name.api_path(), token)?;
        let sent = self.send(request.timeout(START_TIMEOUT).json(&json!({}))).await;
        match sent {
            Ok(response) if response.status() == StatusCode::ACCEPTED => Ok(Started::Pending),
            Ok(_) => Ok(Started::Ready),
            Err(HubError::Refused { message }) if message.contains("already running") => Ok(Started::Ready),
            Err(error) => Err(error),
        }
    }

    /// Reason why a start has just failed. The Hub may answer it with no more than that there was an error, and tell the rest to
    /// whoever follows it.
    async fn failure(&self, token: &Secret, name: &HubName) -> Option<HubError> {
        let request = self
            .request(Method::GET, &format!("{}/progress", name.api_path()), token)
            .ok()?;
        let (told, _) = mpsc::channel(1);
        let following = async { follow_events(self.send(request).await.ok()?, &told).await.err() };
        let error = timeout(FAILURE_TIMEOUT, following).await.ok()??;
        matches!(error, HubError::Spawn(_)).then_some(error)
    }

    /// Follows a start to its end. The address is that of the model's `progress_url`, which the Hub makes of the same names.
    async fn follow(&self, token: &Secret, name: &HubName, told: &mpsc::Sender<SpawnProgress>) -> Result<(), HubError> {
        let until = Instant::now() + BEGUN_WITHIN + START_TIMEOUT;
        loop {
            sleep(NOT_BEGUN_PAUSE).await;
            let request = self.request(Method::GET, &format!("{}/progress", name.api_path()), token)?;
            match timeout(START_TIMEOUT, self.send(request)).await {
                Ok(Ok(response)) => return follow_events(response, told).await,
                // It has not begun, or the server is not known before it has.
                Ok(Err(HubError::Refused { .. } | HubError::NotFound)) if Instant::now() < until => {}
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(HubError::Timeout),
            }
        }
    }
}

async fn follow_events(mut response: Response, told: &mpsc::Sender<SpawnProgress>) -> Result<(), HubError> {
    let mut unread = Vec::new();
    loop {
        let chunk = timeout(QUIET_TIMEOUT, response.chunk()).await;
        let chunk = chunk
            .map_err(|_| HubError::Silent)?
            .map_err(|error| unreachable(&error))?;
        let Some(chunk) = chunk else {
            return Err(HubError::Silent);
        };
        unread.extend_from_slice(&chunk);
        while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = unread.drain(..=end).collect();
            let Some(event) = event(&line) else { continue };
            if event.failed {
                return Err(HubError::Spawn(readable(&event.message)));
            }
            if event.ready {
                return Ok(());
            }
            // Who does not listen fast enough misses something that the next message overtakes.
            let _ = told.try_send(event.into_progress());
        }
        if unread.len() > MAX_EVENT_BYTES {
            return Err(HubError::TooLarge);
        }
    }
}

/// The event of a line; anything else is a comment or keeps the connection alive.
fn event(line: &[u8]) -> Option<Event> {
    let data = line.strip_prefix(b"data:")?;
    serde_json::from_slice(data).ok()
}

impl Event {
    fn into_progress(self) -> SpawnProgress {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between 0 and 100"
        )]
        let percent = self.progress.map(|progress| progress.clamp(0.0, 100.0) as u8);
        SpawnProgress {
            percent,
            message: readable(&self.message),
        }
    }
}

/// A spawner's words, in which there may be anything.
fn readable(message: &str) -> String {
    let plain = without_ansi(message);
    cut_middle(plain.trim(), MAX_MESSAGE, "").text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_events_or_nothing() {
        let progress = event(b"data: {\"progress\": 40, \"message\": \" \\u001b[1mPulling\\u001b[0m \"}\n").unwrap();
        assert!(!progress.ready && !progress.failed);
        let told = progress.into_progress();
        assert_eq!((told.percent, told.message.as_str()), (Some(40), "Pulling"));
        let failed = event(b"data: {\"progress\": 100, \"failed\": true, \"message\": \"Spawn failed\"}\r\n").unwrap();
        assert!(failed.failed);
        for line in [&b"\n"[..], b": keep-alive\n", b"data: nonsense\n", b"event: x\n"] {
            assert!(event(line).is_none());
        }
        let odd = event(b"data: {\"progress\": -3.5, \"message\": \"\"}\n").unwrap();
        assert_eq!(odd.into_progress().percent, Some(0));
    }
}
