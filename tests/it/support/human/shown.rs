//! Awareness of a person: what they show, and what they see of others: names, cursors, selections.

use serde_json::{Value, json};
use yrs::{Assoc, GetString, IndexScope, IndexedSequence, ReadTxn, StickyIndex, TextRef, Transact};

use super::{Human, find, wire::presence};

impl Human {
    /// Says who this person is, and whether they want their work saved by itself.
    pub fn publish(&self, name: &str, autosave: bool) {
        let state = json!({
            "user": { "username": name, "name": name, "display_name": name, "initials": "H", "color": "#000000" },
            "autosave": autosave,
            "cursors": [],
        });
        self.say(state);
    }

    /// Says who this person is, with the cursor in a cell before the character at an offset.
    pub fn point_at(&self, name: &str, cell: &str, offset: u32) {
        let position = {
            let page = self.page();
            let txn = page.doc.transact();
            let source = find(&page, &txn, cell);
            match source
                .sticky_index(&txn, offset, Assoc::After)
                .as_ref()
                .map(StickyIndex::scope)
            {
                Some(IndexScope::Relative(id)) => {
                    let item = json!({ "client": id.client.get(), "clock": id.clock });
                    json!({ "type": null, "tname": null, "item": item, "assoc": 0 })
                }
                other => panic!("no character there: {other:?}"),
            }
        };
        self.say(json!({
            "user": { "username": name, "name": name, "display_name": name, "initials": "H", "color": "#000000" },
            "autosave": true,
            "cursors": [{ "anchor": position, "head": position, "primary": true, "empty": true }],
        }));
    }

    /// Says who this person is, with a selection in a cell, or in a text document, from one offset to another, the second
    /// of which is where the cursor is.
    pub fn select(&self, name: &str, cell: Option<&str>, anchor: u32, head: u32) {
        let positions = {
            let page = self.page();
            let txn = page.doc.transact();
            let text = cell.map_or_else(|| page.source.clone(), |cell| find(&page, &txn, cell));
            [anchor, head].map(|offset| relative_position(&text, &txn, offset))
        };
        let [anchor, head] = positions;
        let empty = anchor == head;
        self.say(json!({
            "user": user(name),
            "autosave": true,
            "cursors": [{ "anchor": anchor, "head": head, "primary": true, "empty": empty }],
        }));
    }

    pub(super) fn say(&self, state: Value) {
        let mut page = self.page();
        page.presence = state;
        page.clock += 1;
        let frame = presence(self.client, page.clock, &page.presence);
        drop(page);
        self.send(frame);
    }

    /// Awareness states of the others.
    pub fn others(&self) -> Vec<Value> {
        self.page()
            .others
            .values()
            .filter(|state| state.get("user").is_some())
            .cloned()
            .collect()
    }

    pub fn sees(&self, name: &str) -> bool {
        self.others().iter().any(|state| state["user"]["name"] == name)
    }

    /// Name that JupyterLab displays for somebody; empty if they are not here.
    pub fn shown_as(&self, name: &str) -> String {
        let others = self.others();
        let user = others.iter().find(|state| state["user"]["name"] == name);
        user.and_then(|state| state["user"]["display_name"].as_str())
            .unwrap_or_default()
            .to_owned()
    }

    /// The texts that somebody has selected, as JupyterLab finds them: it reads all members of a position.
    pub fn selected(&self, name: &str) -> Vec<String> {
        let others = self.others();
        let Some(state) = others.iter().find(|state| state["user"]["name"] == name) else {
            return Vec::new();
        };
        let page = self.page();
        let txn = page.doc.transact();
        let cursors = state["cursors"].as_array().cloned().unwrap_or_default();
        let text = |cursor: &Value| {
            let (start, end) = (place(&txn, &cursor["anchor"])?, place(&txn, &cursor["head"])?);
            assert_eq!(start.0, end.0, "both ends are in one text");
            assert_eq!(cursor["empty"], start.1 == end.1, "{cursor}");
            let units: Vec<u16> = start.0.get_string(&txn).encode_utf16().collect();
            String::from_utf16(&units[start.1..end.1]).ok()
        };
        cursors.iter().filter_map(text).collect()
    }
}

pub(super) fn user(name: &str) -> Value {
    json!({ "username": name, "name": name, "display_name": name, "initials": "H", "color": "#000000" })
}

/// A place in a text as JupyterLab writes it.
fn relative_position(text: &TextRef, txn: &impl ReadTxn, offset: u32) -> Value {
    let id = |id: &yrs::block::ID| json!({ "client": id.client.get(), "clock": id.clock });
    let at = text.sticky_index(txn, offset, Assoc::After);
    match at.as_ref().map(StickyIndex::scope) {
        Some(IndexScope::Relative(item)) => json!({ "type": null, "tname": null, "item": id(item), "assoc": 0 }),
        Some(IndexScope::Nested(branch)) => json!({ "type": id(branch), "tname": null, "item": null, "assoc": 0 }),
        Some(IndexScope::Root(name)) => json!({ "type": null, "tname": name.to_string(), "item": null, "assoc": 0 }),
        None => match yrs::SharedRef::hook(text).id() {
            yrs::BranchID::Nested(branch) => json!({ "type": id(branch), "tname": null, "item": null, "assoc": 0 }),
            yrs::BranchID::Root(name) => json!({ "type": null, "tname": name.to_string(), "item": null, "assoc": 0 }),
        },
    }
}

/// A place in a text by its relative position.
fn place(txn: &impl ReadTxn, position: &Value) -> Option<(TextRef, usize)> {
    for key in ["type", "tname", "item", "assoc"] {
        assert!(
            position.get(key).is_some(),
            "JupyterLab fails without {key}: {position}"
        );
    }
    let json = position.as_object()?.iter().filter(|(_, value)| !value.is_null());
    let json: serde_json::Map<String, Value> = json.map(|(key, value)| (key.clone(), value.clone())).collect();
    let sticky: StickyIndex = serde_json::from_value(Value::Object(json)).expect("a position");
    let offset = sticky.get_offset(txn)?;
    let text = TextRef::from(offset.branch);
    Some((text, offset.index as usize))
}
