-- Times are microseconds since 1970; `authors`, `undoes` and `metadata` are JSON.

-- Documents that have a history. A path is of one document of a kind at a time: one whose path was taken has none.
CREATE TABLE documents (
    document   BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    server     TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    file_id    TEXT    NOT NULL,
    path       TEXT,
    latest_seq BIGINT  NOT NULL DEFAULT 0,
    -- Of the versions that are kept: how many, about how many bytes, since when.
    versions   BIGINT  NOT NULL DEFAULT 0,
    bytes      BIGINT  NOT NULL DEFAULT 0,
    oldest_at  BIGINT  NOT NULL,
    changed_at BIGINT  NOT NULL
);
CREATE UNIQUE INDEX documents_by_file ON documents (server, file_id, kind);
CREATE UNIQUE INDEX documents_by_path ON documents (server, path, kind);
CREATE INDEX documents_by_change ON documents (changed_at);

-- What was changed, in order. `bytes` is about what a version takes with its snapshot and what it brought along.
CREATE TABLE versions (
    document   BIGINT  NOT NULL REFERENCES documents ON DELETE CASCADE,
    seq        BIGINT  NOT NULL,
    version_id TEXT COLLATE "C"   NOT NULL,
    time       BIGINT  NOT NULL,
    kind       TEXT    NOT NULL,
    principal  TEXT,
    authors    TEXT    NOT NULL,
    tool       TEXT,
    revision   TEXT,
    summary    TEXT    NOT NULL,
    size       BIGINT  NOT NULL,
    undoes     TEXT    NOT NULL,
    bytes      BIGINT  NOT NULL,
    delta      BYTEA    NOT NULL,
    PRIMARY KEY (document, seq)
);
CREATE UNIQUE INDEX versions_by_id ON versions (version_id);

-- Each version under its principal and the names of its authors, so that the list of one author's is read by index.
CREATE TABLE version_authors (
    document BIGINT NOT NULL,
    author   TEXT   NOT NULL,
    seq      BIGINT NOT NULL,
    PRIMARY KEY (document, author, seq),
    FOREIGN KEY (document, seq) REFERENCES versions ON DELETE CASCADE
);
CREATE INDEX version_authors_by_version ON version_authors (document, seq);

-- The whole content after a version.
CREATE TABLE snapshots (
    document BIGINT NOT NULL,
    seq      BIGINT NOT NULL,
    content  BYTEA   NOT NULL,
    PRIMARY KEY (document, seq),
    FOREIGN KEY (document, seq) REFERENCES versions ON DELETE CASCADE
);

-- What versions and snapshots mention by its hash, kept once.
CREATE TABLE blobs (
    hash    TEXT   NOT NULL PRIMARY KEY,
    used_at BIGINT NOT NULL,
    content BYTEA   NOT NULL
);
CREATE INDEX blobs_by_use ON blobs (used_at, hash);
CREATE TABLE blob_uses (
    hash     TEXT   NOT NULL,
    document BIGINT NOT NULL,
    seq      BIGINT NOT NULL,
    PRIMARY KEY (hash, document, seq),
    FOREIGN KEY (document, seq) REFERENCES versions ON DELETE CASCADE
);
CREATE INDEX blob_uses_by_version ON blob_uses (document, seq);

-- Copies of documents in which changes are proposed.
CREATE TABLE forks (
    fork_id     TEXT COLLATE "C"   NOT NULL PRIMARY KEY,
    server      TEXT    NOT NULL,
    file_id     TEXT    NOT NULL,
    path        TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    title       TEXT,
    description TEXT,
    synchronize BOOLEAN NOT NULL,
    principal   TEXT    NOT NULL,
    author_name TEXT    NOT NULL,
    created_at  BIGINT  NOT NULL,
    updated_at  BIGINT  NOT NULL,
    room_id     TEXT,
    is_review   BOOLEAN NOT NULL,
    base        BYTEA    NOT NULL,
    content     BYTEA    NOT NULL
);
CREATE INDEX forks_by_file ON forks (server, file_id, created_at);

-- What agents and people did.
CREATE TABLE activity (
    activity_id   TEXT COLLATE "C"   NOT NULL PRIMARY KEY,
    time          BIGINT  NOT NULL,
    server        TEXT    NOT NULL,
    path          TEXT,
    file_id       TEXT,
    actor         TEXT    NOT NULL,
    actor_name    TEXT    NOT NULL,
    is_agent      BOOLEAN NOT NULL,
    activity_type TEXT    NOT NULL,
    description   TEXT    NOT NULL,
    metadata      TEXT    NOT NULL
);
CREATE INDEX activity_by_time ON activity (time, activity_id);
CREATE INDEX activity_by_path ON activity (server, path, time);
CREATE INDEX activity_by_file ON activity (server, file_id, time);
CREATE INDEX activity_by_actor ON activity (actor, time);

-- Every call of a tool, and whether it was let. Only ever appended to; the oldest go.
CREATE TABLE audit (
    entry       BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    time        BIGINT  NOT NULL,
    principal   TEXT    NOT NULL,
    tenant      TEXT    NOT NULL,
    address     TEXT,
    tool        TEXT    NOT NULL,
    server      TEXT,
    path        TEXT,
    decision    TEXT    NOT NULL,
    rule        TEXT,
    outcome     TEXT    NOT NULL,
    duration_ms BIGINT  NOT NULL,
    request_id  TEXT    NOT NULL
);
CREATE INDEX audit_by_time ON audit (time);
CREATE INDEX audit_by_principal ON audit (principal, time);
CREATE INDEX audit_by_path ON audit (path, time);
