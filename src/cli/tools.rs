//! `tools`: the catalogue, for people and for programs.

mod markdown;

use std::io::{self, Write};

use clap::Args;
use serde_json::{Value, json};

use crate::{
    mcp::Catalogue,
    types::{Toolset, ToolsetError},
};

#[derive(Args)]
pub(super) struct Arguments {
    /// Toolsets to show, e.g. notebook,kernel or all (default: the default set)
    #[arg(long, value_name = "LIST", default_value = "default", value_parser = toolsets)]
    toolsets: Toolsets,
    /// As JSON, with schemas
    #[arg(long)]
    json: bool,
    /// As a page in Markdown, with arguments and results
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// One argument that names several.
#[derive(Clone)]
struct Toolsets(Vec<Toolset>);

fn toolsets(list: &str) -> Result<Toolsets, ToolsetError> {
    Toolset::parse_list(list.split(',')).map(Toolsets)
}

/// Prints the catalogue. Whoever reads only the beginning has got what they wanted.
pub(super) fn run(arguments: &Arguments) -> io::Result<()> {
    match print(arguments, &mut io::stdout().lock()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

fn print(arguments: &Arguments, out: &mut impl Write) -> io::Result<()> {
    let Toolsets(selected) = &arguments.toolsets;
    let catalogue = Catalogue::new(false);
    if arguments.markdown {
        // The page is about all there are, also where two have one name.
        let tools = catalogue.iter().filter_map(|(definition, _)| {
            let toolset = definition.toolsets.iter().find(|toolset| selected.contains(toolset))?;
            Some((*toolset, definition))
        });
        return write!(out, "{}", markdown::page(tools));
    }
    let tools = catalogue.selected(selected);
    if arguments.json {
        let tools: Vec<Value> = tools
            .map(|(toolset, definition, tool)| {
                let mut value = serde_json::to_value(tool).unwrap_or_default();
                value["toolset"] = json!(toolset.as_str());
                value["permission"] = json!(definition.permission.as_str());
                value
            })
            .collect();
        return writeln!(out, "{:#}", Value::from(tools));
    }
    let mut heading = None;
    for (toolset, definition, _) in tools {
        if heading.replace(toolset) != Some(toolset) {
            writeln!(out, "{toolset}")?;
        }
        writeln!(
            out,
            "  {:<28} {:<8} {}",
            definition.name,
            definition.permission.as_str(),
            definition.description
        )?;
    }
    Ok(())
}
