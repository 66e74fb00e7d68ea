//! Versions of open documents on a real JupyterLab: whose they are, how they are taken back beside somebody who types, and what
//! is noticed when the content of a file is gone.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use history::{Author, Blob, Content, Delta, LoggedVersion, VersionId, plan_undo};
use jupyter_client::{DocPath, JupyterServer, Secret, ServerOptions};
use live_document::{
    DeltaOptions, DeltaOutcome, DocumentId, Edit, EditOptions, HistorySink, Planned, Recorded, Room, RoomKind,
    pool::{Account, Lease, Pool, PoolLimits},
};
use parking_lot::Mutex;

use crate::support::{Human, eventually, jupyter::install_tls, lab, lab::Folder, notebook::notebook};

/// Remembers what it is told.
#[derive(Default)]
struct Memory(Mutex<Told>);

#[derive(Default)]
struct Told {
    opened: Option<Content>,
    versions: Vec<Recorded>,
    closed: usize,
}

impl HistorySink for Memory {
    fn opened(&self, _: &Arc<DocumentId>, _: &DocPath, content: &Content, _: Vec<Blob>) {
        self.0.lock().opened = Some(content.clone());
    }

    fn record(&self, recorded: Recorded) {
        self.0.lock().versions.push(recorded);
    }

    fn renamed(&self, _: &Arc<DocumentId>, _: &DocPath, _: &DocPath) {}

    fn closed(&self, _: &Arc<DocumentId>) {
        self.0.lock().closed += 1;
    }
}

impl Memory {
    fn authors(&self) -> Vec<String> {
        let author = |version: &Recorded| match &version.author {
            Author::Agent { name, .. } => name.to_string(),
            Author::People { names } => names.join(" and "),
            Author::Outside => "?".to_owned(),
        };
        self.0.lock().versions.iter().map(author).collect()
    }

    fn log(&self) -> Vec<LoggedVersion> {
        let logged = |(number, version): (usize, &Recorded)| LoggedVersion {
            id: number.to_string().into(),
            author: version.author.clone(),
            undoes: version.undoes.clone(),
            delta: version.delta.clone(),
        };
        self.0.lock().versions.iter().enumerate().map(logged).collect()
    }

    fn opened_with(&self) -> Content {
        self.0.lock().opened.clone().expect("it was opened")
    }

    /// Where the versions lead.
    fn content(&self) -> Content {
        let log = self.log();
        let deltas: Vec<&Delta> = log.iter().map(|version| &version.delta).collect();
        Delta::apply_all(&self.opened_with(), deltas).expect("versions that fit each other")
    }
}

struct Scene {
    memory: Arc<Memory>,
    lease: Lease,
    human: Human,
    folder: Folder,
    author: Arc<str>,
}

impl Scene {
    async fn new(cells: &[&str]) -> Self {
        install_tls();
        let options = ServerOptions::new("lab", lab().url().parse().unwrap(), Secret::new(lab().token()));
        let server = Arc::new(JupyterServer::new(&options, Arc::new(())).unwrap());
        let memory = Arc::new(Memory::default());
        let limits = PoolLimits {
            idle_timeout: Duration::from_secs(60),
            max_open_rooms: 10,
            presence_timeout: Duration::from_secs(60),
        };
        let pool = Arc::new(Pool::new(limits).with_history(Arc::clone(&memory) as Arc<dyn HistorySink>));
        let folder = lab().folder();
        let path = folder.write("a.ipynb", &notebook(cells));
        let account = Account {
            principal: None,
            tenant: "test".into(),
            max_open_rooms: 10,
        };
        let parsed = DocPath::parse(&path).unwrap();
        let lease = pool
            .lease(&server, &parsed, RoomKind::Notebook, &account)
            .await
            .unwrap();
        let human = Human::join(&path).await;
        human.publish("Ana", true);
        Self {
            memory,
            lease,
            human,
            folder,
            author: "token:agent".into(),
        }
    }

    fn room(&self) -> &Room {
        &self.lease
    }

    async fn edit(&self, cell: &str, source: &str) {
        let edit = Edit::SetSource {
            cell: cell.to_owned(),
            source: source.to_owned(),
        };
        let options = EditOptions {
            tool: Some("modify_nb_cells"),
            force: true,
            ..EditOptions::default()
        };
        self.room().edit(&self.author, "agent", &[edit], options).await.unwrap();
        self.human
            .wait_for("the edit arrives", |human| {
                human.sources().iter().any(|text| text == source)
            })
            .await;
    }

    async fn types(&self, cell: &str, at: u32, text: &str) {
        self.human.splice_cell(cell, at, 0, text);
        eventually("the typing arrives", async || {
            let now = self.room().source_of(cell)?;
            now.contains(text).then_some(())
        })
        .await;
    }

