//! Three gateways in one notebook on a simulated Jupyter: whatever is cut, restarted, lost or written from outside, no
//! acknowledged edit is lost, no cell is there twice, and two histories are never merged. Only an edit that was not in
//! the file when somebody wrote it from outside may be lost, and then its author is told.
//!
//! The server keeps its room, a file, and a store of updates from which a room comes back after a restart, if the store is
//! still there. After a restart, and when the file was written from outside, it makes the room the same as the file.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use jupyter_client::DocPath;
use proptest::prelude::*;
use serde_json::json;
use yrs::StateVector;

use crate::core::{
    CellKind, Edit, NewCell, RoomKind,
    acknowledgement::Ticket,
    clock::Clock,
    disconnect::Disconnect,
    document::Document,
    life::{Effect, Input, Joined, Phase},
    recorder::testing::Memory,
    recovery::ServerDocument,
    state::{Origin, State},
    wire::Message,
};

const CLIENTS: usize = 3;
/// Duration of a step. Messages take some steps to arrive; all are delivered before anybody waits.
const STEP: Duration = Duration::from_millis(20);
const WAIT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A client appends a cell.
    Append(usize),
    /// A client adds to the cell that is its own.
    Change(usize),
    /// A client adds to the cell that it appended last.
    Revise(usize),
    /// A client receives a message of the server.
    Deliver(usize),
    /// Everybody who is connected has received everything, and then nothing happens for long.
    Wait,
    Cut(usize),
    Rejoin(usize),
    /// The store has everything from now on.
    Note,
    /// The file has everything from now on; a server stores updates before it saves.
    Save,
    WriteOutside,
    Restart {
        store: Store,
        written_meanwhile: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    Kept,
    Lost,
}

struct Client {
    state: State,
    /// The versions that it told of.
    memory: Arc<Memory>,
    inbox: VecDeque<Vec<u8>>,
    /// The cell that it appended last.
    appended: Option<String>,
}

/// An edit that was made.
struct Made {
    /// A text that is in the notebook as long as the edit is.
    mark: String,
    client: usize,
    cell: String,
    /// Tells that it arrived, until it did.
    ticket: Option<Ticket>,
    is_acknowledged: bool,
    /// True if the file was written from outside before it had the edit, or deleted its cell.
    is_overwritten: bool,
    /// True if its author was told that it is gone.
    is_told: bool,
}

struct Simulation {
    now: Instant,
    wall: SystemTime,
    began: Instant,
    room: Document,
    session: u64,
    noted: Vec<u8>,
    file: Vec<(String, String)>,
    written: SystemTime,
    clients: Vec<Client>,
    edits: Vec<Made>,
    /// Cells that were not in the file when it was written from outside.
    deleted_outside: BTreeSet<String>,
    next_mark: u32,
}

