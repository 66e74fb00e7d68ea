//! The outputs of one cell, folded from the kernel's messages as JupyterLab folds them. Knows what the
//! shared document has of them already, so that only the difference is written. Does no I/O.

mod nbformat;

use live_document::{OutputsChange, StreamTail};
use serde_json::{Value, json};

use self::nbformat::{
    as_prompt, data_members, display_id, shortened, size_of, stream, stream_text, text, utf16_len, without_colours,
};
use super::terminal::{Terminal, Written};

/// Stream in which JupyterLab keeps questions of code and their answers, apart from what it printed.
const STDIN: &str = "stdin";
/// Bytes reserved for an error, whatever came before it.
const ERROR_ALLOWANCE: usize = 256 * 1024;
/// Characters of the latest output in a progress message.
const MAX_PROGRESS_CHARS: usize = 200;

pub(crate) struct Outputs {
    list: Vec<Output>,
    /// Nothing is kept beyond this.
    limit: usize,
    bytes: usize,
    /// True if a marker says that something is missing.
    marked: bool,
    missing: Missing,
    /// The next output takes the place of all.
    clear_next: bool,
    document: Document,
    /// Number of outputs at the start that an earlier process wrote.
    adopted: usize,
}

/// Number of characters that are not kept.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Missing {
    lost: usize,
    /// Length of the text that says so.
    told: usize,
}

impl Missing {
    /// Number of characters that are missing from what is kept and told.
    pub(crate) fn characters(self) -> usize {
        self.lost.saturating_sub(self.told)
    }

    fn add(&mut self, other: Self) {
        self.lost += other.lost;
        self.told += other.told;
    }
}

enum Output {
    Stream {
        name: String,
        terminal: Terminal,
    },
    Other {
        value: Value,
        size: usize,
        display_id: Option<String>,
    },
}

/// State of the shared document.
#[derive(Default)]
struct Document {
    /// Number of outputs.
    written: usize,
    /// Number of those that are the same as here.
    clean: usize,
    /// Of a stream that follows these and differs only in its end: how many bytes are the same...
    same: usize,
    /// ...and how many UTF-16 units the document has beyond them.
    rest: u32,
    /// Outputs before this one are out of reach, since somebody else changed the document's.
    attached: usize,
    /// Difference between an output's place in the document and its place here.
    shift: isize,
}

