//! Contents of documents over time: the operations between two contents, versions, undo and diffs. Plain values
//! without I/O; knows neither Yjs, SQL nor MCP.