impl Simulation {
    fn new() -> Self {
        let (now, wall) = (Instant::now(), SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000));
        let file: Vec<(String, String)> = (0..CLIENTS)
            .map(|own| (format!("own{own}"), "begin;".to_owned()))
            .collect();
        let mut simulation = Self {
            now,
            wall,
            began: now,
            room: Document::new(RoomKind::Notebook, Clock::new(now, wall)),
            session: 1,
            noted: Vec::new(),
            file,
            written: wall,
            clients: Vec::new(),
            edits: Vec::new(),
            deleted_outside: BTreeSet::new(),
            next_mark: 0,
        };
        simulation.begin();
        for _ in 0..CLIENTS {
            let document = simulation.received();
            let path = DocPath::parse("a.ipynb").expect("a path");
            let mut state = State::new(document, path, "id".to_owned(), simulation.session.to_string());
            simulation.clients.push(Client {
                memory: Memory::of(&mut state),
                state,
                inbox: VecDeque::new(),
                appended: None,
            });
        }
        simulation
    }

    fn clock(&self) -> Clock {
        let mut clock = Clock::new(self.began, self.wall);
        clock.advance(self.now);
        clock
    }

    fn time(&self) -> SystemTime {
        self.wall + (self.now - self.began)
    }

    /// The room as somebody who joins receives it.
    fn received(&self) -> Document {
        let mut document = Document::new(RoomKind::Notebook, self.clock());
        document
            .apply_remote(&self.room.diff(&StateVector::default()))
            .expect("it fits");
        document
    }

    /// A server that begins says so in the room, by a name of its own.
    fn begin(&mut self) {
        let process = json!({ "name": self.session.to_string() });
        self.room.set_kernelspec(&"lab".into(), &process);
        self.load();
        self.note();
    }

    /// Makes the room the same as the file.
    fn load(&mut self) {
        if cells_of(&self.room) == self.file {
            return;
        }
        let cell = |(id, source): &(String, String)| NewCell {
            id: id.clone(),
            ..NewCell::new(CellKind::Code, source)
        };
        let cells = self.file.iter().map(cell).collect();
        let metadata = self.room.metadata();
        let loaded = self
            .room
            .apply_local(&"lab".into(), &[Edit::SetNotebook { metadata, cells }]);
        let update = loaded.expect("valid").update;
        self.broadcast(&update);
    }

    fn note(&mut self) {
        self.noted = self.room.diff(&StateVector::default());
    }

    fn broadcast(&mut self, update: &[u8]) {
        let frame = Message::Update(update.to_vec()).encode();
        for client in self.clients.iter_mut().filter(|client| client.is_connected()) {
            client.inbox.push_back(frame.clone());
        }
    }

    /// Carries out what a client wants.
    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let Effect::Send(frames) = effect else { continue };
            for frame in frames {
                if let Ok(Some(Message::Update(update) | Message::SyncStep2(update))) = Message::decode(&frame) {
                    self.room.apply_remote(&update).expect("it fits the room");
                    self.broadcast(&update);
                }
            }
        }
    }

    fn on(&mut self, client: usize, input: Input<'_>) {
        let effects = self.clients[client].state.on(input, self.now);
        self.carry_out(effects);
    }

    fn mark(&mut self) -> String {
        self.next_mark += 1;
        format!("<{}>", self.next_mark)
    }

    fn append(&mut self, client: usize) {
        let mark = self.mark();
        let cell = NewCell::new(CellKind::Code, &mark);
        let id = cell.id.clone();
        self.clients[client].appended = Some(id.clone());
        self.edit(client, Edit::AppendCells { cells: vec![cell] }, id, mark);
    }

    fn add_to(&mut self, client: usize, cell: String) {
        let mark = self.mark();
        let Some(source) = self.clients[client].state.document.source(&cell) else {
            return;
        };
        let source = format!("{source}{mark}");
        let id = cell.clone();
        self.edit(client, Edit::SetSource { cell, source }, id, mark);
    }

    fn edit(&mut self, client: usize, edit: Edit, cell: String, mark: String) {
        let state = &mut self.clients[client].state;
        let Ok(applied) = state.document.apply_local(&author(client).as_str().into(), &[edit]) else {
            return;
        };
        state.changed(applied.update, Origin::Caller);
        let is_overwritten = self.deleted_outside.contains(&cell);
        self.edits.push(Made {
            mark,
            client,
            cell,
            ticket: Some(applied.ticket),
            is_acknowledged: false,
            is_overwritten,
            is_told: false,
        });
        self.on(client, Input::Flush);
    }

    fn cut(&mut self, client: usize) {
        self.clients[client].inbox.clear();
        self.on(client, Input::Lost(Disconnect::Cut("test".to_owned())));
    }

    fn rejoin(&mut self, client: usize) {
        if self.clients[client].is_connected() {
            return;
        }
        let joined = Joined {
            path: DocPath::parse("a.ipynb").expect("a path"),
            file_id: "id".to_owned(),
            writable: true,
            file_written: Some(self.written),
            theirs: ServerDocument {
                document: self.received(),
                updates: vec![self.room.diff(&StateVector::default())],
                server_session: self.session.to_string(),
            },
            server_vector: Some(self.room.state_vector()),
        };
        self.on(client, Input::Joined(Box::new(joined)));
    }

    fn write_file_outside(&mut self) {
        let mark = self.mark();
        self.file.push((format!("outside{}", self.next_mark), mark));
        self.written = self.time();
    }

    /// Marks unsaved edits as overwritten: they may be missing afterwards, but their authors must be told.
    fn mark_unsaved_overwritten(&mut self) {
        let saved: String = self.file.iter().map(|(_, source)| source.as_str()).collect();
        for edit in self.edits.iter_mut().filter(|edit| !saved.contains(&edit.mark)) {
            edit.is_overwritten = true;
        }
        let is_in_file = |cell: &String| self.file.iter().any(|(id, _)| id == cell);
        let deleted = cells_of(&self.room).into_iter().map(|(id, _)| id);
        self.deleted_outside.extend(deleted.filter(|id| !is_in_file(id)));
    }

    fn step(&mut self, step: Step) {
        self.now += STEP;
        match step {
            Step::Append(client) if self.clients[client].is_connected() => self.append(client),
            Step::Change(client) if self.clients[client].is_connected() => {
                self.add_to(client, format!("own{client}"));
            }
            Step::Revise(client) if self.clients[client].is_connected() => {
                if let Some(cell) = self.clients[client].appended.clone() {
                    self.add_to(client, cell);
                }
            }
            Step::Append(_) | Step::Change(_) | Step::Revise(_) => {}
            Step::Deliver(client) => self.deliver(client),
            Step::Wait => {
                (0..CLIENTS).for_each(|client| self.deliver(client));
                self.now += WAIT;
            }
            Step::Cut(client) => self.cut(client),
            Step::Rejoin(client) => self.rejoin(client),
            Step::Note => self.note(),
            Step::Save => {
                self.note();
                self.file = cells_of(&self.room);
                self.written = self.time();
            }
            Step::WriteOutside => {
                self.mark_unsaved_overwritten();
                self.write_file_outside();
                for client in &mut self.clients {
                    client.state.set_now(self.now);
                    client.state.mark_overwritten();
                }
                self.load();
            }
            Step::Restart {
                store,
                written_meanwhile,
            } => self.restart(store, written_meanwhile),
        }
        self.collect();
    }

    fn restart(&mut self, store: Store, written_meanwhile: bool) {
        for client in 0..CLIENTS {
            self.cut(client);
        }
        self.now += STEP;
        if written_meanwhile {
            self.write_file_outside();
        }
        self.session += 1;
        self.room = Document::new(RoomKind::Notebook, self.clock());
        if store == Store::Kept {
            self.room.apply_remote(&self.noted).expect("it fits");
        }
        self.begin();
    }

    fn deliver(&mut self, client: usize) {
        while let Some(frame) = self.clients[client].inbox.pop_front() {
            self.on(client, Input::Frame(&frame));
            self.on(client, Input::Flush);
        }
    }

    /// Asks what became of edits, as their authors would.
    fn collect(&mut self) {
        for edit in &mut self.edits {
            if edit
                .ticket
                .as_mut()
                .is_some_and(|ticket| ticket.try_recv() == Ok(Ok(())))
            {
                edit.ticket = None;
                edit.is_acknowledged = true;
            }
        }
        for (number, client) in self.clients.iter_mut().enumerate() {
            let told = client.state.take_discarded_of(&author(number));
            let own = self.edits.iter_mut().filter(|edit| edit.client == number);
            for edit in own.filter(|edit| told.contains(&format!("cell {}", edit.cell))) {
                let now = client.state.document.source(&edit.cell);
                edit.is_told |= !now.is_some_and(|now| now.contains(&edit.mark));
            }
        }
    }

    /// The versions of each client lead to what it has, and its own edits are versions of theirs.
    fn check_versions(&mut self) {
        for (number, client) in self.clients.iter_mut().enumerate() {
            client.memory.check(&mut client.state);
            let authors = client.memory.authors();
            let own = authors.iter().filter(|name| **name == author(number)).count();
            let edits = self.edits.iter().filter(|edit| edit.client == number).count();
            assert_eq!(own, edits, "each edit is one version: {authors:?}");
            assert!(
                authors.iter().all(|name| *name == author(number) || name == "?"),
                "{authors:?}"
            );
        }
    }

    /// Everybody comes back, and has everything.
    fn settle(&mut self) {
        for _ in 0..3 {
            for client in 0..CLIENTS {
                self.now += STEP;
                self.rejoin(client);
                self.deliver(client);
            }
        }
        self.collect();
    }

    fn check(&mut self) {
        self.check_versions();
        let cells = cells_of(&self.room);
        for (number, client) in self.clients.iter().enumerate() {
            assert_eq!(
                cells_of(&client.state.document),
                cells,
                "client {number} has what the server has"
            );
        }
        let ids: BTreeSet<&String> = cells.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), cells.len(), "no cell is there twice: {cells:?}");
        let all: String = cells.iter().map(|(_, source)| source.as_str()).collect();
        for edit in self
            .edits
            .iter()
            .filter(|edit| edit.is_acknowledged && !all.contains(&edit.mark))
        {
            let mark = &edit.mark;
            assert!(edit.is_overwritten, "{mark} was acknowledged and is lost: {cells:?}");
            assert!(edit.is_told, "nobody told that {mark} was overwritten: {cells:?}");
        }
        for number in 1..=self.next_mark {
            let count = all.matches(&format!("<{number}>")).count();
            assert!(count <= 1, "<{number}> is there {count} times: {cells:?}");
        }
    }
}

