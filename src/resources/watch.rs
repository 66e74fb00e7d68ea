//! Watching: who follows a resource hears of real changes, by whomever, and not more often than is of use.

use std::{
    future::pending,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::{Duration, SystemTime},
};

use live_document::{DocumentChange, DocumentId, RoomKind, pool::PoolEvent};
use tokio::{
    sync::{broadcast, watch},
    time::{Instant, sleep_until},
};

use super::{
    Opened, ResourceError, View,
    activity::ActivityWatch,
    address::{Address, Part},
    cells::Cells,
};
use crate::history::HistoryError;

/// Between two notices of one resource; what changes meanwhile is one change.
const PACE: Duration = Duration::from_millis(250);

/// Follows one resource.
pub struct Watch {
    subject: Subject,
    next: Instant,
}

enum Subject {
    /// Resource that never changes.
    Still,
    /// The last change was told.
    Over,
    List(Box<ListContentWatch>),
    Current(Box<CurrentWatch>),
    Notebook(Box<NotebookWatch>),
    Activity(Box<ActivityWatch>),
    History(Box<HistoryWatch>),
}

impl View {
    /// Follows a resource that exists and that the principal may read. Its notebook stays open meanwhile.
    pub fn watch(&self, uri: &str) -> Result<Watch, ResourceError> {
        let address = self.address(uri)?;
        self.require_read()?;
        let subject = match address {
            Address::List => Subject::List(Box::new(ListContentWatch::new(self.watch_list()))),
            Address::Current => Subject::Current(Box::new(CurrentWatch::new(self.clone()))),
            Address::Activity => Subject::Activity(Box::new(ActivityWatch::new(self.clone()))),
            Address::Document { .. } => return Err(ResourceError::WATCHED_DOCUMENT),
            Address::Template(name) => {
                crate::srcbook::template(&name).ok_or(ResourceError::TEMPLATE)?;
                Subject::Still
            }
            Address::Skill(name) => {
                self.skill(&name)?;
                Subject::Still
            }
            Address::Notebook {
                session,
                notebook,
                part,
            } => {
                let opened = self.notebook(&session, notebook.as_deref());
                let opened = opened.ok_or(ResourceError::NOTEBOOK)?;
                match part {
                    Part::History => Subject::History(Box::new(HistoryWatch::new(self.clone(), opened)?)),
                    Part::Diff { ref to, .. } if to.is_empty() => {
                        Subject::History(Box::new(HistoryWatch::new(self.clone(), opened)?))
                    }
                    Part::Version(_) | Part::Diff { .. } => Subject::Still,
                    part => Subject::Notebook(Box::new(NotebookWatch::new(self.clone(), opened, part)?)),
                }
            }
        };
        Ok(Watch {
            subject,
            next: Instant::now(),
        })
    }

    /// Follows which resources there are.
    pub fn watch_list(&self) -> ListWatch {
        ListWatch {
            events: self.pool.events(),
            view: self.clone(),
            next: Instant::now(),
        }
    }
}

impl Watch {
    /// Waits for the next change. None if there can be no more, which is after the last one.
    pub async fn changed(&mut self) -> Option<()> {
        let is_over = match &mut self.subject {
            Subject::Still => pending::<bool>().await,
            Subject::Over => return None,
            Subject::List(list) => return list.changed(&mut self.next).await,
            Subject::Activity(activity) => return activity.changed(&mut self.next).await,
            Subject::Current(current) => {
                current.changed(&mut self.next).await;
                false
            }
            Subject::Notebook(notebook) => notebook.changed(&mut self.next).await,
            Subject::History(history) => history.changed(&mut self.next).await,
        };
        if is_over {
            self.subject = Subject::Over;
        }
        Some(())
    }
}

/// Follows the notebooks that are open.
pub struct ListWatch {
    view: View,
    events: broadcast::Receiver<PoolEvent>,
    next: Instant,
}

impl ListWatch {
    /// Waits until one that the principal may read was opened, closed or renamed.
    pub async fn changed(&mut self) -> Option<()> {
        self.next_event().await?;
        sleep_until(self.next).await;
        drain(&mut self.events);
        self.next = Instant::now() + PACE;
        Some(())
    }

    async fn next_event(&mut self) -> Option<()> {
        loop {
            let event = self.events.recv().await;
            if matches!(event, Err(broadcast::error::RecvError::Closed)) {
                return None;
            }
            if concerns(&self.view, &event) {
                return Some(());
            }
        }
    }
}

