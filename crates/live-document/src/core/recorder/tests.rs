//! Versions of what agents, people and others do, with a clock of the test's own.

mod restoring;

use std::time::{Duration, SystemTime};

use history::{LoggedVersion, Operation, Outputs};
use jupyter_client::DocPath;
use serde_json::json;
use yrs::StateVector;

use super::{testing::Memory, *};
use crate::core::{
    CellKind, CellWrite, Edit, NewCell, OutputsChange, RoomKind, RunEnd,
    clock::Clock,
    disconnect::Disconnect,
    document::Document,
    life::Input,
    state::{Origin, State},
    wire::{AwarenessEntry, Message},
};

const MOMENT: Duration = Duration::from_millis(10);

/// An open document with somebody else's copy of it, who is a person as soon as they say so.
struct Scene {
    state: State,
    memory: Arc<Memory>,
    other: Document,
    now: Instant,
    clock: u64,
}

fn new_cell(id: &str, source: &str) -> NewCell {
    NewCell {
        id: id.to_owned(),
        ..NewCell::new(CellKind::Code, source)
    }
}

fn set(cell: &str, source: &str) -> Edit {
    Edit::SetSource {
        cell: cell.to_owned(),
        source: source.to_owned(),
    }
}

fn append(id: &str, source: &str) -> Edit {
    Edit::AppendCells {
        cells: vec![new_cell(id, source)],
    }
}

fn delete(cells: &[&str]) -> Edit {
    Edit::DeleteCells {
        cells: cells.iter().map(|cell| (*cell).to_owned()).collect(),
    }
}

impl Scene {
    fn notebook(cells: &[(&str, &str)]) -> Self {
        let mut server = Document::new(RoomKind::Notebook, Clock::default());
        for (id, source) in cells {
            server
                .apply_local(&"server".into(), &[append(id, source)])
                .expect("valid");
        }
        Self::of(&server)
    }

    fn text(text: &str) -> Self {
        let mut server = Document::new(RoomKind::Text, Clock::default());
        let edit = Edit::SetText { text: text.to_owned() };
        server.apply_local(&"server".into(), &[edit]).expect("valid");
        Self::of(&server)
    }

    fn of(server: &Document) -> Self {
        let now = Instant::now();
        let clock = Clock::new(now, SystemTime::now());
        let copy = || {
            let mut document = Document::new(server.kind(), clock);
            document
                .apply_remote(&server.diff(&StateVector::default()))
                .expect("valid");
            document
        };
        let path = DocPath::parse("a.ipynb").expect("a path");
        let mut state = State::new(copy(), path, "id".to_owned(), "one".to_owned());
        let memory = Memory::of(&mut state);
        Self {
            state,
            memory,
            other: copy(),
            now,
            clock: 0,
        }
    }

    fn on(&mut self, input: Input<'_>) {
        self.now += MOMENT;
        self.state.on(input, self.now);
    }

    fn later(&mut self, time: Duration) {
        self.now += time;
        self.on(Input::Tick);
    }

    /// Makes an edit of an agent, as a caller does.
    fn agent(&mut self, edit: Edit) {
        let author: Arc<str> = "token:agent".into();
        self.state
            .names
            .record(crate::Author::Local(Arc::clone(&author)), "agent");
        let edit = |document: &mut Document| document.apply_local(&author, &[edit]);
        let applied = self.state.document.by_tool(Some("modify"), edit).expect("valid");
        self.other.apply_remote(&applied.update).expect("it fits");
        self.state.changed(applied.update, Origin::Caller);
        self.state.tell_versions();
    }

    /// Makes an edit of somebody else.
    fn others(&mut self, edit: Edit) {
        let applied = self.other.apply_local(&"somebody".into(), &[edit]).expect("valid");
        self.on(Input::Frame(&Message::Update(applied.update).encode()));
    }

    /// Makes the other one a person with a name.
    fn introduce(&mut self, name: &str) {
        let client = self.other.client_id();
        self.say(client, &json!({ "user": { "name": name } }).to_string());
    }

    fn say(&mut self, client: u64, state: &str) {
        self.clock += 1;
        let entry = AwarenessEntry {
            client,
            clock: self.clock,
            state: state.to_owned(),
        };
        self.on(Input::Frame(&Message::Awareness(vec![entry]).encode()));
    }

