//! The store through its public face, on real databases of both kinds.

mod compaction;
mod executions;
mod faults;
mod history;
mod leases;
mod logs;
mod memory;
mod oauth;
mod opening;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::json;
use sqlx::AssertSqlSafe;
use tempfile::TempDir;
use test_postgres::TestDatabase;

use crate::{
    Appended, CellRecord, ExecutionFilter, ExecutionKind, ExecutionRecord, ExecutionStatus, LostRecords, Store,
    StoreError, StoreLimits, Terms, Unfinished,
    database::{Connections, Database},
    executions::Batch,
    file_url,
    lease::Lease,
    location::Location,
    process::Process,
};

/// Makes two tests of each function, one for each kind of database.
macro_rules! on_both_engines {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(crate::tests::Scene::sqlite()).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(crate::tests::Scene::postgres()).await;
            })+
        }
    };
}
use on_both_engines;

/// A database of a test's own.
enum Scene {
    Sqlite(TempDir),
    Postgres(TestDatabase),
}

impl Scene {
    fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    fn postgres() -> Self {
        Self::Postgres(TestDatabase::create())
    }

    fn url(&self) -> String {
        match self {
            Self::Sqlite(folder) => file_url(&folder.path().join("gateway.db")),
            Self::Postgres(database) => database.url(),
        }
    }

    async fn open(&self) -> Store {
        self.open_with(StoreLimits::default()).await
    }

    async fn open_with(&self, limits: StoreLimits) -> Store {
        Store::open(&self.url(), limits).await.unwrap()
    }

    /// Runs SQL behind the store's back.
    async fn sql(&self, sql: &str) {
        match self {
            Self::Sqlite(_) => {
                let location = Location::parse(&self.url()).unwrap();
                let Connections::Sqlite(pool) = Database::connect(&location, 1).await.unwrap().connections else {
                    panic!("no such database");
                };
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.unwrap();
                pool.close().await;
            }
            Self::Postgres(database) => drop(database.sql(sql)),
        }
    }

    /// A copy of the files as they are, where the database is in files of ours.
    fn copy(&self) -> Option<Self> {
        let Self::Sqlite(folder) = self else {
            return None;
        };
        let copy = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", path.display());
            fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
        Some(Self::Sqlite(copy))
    }
}

/// Ana's execution number `n`, started `n` seconds after the beginning of time.
fn record(n: u64, status: ExecutionStatus) -> ExecutionRecord {
    let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    ExecutionRecord {
        execution_id: format!("e{n}"),
        tenant: "research".into(),
        principal: "ana".into(),
        server: "lab-a".into(),
        path: Some("añ/b.ipynb".into()),
        file_id: Some("f".into()),
        kernel_id: Some("k".into()),
        kernel_session: Some("s".into()),
        kind: ExecutionKind::Cells,
        status,
        cells: vec![CellRecord {
            cell_id: "c".into(),
            index: 3,
            msg_id: Some("m".into()),
            replaces: Some(2),
            queued: false,
            status,
            execution_count: Some(7),
            asks: None,
            differs: None,
            missing: 5,
        }],
        reason: status.is_finished().then(|| "it said so".into()),
        outputs: status.is_finished().then(|| json!([{ "text": "1\u{0}🎉" }])),
        created_at: at(n),
        started_at: Some(at(n + 1)),
        ended_at: status.is_finished().then(|| at(n + 2)),
        terms: Terms {
            name: Some("Ana".into()),
            ..Terms::default()
        },
    }
}

fn anas(limit: usize) -> ExecutionFilter {
    ExecutionFilter {
        tenant: "research".into(),
        principal: "ana".into(),
        server: None,
        path: None,
        status: None,
        limit,
    }
}

async fn ids(store: &Store, filter: ExecutionFilter) -> Vec<String> {
    let found = store.executions(filter).await.unwrap();
    found.into_iter().map(|record| record.execution_id).collect()
}

async fn find(store: &Store, id: &str) -> Option<ExecutionRecord> {
    store.execution("research", "ana", id).await.unwrap()
}
