//! # jupyter-mcp-gateway: the map
//!
//! One MCP endpoint for any number of agents, in front of any number of Jupyter servers.
//!
//! ```text
//! agents ──/mcp──▶ http ▶ auth ▶ mcp ▶ tools, resources ▶ jupyter ──REST──▶ Jupyter A, B, C
//!                                 │                  ├▶ pool ▶ room ═══ws══▶
//!                                 │                  └▶ execution ▶ kernel ═══ws══▶
//!                                 └ events (resumable streams), store (SQLite)
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
//! | 5 | [`execution`] | what runs: queues, kernels, outputs on their way into notebooks, records |
//! | 6 | [`pool`] | open rooms by server and path: leases, idle closing, limits |
//! | 7 | [`jupyter`], [`events`], [`auth`], [`srcbook`] | Jupyter's REST API and rooms; the event store; principals and their rules; notebooks as markdown |
//! | 8 | [`store`] | what outlives the process: executions; the only place that knows sqlx |
//! | 9 | [`telemetry`] | logs, traces, metrics |
//! | 10 | [`config`] | settings, their defaults, and what is refused |
//! | 11 | [`error`], [`types`] | kinds of failure; paths, permissions, toolsets, states of executions |
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
//! - An execution ends in exactly one of its states, and nothing that was sent to a kernel is sent twice.
//! - Tokens, cell sources and outputs are in no log, span or metric.

pub mod app;
pub mod auth;
pub mod cli;
pub mod config;
pub mod error;
pub mod events;
pub mod execution;
pub mod http;
pub mod jupyter;
pub mod mcp;
pub mod pool;
pub mod prompts;
pub mod resources;
pub mod srcbook;
pub mod store;
pub mod telemetry;
pub mod tools;
pub mod types;
