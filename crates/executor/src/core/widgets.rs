//! Output widgets of ipywidgets. While one captures a run, the outputs are the widget's and not the cell's. The
//! client that sent the request sees to that, as JupyterLab does for what it sends itself. Does no I/O.

use jupyter_client::kernel::Message;
use serde_json::{Value, json};

use super::outputs::Outputs;

/// Widgets that are known; what the oldest would capture beyond these stays in the cell.
const MAX_WIDGETS: usize = 64;
/// Kept per widget.
const MAX_BYTES: usize = 1024 * 1024;

/// Output widgets of one kernel whose creation was seen; the last to begin a capture is the last here.
#[derive(Default)]
pub(crate) struct OutputWidgets(Vec<Widget>);

struct Widget {
    comm_id: String,
    outputs: Outputs,
    /// The request whose outputs it captures.
    captures: Option<String>,
    /// True if it has captured something that the kernel does not know of.
    is_ahead: bool,
}

impl OutputWidgets {
    /// Follows the messages about widgets. Returns the update for a widget that has stopped capturing, as the
    /// content of a `comm_msg`.
    pub(crate) fn on_message(&mut self, message: &Message, own_session: &str) -> Option<Value> {
        let text = |pointer: &str| message.content.pointer(pointer).and_then(Value::as_str);
        let comm_id = text("/comm_id")?;
        match message.msg_type.as_str() {
            "comm_open" if text("/data/state/_model_name") == Some("OutputModel") => {
                if self.0.len() == MAX_WIDGETS {
                    self.0.remove(0);
                }
                self.0.push(Widget::new(comm_id));
            }
            "comm_close" => self.0.retain(|widget| widget.comm_id != comm_id),
            "comm_msg" => {}
            _ => return None,
        }
        let at = self.0.iter().position(|widget| widget.comm_id == comm_id)?;
        let is_own_echo =
            text("/data/method") == Some("echo_update") && message.parent_session.as_deref() == Some(own_session);
        let outputs = message.content.pointer("/data/state/outputs").and_then(Value::as_array);
        if let Some(outputs) = outputs.filter(|_| !is_own_echo) {
            self.0[at].outputs.adopt(outputs);
        }
        let captures = text("/data/state/msg_id")?;
        self.0[at].captures = (!captures.is_empty()).then(|| captures.to_owned());
        if captures.is_empty() {
            return self.0[at].update();
        }
        let last = self.0.remove(at);
        self.0.push(last);
        None
    }

    /// Adds an output to the widget that captures it; returns whether one does.
    pub(crate) fn capture(&mut self, message: &Message) -> bool {
        let is_output = matches!(
            message.msg_type.as_str(),
            "stream" | "display_data" | "execute_result" | "error" | "clear_output"
        );
        let mut capturing = self
            .0
            .iter_mut()
            .rev()
            .filter(|widget| widget.captures == message.parent_id);
        let Some(widget) = capturing.next().filter(|_| is_output && message.parent_id.is_some()) else {
            return false;
        };
        widget.is_ahead |= widget.outputs.apply(&message.msg_type, &message.content);
        true
    }
}

impl Widget {
    fn new(comm_id: &str) -> Self {
        Self {
            comm_id: comm_id.to_owned(),
            outputs: Outputs::new(MAX_BYTES),
            captures: None,
            is_ahead: false,
        }
    }

