//! Owns how `JMG__SECTION__KEY` variables are laid over the tree of the file, and remembers which
//! variable set which key so that a message can name it.

use std::collections::BTreeMap;

use super::error::{Problem, Why, key_name};
use super::load::Env;
use super::node::{Node, Table};

const PREFIX: &str = "JMG__";

/// Origin of each key: file or variable.
pub(super) struct Origins {
    file: String,
    variables: BTreeMap<String, String>,
}

impl Origins {
    pub(super) fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            variables: BTreeMap::new(),
        }
    }

    /// The variable that set the key, or what the key is part of; else the file.
    pub(super) fn of(&self, key: &str) -> String {
        let mut part = key;
        loop {
            if let Some(variable) = self.variables.get(part) {
                return format!("env {variable}");
            }
            match part.rfind(['.', '[']) {
                Some(end) => part = &part[..end],
                None => return self.file.clone(),
            }
        }
    }
}

/// Sets in the tree what the environment says.
pub(super) fn overlay(root: &mut Node, env: &Env, origins: &mut Origins) -> Vec<Problem> {
    let parsed = env.iter().filter_map(|(name, value)| Override::new(name, value));
    let mut overrides: Vec<_> = parsed.collect();
    // Entry 2 has to exist before entry 10 can be added.
    overrides.sort_by(|a, b| a.steps.cmp(&b.steps));
    let apply = |one: Override<'_>| {
        let problem = one.apply(root, origins).err()?;
        Some(problem.with_origin(format!("env {}", one.variable)))
    };
    overrides.into_iter().filter_map(apply).collect()
}

/// Problem of a variable that is not valid UTF-8, if its name is that of a setting.
pub(super) fn not_text(variable: &str) -> Option<Problem> {
    let setting = setting(variable)?;
    let why = Why::BadHidden("the variable is not valid UTF-8");
    let problem = Problem::new(setting.to_ascii_lowercase().replace("__", "."), why);
    Some(problem.with_origin(format!("env {variable}")))
}

/// The rest of a variable's name, if it begins as the names of settings do.
fn setting(variable: &str) -> Option<&str> {
    let prefix = variable.get(..PREFIX.len())?;
    prefix.eq_ignore_ascii_case(PREFIX).then_some(&variable[PREFIX.len()..])
}

struct Override<'a> {
    variable: &'a str,
    value: &'a str,
    steps: Vec<Step>,
}

impl<'a> Override<'a> {
    fn new(variable: &'a str, value: &'a str) -> Option<Self> {
        // No key is as deep as six steps: the last piece takes what is left, and is unknown then.
        let pieces = setting(variable)?.splitn(6, "__");
        Some(Self {
            variable,
            value,
            steps: pieces.map(Step::new).collect(),
        })
    }

    fn apply(&self, root: &mut Node, origins: &mut Origins) -> Result<(), Problem> {
        let (mut node, mut path) = (root, String::new());
        for (depth, step) in self.steps.iter().enumerate() {
            let below = self.steps.get(depth + 1);
            let child = step.descend(node, &path, below)?;
            (node, path) = (child.node, child.path);
            if child.is_new && below.is_some() {
                let variable = self.variable.to_owned();
                origins.variables.insert(path.clone(), variable);
            }
        }
        *node = Node::Text(self.value.to_owned());
        match origins.variables.insert(path.clone(), self.variable.to_owned()) {
            Some(other) => Err(Problem::new(path, Why::SetTwice { other })),
            None => Ok(()),
        }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Index(usize),
    Key(String),
}

struct Child<'n> {
    node: &'n mut Node,
    path: String,
    is_new: bool,
}

impl Step {
    fn new(piece: &str) -> Self {
        match piece.parse() {
            Ok(index) => Self::Index(index),
            Err(_) => Self::Key(piece.to_ascii_lowercase()),
        }
    }

    /// The child of `parent` that this step leads to, made if need be so that `below` fits into it.
    fn descend<'n>(&self, parent: &'n mut Node, path: &str, below: Option<&Self>) -> Result<Child<'n>, Problem> {
        let kind = parent.kind();
        match (parent, self) {
            (Node::Array(items), Self::Index(index)) => entry(items, *index, path, below),
            (Node::Table(table), Self::Key(key)) => Ok(field(table, key, path, below)),
            (_, step) => {
                let expected = match step {
                    Self::Index(_) => "an array",
                    Self::Key(_) => "a table",
                };
                let found = kind;
                Err(Problem::new(path, Why::WrongType { expected, found }))
            }
        }
    }
}

fn entry<'n>(items: &'n mut Vec<Node>, index: usize, path: &str, below: Option<&Step>) -> Result<Child<'n>, Problem> {
    let (len, path) = (items.len(), format!("{path}[{index}]"));
    if index == len {
        items.push(empty(below));
    }
    match items.get_mut(index) {
        Some(node) => Ok(Child {
            node,
            path,
            is_new: index == len,
        }),
        None => Err(Problem::new(path, Why::IndexGap { index, len })),
    }
}

fn field<'n>(table: &'n mut Table, key: &str, path: &str, below: Option<&Step>) -> Child<'n> {
    let dot = if path.is_empty() { "" } else { "." };
    let path = format!("{path}{dot}{}", key_name(key));
    let is_new = !table.contains_key(key);
    let node = table.entry(key.to_owned()).or_insert_with(|| empty(below));
    Child { node, path, is_new }
}

fn empty(below: Option<&Step>) -> Node {
    match below {
        None => Node::Text(String::new()),
        Some(Step::Key(_)) => Node::Table(Table::new()),
        Some(Step::Index(_)) => Node::Array(Vec::new()),
    }
}
