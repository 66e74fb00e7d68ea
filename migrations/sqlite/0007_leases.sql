-- Gateways that use the database. One that ends without removing its lease is taken for gone when its process is, or,
-- on another host, when the lease expires. Times are microseconds since 1970.
CREATE TABLE gateways (
    gateway    TEXT   NOT NULL PRIMARY KEY,
    host       TEXT   NOT NULL,
    pid        BIGINT NOT NULL,
    started    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
-- The file behind the path, which a rename does not change.
ALTER TABLE executions ADD COLUMN file_id TEXT;
