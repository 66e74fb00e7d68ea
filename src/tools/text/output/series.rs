//! Values of a plot: how many, and from where to where. Plain lists, and the packed arrays of Plotly and Bokeh.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::phrase::{name, number};

/// Categories that are told by name.
const MAX_CATEGORIES: usize = 4;
/// Rows of rows that a list may be nested in.
const MAX_NESTING: usize = 4;

/// Number of values and their range.
pub(super) struct Series {
    pub(super) count: usize,
    /// "0..99", "2024-01-01..2024-03-01", "a, b, c".
    pub(super) range: Option<String>,
}

impl Series {
    /// None for what is no list.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let mut summary = Summary::default();
        match value {
            Value::Array(items) => summary.add_items(items, 0),
            other => summary.add_packed(other)?,
        }
        Some(summary.into_series())
    }

    /// Series of the values that rows have in a column.
    pub(super) fn of_column(rows: &[Value], column: &str) -> Self {
        let mut summary = Summary::default();
        for value in rows.iter().filter_map(|row| row.get(column)) {
            summary.add(value);
        }
        summary.into_series()
    }
}

#[derive(Default)]
struct Summary<'a> {
    count: usize,
    numbers: Option<(f64, f64)>,
    dates: Option<(&'a str, &'a str)>,
    categories: Vec<&'a str>,
    has_more_categories: bool,
}

impl<'a> Summary<'a> {
    fn add_items(&mut self, items: &'a [Value], nesting: usize) {
        for item in items {
            match item {
                Value::Array(inner) if nesting < MAX_NESTING => self.add_items(inner, nesting + 1),
                item => self.add(item),
            }
        }
    }

    fn add(&mut self, value: &'a Value) {
        self.count += 1;
        match value {
            Value::Number(number) => self.add_number(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) if is_date(text) => {
                let text = text.as_str();
                let (first, last) = self.dates.unwrap_or((text, text));
                self.dates = Some((first.min(text), last.max(text)));
            }
            Value::String(text) if !self.categories.contains(&text.as_str()) => match self.categories.len() {
                MAX_CATEGORIES => self.has_more_categories = true,
                _ => self.categories.push(text),
            },
            _ => {}
        }
    }

    fn add_number(&mut self, number: f64) {
        if number.is_finite() {
            let (least, most) = self.numbers.unwrap_or((number, number));
            self.numbers = Some((least.min(number), most.max(number)));
        }
    }

    /// Typed arrays in base64: `{"dtype", "bdata"}` of Plotly, `{"dtype", "array": {"data"}}` and `{"dtype", "__ndarray__"}` of Bokeh.
    fn add_packed(&mut self, packed: &Value) -> Option<()> {
        let data = [
            packed.get("bdata"),
            packed.get("__ndarray__"),
            packed.pointer("/array/data"),
        ];
        let data = data.into_iter().flatten().find_map(Value::as_str)?;
        let kind = Element::named(packed.get("dtype")?.as_str()?)?;
        let bytes = BASE64_STANDARD.decode(data).ok()?;
        for element in bytes.chunks_exact(kind.size()) {
            self.count += 1;
            self.add_number(kind.read(element));
        }
        Some(())
    }

    fn into_series(self) -> Series {
        let (numbers, dates) = (self.numbers, self.dates);
        let range = match (numbers, dates) {
            (Some((least, most)), _) => Some(range(number(least), number(most))),
            (None, Some((first, last))) => Some(range(date(first), date(last))),
            (None, None) if self.categories.is_empty() => None,
            (None, None) => {
                let mut names: Vec<String> = self.categories.into_iter().map(name).collect();
                if self.has_more_categories {
                    names.push("...".to_owned());
                }
                Some(names.join(", "))
            }
        };
        Series {
            count: self.count,
            range,
        }
    }
}

fn range(first: String, last: String) -> String {
    if first == last {
        first
    } else {
        format!("{first}..{last}")
    }
}

/// Returns whether a text begins like an ISO 8601 date: such dates sort as text.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = [0, 1, 2, 3, 5, 6];
    bytes.get(4) == Some(&b'-') && digits.iter().all(|at| bytes.get(*at).is_some_and(u8::is_ascii_digit))
}