    async fn apply(&self, delta: &Delta, planned: Planned<'_>, undoes: &[VersionId]) -> DeltaOutcome {
        let options = DeltaOptions {
            planned,
            tool: Some("undo_changes"),
            undoes,
            outputs: &HashMap::new(),
        };
        self.room()
            .apply_delta(&self.author, "agent", delta, options)
            .await
            .unwrap()
    }

    fn ids(&self) -> Vec<String> {
        self.human.cells().into_iter().map(|cell| cell.id).collect()
    }
}

#[tokio::test]
async fn what_an_agent_did_is_taken_back_beside_a_person() {
    let scene = Scene::new(&["x = 1", "y = 2"]).await;
    let ids = scene.ids();
    scene.edit(&ids[0], "x = 100").await;
    scene.types(&ids[0], 7, "  # Ana").await;
    scene.edit(&ids[1], "y = 3").await;
    assert_eq!(scene.memory.authors(), ["agent", "Ana", "agent"]);
    let stale = scene.room().content_for_history();
    assert_eq!(
        stale.content,
        scene.memory.content(),
        "the versions lead to the document"
    );

    let undone: Vec<VersionId> = ["0", "2"].map(VersionId::from).to_vec();
    let set: HashSet<VersionId> = undone.iter().cloned().collect();
    let delta = plan_undo(&scene.memory.opened_with(), &scene.memory.log(), &set).unwrap();
    scene.types(&ids[1], 0, "#").await;
    let refused = scene.apply(&delta, Planned::Exactly(&stale.content), &undone).await;
    assert_eq!(refused, DeltaOutcome::ChangedMeanwhile, "she typed since");

    let now = scene.room().content_for_history().content;
    let delta = plan_undo(&scene.memory.opened_with(), &scene.memory.log(), &set).unwrap();
    let DeltaOutcome::Applied { edited, .. } = scene.apply(&delta, Planned::Exactly(&now), &undone).await else {
        panic!("it is what was planned for")
    };
    assert!(edited.acknowledged);
    scene
        .human
        .wait_for("the undo arrives", |human| {
            human.sources() == ["x = 1  # Ana", "#y = 2"]
        })
        .await;
    assert_eq!(scene.ids(), ids, "cells keep their ids");
    assert_eq!(scene.memory.authors(), ["agent", "Ana", "agent", "Ana", "agent"]);
    scene.room().close().await;
    assert_eq!(scene.memory.0.lock().closed, 1);
}

#[tokio::test]
async fn an_older_version_is_restored_beside_a_person() {
    let scene = Scene::new(&["x = 1", "y = 2", "z = 3"]).await;
    let ids = scene.ids();
    let first = scene.room().content_for_history().content;
    let delete = Edit::DeleteCells {
        cells: vec![ids[1].clone()],
    };
    let options = EditOptions::default();
    scene
        .room()
        .edit(&scene.author, "agent", &[delete], options)
        .await
        .unwrap();
    scene.edit(&ids[0], "changed").await;
    let before = scene.room().content_for_history().content;
    scene.types(&ids[2], 5, "0").await;
    let outcome = scene
        .apply(&Delta::between(&before, &first), Planned::From(&before), &[])
        .await;
    assert!(matches!(outcome, DeltaOutcome::Applied { .. }));
    scene
        .human
        .wait_for("the version arrives", |human| {
            human.sources() == ["x = 1", "y = 2", "z = 30"]
        })
        .await;
    assert_eq!(scene.ids(), ids, "cells keep their ids");
}

#[tokio::test]
async fn what_a_person_types_is_a_version_when_she_pauses() {
    let scene = Scene::new(&["x = 1"]).await;
    let ids = scene.ids();
    scene.types(&ids[0], 5, "23").await;
    eventually("she paused", async || (scene.memory.authors() == ["Ana"]).then_some(())).await;
    assert_eq!(scene.memory.0.lock().versions[0].delta.summary(), "1 cell changed");
}

#[tokio::test]
async fn a_file_that_lost_its_content_is_noticed() {
    let scene = Scene::new(&["import numpy", "x = numpy.zeros(3)", "plot(x)"]).await;
    scene.folder.write("a.ipynb", &notebook(&[""]));
    eventually("the loss is told", async || {
        let told = scene.memory.0.lock();
        let version = told.versions.iter().find(|version| version.loss.is_some())?;
        (version.author == Author::Outside).then_some(())
    })
    .await;
    let lost = scene.room().content_for_history().content;
    let outcome = scene
        .apply(
            &Delta::between(&lost, &scene.memory.opened_with()),
            Planned::Exactly(&lost),
            &[],
        )
        .await;
    assert!(matches!(outcome, DeltaOutcome::Applied { .. }), "{outcome:?}");
    scene
        .human
        .wait_for("all is back", |human| {
            human.sources().contains(&"plot(x)".to_owned()) && human.sources().len() == 3
        })
        .await;
}
