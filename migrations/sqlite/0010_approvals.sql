-- Who allowed or declined a call that a person is asked about.
ALTER TABLE audit ADD COLUMN approval TEXT;

-- Tokens of the config that were revoked while gateways run; `digest` is the SHA-256 of the token.
CREATE TABLE revoked_tokens (
    digest     TEXT   NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    revoked_at BIGINT NOT NULL
);
