//! The tools as MCP describes them, built once and filtered per caller.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use dashmap::DashMap;
use rmcp::model::{CacheScope, JsonObject, ListToolsResult, MetaObject, ServerResult, Tool, ToolAnnotations};
use serde_json::Value;

use super::{Caller, identity::names};
use crate::{
    tools::{Effect, ToolDefinition, advice_for, catalogue},
    types::{Permission, Toolset},
};

/// Lists change only with the gateway's version and the caller's token.
pub(super) const LIST_TTL_MS: u64 = 60_000;
/// Tools that everyone needs, which Claude Code shows to a model at once: of the others it shows the names until the model
/// asks for more. Other clients know nothing of the mark, and models are not shown it.
const ALWAYS_LOADED: &[&str] = &["list_nbs", "read_nb_cells", "edit_nb_cell", "execute_nb_cells"];
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";
/// Lists that are kept as they were written. Most callers select one of a few.
const MAX_LISTED: usize = 64;
/// Characters of the name of a tool that does not exist.
const MAX_NAME: usize = 100;

pub struct Catalogue {
    entries: Vec<Entry>,
    /// Several have one name where vocabularies use the same word for different things.
    by_name: HashMap<&'static str, Vec<usize>>,
    route_headers: bool,
    listed: DashMap<ListKey, Arc<str>>,
}

/// Everything that the list of tools depends on.
#[derive(PartialEq, Eq, Hash)]
struct ListKey {
    toolsets: Arc<[Toolset]>,
    /// The caller's permissions.
    may: [bool; Permission::ALL.len()],
    is_readonly: bool,
    has_schemas: bool,
    user: User,
    is_modern: bool,
}

/// Some tools are for users of a JupyterHub alone.
#[derive(PartialEq, Eq, Hash)]
enum User {
    OfHub,
    Other,
}

struct Entry {
    definition: ToolDefinition,
    tool: Tool,
}

/// Reason why a tool cannot be called, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("Unknown tool: {0}")]
    Unknown(String),
    #[error(
        "tool `{tool}` is in toolset `{toolset}`, which is not selected (selected: {selected}); connect with ?toolsets={toolset} to use it"
    )]
    NotSelected {
        tool: String,
        toolset: &'static str,
        selected: String,
    },
    #[error(
        "tool `{tool}` is in toolset `{toolset}`, which your tenant does not offer (offered: {offered}); ask an operator for it"
    )]
    NotOffered {
        tool: String,
        toolset: &'static str,
        offered: String,
    },
    #[error("tool `{tool}` changes things, and this connection is read-only; connect without readonly=true to use it")]
    ReadOnly { tool: String },
}

impl Refusal {
    /// The kind of rule that forbids the call, for its record.
    pub(super) fn rule(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown",
            Self::NotSelected { .. } | Self::NotOffered { .. } => "toolset",
            Self::ReadOnly { .. } => "readonly",
        }
    }
}

impl Catalogue {
    /// Builds the catalogue; with `route_headers`, clients repeat as headers by which an ingress can route.
    pub fn new(route_headers: bool) -> Self {
        let entries: Vec<Entry> = catalogue()
            .into_iter()
            .map(|definition| Entry {
                tool: describe(&definition, route_headers),
                definition,
            })
            .collect();
        let mut by_name: HashMap<&'static str, Vec<usize>> = HashMap::new();
        for (index, Entry { definition, .. }) in entries.iter().enumerate() {
            for name in std::iter::once(&definition.name).chain(definition.aliases) {
                by_name.entry(name).or_default().push(index);
            }
        }
        Self {
            entries,
            by_name,
            route_headers,
            listed: DashMap::new(),
        }
    }

    /// The tools that a caller may use and has selected. To one that may only read, none of them is more than reading.
    fn visible(&self, caller: &Caller) -> Vec<Tool> {
        let shown = |entry: &Entry| {
            let mut tool = match caller.is_readonly() {
                true => entry.tool.clone().with_annotations(annotations(Effect::Read)),
                false => entry.tool.clone(),
            };
            if !caller.wants_structured() {
                tool.output_schema = None;
            }
            tool
        };
        let visible = self.entries.iter().filter(|entry| self.lists(entry, caller));
        visible.map(shown).collect()
    }

    /// Returns whether a tool is listed for a caller: they may use it, have selected it, and its name means this one.
    fn lists(&self, entry: &Entry, caller: &Caller) -> bool {
        let is_meant = || self.definition(entry.definition.name, caller);
        shows(caller, &entry.definition)
            && is_meant().is_some_and(|meant| std::ptr::eq(meant, &raw const entry.definition))
    }

