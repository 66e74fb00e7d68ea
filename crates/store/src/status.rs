//! Kinds and statuses of executions.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    Queued,
    Running,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
    /// It can no longer be known whether it ended, and how.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionKind {
    /// Cells of a notebook.
    Cells,
    /// Code that is in no notebook.
    Code,
    /// Cells of a copy of a notebook, in a kernel of its own.
    Copy,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {name:?}; allowed: {allowed}")]
pub struct ExecutionWordError {
    what: &'static str,
    name: String,
    allowed: String,
}

impl ExecutionStatus {
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Running,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Lost,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }

    /// Returns whether the status is final.
    pub fn is_finished(self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::InputRequired => false,
            Self::Completed | Self::Failed | Self::Cancelled | Self::Lost => true,
        }
    }
}

impl ExecutionKind {
    pub const ALL: [Self; 3] = [Self::Cells, Self::Code, Self::Copy];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cells => "cells",
            Self::Code => "code",
            Self::Copy => "copy",
        }
    }
}

impl FromStr for ExecutionStatus {
    type Err = ExecutionWordError;

    fn from_str(name: &str) -> Result<Self, ExecutionWordError> {
        find("execution status", name, &Self::ALL, Self::as_str)
    }
}

impl FromStr for ExecutionKind {
    type Err = ExecutionWordError;

    fn from_str(name: &str) -> Result<Self, ExecutionWordError> {
        find("execution kind", name, &Self::ALL, Self::as_str)
    }
}

impl fmt::Display for ExecutionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ExecutionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn find<T: Copy>(
    what: &'static str,
    name: &str,
    all: &[T],
    as_str: fn(T) -> &'static str,
) -> Result<T, ExecutionWordError> {
    let found = all.iter().copied().find(|word| as_str(*word) == name);
    found.ok_or_else(|| ExecutionWordError {
        what,
        name: name.chars().take(100).collect(),
        allowed: all.iter().copied().map(as_str).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_in_text_and_json() {
        for status in ExecutionStatus::ALL {
            assert_eq!(status.to_string().parse(), Ok(status));
            assert_eq!(serde_json::to_value(status).expect("JSON"), status.as_str());
        }
        for kind in ExecutionKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).expect("JSON"), kind.as_str());
        }
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_known_ones() {
        let error = "done".parse::<ExecutionStatus>().expect_err("unknown").to_string();
        let expected = "unknown execution status \"done\"; allowed: queued, running, input_required, completed";
        assert!(error.starts_with(expected), "{error}");
    }
}