/// Follows the notebooks that are open and what the list of them tells of each, which changes with every edit.
struct ListContentWatch {
    list: ListWatch,
    changes: broadcast::Receiver<DocumentChange>,
}

impl ListContentWatch {
    fn new(list: ListWatch) -> Self {
        let changes = list.view.pool.changes();
        Self { list, changes }
    }

    async fn changed(&mut self, next: &mut Instant) -> Option<()> {
        let view = self.list.view.clone();
        tokio::select! {
            listed = self.list.next_event() => listed?,
            () = edited(&view, &mut self.changes) => {}
        }
        sleep_until(*next).await;
        // Whatever happened, and whatever came of it meanwhile, is in what is read from now on.
        drain(&mut self.list.events);
        drain(&mut self.changes);
        *next = Instant::now() + PACE;
        Some(())
    }
}

/// Waits until a notebook that the principal may read was edited, or that may have been missed.
async fn edited(view: &View, changes: &mut broadcast::Receiver<DocumentChange>) {
    loop {
        match changes.recv().await {
            Ok(DocumentChange { document, .. }) => {
                let path = view.pool.path_of(&document);
                let is_seen = path.is_some_and(|path| view.sees(&document.server, &path));
                if document.kind == RoomKind::Notebook && !document.is_fork() && is_seen {
                    return;
                }
            }
            Err(broadcast::error::RecvError::Lagged(_)) => return,
            Err(broadcast::error::RecvError::Closed) => pending().await,
        }
    }
}

/// Passes over what has come: it belongs to the change that is told now.
fn drain<T: Clone>(receiver: &mut broadcast::Receiver<T>) {
    use broadcast::error::TryRecvError::{Closed, Empty};
    while !matches!(receiver.try_recv(), Err(Empty | Closed)) {}
}

/// Events that were missed may have been of anything.
fn concerns(view: &View, event: &Result<PoolEvent, broadcast::error::RecvError>) -> bool {
    match event {
        Ok(PoolEvent::Room { document, path }) => {
            document.kind == RoomKind::Notebook && !document.is_fork() && view.sees(&document.server, path)
        }
        Ok(PoolEvent::Current { principal }) => *principal == view.principal.id && view.may_read(),
        // Who saw it where it was may not see it any more.
        Ok(PoolEvent::Renamed(renamed)) => renamed.documents.iter().any(|moved| {
            let mut places = [&moved.from, &moved.to].into_iter();
            moved.document.kind == RoomKind::Notebook && places.any(|path| view.sees(&renamed.server, path))
        }),
        Err(_) => view.may_read(),
    }
}

/// Follows whichever notebook the principal used last.
struct CurrentWatch {
    view: View,
    events: broadcast::Receiver<PoolEvent>,
    notebook: Option<NotebookWatch>,
}

impl CurrentWatch {
    fn new(view: View) -> Self {
        let events = view.pool.events();
        let notebook = Self::notebook(&view);
        Self { view, events, notebook }
    }

    fn notebook(view: &View) -> Option<NotebookWatch> {
        NotebookWatch::new(view.clone(), view.current()?, Part::Srcmd).ok()
    }

    async fn changed(&mut self, next: &mut Instant) {
        loop {
            let edited = async {
                match &mut self.notebook {
                    Some(notebook) => notebook.changed(next).await,
                    None => pending().await,
                }
            };
            let another = tokio::select! {
                is_over = edited => match is_over {
                    false => return,
                    true => true,
                },
                event = self.events.recv() => match event {
                    Ok(PoolEvent::Current { principal }) => principal == self.view.principal.id,
                    Ok(PoolEvent::Room { .. } | PoolEvent::Renamed(_)) => false,
                    // What was missed may have been of this principal.
                    Err(_) => true,
                },
            };
            if another {
                self.notebook = Self::notebook(&self.view);
                return;
            }
        }
    }
}

/// Follows a notebook, or one cell of it.
struct NotebookWatch {
    view: View,
    opened: Opened,
    changes: watch::Receiver<SystemTime>,
    events: broadcast::Receiver<PoolEvent>,
    /// Id and fingerprint of the cell that is followed, to tell its changes from those of others.
    cell: Option<(Arc<str>, u64)>,
}