    /// The list of tools as a result of the protocol. What is visible depends on the token, so no shared cache may keep
    /// it.
    pub(super) fn list(&self, caller: &Caller) -> ListToolsResult {
        ListToolsResult::with_all_items(self.visible(caller))
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private)
    }

    /// The JSON of the list of tools.
    pub(super) fn listed(&self, caller: &Caller, is_modern: bool) -> Arc<str> {
        let key = ListKey {
            toolsets: Arc::clone(caller.toolsets()),
            may: Permission::ALL.map(|permission| caller.may(permission)),
            is_readonly: caller.is_readonly(),
            has_schemas: caller.wants_structured(),
            user: match caller.principal.hub() {
                Some(_) => User::OfHub,
                None => User::Other,
            },
            is_modern,
        };
        if let Some(listed) = self.listed.get(&key) {
            return Arc::clone(&listed);
        }
        let mut list = ServerResult::ListToolsResult(self.list(caller));
        if !is_modern {
            list.strip_result_type_for_legacy_peer();
        }
        // Lists of tools always serialise.
        let written: Arc<str> = serde_json::to_string(&list).unwrap_or_default().into();
        if self.listed.len() >= MAX_LISTED {
            self.listed.clear();
        }
        self.listed.insert(key, Arc::clone(&written));
        written
    }

    /// Returns whether a caller may use a tool and has selected it.
    pub(super) fn is_visible(&self, name: &str, caller: &Caller) -> bool {
        self.definition(name, caller)
            .is_some_and(|definition| shows(caller, definition))
    }

    /// A message that names only tools which a caller may use and has selected.
    pub(super) fn advise(&self, message: &str, caller: &Caller) -> String {
        advice_for(message, |name| {
            self.definition(name, caller)
                .map(|definition| shows(caller, definition))
        })
    }

    /// Advice on how a caller gets some tools listed, as a clause.
    pub(super) fn remedy(&self, tools: &[&str], caller: &Caller) -> String {
        let lacking = || tools.iter().filter_map(|tool| self.definition(tool, caller));
        let needed: BTreeSet<Permission> = lacking().flat_map(ToolDefinition::permissions).collect();
        let mut steps = Vec::new();
        if caller.is_readonly() && needed.iter().any(|needed| *needed != Permission::Read) {
            steps.push("connect without readonly=true".to_owned());
        }
        let (mut to_select, mut to_ask_for) = (BTreeSet::new(), BTreeSet::new());
        for definition in lacking().filter(|definition| !offers(caller, definition)) {
            match selectable(caller, definition) {
                Some(toolset) => to_select.insert(toolset.as_str()),
                None => to_ask_for.insert(own_toolset(definition)),
            };
        }
        if !to_select.is_empty() {
            let names: Vec<&str> = to_select.into_iter().collect();
            steps.push(format!("add {} to ?toolsets=", names.join(",")));
        }
        let granted = caller.principal.permissions();
        let ungranted = needed.iter().filter(|needed| !granted.contains(**needed));
        let mut wanted: Vec<String> = to_ask_for.iter().map(|name| format!("toolset `{name}`")).collect();
        wanted.extend(ungranted.map(|permission| format!("permission `{permission}`")));
        if !wanted.is_empty() {
            steps.push(format!("ask an operator for {}", wanted.join(" and ")));
        }
        steps.join(", and ")
    }

    /// The tool of a name, if the caller's selection has it. Its permission is checked when it runs.
    pub(super) fn find(&self, name: &str, caller: &Caller) -> Result<&ToolDefinition, Refusal> {
        let definition = self
            .definition(name, caller)
            .filter(|definition| definition.is_for(&caller.principal))
            .ok_or_else(|| Refusal::Unknown(shortened(name)))?;
        // First of all: selecting its toolset would not help.
        if caller.is_readonly() && definition.permission != Permission::Read {
            return Err(Refusal::ReadOnly { tool: name.to_owned() });
        }
        if !offers(caller, definition) {
            return Err(not_among(caller, name, definition));
        }
        Ok(definition)
    }

    /// The name itself, if it is a tool's.
    pub(super) fn known_name(&self, name: &str) -> Option<&'static str> {
        let index = self.by_name.get(name)?.first()?;
        Some(self.entries[*index].definition.name)
    }

    /// Returns whether a tool only reads, so that a call of it may be dropped at any moment.
    pub(super) fn only_reads(&self, name: &str, caller: &Caller) -> bool {
        self.definition(name, caller).is_some_and(ToolDefinition::only_reads)
    }

    /// Returns whether calls repeat `server` and `path` as headers.
    pub(super) fn has_route_headers(&self) -> bool {
        self.route_headers
    }

    pub(super) fn tool(&self, name: &str, caller: Option<&Caller>) -> Option<Tool> {
        let toolsets = caller.map_or(&Toolset::ALL[..], |caller| &caller.toolsets()[..]);
        self.meant(name, toolsets).map(|entry| entry.tool.clone())
    }

    pub(super) fn input_schema(&self, name: &str, caller: &Caller) -> Option<Arc<JsonObject>> {
        let entry = self.meant(name, caller.toolsets())?;
        Some(Arc::clone(&entry.tool.input_schema))
    }

    /// Every tool, for people.
    pub fn iter(&self) -> impl Iterator<Item = (&ToolDefinition, &Tool)> {
        self.entries.iter().map(|entry| (&entry.definition, &entry.tool))
    }

    /// The tools of a selection as a client gets them, each with the first of its toolsets that is selected.
    pub fn selected(&self, toolsets: &[Toolset]) -> impl Iterator<Item = (Toolset, &ToolDefinition, &Tool)> {
        self.iter().filter_map(move |(definition, tool)| {
            let toolset = definition.toolsets.iter().find(|toolset| toolsets.contains(toolset))?;
            let meant = self.meant(definition.name, toolsets)?;
            std::ptr::eq(&raw const meant.definition, definition).then_some((*toolset, definition, tool))
        })
    }

    /// Resolves the name of a tool for a caller.
    pub(super) fn definition(&self, name: &str, caller: &Caller) -> Option<&ToolDefinition> {
        self.meant(name, caller.toolsets()).map(|entry| &entry.definition)
    }

    /// The tool of a name: of several that of the toolset which is selected first. If none is selected it is the first there is.
    fn meant(&self, name: &str, toolsets: &[Toolset]) -> Option<&Entry> {
        let named = self.by_name.get(name)?.iter().map(|index| &self.entries[*index]);
        named.min_by_key(|entry| {
            let ranks = entry.definition.toolsets.iter();
            let ranks = ranks.filter_map(|toolset| toolsets.iter().position(|selected| selected == toolset));
            ranks.min().unwrap_or(usize::MAX)
        })
    }
}

