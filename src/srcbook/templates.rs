//! The templates for new notebooks, each a file of Srcbook markdown.

use super::{Book, parse};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    /// The file itself.
    pub text: &'static str,
}

impl Template {
    pub fn book(&self) -> Book {
        parse(self.text)
    }
}

const TEMPLATES: [Template; 6] = [
    Template {
        name: "blank",
        title: "Blank notebook",
        description: "Nothing but an empty code cell",
        text: include_str!("templates/blank.src.md"),
    },
    Template {
        name: "data_analysis",
        title: "Data analysis",
        description: "Load a dataset, check its quality, look at distributions and relations, note findings",
        text: include_str!("templates/data_analysis.src.md"),
    },
    Template {
        name: "machine_learning",
        title: "Machine learning",
        description: "Split, baseline, model, cross-validation, a held-out test and where the model is wrong",
        text: include_str!("templates/machine_learning.src.md"),
    },
    Template {
        name: "tree_of_thought",
        title: "Tree of Thought",
        description: "Explore a tree of partial solutions, value them, keep the best, and read off the best path",
        text: include_str!("templates/tree_of_thought.src.md"),
    },
    Template {
        name: "beam_search",
        title: "Beam search",
        description: "Keep the few best partial solutions at every step; compare widths",
        text: include_str!("templates/beam_search.src.md"),
    },
    Template {
        name: "mcts",
        title: "Monte Carlo tree search",
        description: "Select, expand, simulate, back up; choose the most visited move",
        text: include_str!("templates/mcts.src.md"),
    },
];

pub fn templates() -> &'static [Template] {
    &TEMPLATES
}

pub fn template(name: &str) -> Option<&'static Template> {
    TEMPLATES.iter().find(|template| template.name == name)
}
