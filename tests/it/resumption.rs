//! A client that loses its connection in the middle of a call and returns gets everything it missed,
//! once, and the result.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ProgressNotificationParam,
        ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::{
    Agent, Era, Gateway, eventually,
    wire::{Event, Events},
};

/// A tool that reports progress step by step, each step when the test says so, then its result.
#[derive(Clone)]
struct Stepwise {
    steps: Arc<Semaphore>,
}

const STEPS: u32 = 6;

impl Stepwise {
    async fn wait_for_step(&self) {
        self.steps.acquire().await.expect("it is never closed").forget();
    }
}

impl ServerHandler for Stepwise {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let token = context
            .meta
            .get_progress_token()
            .ok_or_else(|| ErrorData::invalid_params("no token", None))?;
        for step in 1..=STEPS {
            self.wait_for_step().await;
            let progress = ProgressNotificationParam::new(token.clone(), f64::from(step));
            context
                .peer
                .notify_progress(progress)
                .await
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        self.wait_for_step().await;
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
    }
}

struct SteppedCall {
    gateway: Gateway,
    agent: Agent,
    tool: Stepwise,
}

impl SteppedCall {
    async fn open() -> Self {
        Self::with("").await
    }

    async fn with(settings: &str) -> Self {
        let tool = Stepwise {
            steps: Arc::new(Semaphore::new(0)),
        };
        let factory = {
            let tool = tool.clone();
            move || tool.clone()
        };
        let gateway = Gateway::around(settings, factory, |router| router).await;
        let agent = Agent::connect(&gateway, Era::Legacy).await;
        Self { gateway, agent, tool }
    }

    async fn start_call(&self) -> Events {
        let params = json!({ "name": "stepwise", "arguments": {}, "_meta": { "progressToken": "p" } });
        Events::new(self.agent.start(7, "tools/call", params).await)
    }

    fn step(&self) {
        self.tool.steps.add_permits(1);
    }

    /// Lets the tool run to its end.
    fn run_to_the_end(&self) {
        for _ in 0..=STEPS {
            self.step();
        }
    }

    async fn resume(&self, event: &Event) -> Events {
        let response = self.agent.listen(event.id.as_deref()).await;
        assert_eq!(response.status(), 200);
        Events::new(response)
    }
}

fn progress_of(message: &Value) -> Option<f64> {
    message["params"]["progress"].as_f64()
}

/// Reads to the end and returns the steps seen and the result.
async fn rest(events: &mut Events) -> (Vec<f64>, Option<Value>) {
    let (mut steps, mut result) = (Vec::new(), None);
    while let Some((_, message)) = events.next_message().await {
        match progress_of(&message) {
            Some(step) => steps.push(step),
            None => {
                assert!(result.is_none(), "a second result");
                result = Some(message);
            }
        }
    }
    (steps, result)
}

#[tokio::test]
async fn a_stream_begins_with_an_event_to_resume_from_and_ids_are_unguessable() {
    let scene = SteppedCall::open().await;
    let mut first = scene.start_call().await;
    let mut second = scene.start_call().await;
    let (first, second) = (first.next().await.unwrap(), second.next().await.unwrap());
    let (first, second) = (first.id.expect("an id"), second.id.expect("an id"));
    assert!(first.len() >= 32 && second.len() >= 32);
    assert_ne!(
        first.split('-').next(),
        second.split('-').next(),
        "nothing in one tells another"
    );
}