/// A date without a time of nought.
fn date(text: &str) -> String {
    let shown = match text.split_once(['T', ' ']) {
        Some((day, time)) if !time.contains(|c: char| ('1'..='9').contains(&c)) => day,
        // Fractions of a second that are all zero.
        Some((_, time)) => match time.rsplit_once('.') {
            Some((_, zeros)) if zeros.chars().all(|c| c == '0') => &text[..text.len() - zeros.len() - 1],
            _ => text,
        },
        None => text,
    };
    name(shown)
}

/// Type of the elements of a packed array, little-endian.
#[derive(Clone, Copy)]
enum Element {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl Element {
    fn named(name: &str) -> Option<Self> {
        Some(match name.trim_start_matches(['<', '|', '=']) {
            "i1" | "int8" => Self::I8,
            "u1" | "u1c" | "uint8" => Self::U8,
            "i2" | "int16" => Self::I16,
            "u2" | "uint16" => Self::U16,
            "i4" | "int32" => Self::I32,
            "u4" | "uint32" => Self::U32,
            "i8" | "int64" => Self::I64,
            "u8" | "uint64" => Self::U64,
            "f4" | "float32" => Self::F32,
            "f8" | "float64" => Self::F64,
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers are told to four digits")]
    fn read(self, bytes: &[u8]) -> f64 {
        let mut padded = [0; 8];
        for (place, byte) in padded.iter_mut().zip(bytes) {
            *place = *byte;
        }
        let [a, b, c, d, ..] = padded;
        match self {
            Self::I8 => f64::from(i8::from_le_bytes([a])),
            Self::U8 => f64::from(a),
            Self::I16 => f64::from(i16::from_le_bytes([a, b])),
            Self::U16 => f64::from(u16::from_le_bytes([a, b])),
            Self::I32 => f64::from(i32::from_le_bytes([a, b, c, d])),
            Self::U32 => f64::from(u32::from_le_bytes([a, b, c, d])),
            Self::F32 => f64::from(f32::from_le_bytes([a, b, c, d])),
            Self::I64 => i64::from_le_bytes(padded) as f64,
            Self::U64 => u64::from_le_bytes(padded) as f64,
            Self::F64 => f64::from_le_bytes(padded),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_counted_and_ranged() {
        let packed = |dtype: &str, bytes: &[u8]| json!({ "dtype": dtype, "bdata": BASE64_STANDARD.encode(bytes), "shape": "1, 2" });
        for (value, count, range) in [
            (json!([3, 1.5, null, 2]), 4, Some("1.5..3")),
            (json!([7, 7]), 2, Some("7")),
            (json!([[1, 2], [3, 4]]), 4, Some("1..4")),
            (
                json!(["2024-03-01T00:00:00.000", "2024-01-31T00:00:00.000"]),
                2,
                Some("2024-01-31..2024-03-01"),
            ),
            (json!(["b", "a", "b"]), 3, Some("b, a")),
            (json!(["a", "b", "c", "d", "e"]), 5, Some("a, b, c, d, ...")),
            (json!([null, {}]), 2, None),
            (packed("i1", &[255, 3]), 2, Some("-1..3")),
            (packed("u2", &[1, 0, 0, 1]), 2, Some("1..256")),
            (
                packed("f8", &[1.5_f64.to_le_bytes(), f64::NAN.to_le_bytes()].concat()),
                2,
                Some("1.5"),
            ),
            (
                json!({ "dtype": "int32", "array": { "data": "AQAAAA==" } }),
                1,
                Some("1"),
            ),
        ] {
            let series = Series::of(&value).unwrap();
            assert_eq!((series.count, series.range.as_deref()), (count, range), "{value}");
        }
        for value in [
            json!("x"),
            json!(null),
            packed("what", &[1]),
            json!({ "dtype": "i1", "bdata": "not base64!" }),
        ] {
            assert!(Series::of(&value).is_none(), "{value}");
        }
    }
}
