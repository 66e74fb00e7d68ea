//! Follows all open documents and records what is done there: edits and runs, who comes and goes, renames, mentions.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use jupyter_client::counted;
use live_document::{
    Author, ChangeKind, DocumentChange, DocumentId, PresenceChange, PresenceKind, Room, RoomKind, User,
    pool::{Pool, PoolEvent, Renamed},
};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;

use super::{
    Activity, ActivityLog, Actor,
    burst::{Burst, BurstKey, BurstKind},
    kinds,
    mention::{Mention, in_lines},
    mention_watch::MentionWatch,
};
use crate::history::{History, LostContent};

/// Edits and runs that are followed at a time; beyond it the oldest are over.
const MAX_BURSTS: usize = 4_096;
/// Time within which an agent that renamed something has recorded that itself.
const RENAME_SETTLES: Duration = Duration::from_secs(1);
/// Renames that wait for that.
const MAX_RENAMES: usize = 256;
/// The text of a mention follows what is typed until this long after the last change.
const MENTION_OPEN: Duration = Duration::from_secs(5);
/// Mentions whose text is followed at a time.
const MAX_OPEN_MENTIONS: usize = 256;

/// Records what is done in the documents of a pool from now on, until it is stopped.
pub fn follow(
    log: Arc<ActivityLog>,
    pool: &Arc<Pool>,
    history: Option<&History>,
    stop: CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let mut losses = history.map(History::losses);
    let (mut changes, mut events, mut presences) = (pool.changes(), pool.events(), pool.presences());
    let mut follower = Follower::new(log, Arc::clone(pool));
    async move {
        loop {
            let due = follower.next_due.map(tokio::time::Instant::from_std);
            tokio::select! {
                // That a document was opened is known before it is changed.
                biased;
                () = stop.cancelled() => break,
                event = events.recv() => match event {
                    Ok(event) => follower.on_event(event),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => break,
                },
                change = presences.recv() => match change {
                    Ok(change) => follower.on_presence(&change),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => break,
                },
                lost = next_loss(&mut losses) => follower.on_loss(lost),
                change = changes.recv() => match change {
                    Ok(change) => follower.on_change(&change, Instant::now()),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => break,
                },
                () = tokio::time::sleep_until(due.unwrap_or_else(tokio::time::Instant::now)), if due.is_some() => {
                    follower.on_time(Instant::now());
                }
            }
        }
        follower.end_all();
    }
}

/// The next document that loses its content. Waits for ever if no history is kept.
async fn next_loss(losses: &mut Option<broadcast::Receiver<LostContent>>) -> LostContent {
    loop {
        match losses {
            None => return std::future::pending().await,
            Some(followed) => match followed.recv().await {
                Ok(lost) => return lost,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => *losses = None,
            },
        }
    }
}

struct Follower {
    log: Arc<ActivityLog>,
    pool: Arc<Pool>,
    bursts: HashMap<BurstKey, Burst>,
    documents: HashMap<DocumentId, Followed>,
    renames: VecDeque<(Instant, Renamed)>,
    open_mentions: Vec<OpenMention>,
    /// Not later than anything is due.
    next_due: Option<Instant>,
}

/// Notes on an open document.
#[derive(Default)]
struct Followed {
    mentions: MentionWatch,
    /// By cell the number of its last run.
    runs: HashMap<Arc<str>, u64>,
    /// Authors of the cells in which a name may not be complete.
    authors: HashMap<Arc<str>, Author>,
}

/// A mention whose line is still being typed.
struct OpenMention {
    document: DocumentId,
    cell: Arc<str>,
    agent: Arc<str>,
    /// Its place among the mentions of the agent in the cell.
    ordinal: usize,
    activity: Activity,
    until: Instant,
}

impl Follower {
    fn new(log: Arc<ActivityLog>, pool: Arc<Pool>) -> Self {
        Self {
            log,
            pool,
            bursts: HashMap::new(),
            documents: HashMap::new(),
            renames: VecDeque::new(),
            open_mentions: Vec::new(),
            next_due: None,
        }
    }

