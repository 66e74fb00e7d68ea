//! # jupyter-mcp-gateway: the map
//!
//! One MCP endpoint for any number of agents, in front of any number of Jupyter servers.
//!
//! ```text
//! agents ──/mcp──▶ http ▶ auth ▶ mcp ▶ tools, resources ▶ jupyter ──REST──▶ Jupyter A, B, C
//!                                 │                  └▶ pool ▶ room ═══ws══▶
//!                                 └ events (resumable streams)
//! ```
//!
//! ## Layers, from the top. A module imports only from rows below its own.
//!
//! | row | modules | what they own |
//! | --- | --- | --- |
//! | 1 | [`cli`], [`app`] | the composition root: config, build, serve, drain; the JupyterLab of `--with-jupyter` |
//! | 2 | [`http`] | sockets, the stack of layers, health, metrics; the only place that knows axum |
//! | 3 | [`mcp`] | the protocol in both eras, sessions, the catalogue; knows rmcp (with `events`) |
//! | 4 | [`tools`], [`resources`], [`prompts`] | what an agent can do: plain async functions on a context; what it can browse and watch; what it can be told to do |
//! | 5 | [`pool`] | open rooms by server and path: leases, idle closing, limits |
//! | 6 | [`jupyter`], [`events`], [`auth`], [`srcbook`] | Jupyter's REST API and rooms; the event store; principals and their rules; notebooks as markdown |
//! | 7 | [`telemetry`] | logs, traces, metrics |
//! | 8 | [`config`] | settings, their defaults, and what is refused |
//! | 9 | [`error`], [`types`] | kinds of failure; paths, permissions, toolsets |
//!
//! A test walks `src/` and checks this table.
//!
//! ## Invariants
//!
//! - A [`types::DocPath`] has one spelling per file; access rules see nothing else.
//! - Every request behind the edge has a caller; its selection narrows what its token allows.
//! - A session, an event id and an open stream belong to the principal that made them; for anybody
//!   else they do not exist.
//! - What a client reads of a failure is the `Display` of an [`error::ClientError`]; everything else
//!   is a fixed text and a log line.
//! - Tokens, cell sources and outputs are in no log, span or metric.

pub mod app;
pub mod auth;
pub mod cli;
pub mod config;
pub mod error;
pub mod events;
pub mod http;
pub mod jupyter;
pub mod mcp;
pub mod pool;
pub mod prompts;
pub mod resources;
pub mod srcbook;
pub mod telemetry;
pub mod tools;
pub mod types;
