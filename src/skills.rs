//! Skills: know-how about the tools in the form of Agent Skills, which clients load when they need it. The same files lie
//! in the repository's `skills/` for who installs them by hand. Knows nothing of MCP's wire types.

use serde_json::{Map, Value};

use crate::config::token::sha256_hex;

/// A skill, which is one file here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skill {
    /// The name of its folder, and the one in its front matter.
    pub name: &'static str,
    pub text: &'static str,
}

const SKILLS: &[Skill] = &[Skill {
    name: "jupyter-notebooks",
    text: include_str!("../skills/jupyter-notebooks/SKILL.md"),
}];

pub fn skills() -> &'static [Skill] {
    SKILLS
}

impl Skill {
    pub fn uri(&self) -> String {
        format!("skill://{}/SKILL.md", self.name)
    }

    pub fn description(&self) -> &'static str {
        let found = self.front_matter_lines().find(|(key, _)| *key == "description");
        found.map(|(_, value)| value).unwrap_or_default()
    }

    /// The front matter as JSON. It is written in plain lines, which mean the same to every reader of YAML.
    pub fn front_matter(&self) -> Map<String, Value> {
        let members = self.front_matter_lines();
        members.map(|(key, value)| (key.to_owned(), value.into())).collect()
    }

    fn front_matter_lines(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let lines = self.text.lines().skip(1).take_while(|line| *line != "---");
        lines.filter_map(|line| line.split_once(": "))
    }

    /// The digest of its text, as clients check it.
    pub fn digest(&self) -> String {
        format!("sha256:{}", sha256_hex(self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_plain() {
        for skill in skills() {
            assert!(skill.text.starts_with("---\n"), "{}", skill.name);
            let front_matter = skill.front_matter();
            let keys: Vec<&str> = front_matter.keys().map(String::as_str).collect();
            assert_eq!(keys, ["description", "name"], "{}", skill.name);
            assert_eq!(front_matter["name"], skill.name);
            let description = skill.description();
            assert!((20..=1024).contains(&description.len()), "{description}");
            // What YAML would read otherwise.
            let is_plain = !description.contains(": ") && !description.contains(" #");
            assert!(
                is_plain && description.starts_with(char::is_alphabetic),
                "{description}"
            );
            assert_eq!(skill.digest().len(), "sha256:".len() + 64);
        }
    }
}
