-- On which terms an execution was begun, so that a process that takes it up keeps them; `terms` is JSON.
ALTER TABLE executions ADD COLUMN terms TEXT;
-- When its record was last written, which is about when its gateway was last there.
ALTER TABLE executions ADD COLUMN noted_at BIGINT;
