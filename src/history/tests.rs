//! The history as the recorders of open documents and callers see it, on a database in memory.

use std::{collections::HashMap, time::Duration};

use history::{Cell, CellKind, Json, Notebook, Outputs};
use jupyter_client::RoomKind;
use live_document::Loss;
use store::StoreLimits;

use super::*;

mod sharing;

/// A document that records its versions in a history.
struct Writer<'h> {
    history: &'h History,
    document: Arc<DocumentId>,
    path: DocPath,
    content: Content,
    revision: u64,
}

fn cell(id: &str, source: &str) -> Arc<Cell> {
    Arc::new(Cell {
        id: id.into(),
        kind: CellKind::Code,
        source: source.into(),
        metadata: Json::empty(),
        attachments: None,
        execution_count: None,
        outputs: Outputs::None,
    })
}

fn notebook(cells: &[(&str, &str)]) -> Content {
    Content::Notebook(Notebook {
        metadata: Json::empty(),
        cells: cells.iter().map(|(id, source)| cell(id, source)).collect(),
    })
}

fn agent(name: &str) -> Author {
    Author::Agent {
        principal: format!("token:{name}").into(),
        name: name.into(),
    }
}

fn person(name: &str) -> Author {
    Author::People {
        names: vec![name.into()],
    }
}

async fn store() -> Store {
    Store::open("sqlite::memory:", StoreLimits::default()).await.unwrap()
}

fn start(store: &Store) -> Arc<History> {
    History::start(store.clone(), Metrics::new("test", None).unwrap())
}

impl<'h> Writer<'h> {
    fn open(history: &'h History, path: &str, content: Content) -> Self {
        let document = DocumentId {
            server: "lab".into(),
            file_id: format!("file of {path}").into(),
            kind: RoomKind::Notebook,
        };
        let writer = Self {
            history,
            document: Arc::new(document),
            path: DocPath::parse(path).unwrap(),
            content,
            revision: 0,
        };
        history.opened(&writer.document, &writer.path, &writer.content, Vec::new());
        writer
    }

    fn set(&mut self, author: Author, content: Content) {
        self.record(author, content, Vec::new(), None);
    }

    fn set_cell(&mut self, author: Author, id: &str, source: &str) {
        let Content::Notebook(mut notebook) = self.content.clone() else {
            unreachable!("a notebook");
        };
        let at = notebook.cells.iter().position(|cell| *cell.id == *id).unwrap();
        notebook.cells[at] = cell(id, source);
        self.set(author, Content::Notebook(notebook));
    }

    fn record(&mut self, author: Author, content: Content, undoes: Vec<VersionId>, loss: Option<Loss>) {
        self.revision += 1;
        self.history.record(Recorded {
            document: Arc::clone(&self.document),
            path: self.path.clone(),
            time: SystemTime::now(),
            tool: matches!(author, Author::Agent { .. }).then(|| "edit".into()),
            author,
            revision: format!("e-{}", self.revision),
            undoes,
            delta: Delta::between(&self.content, &content),
            content: content.clone(),
            size: content.size(),
            blobs: Vec::new(),
            loss,
        });
        self.content = content;
    }

    async fn subject(&self) -> Subject {
        self.history.subject("lab", &self.path).await.unwrap()
    }

    async fn versions(&self) -> Vec<Version> {
        let all = Filter {
            limit: 1000,
            ..Filter::default()
        };
        self.history.list(&self.subject().await, &all).await.unwrap().versions
    }

    async fn kinds(&self) -> Vec<&'static str> {
        self.versions()
            .await
            .iter()
            .map(|version| version.kind.as_str())
            .collect()
    }

    /// The document as the log has it.
    async fn logged(&self) -> Content {
        self.history.flush(&self.document).await.unwrap();
        let newest = self.versions().await.remove(0);
        let (_, content) = self
            .history
            .version(&self.subject().await, newest.id.as_str())
            .await
            .unwrap();
        content
    }

    async fn undo(&mut self, name: &str, steps: usize, redo: bool) -> Result<(), HistoryError> {
        self.history.flush(&self.document).await?;
        let choice = Choice {
            author: Whose::Principal(format!("token:{name}").into()),
            steps,
            since_revision: None,
            redo,
        };
        let plan = self
            .history
            .plan_undo(&self.subject().await, &self.path, &choice)
            .await?;
        assert_eq!(plan.content, self.content);
        let content = plan.delta.apply(&plan.content).unwrap();
        self.record(agent(name), content, plan.undoes(), None);
        Ok(())
    }
}

