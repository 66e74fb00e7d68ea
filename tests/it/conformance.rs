//! The official conformance suite against the production transport stack, with the fixtures it asks for.

mod handler;
