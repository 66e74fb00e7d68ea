-- Which gateway looks after an execution; one that has left may have left some behind.
ALTER TABLE executions ADD COLUMN gateway TEXT;
