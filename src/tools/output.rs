//! Output of a tool: one JSON value, and the blocks of content that a model reads.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use executor::Question;

use super::{
    ChoiceForm,
    call::Unanswered,
    text::{Describe, Page},
};

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

/// Limits of what a model is shown in one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerLimits {
    pub max_text_bytes: usize,
    pub max_images: usize,
}

/// Faces that an answer is to have: text for models within a budget, and members for programs if they are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Faces {
    pub(super) structured: bool,
    pub(super) max_text_bytes: usize,
}

pub struct Output {
    pub structured: Option<Structured>,
    pub blocks: Vec<Block>,
    /// The tool did what it was asked, and what came of it is a failure: code that raised, for one.
    pub is_failure: bool,
    /// The execution that this tells of, if it has not ended.
    pub open: Option<OpenExecution>,
    /// Question to the client's person that must be answered before the call does anything.
    pub asks: Option<ChoiceForm>,
}

impl Output {
    /// The answer to a call that a person must allow first.
    pub(super) fn unanswered(question: Unanswered) -> Self {
        Self {
            structured: None,
            blocks: vec![Block::Text(question.message)],
            is_failure: true,
            open: None,
            asks: question.form,
        }
    }

    /// Adds what the caller must know of earlier calls, in a member and a block of its own.
    pub(super) fn with_notices(mut self, notices: Vec<String>) -> Self {
        if notices.is_empty() {
            return self;
        }
        self.structured = self.structured.map(|structured| {
            let mut tree = structured.into_tree();
            if let Some(members) = tree.as_object_mut() {
                members.insert("notices".to_owned(), notices.clone().into());
            }
            Structured::new(tree)
        });
        self.blocks.extend(notices.into_iter().map(Block::Text));
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
}

/// An execution that goes on after the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenExecution {
    pub id: String,
    /// Question that it asks, if it does.
    pub question: Option<Question>,
}

/// Result of a tool that becomes its output.
pub(super) trait IntoOutput {
    type Schema: JsonSchema;
    fn into_output(self, faces: &Faces) -> Output;
}

impl<T: Serialize + JsonSchema + Describe + Send + 'static> IntoOutput for T {
    type Schema = T;

    fn into_output(self, faces: &Faces) -> Output {
        let mut page = Page::new(faces.max_text_bytes);
        self.describe(&mut page);
        ToolReply::told(page.into_text(), self).into_output(faces)
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
    pub(super) asks: Option<ChoiceForm>,
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
            asks: None,
        }
    }

    /// A reply in a text of its own.
    pub(super) fn told(text: impl Into<String>, value: T) -> Self {
        Self::in_blocks(vec![Block::Text(text.into())], value)
    }

    /// The reply with a text before all others.
    pub(super) fn after(mut self, text: Option<String>) -> Self {
        if let Some(text) = text {
            self.blocks.get_or_insert_default().insert(0, Block::Text(text));
        }
        self
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

    fn into_output(self, faces: &Faces) -> Output {
        let mut blocks = match self.blocks {
            Some(blocks) => blocks,
            None => vec![Block::Text(json_text(&self.value))],
        };
        keep_within(&mut blocks, faces.max_text_bytes);
        blocks.extend(self.images);
        Output {
            structured: faces.structured.then(|| Structured::new(self.value)),
            blocks,
            is_failure: self.is_failure,
            open: self.open,
            asks: self.asks,
        }
    }
}

/// Bytes of the line that says that a text was cut.
const CUT_LINE: usize = 60;

/// Cuts what is more text than an answer may have. Tools leave out what they can name before it comes to this.
fn keep_within(blocks: &mut [Block], max: usize) {
    let mut left = max;
    for block in blocks {
        if let Block::Text(text) = block {
            if text.len() > left {
                let end = text.floor_char_boundary(left.saturating_sub(CUT_LINE));
                let cut = text.len() - end;
                text.truncate(end);
                let told = format!("\n[{cut} bytes left out: the answer is too long]");
                text.push_str(&told);
            }
            left = left.saturating_sub(text.len());
        }
    }
}

/// The JSON of a part of an answer. Results are plain structs with string keys, which always serialise.
pub(super) fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
