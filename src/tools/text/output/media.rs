//! Lines for outputs that are neither text nor a figure: SVG, audio, video, maps, documents and other bytes.

use base64::{Engine, prelude::BASE64_STANDARD};
use jupyter_client::counted;
use serde_json::Value;

use super::{
    markup::{Token, Tokens, attribute, unescaped},
    phrase::{listed, name, number, one_line, quoted},
};
use crate::tools::images;

/// Bytes of the texts in a drawing.
const MAX_TEXTS: usize = 300;
/// Characters of base64 that have the header of a sound; a multiple of four.
const WAV_HEADER: usize = 256;
/// Features of a map that are looked at for what is told of all.
const MAX_FEATURES: usize = 1000;

/// Line about a drawing: `SVG 120x80 "Plan": Room, B`.
pub(super) fn svg_line(svg: &str) -> String {
    let (mut size, mut title, mut texts) = (None, None, String::new());
    let mut around: Vec<String> = Vec::new();
    for token in Tokens::of(svg) {
        match token {
            Token::Open { name, attributes } => {
                if name == "svg" && size.is_none() {
                    size = svg_size(attributes);
                }
                if !attributes.ends_with('/') && matches!(name.as_str(), "title" | "text" | "tspan" | "svg") {
                    around.push(name);
                }
            }
            Token::Close { name } => {
                if around.last() == Some(&name) {
                    around.pop();
                }
            }
            Token::Text(text) => match around.last().map(String::as_str) {
                Some("title") if title.is_none() => title = Some(unescaped(text)),
                Some("text" | "tspan") if texts.len() <= MAX_TEXTS && !text.trim().is_empty() => {
                    let separator = if texts.is_empty() { "" } else { ", " };
                    texts = format!("{texts}{separator}{}", one_line(&unescaped(text), MAX_TEXTS));
                }
                _ => {}
            },
        }
    }
    let size = size.map(|size| format!(" {size}")).unwrap_or_default();
    let title = title.map(|title| format!(" {}", quoted(&title))).unwrap_or_default();
    let texts = match texts.is_empty() {
        true => format!(", {}", counted(svg.len(), "byte")),
        false => format!(": {}", one_line(&texts, MAX_TEXTS)),
    };
    format!("SVG{size}{title}{texts}")
}

fn svg_size(attributes: &str) -> Option<String> {
    let side = |name: &str| attribute(attributes, name).filter(|side| !side.contains('%'));
    if let (Some(width), Some(height)) = (side("width"), side("height")) {
        return Some(format!("{}x{}", name(width), name(height)));
    }
    let mut sides = attribute(attributes, "viewBox")?
        .split([' ', ','])
        .filter(|side| !side.is_empty())
        .skip(2);
    Some(format!("{}x{}", name(sides.next()?), name(sides.next()?)))
}

/// Line about bytes in base64: `audio/wav, 844 bytes, 0.5 s`, `image/png, 640x480`.
pub(super) fn bytes_line(mime: &str, base64: &str) -> String {
    let mime = name(mime);
    let size = decoded_size(base64);
    if images::is_image(&mime)
        && let Some((width, height)) = images::size_in_pixels(base64)
    {
        return format!("{mime} {width}x{height}");
    }
    match wav_seconds(base64) {
        Some(seconds) => format!("{mime}, {}, {} s", counted(size, "byte"), number(seconds)),
        None => format!("{mime}, {}", counted(size, "byte")),
    }
}

/// Line about what an address holds in itself.
pub(super) fn data_url_line(url: &str) -> Option<String> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    let mime = kind
        .split(';')
        .next()
        .filter(|mime| !mime.is_empty())
        .unwrap_or("text/plain");
    match kind.ends_with(";base64") {
        true => Some(bytes_line(mime, data)),
        false => Some(format!("{}, {}", name(mime), counted(data.len(), "byte"))),
    }
}

fn decoded_size(base64: &str) -> usize {
    let digits = base64
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=')
        .count();
    digits / 4 * 3 + (digits % 4 * 3) / 4
}

/// Duration of a sound whose header tells it.
fn wav_seconds(base64: &str) -> Option<f64> {
    let header: Vec<u8> = base64
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .take(WAV_HEADER)
        .collect();
    let header = BASE64_STANDARD.decode(header).ok()?;
    let number_at = |at: usize| Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?));
    if header.get(..4)? != b"RIFF" || header.get(8..12)? != b"WAVE" {
        return None;
    }
    let (mut at, mut bytes_per_second) = (12, None);
    loop {
        let (kind, size) = (header.get(at..at + 4)?, number_at(at + 4)?);
        match kind {
            b"fmt " => bytes_per_second = number_at(at + 16),
            b"data" => {
                let rate = bytes_per_second.filter(|rate| *rate > 0)?;
                return Some(f64::from(size) / f64::from(rate));
            }
            _ => {}
        }
        at = at.checked_add(8)?.checked_add(usize::try_from(size).ok()?)?;
    }
}

/// Line about a map: `GeoJSON: 1 feature (Point), properties name`.
pub(super) fn geojson_line(map: &Value) -> String {
    let features = map.get("features").and_then(Value::as_array);
    let features = features.map_or(std::slice::from_ref(map), Vec::as_slice);
    let mut kinds: Vec<String> = Vec::new();
    let mut properties: Vec<String> = Vec::new();
    for feature in features.iter().take(MAX_FEATURES) {
        let geometry = feature.get("geometry").unwrap_or(feature);
        let kind = geometry.get("type").and_then(Value::as_str).map(name);
        let names = feature.get("properties").and_then(Value::as_object);
        for (known, found) in [
            (&mut kinds, kind.into_iter().collect::<Vec<_>>()),
            (
                &mut properties,
                names
                    .into_iter()
                    .flatten()
                    .take(20)
                    .map(|(property, _)| name(property))
                    .collect(),
            ),
        ] {
            let new = found
                .into_iter()
                .filter(|found| known.len() < 20 && !known.contains(found))
                .collect::<Vec<_>>();
            known.extend(new);
        }
    }
    let mut line = format!("GeoJSON: {}", counted(features.len(), "feature"));
    if !kinds.is_empty() {
        line = format!("{line} ({})", listed(kinds, ", "));
    }
    if !properties.is_empty() {
        line = format!("{line}, properties {}", listed(properties, ", "));
    }
    line
}
