//! Undo plans: the versions to be taken back, and the delta from the present content.

use std::{collections::HashSet, sync::Arc};

use history::{Author, Content, Delta, LoggedVersion, VersionId, oldest_needed, plan_undo, redoable, undoable};
use jupyter_client::{DocPath, counted};
use store::VersionFilter;

use super::{
    History, HistoryError, Subject,
    contents::load,
    version::{Kind, Version},
};

/// Versions that are looked through for those of an author.
const MAX_VERSIONS: usize = 100_000;

/// The versions that are to be taken back.
#[derive(Debug, Clone)]
pub struct Choice {
    pub author: Whose,
    pub steps: usize,
    /// All since a revision, in the place of some steps.
    pub since_revision: Option<String>,
    /// Takes undos back instead.
    pub redo: bool,
}

/// The author whose versions are taken back.
#[derive(Debug, Clone)]
pub enum Whose {
    Principal(Arc<str>),
    /// Of a principal or anybody of this name.
    Named(String),
}

/// A way to take versions back, from the content that the log ends with.
#[derive(Debug, Clone)]
pub struct UndoPlan {
    pub content: Content,
    pub delta: Delta,
    /// The latest first.
    pub versions: Vec<Version>,
}

impl UndoPlan {
    pub fn undoes(&self) -> Vec<VersionId> {
        self.versions.iter().map(|version| version.id.clone()).collect()
    }
}

impl Whose {
    fn is(&self, version: &Version) -> bool {
        match self {
            Self::Principal(id) => version.principal.as_deref() == Some(id),
            Self::Named(name) => version.is_by(name),
        }
    }
}

impl History {
    /// Plans to take versions back. The log must have all of the document's versions.
    pub async fn plan_undo(
        &self,
        subject: &Subject,
        path: &DocPath,
        choice: &Choice,
    ) -> Result<UndoPlan, HistoryError> {
        let nothing = || HistoryError::Nothing { path: path.to_string() };
        let document = subject.document().ok_or_else(nothing)?;
        let log = self.log(document).await?;
        let chosen = chosen(&log, choice)?;
        if chosen.is_empty() {
            return Err(HistoryError::NothingToUndo(nothing_to(&log, choice)));
        }
        let latest = log.last().and_then(|version| version.seq).unwrap_or_default();
        let undone: HashSet<VersionId> = chosen.iter().map(|version| version.id.clone()).collect();
        let view = log.iter().map(|version| (&version.id, &version.undoes[..]));
        let oldest = oldest_needed(view, &undone);
        let first = log.iter().find(|version| Some(&version.id) == oldest.as_ref());
        let first = first.and_then(|version| version.seq).ok_or_else(nothing)?;
        let base = self.content_at(document, first - 1).await?;
        let logged = self.logged(document, first - 1, latest).await?;
        let delta = plan_undo(&base, &logged, &undone).map_err(|error| damaged(&chosen[0].id, &error.to_string()))?;
        let content = logged
            .iter()
            .try_fold(base, |content, version| version.delta.apply(&content));
        let content = content.map_err(|error| damaged(&chosen[0].id, &error.to_string()))?;
        Ok(UndoPlan {
            content,
            delta,
            versions: chosen,
        })
    }

    /// The versions of a document since its recording began or began anew, the oldest first.
    async fn log(&self, document: i64) -> Result<Vec<Version>, HistoryError> {
        let all = VersionFilter {
            limit: MAX_VERSIONS,
            ..VersionFilter::default()
        };
        let rows = self.store.versions(document, &all).await?;
        let mut log: Vec<Version> = Vec::with_capacity(rows.len());
        for version in rows.into_iter().map(Version::of_row) {
            // Nothing is known of the content before a row that cannot be read.
            let follows = log
                .last()
                .is_none_or(|newer| newer.seq.map(|seq| seq - 1) == version.seq);
            if !follows {
                break;
            }
            let is_beginning = version.kind == Kind::Opened;
            log.push(version);
            if is_beginning {
                break;
            }
        }
        log.reverse();
        Ok(log)
    }

    async fn content_at(&self, document: i64, seq: i64) -> Result<Content, HistoryError> {
        match load(&self.store, document, seq).await? {
            Ok(loaded) => Ok(loaded.content),
            Err(damage) => Err(HistoryError::Damaged {
                version: seq.to_string(),
                why: damage.0,
            }),
        }
    }

