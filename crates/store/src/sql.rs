//! The statements that SQLite and PostgreSQL understand alike. What only one of them can say is beside its backend.

pub(crate) const PING: &str = "SELECT execution_id FROM executions LIMIT 1";

pub(crate) const EXECUTION: &str = "SELECT * FROM executions WHERE execution_id = $1";

pub(crate) const EXECUTIONS: &str = "SELECT * FROM executions WHERE tenant = ";

pub(crate) const RUNS_BY_NOTEBOOK: &str = "SELECT server, path, COUNT(*), MAX(started_at) FROM executions \
     WHERE path IS NOT NULL AND kind <> 'copy'";

pub(crate) const CODE_KERNELS: &str = "SELECT DISTINCT server, kernel_id, gateway FROM executions \
     WHERE (path IS NULL AND kind = $1 OR kind = $2) AND kernel_id IS NOT NULL";

/// Writes a record, unless another gateway has taken the execution over.
pub(crate) const UPSERT: &str = "INSERT INTO executions (execution_id, tenant, principal, server, path, kernel_id, \
     kernel_session, kind, status, cells, reason, outputs, created_at, started_at, ended_at, gateway, terms, noted_at, \
     file_id, bytes) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) \
     ON CONFLICT (execution_id) DO UPDATE SET server = excluded.server, path = excluded.path, \
     kernel_id = excluded.kernel_id, kernel_session = excluded.kernel_session, status = excluded.status, \
     cells = excluded.cells, reason = excluded.reason, outputs = excluded.outputs, \
     started_at = excluded.started_at, ended_at = excluded.ended_at, noted_at = excluded.noted_at, \
     file_id = excluded.file_id, bytes = excluded.bytes, terms = excluded.terms \
     WHERE executions.gateway = excluded.gateway";

pub(crate) const RENAME: &str = "UPDATE executions SET path = $3 || substr(path, length($2) + 1) \
     WHERE server = $1 AND (path = $2 OR substr(path, 1, length($2) + 1) = $2 || '/')";

pub(crate) const RENAME_FILE: &str =
    "UPDATE executions SET path = $3 WHERE server = $1 AND file_id = $2 AND path <> $3";

pub(crate) const REMOVE_LEASE: &str =
    "DELETE FROM gateways WHERE gateway = $1 AND expires_at = COALESCE($2, expires_at)";
