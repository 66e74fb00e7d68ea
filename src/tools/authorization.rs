//! Authorization of a call, in one place and before its tool sees an argument: the record that may be demanded, permissions,
//! the server, and every document that an argument names. What a tool reaches is told by name here, so that one that is not
//! told of may do nothing. That the connection has the tool, by its toolsets and unless it only reads, was checked when it was
//! looked up. Edits under review go to a fork where a document is opened; what cannot wait in one is refused by its tool.
//!
//! Tools come to documents by [`Call::file`] and [`Call::directory`] alone, which check again what they were given, and to
//! servers by [`Call::server`]; resources are seen through a view that hides what its principal may not read.

use jupyter_client::DocPath;
use serde_json::{Map, Value};

use super::{Call, ToolDefinition, ToolError};

/// Things on a Jupyter server that a call reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// No named document: the gateway, a server as a whole, things of the caller's own, lists of what it may see.
    Nothing,
    /// Documents and directories that these arguments name. Without one it is all that the caller may see.
    Paths(&'static [&'static str]),
    /// The paths that this argument names, which may be a glob. Matches that may not be read are left out of the result.
    Matches(&'static str),
    /// The notebook that the caller has given a name: where that is, and whether it may go there, is seen when it is
    /// looked up.
    Named,
    /// An open room by its id, found if the caller may read its path.
    Room,
    /// The document of a URL, which is no more than told.
    Url,
    /// A server of the caller's in a Hub, which may not be known yet.
    HubServer,
}

impl Reach {
    /// The arguments that name documents.
    fn paths(&self) -> &[&'static str] {
        match self {
            Self::Paths(names) => names,
            Self::Matches(name) => std::slice::from_ref(name),
            _ => &[],
        }
    }
}

/// Reach of a tool; none if it is not listed here.
pub(super) fn reach(tool: &str) -> Option<Reach> {
    Some(match tool {
        "list_servers"
        | "get_base_url"
        | "list_available_kernels"
        | "list_kernels"
        | "get_execution"
        | "cancel_execution"
        | "set_user_presence"
        | "list_notebook"
        | "unuse_notebook"
        | "list_notebooks"
        | "connect_to_jupyter" => Reach::Nothing,
        "nb_path_from_url" => Reach::Url,
        "start_server" => Reach::HubServer,
        "list_nbs"
        | "create_notebook"
        | "get_nb_stat"
        | "read_nb_cells"
        | "modify_nb_cells"
        | "edit_nb_cell"
        | "insert_nb_cells"
        | "delete_nb_cells"
        | "move_nb_cells"
        | "clear_nb_outputs"
        | "execute_nb_cells"
        | "assign_nb_kernel"
        | "restart_nb_kernel"
        | "interrupt_nb_kernel"
        | "shutdown_kernel"
        | "inspect_variables"
        | "run_code"
        | "list_executions"
        | "get_document_content"
        | "insert_document_text"
        | "delete_document_text"
        | "replace_document_text"
        | "edit_document_text"
        | "save_document"
        | "list_documents"
        | "create_document"
        | "get_document_info"
        | "delete_document"
        | "overwrite_document"
        | "end_nb_session"
        | "query_document_session"
        | "end_document_session"
        | "get_document_history"
        | "restore_document_version"
        | "undo_changes"
        | "diff_document"
        | "fork_document"
        | "list_document_forks"
        | "merge_document_fork"
        | "discard_document_fork"
        | "get_notebook"
        | "create_notebook_session"
        | "batch_update_notebook_cells"
        | "batch_insert_notebook_cells"
        | "batch_delete_notebook_cells"
        | "execute_notebook_cell"
        | "batch_execute_notebook_cells"
        | "get_document"
        | "create_document_session"
        | "batch_update_document"
        | "batch_insert_text"
        | "batch_delete_text"
        | "list_files" => Reach::Paths(&["path"]),
        "search_documents" => Reach::Matches("path"),
        "run_notebook" => Reach::Paths(&["path", "keep"]),
        "rename_document" => Reach::Paths(&["path", "newPath"]),
        "copy_document" => Reach::Paths(&["path", "copyPath"]),
        "query_nb_sessions" => Reach::Paths(&["root_path"]),
        "get_online_users"
        | "get_user_presence"
        | "get_user_cursors"
        | "update_cursor_position"
        | "get_user_activity"
        | "broadcast_user_activity"
        | "get_active_sessions" => Reach::Paths(&["document_path"]),
        "connect_notebook" | "use_notebook" => Reach::Paths(&["notebook_path"]),
        "join_session" | "leave_session" => Reach::Room,
        "restart_notebook"
        | "read_notebook"
        | "list_cell"
        | "read_cell"
        | "delete_cell"
        | "insert_cell"
        | "execute_cell"
        | "overwrite_cell"
        | "append_execute_code_cell"
        | "execute_temporary_code"
        | "insert_execute_code_cell"
        | "overwrite_cell_source"
        | "edit_cell_source"
        | "move_cell"
        | "clear_cell_output"
        | "execute_code" => Reach::Named,
        _ => return None,
    })
}

/// Checks that a call may be made, by all that can be told before its tool runs.
pub(super) fn authorize(
    call: &Call,
    definition: &ToolDefinition,
    arguments: &Map<String, Value>,
) -> Result<(), ToolError> {
    call.require_audit()?;
    definition
        .permissions()
        .try_for_each(|needed| call.principal().require(needed))?;
    let Some(reach) = definition.reach else {
        return Err(ToolError::NoRules);
    };
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    if let Some(server) = text("server").filter(|_| reach != Reach::HubServer) {
        call.server(Some(server))?;
    }
    let is_glob = |raw: &&str| matches!(reach, Reach::Matches(_)) && raw.contains(['*', '?', '[', '{']);
    for raw in reach
        .paths()
        .iter()
        .filter_map(|name| text(name))
        .filter(|raw| !is_glob(raw))
    {
        // What is no path at all is told by the tool, which knows what it expects.
        if let Ok(path) = DocPath::parse(raw) {
            let principal = call.principal();
            principal
                .require_path(&path)
                .or_else(|refused| principal.require_directory(&path).map_err(|_| refused))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{call::PATHS, catalogue};

    #[test]
    fn every_tool_has_rules_and_every_argument_that_names_a_document_is_among_them() {
        for tool in catalogue() {
            let reach = tool.reach.unwrap_or_else(|| panic!("{} has no rules", tool.name));
            let known = reach.paths();
            let members = tool.input_schema.get("properties").and_then(Value::as_object);
            for argument in members.into_iter().flatten().map(|(name, _)| name) {
                let is_path = argument.to_lowercase().ends_with("path");
                assert!(
                    !is_path || known.contains(&argument.as_str()),
                    "{}: nothing checks {argument}",
                    tool.name
                );
                // What rules of approval and the audit take for paths.
                assert!(
                    !is_path || PATHS.contains(&argument.as_str()),
                    "{}: {argument}",
                    tool.name
                );
            }
            for name in known {
                assert!(
                    members.is_some_and(|members| members.contains_key(*name)),
                    "{}: no {name}",
                    tool.name
                );
            }
        }
    }
}
