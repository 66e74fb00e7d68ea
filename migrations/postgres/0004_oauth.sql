-- Browser logins. Times are microseconds since 1970. No token, code or cookie stands here as it is: only their digests.

-- Clients that registered themselves; `metadata` is JSON.
CREATE TABLE oauth_clients (
    client_id  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    metadata   TEXT   NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX oauth_clients_by_expiry ON oauth_clients (expires_at);

-- Logins under way, from the client's request to the person's consent; `data` is encrypted.
CREATE TABLE oauth_logins (
    login      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    data       TEXT   NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX oauth_logins_by_expiry ON oauth_logins (expires_at);

-- What a person has granted to a client, with the code that it was told by and its current refresh token. `identity` and
-- `terms` are JSON, `upstream` is encrypted. A grant that is revoked is deleted.
CREATE TABLE oauth_grants (
    grant_id     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    issuer       TEXT    NOT NULL,
    subject      TEXT    NOT NULL,
    client_id    TEXT    NOT NULL,
    identity     TEXT    NOT NULL,
    terms        TEXT    NOT NULL,
    upstream     TEXT,
    code         TEXT    NOT NULL,
    code_expires BIGINT  NOT NULL,
    is_redeemed  BOOLEAN NOT NULL,
    refresh      TEXT,
    created_at   BIGINT  NOT NULL,
    expires_at   BIGINT  NOT NULL
);
CREATE UNIQUE INDEX oauth_grants_by_code ON oauth_grants (code);
CREATE INDEX oauth_grants_by_person ON oauth_grants (issuer, subject, created_at);
CREATE INDEX oauth_grants_by_expiry ON oauth_grants (expires_at);

-- Access tokens.
CREATE TABLE oauth_tokens (
    token      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    grant_id   TEXT COLLATE "C" NOT NULL REFERENCES oauth_grants ON DELETE CASCADE,
    scope      TEXT   NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX oauth_tokens_by_grant ON oauth_tokens (grant_id, expires_at);
CREATE INDEX oauth_tokens_by_expiry ON oauth_tokens (expires_at);