    /// Jupyter makes the document the same as a file, as a client that nobody knows.
    fn server_sets(&mut self, cells: &[(&str, &str)]) {
        let mut server = Document::new(RoomKind::Notebook, *self.state.document.clock());
        server
            .apply_remote(&self.state.document.diff(&StateVector::default()))
            .expect("it fits");
        let cells = cells.iter().map(|(id, source)| new_cell(id, source)).collect();
        let metadata = server.metadata();
        let applied = server
            .apply_local(&"server".into(), &[Edit::SetNotebook { metadata, cells }])
            .expect("valid");
        self.other.apply_remote(&applied.update).expect("it fits");
        self.on(Input::Frame(&Message::Update(applied.update).encode()));
    }

    fn run(&mut self, cell: &str, text: &str) {
        let write = CellWrite {
            begin: true,
            outputs: Some(OutputsChange {
                push: vec![json!({ "output_type": "stream", "name": "stdout", "text": text })],
                ..OutputsChange::default()
            }),
            end: Some(RunEnd {
                execution_count: Some(1),
            }),
        };
        let (applied, _) = self
            .state
            .document
            .write_cell(&"token:agent".into(), cell, &write)
            .expect("a cell");
        self.other.apply_remote(&applied.update).expect("it fits");
        self.state.changed(applied.update, Origin::Run);
        self.state.tell_versions();
    }

    /// The log as it would be stored; versions are called by their numbers.
    fn log(&self) -> Vec<LoggedVersion> {
        let logged = |(number, version): (usize, &crate::Recorded)| LoggedVersion {
            id: number.to_string().into(),
            author: version.author.clone(),
            undoes: version.undoes.clone(),
            delta: Delta::decode(&version.delta.encode()).expect("readable"),
        };
        self.memory
            .told(|told| told.versions.iter().enumerate().map(logged).collect())
    }

    fn shown(&self) -> Vec<String> {
        let (content, _) = self.other.read_content();
        let cells = content.cells().iter();
        cells.map(|cell| format!("{}:{}", cell.id, cell.source)).collect()
    }

    fn summaries(&self) -> Vec<String> {
        self.memory
            .told(|told| told.versions.iter().map(|version| version.delta.summary()).collect())
    }

    #[track_caller]
    fn assert_authors(&mut self, expected: &[&str]) {
        assert_eq!(self.memory.authors(), expected);
        self.memory.check(&mut self.state);
        assert_eq!(self.memory.authors(), expected, "nothing else was waiting");
    }
}

#[test]
fn an_edit_of_an_agent_is_a_version_at_once() {
    let mut scene = Scene::notebook(&[("a", "1")]);
    scene.agent(set("a", "12"));
    scene.agent(append("b", "new"));
    scene.assert_authors(&["agent", "agent"]);
    assert_eq!(scene.summaries(), ["1 cell changed", "1 cell inserted"]);
    scene.memory.told(|told| {
        let version = &told.versions[1];
        assert_eq!(version.tool.as_deref(), Some("modify"));
        assert_eq!(version.revision, scene.state.document.revision());
        assert_eq!((version.size, version.path.to_string().as_str()), (5, "a.ipynb"));
    });
    scene.agent(set("a", "12"));
    scene.assert_authors(&["agent", "agent"]);
}

#[test]
fn what_people_type_is_a_version_when_they_pause() {
    let mut scene = Scene::notebook(&[("a", "1"), ("b", "2")]);
    scene.introduce("Ana");
    scene.others(set("a", "10"));
    scene.later(VERSION_QUIET / 2);
    scene.others(set("b", "20"));
    scene.later(VERSION_QUIET.saturating_sub(MOMENT * 2));
    assert!(scene.memory.authors().is_empty(), "she may go on");
    assert!(
        scene
            .state
            .next_timer()
            .is_some_and(|timer| timer <= scene.now + MOMENT * 2)
    );
    scene.later(MOMENT);
    scene.assert_authors(&["people Ana"]);
    assert_eq!(scene.summaries(), ["2 cells changed"]);
}

#[test]
fn who_never_pauses_gets_versions_all_the_same() {
    let mut scene = Scene::text("");
    scene.introduce("Ana");
    for number in 0..70 {
        let text = "x".repeat(number + 1);
        scene.others(Edit::SetText { text });
        scene.later(Duration::from_secs(1));
    }
    assert_eq!(scene.memory.authors(), ["people Ana"]);
    scene.later(VERSION_QUIET);
    scene.assert_authors(&["people Ana", "people Ana"]);
}

