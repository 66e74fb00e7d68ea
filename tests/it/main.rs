//! The integration tests, in one binary so that they share one JupyterLab. Each file is a subject;
//! `support` is the plumbing.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail loudly")]
#![expect(unreachable_pub, reason = "a test binary has no outside")]

mod support;

mod answers;
mod cli;
mod clients;
mod conformance;
mod connections;
mod direct_calls;
mod edge;
mod eras;
mod executions;
mod executions_access;
mod executions_callers;
mod executions_cancelling;
mod executions_clients;
mod executions_cuts;
mod executions_editing;
mod executions_files;
mod executions_kernels;
mod executions_outputs;
mod executions_people;
mod executions_restarts;
mod executions_sharing;
mod executions_waiting;
mod files_tools;
mod identity;
mod images;
mod inspector;
mod inspector_watch;
mod jupyter_down;
mod kernel_link;
mod lab_process;
mod layers;
mod merging;
mod merging_faces;
mod prompts;
mod python_sdk;
mod resources_access;
mod resources_read;
mod resources_watch;
mod resumption;
mod revocation;
mod rooms_concurrency;
mod rooms_editing;
mod rooms_half_written;
mod rooms_limits;
mod rooms_outside;
mod rooms_presence;
mod rooms_recovery;
mod rooms_servers;
mod rooms_text;
mod seed_classic;
mod seed_collab;
mod seed_resources;
mod seed_rtc;
mod serve;
mod sessions;
mod soak;
mod untrusted_content;
mod untrusted_documents;
mod untrusted_sizes;
mod url_tools;
mod with_jupyter;
