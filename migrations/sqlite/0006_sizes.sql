-- How many bytes each record takes, about: what is kept is bounded. The index has all that is needed to find what goes.
ALTER TABLE executions ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE executions SET bytes = 512 + octet_length(cells) + COALESCE(octet_length(outputs), 0) + COALESCE(octet_length(reason), 0);
CREATE INDEX executions_by_size ON executions (tenant, principal, status, ended_at, created_at, execution_id, bytes);