#[test]
fn what_people_did_before_an_edit_is_a_version_before_it() {
    let mut scene = Scene::notebook(&[("a", "x = 1\n")]);
    scene.introduce("Ana");
    scene.others(set("a", "x = 1\ny = 2\n"));
    scene.agent(set("a", "x = 100\ny = 2\n"));
    scene.others(set("a", "x = 100\ny = 2\nz\n"));
    scene.on(Input::Close);
    scene.on(Input::Lost(Disconnect::Cut("test".to_owned())));
    assert_eq!(scene.memory.authors(), ["people Ana", "agent", "people Ana"]);
    assert_eq!(scene.memory.told(|told| told.closed), 1);
}

#[test]
fn names_that_come_after_the_change_count_too_and_stay_when_people_leave() {
    let mut scene = Scene::notebook(&[("a", "1")]);
    scene.others(set("a", "10"));
    scene.introduce("Ana");
    let client = scene.other.client_id();
    scene.others(delete(&["a"]));
    scene.say(client, "null");
    scene.later(VERSION_QUIET);
    scene.assert_authors(&["people Ana"]);
}

#[test]
fn who_only_takes_something_away_is_who_is_there() {
    let mut scene = Scene::notebook(&[("a", "1"), ("b", "2")]);
    scene.introduce("Ana");
    scene.others(delete(&["a"]));
    scene.later(VERSION_QUIET);
    scene.assert_authors(&["people Ana"]);
    scene.say(77, &json!({ "user": { "name": "Bob" } }).to_string());
    scene.others(delete(&["b"]));
    scene.later(VERSION_QUIET);
    scene.assert_authors(&["people Ana", "people "]);
}

#[test]
fn what_runs_write_rides_along() {
    let mut scene = Scene::notebook(&[("a", "1"), ("b", "2")]);
    scene.introduce("Ana");
    scene.run("a", "first");
    scene.later(VERSION_QUIET * 3);
    assert!(scene.memory.authors().is_empty(), "a run is no version");
    scene.others(set("b", "20"));
    scene.later(VERSION_QUIET);
    assert_eq!(scene.summaries(), ["1 cell changed"], "nobody typed in the other cell");
    scene.run("b", "second");
    scene.agent(Edit::ClearOutputs {
        cells: vec!["a".to_owned()],
    });
    scene.assert_authors(&["people Ana", "agent"]);
    scene.memory.told(|told| {
        let by_runs: Vec<bool> = told.versions[1]
            .delta
            .operations
            .iter()
            .map(|operation| match operation {
                Operation::Outputs { cell, by_run, new, .. } => {
                    assert_eq!(**cell == *"b", new.0 != Outputs::None);
                    *by_run == (**cell == *"b")
                }
                _ => false,
            })
            .collect();
        assert_eq!(by_runs, [true, true], "the agent cleared one, a run wrote the other");
    });
    scene
        .state
        .document
        .set_kernelspec(&"token:agent".into(), &json!({ "name": "python3" }));
    scene.later(VERSION_QUIET);
    scene.assert_authors(&["people Ana", "agent"]);
}

#[test]
fn a_run_of_a_person_is_no_version_and_her_metadata_is() {
    let mut scene = Scene::notebook(&[("a", "1")]);
    scene.introduce("Ana");
    let write = CellWrite {
        begin: true,
        end: Some(RunEnd {
            execution_count: Some(7),
        }),
        ..CellWrite::default()
    };
    let (applied, _) = scene.other.write_cell(&"x".into(), "a", &write).expect("a cell");
    scene.on(Input::Frame(&Message::Update(applied.update).encode()));
    scene.later(VERSION_QUIET);
    assert!(scene.memory.authors().is_empty());
    let cell = NewCell {
        metadata: json!({ "tags": ["keep"] }),
        execution_count: Some(7),
        ..new_cell("a", "1")
    };
    let metadata = json!({ "title": "mine" });
    scene.others(Edit::SetNotebook {
        metadata,
        cells: vec![cell],
    });
    scene.later(VERSION_QUIET);
    scene.assert_authors(&["people Ana"]);
    assert_eq!(scene.summaries(), ["1 cell changed, metadata of the notebook changed"]);
}

#[test]
fn large_outputs_are_not_kept() {
    let mut scene = Scene::notebook(&[("a", "1")]);
    scene.run("a", &"x".repeat(history::MAX_OUTPUTS + 1));
    scene.agent(set("a", "2"));
    scene.assert_authors(&["agent"]);
    assert_eq!(
        scene.memory.content().cell("a").map(|cell| cell.outputs),
        Some(Outputs::Omitted)
    );
}

