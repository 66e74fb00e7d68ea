//! What comes over a room's socket, taken in.

use jupyter_client::DocPath;

use super::{
    disconnect::Disconnect,
    document::decode_vector,
    saving::Saving,
    state::State,
    wire::{JupyterMessage, Message},
};

/// Takes in one frame.
pub(crate) fn receive(state: &mut State, frame: &[u8], saving: &mut Saving) -> Result<(), Disconnect> {
    let Some(message) = Message::decode(frame).map_err(|error| Disconnect::Malformed(error.to_string()))? else {
        return Ok(());
    };
    match message {
        Message::SyncStep1(vector) => {
            let vector = decode_vector(&vector)?;
            state.document.acknowledgements.server_has(&vector);
            let answer = Message::SyncStep2(state.document.diff(&vector));
            state.send(&answer);
        }
        Message::SyncStep2(update) | Message::Update(update) => {
            let (saves, resets) = (state.document.saves(), state.document.resets());
            let before = state
                .awareness
                .may_keep_from_saving()
                .then(|| state.document.revision());
            state.document.apply_live(&update)?;
            if state.document.saves() > saves {
                saving.noted(state);
                state.awareness.saved();
            }
            if state.document.saves() > saves || state.document.resets() > resets {
                state.note_file();
            }
            if before.is_some_and(|before| before != state.document.revision()) {
                // The server may have left out to save it on account of our agents.
                state.mark_unsaved();
            }
            state.note_discarded();
            state.remove_duplicates();
            state.restore_ids();
            follow_rename(state);
        }
        Message::Awareness(entries) => {
            let clients: Vec<u64> = entries.iter().map(|entry| entry.client).collect();
            if state.awareness.received(entries) {
                state.awareness.repeat_all();
            }
            state.note_names(&clients);
        }
        Message::Jupyter(text) => {
            if let Ok(JupyterMessage::Save { response_to, status }) = serde_json::from_str(&text) {
                saving.answered(state, response_to, status);
            }
        }
    }
    Ok(())
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