    fn on_event(&mut self, event: PoolEvent) {
        match event {
            PoolEvent::Room { document, .. } => match self.pool.room_of(&document) {
                Some(room) => self.on_opened(&document, &room),
                None => self.on_closed(&document),
            },
            PoolEvent::Renamed(renamed) => {
                let due = Instant::now() + RENAME_SETTLES;
                self.renames.push_back((due, renamed));
                if self.renames.len() > MAX_RENAMES {
                    self.renames.pop_front();
                }
                self.schedule(due);
            }
            PoolEvent::Current { .. } => {}
        }
    }

    /// Records the names that a document has when it is opened: they are not new.
    fn on_opened(&mut self, document: &DocumentId, room: &Room) {
        let names = self.log.names();
        let followed = self.documents.entry(document.clone()).or_default();
        let lines = room.take_opening_lines();
        for of_cell in lines.chunk_by(|line, next| line.cell == next.cell) {
            followed.mentions.take(&of_cell[0].cell, &in_lines(of_cell, &names));
        }
    }

    fn on_closed(&mut self, document: &DocumentId) {
        self.documents.remove(document);
        let ended: Vec<BurstKey> = self
            .bursts
            .keys()
            .filter(|key| key.document == *document)
            .cloned()
            .collect();
        for key in ended {
            self.end(&key);
        }
    }

    fn on_presence(&mut self, change: &PresenceChange) {
        let (path, user) = (&change.path, &change.user);
        let (kind, description) = match change.kind {
            PresenceKind::Joined => (kinds::JOIN, format!("joined {path}")),
            PresenceKind::Noticed => (kinds::JOIN, format!("is in {path}")),
            PresenceKind::Left => (kinds::LEAVE, format!("left {path}")),
        };
        let mut activity = Activity::new(kind, actor(user), &change.document.server, description).about(path.clone());
        activity.file_id = Some(Arc::clone(&change.document.file_id));
        self.log.record(activity);
    }

    fn on_loss(&self, lost: LostContent) {
        let LostContent {
            document, path, loss, ..
        } = &lost;
        let description = format!(
            "took away most of {path}, and nobody is known to have wanted that: {} with {} before, {} with {} after",
            counted(loss.cells_before, "cell"),
            counted(loss.characters_before, "character"),
            counted(loss.cells_after, "cell"),
            counted(loss.characters_after, "character"),
        );
        let mut activity = Activity::new(kinds::LOSS, Actor::unknown(), &document.server, description)
            .about(path.clone())
            .with("version_id", lost.version.as_str());
        activity.file_id = Some(Arc::clone(&document.file_id));
        self.log.record(activity);
    }

    fn on_change(&mut self, change: &DocumentChange, now: Instant) {
        let Some(room) = self.pool.room_of(&change.document) else {
            return;
        };
        match change.kind {
            ChangeKind::Outputs => {
                let ran = self.new_runs(&room, change);
                if !ran.is_empty() {
                    self.add(&room, change, BurstKind::Run, ran, now);
                }
            }
            ChangeKind::Source | ChangeKind::Structure => {
                self.add(&room, change, BurstKind::Edit, change.cells.clone(), now);
                self.look_for_names(&room, change, now);
            }
        }
    }

    /// The cells of a change whose runs have begun since.
    fn new_runs(&mut self, room: &Room, change: &DocumentChange) -> Vec<Arc<str>> {
        let runs = &mut self.documents.entry((*change.document).clone()).or_default().runs;
        let is_new = |cell: &Arc<str>, runs: &mut HashMap<Arc<str>, u64>| {
            let began = room.run_of(cell).began?.0;
            (runs.insert(Arc::clone(cell), began) != Some(began)).then(|| Arc::clone(cell))
        };
        change.cells.iter().filter_map(|cell| is_new(cell, runs)).collect()
    }

