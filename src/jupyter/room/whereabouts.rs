//! Whether the document of an open room is still where it was.

use std::time::{Duration, Instant};

use super::{Room, RoomStatus};
use crate::{jupyter::JupyterError, types::DocPath};

/// How long a document is trusted to be where it was.
const LOCATION_LASTS: Duration = Duration::from_secs(1);
/// After this it is looked for beside the call, so that no call waits for it in a room that is in use.
const LOCATION_FRESH: Duration = Duration::from_millis(500);

impl Room {
    /// Sees to it, once in a while, that the document is still where it was. Jupyter keeps the room of a
    /// deleted file open, and acknowledges edits that it can never save.
    pub async fn look_after_whereabouts(&self) {
        let age = self.0.read().located.elapsed();
        if age < LOCATION_FRESH || *self.0.status.borrow() != RoomStatus::Connected {
            return;
        }
        let (file_id, path) = {
            let mut state = self.0.write();
            // Somebody else may have begun to look meanwhile.
            if state.located.elapsed() < LOCATION_FRESH {
                return;
            }
            state.located = Instant::now();
            (state.file_id.clone(), state.path.clone())
        };
        if age >= LOCATION_LASTS {
            return self.locate(&file_id, path).await;
        }
        let room = self.clone();
        tokio::spawn(async move { room.locate(&file_id, path).await });
    }

    async fn locate(&self, file_id: &str, path: DocPath) {
        let (server, name) = (&self.0.server, path.as_str());
        let there = match server.path_of_file(file_id, name).await {
            Ok(now) if now == path => server
                .document(&path)
                .await
                .map(|file| self.0.write().writable = file.writable),
            // The server tells a renamed room of its new path too, but takes its time.
            Ok(now) => return self.0.write().path = now,
            Err(error) => Err(error),
        };
        if let Err(JupyterError::NotFound { .. }) = there {
            tracing::info!(%path, "an open document was deleted");
            self.forsake().await;
        }
    }
}
