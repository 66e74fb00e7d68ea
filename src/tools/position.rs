//! Positions as callers write them.

use super::ToolError;

/// A position, or `None` for -1, which is the end.
pub(super) fn position(argument: &str, given: i64) -> Result<Option<usize>, ToolError> {
    match usize::try_from(given) {
        Ok(position) => Ok(Some(position)),
        Err(_) if given == -1 => Ok(None),
        Err(_) => Err(ToolError::argument(
            argument,
            format!("{given} is out of range; allowed: 0 and more, or -1 to append"),
        )),
    }
}
