-- Times are microseconds since 1970; `cells` and `outputs` are JSON.
CREATE TABLE executions (
    execution_id   TEXT   NOT NULL PRIMARY KEY,
    tenant         TEXT   NOT NULL,
    principal      TEXT   NOT NULL,
    server         TEXT   NOT NULL,
    path           TEXT,
    kernel_id      TEXT,
    kernel_session TEXT,
    kind           TEXT   NOT NULL,
    status         TEXT   NOT NULL,
    cells          TEXT   NOT NULL,
    reason         TEXT,
    outputs        TEXT,
    created_at     BIGINT NOT NULL,
    started_at     BIGINT,
    ended_at       BIGINT
);

CREATE INDEX executions_by_owner ON executions (tenant, principal, created_at);
CREATE INDEX executions_by_status ON executions (status, created_at);