    fn add(&mut self, room: &Room, change: &DocumentChange, kind: BurstKind, cells: Vec<Arc<str>>, now: Instant) {
        let key = BurstKey {
            document: (*change.document).clone(),
            author: change.author.clone(),
            kind,
        };
        let actor = self.actor(room, &change.author);
        if self.bursts.get(&key).is_some_and(|burst| burst.ends_at() <= now) {
            self.end(&key);
        }
        let is_new = !self.bursts.contains_key(&key);
        if is_new && self.bursts.len() >= MAX_BURSTS {
            self.end_oldest();
        }
        let path = room.info().path;
        let burst = self
            .bursts
            .entry(key.clone())
            .or_insert_with(|| Burst::begin(&key, actor.clone(), path, now));
        burst.activity.actor = actor;
        burst.add(&key, cells, change.tool.as_ref(), now);
        match is_new {
            true => self.log.open(&burst.activity),
            false => self.log.replace(&burst.activity),
        }
        let due = burst.ends_at();
        self.schedule(due);
    }

    fn end(&mut self, key: &BurstKey) {
        if let Some(burst) = self.bursts.remove(key) {
            let has_news = burst.has_news();
            self.log.close(burst.activity, has_news);
        }
    }

    fn end_oldest(&mut self) {
        let oldest = self.bursts.iter().min_by_key(|(_, burst)| burst.ends_at());
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.end(&key);
        }
    }

    fn look_for_names(&mut self, room: &Room, change: &DocumentChange, now: Instant) {
        let whole = [Arc::<str>::from("")];
        let cells = match change.document.kind {
            RoomKind::Notebook => &change.cells[..],
            RoomKind::Text => &whole[..],
        };
        for cell in cells {
            let lines = change.calling.iter().filter(|line| line.cell == *cell);
            let found = in_lines(lines, &self.log.names());
            let followed = self.documents.entry((*change.document).clone()).or_default();
            let new = followed.mentions.changed(cell, found.clone(), now);
            match followed.mentions.due_at() {
                Some(_) => drop(followed.authors.insert(Arc::clone(cell), change.author.clone())),
                None => followed.authors.clear(),
            }
            let due = followed.mentions.due_at();
            self.refresh_open(&change.document, cell, &found, now);
            self.tell_mentions(room, &change.document, cell, &change.author, new, &found);
            if let Some(due) = due {
                self.schedule(due);
            }
        }
    }

    fn tell_mentions(
        &mut self,
        room: &Room,
        document: &DocumentId,
        cell: &Arc<str>,
        author: &Author,
        new: Vec<Mention>,
        found: &[Mention],
    ) {
        let actor = self.actor(room, author);
        for mention in new.into_iter().filter(|mention| mention.agent.id != actor.id) {
            let of_agent = found.iter().filter(|other| other.agent.id == mention.agent.id);
            let ordinal = of_agent.clone().position(|other| *other == mention).unwrap_or_default();
            let activity = mention_activity(room, document, cell, actor.clone(), &mention);
            self.log.open(&activity);
            let until = Instant::now() + MENTION_OPEN;
            if self.open_mentions.len() >= MAX_OPEN_MENTIONS {
                let oldest = self.open_mentions.remove(0);
                self.log.close(oldest.activity, false);
            }
            self.open_mentions.push(OpenMention {
                document: document.clone(),
                cell: Arc::clone(cell),
                agent: mention.agent.id,
                ordinal,
                activity,
                until,
            });
            self.schedule(until);
        }
    }

    /// Has mentions of a cell tell the line as it is now.
    fn refresh_open(&mut self, document: &DocumentId, cell: &Arc<str>, found: &[Mention], now: Instant) {
        let here = |open: &&mut OpenMention| open.document == *document && open.cell == *cell;
        for open in self.open_mentions.iter_mut().filter(here) {
            let mut of_agent = found.iter().filter(|mention| mention.agent.id == open.agent);
            if let Some(mention) = of_agent.nth(open.ordinal) {
                describe_mention(&mut open.activity, mention);
                open.until = now + MENTION_OPEN;
                self.log.replace(&open.activity);
            }
        }
    }

    fn on_time(&mut self, now: Instant) {
        let over = self.bursts.iter().filter(|(_, burst)| burst.ends_at() <= now);
        for key in over.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.end(&key);
        }
        for open in self.open_mentions.extract_if(.., |open| open.until <= now) {
            self.log.close(open.activity, false);
        }
        while let Some((_, renamed)) = self.renames.pop_front_if(|(due, _)| *due <= now) {
            self.tell_rename(&renamed);
        }
        self.complete_names(now);
        self.next_due = self.earliest();
    }

    /// Takes names that nobody goes on typing for complete.
    fn complete_names(&mut self, now: Instant) {
        let mut complete = Vec::new();
        for (document, followed) in &mut self.documents {
            for (cell, found) in followed.mentions.due(now) {
                let author = followed.authors.remove(&cell).unwrap_or(Author::Unknown);
                let new = followed.mentions.settle(&cell, found.clone());
                complete.push((document.clone(), cell, author, found, new));
            }
        }
        for (document, cell, author, found, new) in complete {
            let Some(room) = self.pool.room_of(&document) else {
                continue;
            };
            self.tell_mentions(&room, &document, &cell, &author, new, &found);
        }
    }

    /// Tells of a rename, unless an agent that did it has told.
    fn tell_rename(&self, renamed: &Renamed) {
        let (from, to) = (renamed.from.to_string(), renamed.to.to_string());
        let is_it = |activity: &Activity| {
            activity.kind == kinds::RENAME
                && activity.path.as_ref() == Some(&renamed.to)
                && activity.metadata.get("from").is_some_and(|known| *known == *from)
        };
        let recently = SystemTime::now() - 10 * RENAME_SETTLES;
        if self.log.has_since(recently, is_it) {
            return;
        }
        let description = format!("renamed {from} to {to}");
        let mut activity = Activity::new(kinds::RENAME, Actor::unknown(), &renamed.server, description)
            .about(renamed.to.clone())
            .with("from", from);
        activity.file_id = renamed
            .documents
            .first()
            .map(|moved| Arc::clone(&moved.document.file_id));
        self.log.record(activity);
    }

    fn earliest(&self) -> Option<Instant> {
        let bursts = self.bursts.values().map(Burst::ends_at);
        let names = self
            .documents
            .values()
            .filter_map(|followed| followed.mentions.due_at());
        let renames = self.renames.iter().map(|(due, _)| *due);
        let open = self.open_mentions.iter().map(|open| open.until);
        bursts.chain(names).chain(renames).chain(open).min()
    }

    fn schedule(&mut self, due: Instant) {
        self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
    }

    fn end_all(&mut self) {
        for (_, burst) in self.bursts.drain() {
            self.log.close(burst.activity, false);
        }
        for open in self.open_mentions.drain(..) {
            self.log.close(open.activity, false);
        }
    }

    /// Somebody who changed a document.
    fn actor(&self, room: &Room, author: &Author) -> Actor {
        match author {
            Author::Local(id) => self.log.agent(id),
            Author::Client(_) => {
                let named = || room.name_of(author).map(|name| Actor::person(&name, &name));
                let here = room.user_by_author(author).map(|user| actor(&user));
                here.or_else(named).unwrap_or_else(Actor::unknown)
            }
            Author::Unknown => Actor::unknown(),
        }
    }
}

