-- What was run in each notebook can be told without reading the outputs of all of it.
CREATE INDEX executions_by_notebook ON executions (tenant, principal, server, path, started_at, execution_id);
