//! Handling of the messages from a room's socket.

use jupyter_client::DocPath;

use super::{
    disconnect::Disconnect,
    document::decode_vector,
    state::State,
    wire::{JupyterMessage, Message},
};

impl State {
    /// Takes in one frame.
    pub(super) fn receive(&mut self, frame: &[u8]) -> Result<(), Disconnect> {
        let message = Message::decode(frame).map_err(|error| Disconnect::Malformed(error.to_string()))?;
        match message {
            Some(Message::SyncStep1(vector)) => {
                let vector = decode_vector(&vector)?;
                self.document.acknowledgements.server_has(&vector);
                let answer = Message::SyncStep2(self.document.diff(&vector));
                self.send(&answer);
            }
            Some(Message::SyncStep2(update) | Message::Update(update)) => self.receive_update(&update)?,
            Some(Message::Awareness(entries)) => {
                let clients: Vec<u64> = entries.iter().map(|entry| entry.client).collect();
                if self.awareness.received(entries) {
                    self.awareness.repeat_all();
                }
                self.note_names(&clients);
                self.note_people_here();
            }
            Some(Message::Jupyter(text)) => {
                if let Ok(JupyterMessage::Save { response_to, status }) = serde_json::from_str(&text) {
                    self.on_save_answered(response_to, status);
                }
            }
            None => {}
        }
        Ok(())
    }

    fn receive_update(&mut self, update: &[u8]) -> Result<(), Disconnect> {
        let (saves, resets) = (self.document.saves(), self.document.resets());
        let before = self.awareness.may_block_autosave().then(|| self.document.revision());
        self.document.apply_live(update)?;
        let is_saved = self.document.saves() > saves;
        if is_saved {
            self.on_save_noted();
            self.awareness.record_save();
        }
        if is_saved || self.document.resets() > resets {
            self.note_file();
        }
        if before.is_some_and(|before| before != self.document.revision()) {
            // The server may have skipped saving it because of our agents.
            self.mark_unsaved();
        }
        self.note_discarded();
        self.remove_duplicates();
        self.restore_ids();
        follow_rename(self);
        Ok(())
    }
}

/// The server's document says where its file is; only a change of that counts, since it lags behind
/// what the server's events have told already.
fn follow_rename(state: &mut State) {
    let said = state.document.path();
    if said == state.said_path {
        return;
    }
    if let Some(path) = said.as_ref().and_then(|path| DocPath::parse(path).ok())
        && path != state.path
    {
        tracing::info!(from = %state.path, to = %path, "an open document was renamed");
        state.set_path(path);
    }
    state.said_path = said;
}