#[tokio::test]
async fn versions_are_listed_before_and_after_they_are_written() {
    let store = store().await;
    let history = start(&store);
    let mut writer = Writer::open(&history, "a.ipynb", notebook(&[("a", "1"), ("b", "2")]));
    writer.set_cell(agent("ana"), "a", "one");
    writer.set_cell(person("Ben"), "b", "two");
    let kinds = writer.kinds().await;
    assert_eq!(kinds[..2], ["people", "agent"]);
    history.flush(&writer.document).await.unwrap();
    assert_eq!(writer.kinds().await, ["people", "agent", "opened"]);
    let versions = writer.versions().await;
    assert_eq!(versions[1].author(), "ana");
    assert_eq!(versions[1].revision.as_deref(), Some("e-1"));
    assert_eq!(versions[1].summary, "1 cell changed");
    let filter = Filter {
        limit: 1,
        author: Some("Ben".to_owned()),
        before: None,
    };
    let listing = history.list(&writer.subject().await, &filter).await.unwrap();
    assert_eq!(listing.versions[0].id, versions[0].id);
    let before = Filter {
        limit: 1,
        author: None,
        before: Some(Before::Version(versions[0].id.to_string())),
    };
    let listing = history.list(&writer.subject().await, &before).await.unwrap();
    assert_eq!(listing.versions[0].id, versions[1].id);
    assert!(listing.has_more && listing.since.is_some());
    let (_, content) = history.named(&writer.subject().await, "e-1").await.unwrap();
    assert_eq!(content, notebook(&[("a", "one"), ("b", "2")]));
}

#[tokio::test]
async fn what_happened_while_nobody_looked_is_one_version() {
    let store = store().await;
    let history = start(&store);
    let mut writer = Writer::open(&history, "a.ipynb", notebook(&[("a", "1")]));
    writer.set_cell(agent("ana"), "a", "one");
    history.closed(&writer.document);
    history.close().await;
    let history = start(&store);
    let same = Writer::open(&history, "a.ipynb", notebook(&[("a", "one")]));
    history.flush(&same.document).await.unwrap();
    assert_eq!(same.kinds().await, ["agent", "opened"]);
    history.closed(&same.document);
    let other = Writer::open(&history, "a.ipynb", notebook(&[("a", "one"), ("b", "")]));
    assert_eq!(other.logged().await, other.content);
    assert_eq!(other.kinds().await, ["outside", "agent", "opened"]);
}

#[tokio::test]
async fn a_document_that_was_opened_without_its_last_changes_is_noticed() {
    let store = store().await;
    let history = start(&store);
    let mut writer = Writer::open(&history, "a.ipynb", notebook(&[("a", "1")]));
    for source in ["one", "one and a half", "two"] {
        writer.set_cell(agent("ana"), "a", source);
    }
    writer.logged().await;
    let newest = writer.versions().await[0].id.clone();
    history.close().await;
    let history = start(&store);
    let writer = Writer::open(&history, "a.ipynb", notebook(&[("a", "one")]));
    writer.logged().await;
    let ana: Arc<str> = "token:ana".into();
    let notice = history.take_notice(&writer.document, &ana).expect("a notice");
    assert!(
        notice.contains("2 changes") && notice.contains(newest.as_str()),
        "{notice}"
    );
    assert_eq!(history.take_notice(&writer.document, &ana), None);
}

#[tokio::test]
async fn a_sudden_loss_is_told_once_to_everybody() {
    let store = store().await;
    let history = start(&store);
    let full = notebook(&[("a", "first cell"), ("b", "second cell"), ("c", "third cell")]);
    let mut writer = Writer::open(&history, "a.ipynb", full.clone());
    let loss = notices::sudden_loss(&full, &notebook(&[("z", "")]));
    assert!(loss.is_some());
    writer.record(Author::Outside, notebook(&[("z", "")]), Vec::new(), loss);
    writer.logged().await;
    let good = writer.versions().await[1].id.clone();
    for name in ["ana", "bob"] {
        let name: Arc<str> = name.into();
        let notice = history.take_notice(&writer.document, &name).expect("a notice");
        assert!(
            notice.contains("restore_document_version") && notice.contains(good.as_str()),
            "{notice}"
        );
        assert_eq!(history.take_notice(&writer.document, &name), None);
    }
    let (_, content) = history.version(&writer.subject().await, good.as_str()).await.unwrap();
    assert_eq!(content, full);
}

#[tokio::test]
async fn undo_takes_back_what_one_did_and_nothing_else() {
    let store = store().await;
    let history = start(&store);
    let mut writer = Writer::open(&history, "a.ipynb", notebook(&[("a", "x\n"), ("b", "y\n")]));
    let mut peoples = HashMap::from([("a", "x\n".to_owned()), ("b", "y\n".to_owned())]);
    for n in 0..25 {
        let id = if n % 2 == 0 { "a" } else { "b" };
        let source = writer.content.cell(id).unwrap().source.to_string();
        match n % 5 {
            4 => {
                let line = format!("ben {n}\n");
                peoples.get_mut(id).unwrap().push_str(&line);
                writer.set_cell(person("Ben"), id, &format!("{source}{line}"));
            }
            _ => writer.set_cell(agent("ana"), id, &format!("{source}ana {n}\n")),
        }
    }
    let all = writer.content.clone();
    writer.undo("ana", 20, false).await.unwrap();
    let expected = notebook(&[("a", &peoples["a"]), ("b", &peoples["b"])]);
    assert_eq!(writer.content, expected);
    let error = writer.undo("ana", 1, false).await.unwrap_err().to_string();
    assert!(error.contains("nothing to undo") && error.contains("Ben"), "{error}");
    assert_eq!(
        writer
            .versions()
            .await
            .iter()
            .filter(|version| version.is_undone)
            .count(),
        20
    );
    writer.undo("ana", 1, true).await.unwrap();
    assert_eq!(writer.content, all);
    // The log survives the process.
    history.close().await;
    let history = start(&store);
    let mut writer = Writer::open(&history, "a.ipynb", all);
    writer.undo("ana", 20, false).await.unwrap();
    assert_eq!(writer.content, expected);
}