impl Client {
    fn is_connected(&self) -> bool {
        matches!(self.state.phase, Phase::Synced { .. })
    }
}

fn cells_of(document: &Document) -> Vec<(String, String)> {
    let cells = document.cells(0..document.cell_count()).into_iter();
    cells.map(|(_, cell)| (cell.id, cell.source)).collect()
}

fn author(client: usize) -> String {
    format!("agent{client}")
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    let store = prop_oneof![Just(Store::Kept), Just(Store::Lost)];
    prop_oneof![
        4 => client.clone().prop_map(Step::Append),
        4 => client.clone().prop_map(Step::Change),
        2 => client.clone().prop_map(Step::Revise),
        6 => client.clone().prop_map(Step::Deliver),
        1 => Just(Step::Wait),
        2 => client.clone().prop_map(Step::Cut),
        3 => client.prop_map(Step::Rejoin),
        2 => Just(Step::Note),
        2 => Just(Step::Save),
        1 => Just(Step::WriteOutside),
        2 => (store, any::<bool>()).prop_map(|(store, written_meanwhile)| Step::Restart { store, written_meanwhile }),
    ]
}

proptest! {
    #[test]
    fn nothing_is_lost_doubled_or_mixed_up(steps in prop::collection::vec(step(), 1..25)) {
        run(&steps);
    }
}