    /// The update that brings the kernel, and with it all who show the widget, up to what was captured.
    fn update(&mut self) -> Option<Value> {
        let is_ahead = std::mem::take(&mut self.is_ahead);
        is_ahead.then(|| {
            let state = json!({ "outputs": self.outputs.to_json() });
            let data = json!({ "method": "update", "state": state, "buffer_paths": [] });
            json!({ "comm_id": self.comm_id, "data": data })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jupyter_client::kernel::Channel;

    fn said(msg_type: &str, content: Value) -> Message {
        Message {
            channel: Channel::Iopub,
            msg_id: "m".to_owned(),
            msg_type: msg_type.to_owned(),
            parent_id: Some("run".to_owned()),
            parent_session: Some("own".to_owned()),
            header: Value::Null,
            content,
            metadata: Value::Null,
            buffers: Vec::new(),
        }
    }

    fn comm(msg_type: &str, id: &str, method: &str, state: Value) -> Message {
        said(
            msg_type,
            json!({ "comm_id": id, "data": { "method": method, "state": state } }),
        )
    }

    fn print(text: &str) -> Message {
        said("stream", json!({ "name": "stdout", "text": text }))
    }

    fn texts(update: Option<Value>) -> Vec<String> {
        let update = update.expect("an update");
        let outputs = update
            .pointer("/data/state/outputs")
            .and_then(Value::as_array)
            .expect("outputs");
        outputs
            .iter()
            .map(|output| output["text"].as_str().expect("text").to_owned())
            .collect()
    }

    #[test]
    fn the_innermost_widget_captures_and_tells_when_it_stops() {
        let mut widgets = OutputWidgets::default();
        for id in ["a", "b"] {
            widgets.on_message(
                &comm(
                    "comm_open",
                    id,
                    "",
                    json!({ "_model_name": "OutputModel", "msg_id": "" }),
                ),
                "own",
            );
        }
        let sets = |id: &str, msg_id: &str| comm("comm_msg", id, "update", json!({ "msg_id": msg_id }));
        assert!(!widgets.capture(&print("free")));
        assert_eq!(widgets.on_message(&sets("b", "run"), "own"), None);
        assert_eq!(widgets.on_message(&sets("a", "run"), "own"), None);
        assert!(widgets.capture(&print("inner")));
        assert!(!widgets.capture(&said("status", json!({}))));
        assert_eq!(texts(widgets.on_message(&sets("a", ""), "own")), ["inner"]);
        assert!(widgets.capture(&print("outer")));
        assert_eq!(texts(widgets.on_message(&sets("b", ""), "own")), ["outer"]);
        assert_eq!(widgets.on_message(&sets("b", ""), "own"), None, "all is told");
        assert!(!widgets.capture(&print("free")));
    }

    #[test]
    fn what_others_write_into_a_widget_stays_there() {
        let mut widgets = OutputWidgets::default();
        let open = json!({ "_model_name": "OutputModel", "msg_id": "run" });
        widgets.on_message(&comm("comm_open", "a", "", open), "own");
        let theirs = json!({ "outputs": [{ "output_type": "stream", "name": "stdout", "text": "theirs " }] });
        widgets.on_message(&comm("comm_msg", "a", "update", theirs), "own");
        assert!(widgets.capture(&print("ours")));
        let stale = json!({ "outputs": [] });
        widgets.on_message(&comm("comm_msg", "a", "echo_update", stale.clone()), "own");
        let stops = comm("comm_msg", "a", "update", json!({ "msg_id": "" }));
        assert_eq!(
            texts(widgets.on_message(&stops, "own")),
            ["theirs ours"],
            "an echo of our own tells nothing new"
        );
        widgets.on_message(&comm("comm_msg", "a", "echo_update", stale), "other");
        widgets.on_message(&comm("comm_close", "a", "", json!({})), "own");
        assert!(widgets.0.is_empty());
    }

    #[test]
    fn other_widgets_and_other_runs_are_left_alone() {
        let mut widgets = OutputWidgets::default();
        widgets.on_message(
            &comm(
                "comm_open",
                "s",
                "",
                json!({ "_model_name": "IntSliderModel", "msg_id": "run" }),
            ),
            "own",
        );
        assert!(!widgets.capture(&print("free")));
        widgets.on_message(
            &comm(
                "comm_open",
                "a",
                "",
                json!({ "_model_name": "OutputModel", "msg_id": "another" }),
            ),
            "own",
        );
        assert!(!widgets.capture(&print("free")));
    }
}
