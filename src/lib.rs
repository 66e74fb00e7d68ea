//! # jupyter-mcp-gateway: the map
//!
//! One MCP endpoint for any number of agents, in front of any number of Jupyter servers.
//!
//! ```text
//! agents ──/mcp──▶ http ▶ auth ▶ mcp ▶ tools, resources ▶ jupyter_client ──REST──▶ Jupyter A, B, C
//!                                 │                  ├▶ live_document ═══ws══▶
//!                                 │                  └▶ executor ▶ kernels ═══ws══▶
//!                                 └ events (resumable streams), store (SQLite, PostgreSQL)
//! ```
//!
//! ## Layers, from the top. A module imports only from rows below its own.
//!
//! | row | modules | what they own |
//! | --- | --- | --- |
//! | 1 | [`cli`], then [`app`] | the composition root: config, build, serve, drain; the JupyterLab of `--with-jupyter`; then `fuzzing`, in builds for tests and fuzzers |
//! | 2 | [`http`] | sockets, the stack of layers, health, metrics; knows axum (with `app`) and hyper |
//! | 3 | [`console`] | the page for people: what goes on, and what they may do about it; it calls tools as agents do |
//! | 4 | [`mcp`] | the protocol in both eras, sessions, the catalogue; knows rmcp (with `events`; `http` and `app` know its handler trait) |
//! | 5 | [`tools`], [`resources`], [`prompts`] | what an agent can do: plain async functions on a context; what it can browse and watch; what it can be told to do |
//! | 6 | [`audit`], [`activity`], [`approvals`], [`forks`] | a record of every call; what agents and people do, and mentions of agents; calls that wait for a person; copies of documents, and how they are taken over |
//! | 7 | [`events`], [`mod@history`], [`auth`], [`limits`], [`srcbook`], [`skills`] | the event log; the versions of documents; principals and their rules; how much they may ask; notebooks as markdown; know-how for agents |
//! | 8 | [`telemetry`] | logs, traces, metrics |
//! | 9 | [`config`] | settings, their defaults, and what is refused |
//! | 10 | [`error`], [`types`] | kinds of failure; permissions, toolsets |
//!
//! Below them are the libraries under `crates/`, which know nothing of MCP:
//!
//! | crate | what it owns |
//! | --- | --- |
//! | [`executor`] | what runs: queues, kernels, outputs on their way into notebooks, records |
//! | [`live_document`] | documents shared with people: the model, edits, recovery, presence, the pool of open rooms; the only place that knows yrs |
//! | `history` | contents of documents over time: deltas, versions, undo, diffs; plain values without I/O |
//! | [`jupyter_client`] | what Jupyter servers speak: REST, sockets, the kernel protocol |
//! | [`store`] | what outlives the process; the only place that knows sqlx |
//!
//! A test (`tests/it/layers.rs`) walks the sources and checks that imports point down the rows and that each library is
//! used only in its place; it has its own copy of the tables. Cargo sees to it that the crates do not depend on the
//! gateway.
//!
//! ## Invariants
//!
//! - A [`jupyter_client::DocPath`] has one spelling per file; access rules see nothing else.
//! - Every request behind the edge has a caller; its selection narrows what its token allows.
//! - A session, an event id and an open stream belong to the principal that made them; for anybody
//!   else they do not exist.
//! - What a client reads of a failure is the `Display` of an [`error::ClientError`]; everything else
//!   is a fixed text and a log line.
//! - An execution ends in exactly one of its states, and nothing that was sent to a kernel is sent twice.
//! - Tokens, cell sources and outputs are in no log, span or metric.

pub mod activity;
pub mod app;
pub mod approvals;
pub mod audit;
pub mod auth;
pub mod cli;
pub mod config;
pub mod console;
pub mod error;
pub mod events;
pub mod forks;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod history;
pub mod http;
pub mod limits;
pub mod mcp;
pub mod prompts;
pub mod resources;
pub mod skills;
pub mod srcbook;
pub mod telemetry;
pub mod tools;
pub mod types;