impl NotebookWatch {
    fn new(view: View, opened: Opened, part: Part) -> Result<Self, ResourceError> {
        let (changes, events) = (opened.room.changes(), view.pool.events());
        let cell = match part {
            Part::Cell(id) | Part::CellDocument(id) | Part::Output { cell: id, .. } => Some(id),
            Part::CellFile(name) => {
                let cells = Cells::of(&opened);
                let position = cells.position_of_file(&name).ok_or(ResourceError::CELL)?;
                Some(cells.cells[position].id.clone())
            }
            Part::Execution(_) => return Err(ResourceError::WATCHED_EXECUTION),
            Part::Srcmd
            | Part::Json
            | Part::Cells
            | Part::Ipynb
            | Part::History
            | Part::Version(_)
            | Part::Diff { .. } => None,
        };
        let cell = match cell {
            Some(id) => {
                let print = fingerprint(&opened, &id).ok_or(ResourceError::CELL)?;
                Some((id.into(), print))
            }
            None => None,
        };
        Ok(Self {
            view,
            opened,
            changes,
            events,
            cell,
        })
    }

    /// Waits for the next change; returns whether it was the last one, the room being over or out of the principal's reach.
    async fn changed(&mut self, next: &mut Instant) -> bool {
        loop {
            let is_over = tokio::select! {
                changed = self.changes.changed() => changed.is_err(),
                () = self.opened.room.ended() => true,
                () = rooms_changed(&mut self.events) => {
                    if self.is_seen() {
                        continue;
                    }
                    true
                }
            };
            sleep_until(*next).await;
            self.changes.mark_unchanged();
            let is_over = is_over || !self.is_seen();
            if is_over || self.record_change() {
                *next = Instant::now() + PACE;
                return is_over;
            }
        }
    }

    fn is_seen(&self) -> bool {
        self.view.sees(&self.opened.open.server, &self.opened.room.info().path)
    }

    /// Records the cell as it is now; true if it differs from the recorded one.
    fn record_change(&mut self) -> bool {
        let Some((id, known)) = &mut self.cell else {
            return true;
        };
        // A cell that is gone has changed, once.
        let now = fingerprint(&self.opened, id).unwrap_or_default();
        std::mem::replace(known, now) != now
    }
}

/// Follows the versions of a notebook.
struct HistoryWatch {
    view: View,
    opened: Opened,
    added: broadcast::Receiver<Arc<DocumentId>>,
    events: broadcast::Receiver<PoolEvent>,
}

impl HistoryWatch {
    fn new(view: View, opened: Opened) -> Result<Self, ResourceError> {
        let added = view.history.as_ref().ok_or(HistoryError::Off)?.added();
        let events = view.pool.events();
        Ok(Self {
            view,
            opened,
            added,
            events,
        })
    }

    /// Waits for the next version; returns whether there can be no more.
    async fn changed(&mut self, next: &mut Instant) -> bool {
        let is_over = self.next_event().await;
        sleep_until(*next).await;
        drain(&mut self.added);
        *next = Instant::now() + PACE;
        is_over || !self.is_seen()
    }

    /// Waits for a version; returns whether the room is over or out of the principal's reach instead.
    async fn next_event(&mut self) -> bool {
        loop {
            tokio::select! {
                added = self.added.recv() => match added {
                    Ok(document) if self.opened.room.document_id() != Some(&*document) => {}
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return false,
                    Err(broadcast::error::RecvError::Closed) => return true,
                },
                () = self.opened.room.ended() => return true,
                () = rooms_changed(&mut self.events) => if !self.is_seen() { return true },
            }
        }
    }

    fn is_seen(&self) -> bool {
        self.view.sees(&self.opened.open.server, &self.opened.room.info().path)
    }
}

/// Waits until a room was opened, ended or renamed, or that may have been missed.
async fn rooms_changed(events: &mut broadcast::Receiver<PoolEvent>) {
    loop {
        match events.recv().await {
            Ok(PoolEvent::Room { .. } | PoolEvent::Renamed(_)) | Err(broadcast::error::RecvError::Lagged(_)) => return,
            Ok(PoolEvent::Current { .. }) => {}
            Err(broadcast::error::RecvError::Closed) => pending().await,
        }
    }
}

fn fingerprint(opened: &Opened, cell: &str) -> Option<u64> {
    let looked = opened
        .room
        .cells(|order| order.position_of(cell).map(|at| vec![at]).ok_or(()));
    let (_, cell) = looked.ok()?.cells.into_iter().next()?;
    let mut hasher = DefaultHasher::new();
    (&cell.cell_type, &cell.source, &cell.execution_state).hash(&mut hasher);
    (cell.metadata.to_string(), cell.execution_count.to_string()).hash(&mut hasher);
    serde_json::Value::Array(cell.outputs).to_string().hash(&mut hasher);
    Some(hasher.finish())
}