#[test]
fn a_file_written_from_outside_is_nobodys_and_does_not_swallow_typing() {
    let mut scene = Scene::notebook(&[("a", "1"), ("b", "2")]);
    scene.introduce("Ana");
    scene.others(set("a", "typed"));
    scene.server_sets(&[("a", "written"), ("b", "2"), ("c", "3")]);
    assert_eq!(scene.memory.authors(), ["people Ana"], "her typing comes first");
    scene.later(OUTSIDE_QUIET);
    scene.assert_authors(&["people Ana", "?"]);
    scene.others(set("b", "typed"));
    scene.later(VERSION_QUIET);
    scene.assert_authors(&["people Ana", "?", "people Ana"]);
}

#[test]
fn what_the_server_notes_of_a_save_ends_no_ones_typing() {
    let mut scene = Scene::notebook(&[("a", "1")]);
    scene.introduce("Ana");
    scene.others(set("a", "12"));
    let mut server = Document::new(RoomKind::Notebook, *scene.state.document.clock());
    server
        .apply_remote(&scene.state.document.diff(&StateVector::default()))
        .expect("it fits");
    let noted = server.mark_dirty().expect("a change").update;
    scene.on(Input::Frame(&Message::Update(noted).encode()));
    scene.others(set("a", "123"));
    scene.later(VERSION_QUIET);
    scene.assert_authors(&["people Ana"]);
}

#[test]
fn a_loss_that_nobody_wanted_is_told() {
    let cells = [("a", "import numpy"), ("b", "x = 1"), ("c", "plot(x)")];
    let loss = |scene: &Scene| {
        scene
            .memory
            .told(|told| told.versions.last().and_then(|version| version.loss))
    };
    let mut scene = Scene::notebook(&cells);
    scene.server_sets(&[("empty", "")]);
    scene.later(OUTSIDE_QUIET);
    scene.assert_authors(&["?"]);
    assert_eq!(
        loss(&scene),
        Some(Loss {
            cells_before: 3,
            cells_after: 1,
            characters_before: 24,
            characters_after: 0
        })
    );
    let mut scene = Scene::notebook(&cells);
    scene.introduce("Ana");
    scene.others(delete(&["a", "b", "c"]));
    scene.later(VERSION_QUIET);
    scene.assert_authors(&["people Ana"]);
    assert_eq!(loss(&scene), None, "she deleted them herself");
    let mut scene = Scene::notebook(&cells);
    scene.agent(delete(&["a", "b", "c"]));
    assert_eq!(loss(&scene), None, "an agent was told to");
    let mut scene = Scene::notebook(&cells);
    scene.server_sets(&[("a", "import numpy"), ("b", "x = 1")]);
    scene.later(OUTSIDE_QUIET);
    assert_eq!(loss(&scene), None, "most of it is there");
}

#[test]
fn a_text_that_is_emptied_by_an_outside_write_is_a_loss_although_somebody_is_there() {
    let mut scene = Scene::text(&"line\n".repeat(100));
    scene.introduce("Ana");
    scene.now += MOMENT;
    scene.state.set_now(scene.now);
    scene.state.mark_overwritten();
    scene.others(Edit::SetText { text: String::new() });
    scene.later(OUTSIDE_QUIET);
    // She is known by her client only where she adds something.
    scene.assert_authors(&["?"]);
    assert!(scene.memory.told(|told| told.versions[0].loss.is_some()));
}

#[test]
fn a_rename_is_told_and_versions_have_the_new_path() {
    let mut scene = Scene::notebook(&[("a", "1")]);
    scene.state.set_path(DocPath::parse("b.ipynb").expect("a path"));
    scene.agent(set("a", "2"));
    scene.memory.told(|told| {
        assert_eq!(told.renamed, [("a.ipynb".to_owned(), "b.ipynb".to_owned())]);
        assert_eq!(told.versions[0].path.to_string(), "b.ipynb");
    });
}

#[test]
fn what_is_opened_has_its_outputs() {
    let mut server = Document::new(RoomKind::Notebook, Clock::default());
    let cell = NewCell {
        outputs: vec![json!({ "output_type": "stream", "name": "stdout", "text": "1" })],
        attachments: Some(json!({ "a.png": { "image/png": "x" } })),
        ..new_cell("a", "1")
    };
    server
        .apply_local(&"server".into(), &[Edit::AppendCells { cells: vec![cell] }])
        .expect("valid");
    let scene = Scene::of(&server);
    scene.memory.told(|told| {
        let opened = told
            .opened
            .as_ref()
            .and_then(|content| content.cell("a"))
            .expect("the cell");
        assert_eq!(opened.outputs, Outputs::Kept(told.blobs[0].hash));
        assert_eq!(told.blobs[0].outputs()[0]["text"], "1");
        assert!(opened.attachments.is_some());
    });
}
