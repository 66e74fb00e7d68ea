//! The files that pages load: a style, a script and a picture, part of the program.

use std::sync::LazyLock;

use super::{Reply, reply};
use crate::config::token::sha256_hex;

const STYLE: &str = include_str!("assets/console.css");
const SCRIPT: &str = include_str!("assets/console.js");
const ICON: &str = include_str!("assets/icon.svg");

struct Asset {
    name: &'static str,
    kind: &'static str,
    content: &'static str,
    tag: String,
}

static ASSETS: LazyLock<[Asset; 3]> = LazyLock::new(|| {
    let asset = |name, kind, content| Asset {
        name,
        kind,
        content,
        tag: format!("\"{}\"", &sha256_hex(content)[..16]),
    };
    [
        asset("console.css", "text/css; charset=utf-8", STYLE),
        asset("console.js", "text/javascript; charset=utf-8", SCRIPT),
        asset("icon.svg", "image/svg+xml", ICON),
    ]
});

/// The file of a name, unless the browser has it already.
pub(super) fn find(name: &str, known: Option<&http::HeaderValue>) -> Option<Reply> {
    let asset = ASSETS.iter().find(|asset| asset.name == name)?;
    Some(reply::asset(asset.kind, asset.content.as_bytes(), &asset.tag, known))
}
