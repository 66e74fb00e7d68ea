//! Output of a tool: one JSON value, and the blocks of content that a model reads.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use executor::Question;

/// Stands in the schema of a result for an object whose members are told elsewhere: every byte is in a model's context.
pub(super) type JsonObject = serde_json::Map<String, Value>;

/// One block of an answer's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    Text(String),
    /// An image as base64, whole.
    Image {
        data: String,
        mime: String,
    },
}

pub struct Output {
    pub structured: Structured,
    pub blocks: Vec<Block>,
    /// The tool did what it was asked, and what came of it is a failure: code that raised, for one.
    pub is_failure: bool,
    /// The execution that this tells of, if it has not ended.
    pub open: Option<OpenExecution>,
}

impl Output {
    /// Adds what the caller must know of earlier calls, in a member and a block of its own.
    pub(super) fn with_notices(mut self, notices: Vec<String>) -> Self {
        if notices.is_empty() {
            return self;
        }
        let is_json = matches!(self.blocks.first(), Some(Block::Text(text)) if text == self.structured.text.get());
        let mut tree = self.structured.into_tree();
        if let Some(members) = tree.as_object_mut() {
            members.insert("notices".to_owned(), notices.clone().into());
        }
        self.structured = Structured::new(tree);
        match self.blocks.first_mut().filter(|_| is_json) {
            Some(first) => *first = self.structured.block(),
            None => self.blocks.extend(notices.into_iter().map(Block::Text)),
        }
        self
    }
}

/// The JSON of an answer, written once. A large one costs several times more as a tree, so that is made only for who
/// needs one.
pub struct Structured {
    pub text: Box<RawValue>,
    tree: Box<dyn FnOnce() -> Value + Send>,
}

impl Structured {
    fn new(value: impl Serialize + Send + 'static) -> Self {
        Self {
            text: to_raw_value(&value).unwrap_or_default(),
            tree: Box::new(move || serde_json::to_value(value).unwrap_or_default()),
        }
    }

    pub fn into_tree(self) -> Value {
        (self.tree)()
    }

    fn block(&self) -> Block {
        Block::Text(self.text.get().to_owned())
    }
}

/// An execution that goes on after the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenExecution {
    pub id: String,
    /// Question that it asks, if it does.
    pub question: Option<Question>,
}

/// Result of a tool that becomes its output. Every serialisable type with a schema does, its JSON being the text.
pub(super) trait IntoOutput {
    type Schema: JsonSchema;
    fn into_output(self) -> Output;
}

impl<T: Serialize + JsonSchema + Send + 'static> IntoOutput for T {
    type Schema = T;

    fn into_output(self) -> Output {
        ToolReply::json(self).into_output()
    }
}

/// Result of a tool with more than its JSON: blocks of its own, images, or the state of an execution.
pub(super) struct ToolReply<T> {
    pub(super) value: T,
    /// Blocks that stand in the place of the JSON's text.
    pub(super) blocks: Option<Vec<Block>>,
    /// Images, which come last.
    pub(super) images: Vec<Block>,
    pub(super) is_failure: bool,
    pub(super) open: Option<OpenExecution>,
}

impl<T> ToolReply<T> {
    /// A reply whose text is its JSON.
    pub(super) fn json(value: T) -> Self {
        Self {
            value,
            blocks: None,
            images: Vec::new(),
            is_failure: false,
            open: None,
        }
    }

    /// A reply in blocks of its own.
    pub(super) fn in_blocks(blocks: Vec<Block>, value: T) -> Self {
        Self {
            blocks: Some(blocks),
            ..Self::json(value)
        }
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> IntoOutput for ToolReply<T> {
    type Schema = T;

    fn into_output(self) -> Output {
        let structured = Structured::new(self.value);
        let mut blocks = self.blocks.unwrap_or_else(|| vec![structured.block()]);
        blocks.extend(self.images);
        Output {
            structured,
            blocks,
            is_failure: self.is_failure,
            open: self.open,
        }
    }
}

/// The JSON of a part of an answer. Results are plain structs with string keys, which always serialise.
pub(super) fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