    async fn logged(&self, document: i64, after: i64, to: i64) -> Result<Vec<LoggedVersion>, HistoryError> {
        let (mut at, mut logged) = (after, Vec::new());
        while at < to {
            let page = self.store.deltas(document, at, to).await?;
            if page.is_empty() {
                break;
            }
            for (seq, row, bytes) in page {
                let version = Version::of_row(row);
                if seq != at + 1 {
                    return Err(damaged(&version.id, "the change before it is missing"));
                }
                let delta = Delta::decode(&bytes).map_err(|error| damaged(&version.id, &error.to_string()))?;
                logged.push(LoggedVersion {
                    author: author(&version),
                    id: version.id,
                    undoes: version.undoes,
                    delta,
                });
                at = seq;
            }
        }
        Ok(logged)
    }
}

fn chosen(log: &[Version], choice: &Choice) -> Result<Vec<Version>, HistoryError> {
    // The first version is where the log begins: what was before it is not known.
    let known = log.get(1..).unwrap_or_default();
    let is_chosen = |version: &Version| choice.author.is(version) && version.kind != Kind::Opened;
    let found = match choice.redo {
        false => undoable(known, |version| (&version.id, &version.undoes[..]), is_chosen),
        true => redoable(known, |version| (&version.id, &version.undoes[..]), is_chosen),
    };
    let found = found.into_iter().cloned();
    match &choice.since_revision {
        None => Ok(found.take(choice.steps).collect()),
        Some(revision) => {
            let since = moment(log, revision)?;
            Ok(found.filter(|version| version.seq > since).collect())
        }
    }
}

/// The number of the last version up to a revision.
fn moment(log: &[Version], revision: &str) -> Result<Option<i64>, HistoryError> {
    let parts = |revision: &str| {
        let (epoch, number) = revision.rsplit_once('-')?;
        Some((epoch.to_owned(), number.parse::<u64>().ok()?))
    };
    let unknown = || {
        let newest = log.iter().rev().filter_map(|version| version.revision.clone()).take(3);
        HistoryError::NothingToUndo(format!(
            "revision {:?} is not one of this document's history; its newest are {}; nothing was changed",
            revision.chars().take(100).collect::<String>(),
            newest.collect::<Vec<_>>().join(", ")
        ))
    };
    let (epoch, number) = parts(revision).ok_or_else(unknown)?;
    let of_epoch = |version: &&Version| {
        let parts = version.revision.as_deref().and_then(parts);
        parts.filter(|(of, _)| *of == epoch).map(|(_, number)| number)
    };
    let mut versions = log.iter().filter(|version| of_epoch(version).is_some()).peekable();
    let first = versions.peek().ok_or_else(unknown)?.seq.map(|seq| seq - 1);
    let upto = versions.rfind(|version| of_epoch(version).is_some_and(|of| of <= number));
    Ok(upto.map_or(first, |version| version.seq))
}

fn nothing_to(log: &[Version], choice: &Choice) -> String {
    let what = if choice.redo { "redo" } else { "undo" };
    let since = match &choice.since_revision {
        Some(revision) => format!(" since revision {revision}"),
        None => String::new(),
    };
    let made = log.iter().filter(|version| choice.author.is(version)).count();
    let whose = match &choice.author {
        Whose::Principal(_) => "you".to_owned(),
        Whose::Named(name) => format!("{name:?}"),
    };
    let authors: std::collections::BTreeSet<&str> = log
        .iter()
        .filter(|version| version.kind != Kind::Opened)
        .flat_map(|version| version.authors.iter().map(String::as_str))
        .collect();
    let authors = match authors.is_empty() {
        true => "nobody has changed it since its recording began".to_owned(),
        false => format!("its authors are {}", authors.into_iter().collect::<Vec<_>>().join(", ")),
    };
    format!(
        "nothing to {what}{since}: {} by {whose}, and none is left to {what}; {authors}; get_document_history shows all",
        counted(made, "recorded version")
    )
}

fn author(version: &Version) -> Author {
    let names = || version.authors.iter().map(|name| name.as_str().into());
    match (&version.principal, version.kind) {
        (Some(principal), _) => Author::Agent {
            principal: principal.as_str().into(),
            name: names().next().unwrap_or_else(|| principal.as_str().into()),
        },
        (None, Kind::People) => Author::People {
            names: names().collect(),
        },
        (None, _) => Author::Outside,
    }
}

fn damaged(version: &VersionId, why: &str) -> HistoryError {
    HistoryError::Damaged {
        version: version.to_string(),
        why: why.to_owned(),
    }
}
