//! Regular expressions on code.

use regex::{Regex, RegexBuilder};

/// Bytes that a compiled expression may take, so that no rule of an operator takes the memory of the gateway.
const MAX_COMPILED: usize = 1024 * 1024;

/// Compiles an expression on code, which has many lines: `^` and `$` match at each.
pub fn code_pattern(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .multi_line(true)
        .size_limit(MAX_COMPILED)
        .build()
}
