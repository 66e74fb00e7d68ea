-- The executions of a file, whose path may have changed while no gateway saw it.
CREATE INDEX executions_by_file ON executions (server, file_id);
