//! Tags and text of HTML and SVG, read in one pass and without judging them: whatever is no tag is text.

/// Elements whose content is no text.
const RAW: [&str; 3] = ["script", "style", "template"];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Text with its entities as written.
    Text(&'a str),
    Open {
        name: String,
        attributes: &'a str,
    },
    Close {
        name: String,
    },
}

/// Tokens of a markup. Comments, declarations, scripts and styles are skipped.
pub(super) struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(markup: &'a str) -> Self {
        Self { rest: markup }
    }

    fn tag(&mut self) -> Token<'a> {
        let inside = &self.rest[1..];
        let (is_closing, inside) = match inside.strip_prefix('/') {
            Some(inside) => (true, inside),
            None => (false, inside),
        };
        let end = tag_end(inside);
        let (tag, rest) = inside.split_at(end);
        self.rest = rest.strip_prefix('>').unwrap_or(rest);
        let name_end = tag.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(tag.len());
        let (name, attributes) = tag.split_at(name_end);
        let name = name.to_ascii_lowercase();
        if is_closing {
            return Token::Close { name };
        }
        if RAW.contains(&name.as_str()) && !attributes.ends_with('/') {
            self.rest = after_raw(self.rest, &name);
        }
        Token::Open { name, attributes }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            if let Some(comment) = self.rest.strip_prefix("<!--") {
                self.rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
                continue;
            }
            if self.rest.starts_with("<!") || self.rest.starts_with("<?") {
                self.rest = self.rest.find('>').map_or("", |end| &self.rest[end + 1..]);
                continue;
            }
            if is_tag(self.rest) {
                return Some(self.tag());
            }
            // A "<" that opens no tag is text.
            let next = self.rest.bytes().skip(1).position(|byte| byte == b'<');
            let (text, rest) = self.rest.split_at(next.map_or(self.rest.len(), |at| at + 1));
            self.rest = rest;
            return Some(Token::Text(text));
        }
    }
}

fn is_tag(markup: &str) -> bool {
    let inside = markup
        .strip_prefix('<')
        .map(|inside| inside.strip_prefix('/').unwrap_or(inside));
    inside.is_some_and(|inside| inside.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Position of the ">" that ends a tag, outside of the quotes of its attributes.
fn tag_end(tag: &str) -> usize {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    tag.len()
}

/// Markup after a raw element: from its closing tag on.
fn after_raw<'a>(markup: &'a str, name: &str) -> &'a str {
    let is_close = |at: &usize| {
        let close = markup.as_bytes().get(at + 2..at + 2 + name.len());
        markup[*at..].starts_with("</") && close.is_some_and(|close| close.eq_ignore_ascii_case(name.as_bytes()))
    };
    let end = markup.match_indices('<').map(|(at, _)| at).find(is_close);
    end.map_or("", |at| &markup[at..])
}

/// Value of an attribute in the part of a tag after its name.
pub(super) fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/' || c == '=');
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .find(|c: char| c.is_whitespace() || c == '=' || c == '/')
            .unwrap_or(rest.len());
        let (found, after) = rest.split_at(end);
        let Some(value) = after.trim_start().strip_prefix('=').map(str::trim_start) else {
            rest = after;
            continue;
        };
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let inside = &value[1..];
                let end = inside.find(quote).unwrap_or(inside.len());
                (&inside[..end], inside.get(end + 1..).unwrap_or_default())
            }
            _ => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
        };
        if found.eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = after;
    }
}

/// Text with its entities as characters.
pub(super) fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = rest.as_bytes().iter().take(12).position(|byte| *byte == b';');
        match known.and_then(|end| Some((entity(&rest[1..end])?, end))) {
            Some((character, end)) => {
                plain.push(character);
                rest = &rest[end + 1..];
            }
            None => {
                plain.push('&');
                rest = &rest[1..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        return code
            .ok()
            .and_then(char::from_u32)
            .filter(|c| !c.is_control() || *c == '\n');
    }
    let character = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "times" => '\u{d7}',
        "middot" => '\u{b7}',
        "deg" => '\u{b0}',
        "plusmn" => '\u{b1}',
        "micro" => '\u{b5}',
        "ndash" => '\u{2013}',
        "mdash" => '\u{2014}',
        "hellip" => '\u{2026}',
        "rarr" => '\u{2192}',
        "copy" => '\u{a9}',
        "euro" => '\u{20ac}',
        _ => return None,
    };
    Some(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_by_name() {
        let attributes = r#" class="a b" hidden src='x>y' width=12 data-width="1"/"#;
        for (name, value) in [
            ("class", Some("a b")),
            ("src", Some("x>y")),
            ("WIDTH", Some("12")),
            ("hidden", None),
            ("none", None),
        ] {
            assert_eq!(attribute(attributes, name), value, "{name}");
        }
        assert_eq!(attribute(" a=\"never closed", "a"), Some("never closed"));
    }

    #[test]
    fn what_is_no_tag_is_text() {
        let texts = |markup: &str| -> String {
            let tokens = Tokens::of(markup);
            tokens
                .filter_map(|token| {
                    if let Token::Text(text) = token {
                        Some(text.to_owned())
                    } else {
                        None
                    }
                })
                .collect()
        };
        for (markup, text) in [
            ("a < b", "a < b"),
            ("<!-- no -->a<br/>b", "ab"),
            ("<SCRIPT>if (a</b>)</script>c", "c"),
            ("<!DOCTYPE html>x<style>y", "x"),
            ("<a title='>'>x</a>", "x"),
            ("<", "<"),
            ("<b", ""),
            ("<é", "<é"),
        ] {
            assert_eq!(texts(markup), text, "{markup}");
        }
        assert_eq!(unescaped("&lt;b&gt; &amp; &#228;&#xe4; &none; &"), "<b> & ää &none; &");
        assert_eq!(unescaped("&é;&#0;"), "&é;&#0;");
    }
}