fn run(steps: &[Step]) {
    let mut simulation = Simulation::new();
    for step in steps {
        simulation.step(*step);
    }
    simulation.settle();
    simulation.check();
}

const RESTART: Step = Step::Restart {
    store: Store::Kept,
    written_meanwhile: false,
};
const REBUILD: Step = Step::Restart {
    store: Store::Lost,
    written_meanwhile: false,
};

#[test]
fn an_edit_that_an_outside_write_crosses_survives_a_rebuild() {
    use Step::*;
    run(&[Change(2), WriteOutside, Change(2), Save, Change(2), Deliver(2), REBUILD]);
    run(&[
        Change(1),
        WriteOutside,
        Change(1),
        Deliver(1),
        RESTART,
        Rejoin(1),
        Change(1),
        REBUILD,
    ]);
    run(&[
        Change(2),
        WriteOutside,
        Cut(2),
        Rejoin(2),
        Change(2),
        Deliver(2),
        REBUILD,
    ]);
}

#[test]
fn an_edit_of_a_new_cell_survives_two_restarts() {
    use Step::*;
    run(&[
        Append(0),
        Revise(0),
        Revise(0),
        RESTART,
        Save,
        Rejoin(0),
        Deliver(0),
        REBUILD,
    ]);
}

#[test]
fn what_two_have_restored_is_there_once() {
    use Step::*;
    run(&[
        Change(2),
        Note,
        Deliver(0),
        Change(2),
        RESTART,
        Rejoin(0),
        RESTART,
        Rejoin(2),
    ]);
    // A third one has what was restored first.
    run(&[Change(0), Note, Deliver(2), RESTART, Rejoin(2), Rejoin(1), RESTART]);
}

#[test]
fn an_author_is_told_of_each_edit_that_an_outside_write_removes() {
    use Step::*;
    // The later of two edits survives.
    run(&[Change(1), WriteOutside, Change(1)]);
    // It was restored before.
    run(&[Change(1), Note, RESTART, Rejoin(1), WriteOutside]);
    // There was no connection.
    run(&[Change(1), Cut(1), WriteOutside, Wait, Rejoin(1)]);
    // Somebody brings the outside write back long after a restart.
    run(&[Append(0), WriteOutside, Deliver(1), RESTART, Rejoin(0), Wait]);
    let written = Restart {
        store: Store::Kept,
        written_meanwhile: true,
    };
    run(&[Append(0), Note, RESTART, Rejoin(0), written, Rejoin(0), WriteOutside]);
}
