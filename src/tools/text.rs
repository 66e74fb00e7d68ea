//! Answers as text for models.

pub(in crate::tools) mod output;