#[tokio::test]
async fn who_drops_in_the_middle_and_returns_misses_nothing() {
    let scene = SteppedCall::open().await;
    let mut events = scene.start_call().await;
    scene.step();
    scene.step();
    let (_, one) = events.next_message().await.unwrap();
    let (seen, two) = events.next_message().await.unwrap();
    assert_eq!((progress_of(&one), progress_of(&two)), (Some(1.0), Some(2.0)));
    drop(events);
    scene.step();
    scene.step();
    let mut resumed = scene.resume(&seen).await;
    let (_, three) = resumed.next_message().await.unwrap();
    assert_eq!(
        progress_of(&three),
        Some(3.0),
        "what came while away, the named event not again"
    );
    scene.run_to_the_end();
    let (steps, result) = rest(&mut resumed).await;
    assert_eq!(steps, [4.0, 5.0, 6.0]);
    assert_eq!(result.unwrap()["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn a_result_that_came_meanwhile_is_kept() {
    let scene = SteppedCall::open().await;
    let mut events = scene.start_call().await;
    let primed = events.next().await.unwrap();
    drop(events);
    scene.run_to_the_end();
    for _ in 0..2 {
        let (steps, result) = rest(&mut scene.resume(&primed).await).await;
        assert_eq!(steps, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "however often it is asked for");
        assert_eq!(result.unwrap()["id"], 7);
    }
}

#[tokio::test]
async fn a_cut_connection_at_every_event_still_gives_each_once() {
    let scene = SteppedCall::open().await;
    let mut events = scene.start_call().await;
    let mut last = events.next().await.unwrap();
    drop(events);
    let mut steps = Vec::new();
    for _ in 0..STEPS {
        let mut resumed = scene.resume(&last).await;
        scene.step();
        let (event, message) = resumed.next_message().await.unwrap();
        steps.extend(progress_of(&message));
        last = event;
    }
    scene.step();
    let (more, result) = rest(&mut scene.resume(&last).await).await;
    assert_eq!(steps, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert!(more.is_empty() && result.is_some());
}

#[tokio::test]
async fn unknown_and_foreign_events_do_not_exist() {
    let scene = SteppedCall::open().await;
    let mut events = scene.start_call().await;
    let primed = events.next().await.unwrap();
    let other = Agent::connect(&scene.gateway, Era::Legacy).await;
    for id in [
        primed.id.as_deref().unwrap(),
        "0",
        "no-such-event",
        "00000000000000000000000000000000-0",
        "",
    ] {
        assert_eq!(other.listen(Some(id)).await.status(), 404, "{id:?} in another session");
    }
    let future = primed.id.as_deref().unwrap().replace("-0", "-99");
    assert_eq!(
        scene.agent.listen(Some(&future)).await.status(),
        404,
        "an event that is yet to come"
    );
}

#[tokio::test]
async fn a_reader_who_stalls_holds_up_nobody() {
    let scene = SteppedCall::open().await;
    let stalled = scene.start_call().await;
    scene.run_to_the_end();
    let answered = tokio::time::timeout(Duration::from_secs(5), scene.agent.request("ping", json!({}))).await;
    assert!(answered.is_ok(), "the session goes on");
    drop(stalled);
}

#[tokio::test]
async fn a_cancelled_request_ends_its_stream() {
    let scene = SteppedCall::open().await;
    let mut events = scene.start_call().await;
    events.next().await.unwrap();
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    assert_eq!(scene.agent.send(cancel).await.status(), 202);
    let ended = tokio::time::timeout(Duration::from_secs(5), rest(&mut events)).await;
    assert!(ended.expect("the stream ends").1.is_none(), "without a result");
}

#[tokio::test]
async fn a_cancelled_request_no_longer_keeps_its_session() {
    let scene = SteppedCall::with("mcp.session_idle_timeout = \"200ms\"").await;
    let mut events = scene.start_call().await;
    events.next().await.unwrap();
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    assert_eq!(scene.agent.send(cancel).await.status(), 202);
    // Longer than a session may be idle. Asking meanwhile would keep it alive.
    tokio::time::sleep(Duration::from_millis(1000)).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 8, "method": "ping" });
    assert_eq!(scene.agent.send(ping).await.status(), 404);
}

#[tokio::test]
async fn closing_a_session_ends_its_streams() {
    let scene = SteppedCall::open().await;
    let mut events = scene.start_call().await;
    events.next().await.unwrap();
    let mut unasked = Events::new(scene.agent.listen(None).await);
    scene.agent.close().await;
    eventually("both streams end", async || {
        (events.next_message().await.is_none() && unasked.next_message().await.is_none()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_call_that_is_silent_for_long_keeps_its_session() {
    let scene = SteppedCall::with("mcp.session_idle_timeout = \"200ms\"").await;
    let mut events = scene.start_call().await;
    events.next().await.unwrap();
    // Longer than a session may be idle.
    tokio::time::sleep(Duration::from_millis(1000)).await;
    scene.run_to_the_end();
    let (steps, result) = rest(&mut events).await;
    assert_eq!(steps.len(), 6);
    assert!(result.is_some());
}

#[tokio::test]
async fn more_events_than_are_kept_lose_the_oldest_and_never_the_result() {
    let scene = SteppedCall::with("events.max_events_per_stream = 3").await;
    let mut events = scene.start_call().await;
    let primed = events.next().await.unwrap();
    drop(events);
    scene.run_to_the_end();
    let (steps, result) = rest(&mut scene.resume(&primed).await).await;
    assert_eq!(steps, [5.0, 6.0]);
    assert!(result.is_some());
}

#[tokio::test]
async fn while_it_leaves_a_gateway_finishes_calls_and_says_it_is_unready() {
    let scene = SteppedCall::open().await;
    let mut events = scene.start_call().await;
    events.next().await.unwrap();
    scene.gateway.drain().start();
    let unready = crate::support::wire::get(&scene.gateway, "/readyz").await;
    assert_eq!(
        (unready.status.as_u16(), unready.json()["status"].as_str()),
        (503, Some("draining"))
    );
    scene.run_to_the_end();
    let (steps, result) = rest(&mut events).await;
    assert_eq!(steps.len(), 6);
    assert!(result.is_some(), "the call was finished");
    scene.gateway.gone().await;
}
