//! Other spellings of a parameter's name: camel case, hyphens, and a few words that mean the same everywhere.

use super::shape::Members;

/// Synonyms of parameters that models use out of habit, and the names here. Only where the meaning is certain; a name
/// that a tool has is never taken for another.
const SYNONYMS: &[(&str, &str)] = &[
    ("notebook_path", "path"),
    ("file_path", "path"),
    ("path", "notebook_path"),
    ("path", "document_path"),
    ("notebook_path", "document_path"),
    ("file_path", "document_path"),
    ("server", "server_url"),
    ("cell_type", "type"),
    ("type", "cell_type"),
    ("source", "content"),
    ("source", "cell_content"),
    ("source", "cell_source"),
    ("content", "cell_content"),
    ("content", "cell_source"),
    ("cell_content", "content"),
    ("cell_source", "content"),
    ("code", "cell_content"),
    ("index", "cell_index"),
    ("cell_index", "index"),
    ("direction", "location"),
    ("old_string", "old_text"),
    ("new_string", "new_text"),
    ("old_text", "old_string"),
    ("new_text", "new_string"),
    ("timeout_seconds", "timeout"),
    ("new_path", "copyPath"),
];

/// The name of the member that an unknown one is another spelling of, if there is exactly one.
pub(super) fn known_name<'a>(members: &'a Members, given: &str) -> Option<&'a str> {
    let mut spelled = members.names().filter(|name| is_same_word(name, given));
    if let Some(name) = spelled.next() {
        return spelled.next().is_none().then_some(name);
    }
    let meant = |(word, name): &(&str, &'static str)| is_same_word(word, given).then_some(*name);
    let mut meant = SYNONYMS.iter().filter_map(meant);
    meant.find_map(|name| members.names().find(|known| *known == name))
}

/// Returns whether two names differ only in how their words are joined.
fn is_same_word(one: &str, another: &str) -> bool {
    fn letters(name: &str) -> impl Iterator<Item = char> {
        let joints = |character: &char| !matches!(character, '_' | '-');
        name.chars()
            .filter(joints)
            .map(|character| character.to_ascii_lowercase())
    }
    letters(one).eq(letters(another))
}