#[tokio::test]
async fn two_gateways_write_one_log() {
    let store = store().await;
    let (one, other) = (start(&store), start(&store));
    let begin = notebook(&[("a", "1"), ("b", "2")]);
    let mut here = Writer::open(&one, "a.ipynb", begin.clone());
    here.logged().await;
    let mut there = Writer::open(&other, "a.ipynb", begin);
    there.logged().await;
    here.set_cell(agent("ana"), "a", "one");
    here.logged().await;
    // The other gateway's agent edits before it has heard of that, and then hears of it.
    there.set_cell(agent("bob"), "b", "two");
    there.logged().await;
    there.set_cell(person("ana"), "a", "one");
    here.set_cell(person("bob"), "b", "two");
    assert_eq!(there.logged().await, notebook(&[("a", "one"), ("b", "two")]));
    assert_eq!(here.logged().await, there.content);
    let authors: Vec<String> = here.versions().await.iter().map(Version::author).collect();
    assert_eq!(authors, ["bob", "ana", "outside"]);
}

#[tokio::test]
async fn what_is_no_version_of_the_document_is_not_found() {
    let store = store().await;
    let history = start(&store);
    let one = Writer::open(&history, "a.ipynb", notebook(&[("a", "1")]));
    let other = Writer::open(&history, "b.ipynb", notebook(&[("a", "1")]));
    one.logged().await;
    other.logged().await;
    let of_other = other.versions().await[0].id.clone();
    let own = one.versions().await[0].id.clone();
    for name in [of_other.as_str(), "v0", ""] {
        let error = history.version(&one.subject().await, name).await.unwrap_err();
        let HistoryError::Unknown { known, .. } = &error else {
            panic!("{error}");
        };
        assert!(known.contains(own.as_str()), "{error}");
    }
    let path = DocPath::parse("c.ipynb").unwrap();
    let nothing = history.subject("lab", &path).await.err().unwrap();
    assert!(matches!(nothing, HistoryError::Nothing { .. }), "{nothing}");
}

#[tokio::test]
async fn a_renamed_document_keeps_its_history() {
    let store = store().await;
    let history = start(&store);
    let mut writer = Writer::open(&history, "d/a.ipynb", notebook(&[("a", "1")]));
    writer.logged().await;
    let to = DocPath::parse("e/b.ipynb").unwrap();
    history.renamed(&writer.document, &writer.path, &to);
    writer.path = to;
    writer.set_cell(agent("ana"), "a", "one");
    writer.logged().await;
    assert_eq!(writer.kinds().await, ["agent", "opened"]);
    history.closed(&writer.document);
    let server: Arc<str> = "lab".into();
    history.note_rename(&server, "e", "f");
    history.wait_until_written(None).await;
    writer.path = DocPath::parse("f/b.ipynb").unwrap();
    assert_eq!(writer.kinds().await, ["agent", "opened"]);
}

#[tokio::test]
async fn contents_between_snapshots_are_found() {
    let store = store().await;
    let history = start(&store);
    let mut writer = Writer::open(&history, "a.ipynb", notebook(&[("a", ""), ("b", "")]));
    for n in 0..300 {
        writer.set_cell(agent("ana"), "a", &format!("value = {n}"));
        if n % 50 == 0 {
            history.flush(&writer.document).await.unwrap();
        }
    }
    assert_eq!(writer.logged().await, writer.content);
    let middle = writer.versions().await[150].clone();
    let (_, content) = history
        .version(&writer.subject().await, middle.id.as_str())
        .await
        .unwrap();
    assert_eq!(content, notebook(&[("a", "value = 149"), ("b", "")]));
    tokio::time::timeout(Duration::from_secs(5), history.close())
        .await
        .unwrap();
}

#[tokio::test]
async fn versions_for_which_there_is_no_room_are_made_up_for() {
    let store = store().await;
    let history = start(&store);
    let mut writer = Writer::open(&history, "a.ipynb", notebook(&[("a", ""), ("b", "")]));
    // Nothing is written meanwhile: the writer does not run before somebody waits.
    for letter in ["x", "y", "z"] {
        writer.set_cell(agent("ana"), "a", &letter.repeat(30 << 20));
    }
    // Compressing so much takes a while.
    history.wait_until_written(Some(&writer.document)).await;
    assert_eq!(writer.logged().await.size(), writer.content.size());
    assert_eq!(writer.kinds().await, ["lost", "agent", "opened"]);
    let listing = history.list(&writer.subject().await, &Filter::default()).await.unwrap();
    assert_eq!(listing.lost, 2);
    writer.set_cell(agent("ana"), "b", "it goes on");
    assert_eq!(writer.logged().await, writer.content);
}
