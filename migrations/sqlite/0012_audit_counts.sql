-- How many calls a row stands for: refused logins that follow each other quickly are one row.
ALTER TABLE audit ADD COLUMN count BIGINT NOT NULL DEFAULT 1;