impl Outputs {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            list: Vec::new(),
            limit,
            bytes: 0,
            marked: false,
            missing: Missing::default(),
            clear_next: false,
            document: Document::default(),
            adopted: 0,
        }
    }

    /// Takes outputs that are in the document already for its own. They take the place of those that were taken so
    /// before; what has come since follows them, and is still to be written.
    pub(crate) fn adopt(&mut self, outputs: &[Value]) {
        let new = self.list.split_off(self.adopted.min(self.list.len()));
        *self = Self::new(self.limit);
        self.list.extend(outputs.iter().map(Output::from_json));
        (self.document.written, self.document.clean) = (self.list.len(), self.list.len());
        self.settle_tail();
        self.adopted = self.list.len();
        self.list.extend(new);
        self.bytes = self.list.iter().map(|output| size_of(&output.to_json())).sum();
    }

    /// The outputs as nbformat has them. Questions and answers are for people who look at the cell; whoever runs the code has them already.
    pub(crate) fn to_json(&self) -> Vec<Value> {
        self.told(Output::to_json)
    }

    fn told(&self, mut show: impl FnMut(&Output) -> Value) -> Vec<Value> {
        let mut told: Vec<Value> = Vec::new();
        let mut left_out = false;
        for output in &self.list {
            if output.is_question() {
                left_out = true;
                continue;
            }
            let value = show(output);
            let follows = std::mem::take(&mut left_out);
            match told.last_mut().and_then(|last| stream_text(last, &value)) {
                // The kernel said it as one stream.
                Some(text) if follows => text.push_str(self::text(&value, "text")),
                _ => told.push(value),
            }
        }
        told
    }

    /// The same within a number of bytes, and how much is missing then. Errors are kept in any case, long streams keep
    /// their beginning and their end, and what is left out says so.
    pub(crate) fn to_json_within(&self, limit: usize) -> (Vec<Value>, Missing) {
        let mut left = limit;
        let mut missing = self.missing;
        let keep = |output: &Output| {
            let value = output.to_json();
            let size = size_of(&value);
            let kept = match output {
                _ if size <= left => value,
                Output::Stream { name, terminal } => {
                    let (text, left_out) = shortened(terminal.text(), left);
                    missing.add(left_out);
                    stream(name, &text)
                }
                Output::Other { value, .. } if value.get("output_type").is_some_and(|kind| kind == "error") => {
                    value.clone()
                }
                Output::Other { .. } => {
                    let text = format!("[output of {size} bytes left out: too large]\n");
                    let told = text.chars().count();
                    missing.add(Missing { lost: size, told });
                    stream("stderr", &text)
                }
            };
            left = left.saturating_sub(size);
            kept
        };
        let kept = self.told(keep);
        (kept, missing)
    }

    /// The size of the output that is not kept.
    pub(crate) fn missing(&self) -> Missing {
        self.missing
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a message of the kernel; returns whether it is about outputs and changed something.
    pub(crate) fn apply(&mut self, msg_type: &str, content: &Value) -> bool {
        match msg_type {
            "stream" => {
                self.apply_pending_clear();
                self.stream(text(content, "name"), text(content, "text"));
            }
            "display_data" | "execute_result" => {
                self.apply_pending_clear();
                self.push_data(msg_type, content);
            }
            "error" => {
                self.apply_pending_clear();
                self.push_error(content);
            }
            "update_display_data" => return self.update_display(content),
            "clear_output" if content.get("wait").and_then(Value::as_bool).unwrap_or(false) => {
                self.clear_next = true;
                return false;
            }
            "clear_output" => self.clear(),
            _ => return false,
        }
        true
    }

    /// Replaces what is shown under a display id; returns whether anything was.
    pub(crate) fn update_display(&mut self, content: &Value) -> bool {
        let Some(wanted) = display_id(content) else {
            return false;
        };
        let new = data_members(content);
        let (mut changed, mut too_large) = (false, false);
        for (index, output) in self.list.iter_mut().enumerate() {
            let Output::Other {
                value,
                size,
                display_id,
            } = output
            else {
                continue;
            };
            if display_id.as_deref() != Some(wanted.as_str()) {
                continue;
            }
            let mut updated = value.clone();
            if let Value::Object(members) = &mut updated {
                members.extend(new.clone());
            }
            let now = size_of(&updated);
            if self.bytes - *size + now > self.limit {
                too_large = true;
                continue;
            }
            self.bytes = self.bytes - *size + now;
            (*value, *size) = (updated, now);
            self.document.changed(index);
            changed = true;
        }
        if too_large {
            self.mark();
        }
        changed || too_large
    }

    /// Says in the outputs how the run ended, where the kernel could not.
    pub(crate) fn push_end(&mut self, ename: &str, evalue: &str) {
        self.push_error(&json!({ "ename": ename, "evalue": evalue, "traceback": [format!("{ename}: {evalue}")] }));
    }

    /// Shows what the code asks, as the beginning of a line; returns whether there is anything to be shown.
    pub(crate) fn ask(&mut self, prompt: &str) -> bool {
        self.apply_pending_clear();
        if !prompt.is_empty() {
            self.stream(STDIN, &as_prompt(prompt));
        }
        !prompt.is_empty()
    }

    /// Ends the line of a question with its answer, as JupyterLab does. Without an answer, which is a password then, it is
    /// taken away.
    pub(crate) fn answer(&mut self, prompt: &str, answer: Option<&str>) {
        match answer {
            Some(answer) => self.stream(STDIN, &format!("{answer}\n")),
            None => self.withdraw(&as_prompt(prompt)),
        }
    }

    /// Takes a question away, if nothing follows it.
    fn withdraw(&mut self, prompt: &str) {
        let last = self.list.len().wrapping_sub(1);
        let Some(Output::Stream { name, terminal }) = self.list.last_mut() else {
            return;
        };
        let Some(before) = terminal.text().strip_suffix(prompt).filter(|_| name == STDIN) else {
            return;
        };
        let mut rest = Terminal::default();
        rest.write(before);
        let is_empty = before.is_empty();
        self.bytes = self.bytes.saturating_sub(prompt.len());
        *terminal = rest;
        if is_empty {
            self.list.pop();
        }
        // What comes next may belong to the output before.
        self.document.changed(last.saturating_sub(usize::from(is_empty)));
    }

    /// The last line of output, for people who wait.
    pub(crate) fn latest_line(&self) -> Option<String> {
        let line = match self.list.last()? {
            Output::Stream { terminal, .. } => terminal.text().trim_end().rsplit('\n').next()?.to_owned(),
            Output::Other { value, .. } => value
                .pointer("/data/text~1plain")
                .or_else(|| value.get("evalue"))?
                .as_str()?
                .lines()
                .last()?
                .to_owned(),
        };
        let line = line.trim();
        (!line.is_empty()).then(|| line.chars().take(MAX_PROGRESS_CHARS).collect())
    }

    /// Returns whether the last error came from a `raise` of this name, and not from an interrupt of the kernel.
    pub(crate) fn was_raised(&self, ename: &str) -> bool {
        let errors = self.list.iter().rev().filter_map(|output| match output {
            Output::Other { value, .. } if text(value, "output_type") == "error" => Some(value),
            _ => None,
        });
        let traceback = errors.take(1).filter_map(|error| error.get("traceback")?.as_array());
        let lines = traceback.flatten().filter_map(Value::as_str);
        let raise = format!("raise {ename}");
        lines.map(without_colours).any(|line| line.contains(&raise))
    }

    /// Takes the change that brings the document up to this, which then counts as written.
    pub(crate) fn take_change(&mut self) -> Option<OutputsChange> {
        let Document { attached, shift, .. } = self.document;
        let clean = self.document.clean.max(attached);
        if clean >= self.list.len() && self.document.written == self.list.len() {
            return None;
        }
        let place = |index: usize| index.saturating_add_signed(shift);
        let tail = match self.list.get(clean) {
            Some(Output::Stream { name, terminal })
                if self.document.same + self.document.rest as usize > 0 && clean < self.document.written =>
            {
                Some(StreamTail {
                    name: name.clone(),
                    cut: self.document.rest,
                    append: terminal.text()[self.document.same..].to_owned(),
                })
            }
            _ => None,
        };
        let first_new = clean + usize::from(tail.is_some());
        let change = OutputsChange {
            expected: place(self.document.written),
            keep: place(first_new),
            tail,
            push: self.list[first_new.min(self.list.len())..]
                .iter()
                .map(Output::to_json)
                .collect(),
        };
        self.document.written = self.list.len();
        self.document.clean = self.list.len();
        self.settle_tail();
        Some(change)
    }

    /// Records that somebody else changed the cell's outputs, so that what `change` brought was added after theirs.
    pub(crate) fn detached(&mut self, change: &OutputsChange, length: usize) {
        let added = change.push.len() + usize::from(change.tail.as_ref().is_some_and(|tail| !tail.append.is_empty()));
        self.document.attached = self.list.len().saturating_sub(added);
        self.document.shift = length.cast_signed() - self.list.len().cast_signed();
    }

    /// Records that the document has none of this, so that all must be written again.
    pub(crate) fn forget_written(&mut self) {
        self.document = Document::default();
    }

    /// An output that comes after `clear_output(wait=True)` takes the place of all.
    fn apply_pending_clear(&mut self) {
        if std::mem::take(&mut self.clear_next) {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.bytes = 0;
        self.marked = false;
        self.missing = Missing::default();
        self.clear_next = false;
        self.document.changed(0);
        // What is out of reach stays where it is.
        if self.document.attached > 0 {
            self.document.shift += self.document.attached.cast_signed();
            self.document.written = self.document.written.saturating_sub(self.document.attached);
            self.document.attached = 0;
        }
    }

    fn stream(&mut self, name: &str, new: &str) {
        let room = self.limit.saturating_sub(self.bytes);
        let fits = if new.len() <= room {
            new
        } else {
            &new[..new.floor_char_boundary(room)]
        };
        if !fits.is_empty() {
            self.append(name, fits);
        }
        if fits.len() < new.len() {
            self.missing.lost += new[fits.len()..].chars().count();
            self.mark();
        }
    }

    fn append(&mut self, name: &str, new: &str) {
        let last = self.list.len().wrapping_sub(1);
        if !matches!(self.list.last(), Some(Output::Stream { name: last, .. }) if last == name) {
            let mut terminal = Terminal::default();
            terminal.write(new);
            self.bytes += terminal.text().len();
            self.list.push(Output::Stream {
                name: name.to_owned(),
                terminal,
            });
            return;
        }
        let Some(Output::Stream { terminal, .. }) = self.list.last_mut() else {
            return;
        };
        let before = terminal.text().len();
        let Written { unchanged, removed } = terminal.write(new);
        self.bytes = self.bytes + terminal.text().len() - before;
        let document = &mut self.document;
        if document.written == last + 1 && document.clean >= last {
            if let Some(known) = document.same.checked_sub(unchanged) {
                document.rest += utf16_len(&removed[..known]);
                document.same = unchanged;
            }
            document.clean = last;
        }
    }

    fn push_data(&mut self, output_type: &str, content: &Value) {
        let mut members = data_members(content);
        members.insert("output_type".to_owned(), output_type.into());
        if output_type == "execute_result" {
            let count = content.get("execution_count").cloned().unwrap_or_default();
            members.insert("execution_count".to_owned(), count);
        }
        self.push(Value::Object(members), display_id(content), 0);
    }

    fn push_error(&mut self, content: &Value) {
        let error = json!({
            "output_type": "error",
            "ename": text(content, "ename"),
            "evalue": text(content, "evalue"),
            "traceback": content.get("traceback").filter(|lines| lines.is_array()).cloned().unwrap_or_else(|| json!([])),
        });
        self.push(error, None, ERROR_ALLOWANCE);
    }

    fn push(&mut self, value: Value, display_id: Option<String>, allowance: usize) {
        let size = size_of(&value);
        if self.bytes + size > self.limit + allowance {
            self.missing.lost += size;
            return self.mark();
        }
        self.bytes += size;
        self.list.push(Output::Other {
            value,
            size,
            display_id,
        });
    }

    fn mark(&mut self) {
        if !std::mem::replace(&mut self.marked, true) {
            let text = format!("\n[output beyond {} bytes left out]\n", self.limit);
            self.missing.told += text.chars().count();
            self.append("stderr", &text);
        }
    }

    fn settle_tail(&mut self) {
        self.document.rest = 0;
        self.document.same = match self.list.last() {
            Some(Output::Stream { terminal, .. }) => terminal.text().len(),
            _ => 0,
        };
    }
}

impl Document {
    /// An output changed beyond its end.
    fn changed(&mut self, index: usize) {
        if index < self.clean {
            self.clean = index;
        }
        if index < self.written {
            // The tail can only be told of a stream that nothing before has changed.
            (self.same, self.rest) = (0, 0);
        }
    }
}

impl Output {
    fn from_json(value: &Value) -> Self {
        match text(value, "output_type") {
            "stream" => {
                let mut terminal = Terminal::default();
                terminal.write(text(value, "text"));
                Self::Stream {
                    name: text(value, "name").to_owned(),
                    terminal,
                }
            }
            _ => Self::Other {
                value: value.clone(),
                size: size_of(value),
                display_id: None,
            },
        }
    }

    fn is_question(&self) -> bool {
        matches!(self, Self::Stream { name, .. } if name == STDIN)
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Stream { name, terminal } => stream(name, terminal.text()),
            Self::Other { value, .. } => value.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
