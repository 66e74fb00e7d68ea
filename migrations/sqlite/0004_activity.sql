-- What was run in each notebook is told of everybody together.
DROP INDEX executions_by_notebook;
CREATE INDEX executions_by_notebook ON executions (server, path, started_at, execution_id);