fn actor(user: &User) -> Actor {
    let name = match user.is_agent {
        // An agent's displayed name also says what it does.
        true => &user.name,
        false => &user.display_name,
    };
    Actor {
        id: user.id.as_str().into(),
        name: name.clone(),
        is_agent: user.is_agent,
    }
}

fn mention_activity(room: &Room, document: &DocumentId, cell: &Arc<str>, actor: Actor, mention: &Mention) -> Activity {
    let path = room.info().path;
    let mut activity = Activity::new(kinds::MENTION, actor, &document.server, String::new())
        .about(path)
        .with("agent", mention.agent.name.as_str())
        .with("agent_id", &*mention.agent.id);
    if !cell.is_empty() {
        activity = activity
            .with("cell_id", &**cell)
            .with("cell_index", room.position_of(cell));
    }
    activity.file_id = Some(Arc::clone(&document.file_id));
    describe_mention(&mut activity, mention);
    activity
}

fn describe_mention(activity: &mut Activity, mention: &Mention) {
    let path = activity.path.as_ref().map(ToString::to_string).unwrap_or_default();
    activity.description = format!("mentioned @{} in {path}: {}", mention.agent.name, mention.text);
    activity.metadata.insert("line".to_owned(), mention.line.into());
    activity
        .metadata
        .insert("text".to_owned(), mention.text.as_str().into());
}
