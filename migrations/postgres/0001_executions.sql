-- Times are microseconds since 1970; `cells`, `outputs` and `terms` are JSON. Ids are ordered by their bytes, as the
-- gateway orders them.
CREATE TABLE executions (
    execution_id   TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    tenant         TEXT   NOT NULL,
    principal      TEXT   NOT NULL,
    server         TEXT   NOT NULL,
    path           TEXT,
    -- The file behind the path, which a rename does not change.
    file_id        TEXT,
    kernel_id      TEXT,
    kernel_session TEXT,
    kind           TEXT   NOT NULL,
    status         TEXT   NOT NULL,
    cells          TEXT   NOT NULL,
    reason         TEXT,
    outputs        TEXT,
    created_at     BIGINT NOT NULL,
    started_at     BIGINT,
    ended_at       BIGINT,
    -- Which gateway looks after it; one that has left may have left some behind.
    gateway        TEXT,
    terms          TEXT,
    -- When its record was last written, which is about when its gateway was last there.
    noted_at       BIGINT,
    -- About what the record takes.
    bytes          BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX executions_by_owner ON executions (tenant, principal, created_at);
CREATE INDEX executions_by_status ON executions (status, created_at);
CREATE INDEX executions_by_notebook ON executions (server, path, started_at, execution_id);
CREATE INDEX executions_by_file ON executions (server, file_id);

-- Gateways that use the database. One that ends without removing its lease is taken for gone when its process is, or,
-- on another host, when the lease expires.
CREATE TABLE gateways (
    gateway    TEXT   NOT NULL PRIMARY KEY,
    host       TEXT   NOT NULL,
    pid        BIGINT NOT NULL,
    started    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
