//! The groups in which tools are offered and selected.

use std::{collections::HashSet, fmt, str::FromStr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Toolset {
    Gateway,
    Url,
    Notebook,
    Kernel,
    Execution,
    Document,
    Files,
    Session,
    History,
    Awareness,
    Collab,
    Classic,
    Datalayer,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown toolset {name:?}; allowed: {allowed}, default, all", allowed = Toolset::names())]
pub struct ToolsetError {
    name: String,
}

impl Toolset {
    pub const ALL: [Self; 13] = [
        Self::Gateway,
        Self::Url,
        Self::Notebook,
        Self::Kernel,
        Self::Execution,
        Self::Document,
        Self::Files,
        Self::Session,
        Self::History,
        Self::Awareness,
        Self::Collab,
        Self::Classic,
        Self::Datalayer,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Url => "url",
            Self::Notebook => "notebook",
            Self::Kernel => "kernel",
            Self::Execution => "execution",
            Self::Document => "document",
            Self::Files => "files",
            Self::Session => "session",
            Self::History => "history",
            Self::Awareness => "awareness",
            Self::Collab => "collab",
            Self::Classic => "classic",
            Self::Datalayer => "datalayer",
        }
    }

    /// Few agents need to know more of people than reads tell, and the vocabularies of other servers say the same things
    /// again, so a client asks for them.
    pub fn is_default(self) -> bool {
        !matches!(self, Self::Awareness | Self::Collab | Self::Classic | Self::Datalayer)
    }

    /// Reads a selection such as `notebook,kernel`, where `default` and `all` name groups. The order counts: where two
    /// toolsets have a tool of the same name, it is that of the first.
    pub fn parse_list<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Self>, ToolsetError> {
        let mut selected = Vec::new();
        for name in names.into_iter().map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "all" => selected.extend(Self::ALL),
                "default" => selected.extend(Self::defaults()),
                one => selected.push(one.parse()?),
            }
        }
        let mut seen = HashSet::new();
        selected.retain(|toolset| seen.insert(*toolset));
        Ok(selected)
    }

    pub fn defaults() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|toolset| toolset.is_default())
    }

    fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

impl FromStr for Toolset {
    type Err = ToolsetError;

    fn from_str(name: &str) -> Result<Self, ToolsetError> {
        Self::ALL
            .into_iter()
            .find(|toolset| toolset.as_str() == name)
            .ok_or_else(|| ToolsetError {
                name: name.chars().take(100).collect(),
            })
    }
}

impl fmt::Display for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_read() {
        assert_eq!(
            Toolset::parse_list(["notebook", " kernel "]),
            Ok(vec![Toolset::Notebook, Toolset::Kernel])
        );
        assert_eq!(
            Toolset::parse_list(["kernel", "notebook", "kernel"]),
            Ok(vec![Toolset::Kernel, Toolset::Notebook])
        );
        assert_eq!(Toolset::parse_list(["all"]).expect("valid").len(), 13);
        assert_eq!(Toolset::parse_list(["default", "collab"]).expect("valid").len(), 10);
        assert_eq!(Toolset::parse_list(Vec::<&str>::new()), Ok(vec![]));
        let error = Toolset::parse_list(["notebooks"]).expect_err("unknown").to_string();
        assert!(
            error.contains("\"notebooks\"") && error.contains("notebook, kernel"),
            "{error}"
        );
    }
}
