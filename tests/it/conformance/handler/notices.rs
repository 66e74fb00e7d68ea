//! Owns the tools that notify while they run: log messages, progress, changed lists.

#![expect(deprecated, reason = "SEP-2577 deprecates logging, both revisions still test it")]

use std::{sync::PoisonError, time::Duration};

use rmcp::{RoleServer, model::*, service::RequestContext, tool, tool_router};

use super::{ConformanceHandler, is_modern, say};

/// The suite asks for about this much time between two notices, so that none are merged.
const PAUSE: Duration = Duration::from_millis(50);

#[tool_router(router = notice_tools, vis = "pub(super)")]
impl ConformanceHandler {
    #[tool(
        name = "test_tool_with_logging",
        description = "Sends three log messages while it runs"
    )]
    async fn tool_with_logging(&self, context: RequestContext<RoleServer>) -> CallToolResult {
        self.log(&context, "Tool execution started").await;
        tokio::time::sleep(PAUSE).await;
        self.log(&context, "Tool processing data").await;
        tokio::time::sleep(PAUSE).await;
        self.log(&context, "Tool execution completed").await;
        say("Logging test completed")
    }

    #[tool(name = "test_logging_tool", description = "Logs only if the request asked for logs")]
    async fn logging_tool(&self, context: RequestContext<RoleServer>) -> CallToolResult {
        self.log(&context, "The request asked for logs").await;
        say("Logging tool completed")
    }

    #[tool(
        name = "test_tool_with_progress",
        description = "Reports progress three times while it runs"
    )]
    async fn tool_with_progress(&self, context: RequestContext<RoleServer>) -> CallToolResult {
        report_progress(&context, 0.0).await;
        tokio::time::sleep(PAUSE).await;
        report_progress(&context, 50.0).await;
        tokio::time::sleep(PAUSE).await;
        report_progress(&context, 100.0).await;
        say("Progress test completed")
    }

    #[tool(
        name = "test_trigger_tool_change",
        description = "Tells subscribers that the list of tools changed"
    )]
    async fn trigger_tool_change(&self) -> CallToolResult {
        self.shared.subscriptions.tools_changed().await;
        say("Subscribers were told that tools changed")
    }

    #[tool(
        name = "test_trigger_prompt_change",
        description = "Tells subscribers that the list of prompts changed"
    )]
    async fn trigger_prompt_change(&self) -> CallToolResult {
        self.shared.subscriptions.prompts_changed().await;
        say("Subscribers were told that prompts changed")
    }

    /// Sends an `info` message if the client wants to hear it.
    async fn log(&self, context: &RequestContext<RoleServer>, text: &str) {
        let Some(threshold) = self.log_threshold(context) else {
            return;
        };
        if (threshold as u8) > (LoggingLevel::Info as u8) {
            return;
        }
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, text.into()).with_logger("conformance");
        // A client that went away does not make the call fail.
        let _ = context.peer.notify_logging_message(message).await;
    }

    /// A modern request that names no level must get no messages at all. A legacy session always
    /// has a level.
    fn log_threshold(&self, context: &RequestContext<RoleServer>) -> Option<LoggingLevel> {
        if is_modern(context) {
            return context.meta.log_level();
        }
        let level = self.session_log_level.lock().unwrap_or_else(PoisonError::into_inner);
        Some(*level)
    }
}

/// Reports how much of 100 is done, if the client gave a token to report it under.
async fn report_progress(context: &RequestContext<RoleServer>, progress: f64) {
    let Some(token) = context.meta.get_progress_token() else {
        return;
    };
    let report = ProgressNotificationParam::new(token, progress).with_total(100.0);
    // A client that went away does not make the call fail.
    let _ = context.peer.notify_progress(report).await;
}