/// A name as it was given, at a length that can be shown and logged.
pub(super) fn shortened(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}

fn shows(caller: &Caller, definition: &ToolDefinition) -> bool {
    offers(caller, definition)
        && definition.is_for(&caller.principal)
        && definition.permissions().all(|needed| caller.may(needed))
}

fn offers(caller: &Caller, definition: &ToolDefinition) -> bool {
    definition.toolsets.iter().any(|toolset| caller.has_toolset(*toolset))
}

/// Advises to select a toolset only where selecting it would help.
fn not_among(caller: &Caller, name: &str, definition: &ToolDefinition) -> Refusal {
    let tool = name.to_owned();
    match selectable(caller, definition) {
        Some(toolset) => Refusal::NotSelected {
            tool,
            toolset: toolset.as_str(),
            selected: caller.toolset_names(),
        },
        None => Refusal::NotOffered {
            tool,
            toolset: own_toolset(definition),
            offered: names(caller.bound().unwrap_or_default()),
        },
    }
}

/// The first of a tool's toolsets that the tenant lets a caller select.
fn selectable(caller: &Caller, definition: &ToolDefinition) -> Option<Toolset> {
    let within = |toolset: &Toolset| caller.bound().is_none_or(|bound| bound.contains(toolset));
    definition.toolsets.iter().copied().find(within)
}

fn own_toolset(definition: &ToolDefinition) -> &'static str {
    definition.toolsets.first().map_or("all", |toolset| toolset.as_str())
}

fn describe(definition: &ToolDefinition, route_headers: bool) -> Tool {
    let mut input_schema = definition.input_schema.clone();
    if let Some(Value::Object(properties)) = input_schema.get_mut("properties").filter(|_| route_headers) {
        for (name, header) in [("server", "Server"), ("path", "Path")] {
            if let Some(Value::Object(property)) = properties.get_mut(name) {
                property.insert("x-mcp-header".to_owned(), header.into());
            }
        }
    }
    let tool = Tool::new(
        definition.name,
        Cow::Borrowed(definition.description),
        Arc::new(input_schema),
    )
    .with_raw_output_schema(Arc::new(definition.output_schema.clone()))
    .with_annotations(annotations(definition.effect));
    match ALWAYS_LOADED.contains(&definition.name) {
        true => tool.with_meta(MetaObject(JsonObject::from_iter([(
            ALWAYS_LOAD.to_owned(),
            true.into(),
        )]))),
        false => tool,
    }
}

/// Annotations of a tool. What a person decides by is said even where it is the protocol's default; the rest
/// only where it is not, since every byte is in a model's context.
fn annotations(effect: Effect) -> ToolAnnotations {
    let changes = |destructive| ToolAnnotations::new().read_only(false).destructive(destructive);
    match effect {
        Effect::Read => ToolAnnotations::new().read_only(true).open_world(false),
        Effect::Open | Effect::Add => changes(false).open_world(false),
        Effect::Present => changes(false).idempotent(true).open_world(false),
        Effect::Change => changes(true).open_world(false),
        Effect::Set => changes(true).idempotent(true).open_world(false),
        Effect::ChangeAndExecute | Effect::Execute => changes(true),
    }
}
