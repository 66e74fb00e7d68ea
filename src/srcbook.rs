//! Notebooks as Srcbook markdown (`.src.md`): written so that it reads well and parses back into the
//! same cells, and the templates for new notebooks, which are such files. Does no I/O and knows nothing of
//! Jupyter.
//!
//! A file opens with `<!-- srcbook:{"language":"python"} -->` and its only first-level heading. A code cell is
//! a sixth-level heading with a file name and a fenced block; all else is markdown. What Srcbook has no words
//! for stands where it shows nobody: the id of a code cell after the language of its fence, that of another cell
//! in a comment in front of it. Lines of markdown that would mean something else in such a file are changed
//! a little, and the comment keeps what they were.

mod cell;
mod fence;
mod language;
mod names;
mod parse;
mod render;
mod templates;
#[cfg(test)]
mod tests;

pub use cell::{Book, BookCell, BookCellKind};
pub use language::{extension, mime_type};
pub use names::{Nameable, file_names};
pub use parse::parse;
pub use render::render;
pub use templates::{Template, template, templates};
