//! Number of connections that the process has file descriptors for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for everything else: Jupyter's sockets, the database, logs.
const RESERVE: u64 = 64;
/// Number of connections that are always allowed.
const LEAST: u64 = 16;

/// The number of connections that may be open, at most `wanted`. The limit of the process is raised as far as it may be
/// and as they need.
pub fn within_descriptors(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let needed = (wanted as u64 * 4 / 3).max(wanted as u64 + RESERVE);
    let mut soft = limit.current.unwrap_or(u64::MAX);
    if soft < needed.min(hard) {
        let raised = Rlimit {
            current: Some(needed.min(hard)),
            maximum: limit.maximum,
        };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            soft = needed.min(hard);
        }
    }
    let possible = available(soft);
    if possible < wanted {
        tracing::warn!(
            limit = soft,
            max_connections = possible,
            "the process may open too few files for http.max_connections = {wanted}; raise its limit (ulimit -n, \
             LimitNOFILE) or lower http.max_connections"
        );
    }
    wanted.min(possible)
}

/// The share of a limit for connections: three quarters of it, and something for the rest in any case.
fn available(limit: u64) -> usize {
    let rest = (limit / 4).max(RESERVE);
    usize::try_from(limit.saturating_sub(rest).max(LEAST)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_is_left_for_everything_else() {
        for (limit, connections) in [(1024, 768), (256, 192), (100, 36), (20, 16), (8192, 6144)] {
            assert_eq!(available(limit), connections);
        }
    }
}
