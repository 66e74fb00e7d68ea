//! How a person is asked about a call: by the client, in the middle of the call or in a round of its own, or on the page, where
//! somebody else decides too. Whoever decides first has decided.

use std::{collections::HashSet, fmt::Write, sync::Arc, time::Duration};

use jupyter_client::{DocPath, truncate};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use super::{
    Call, Reader,
    approving::{PATHS, digest},
};
use crate::{
    approvals::{AskedCall, Decided, Piece, Standing, Unkept, WaitingCall},
    auth::ApprovalRule,
    tools::{Choice, ChoiceForm, ChoiceReply, ToolError},
};

/// The field that a person ticks.
const ALLOW: &str = "allow";
/// Characters of each piece of code that a person is shown, and pieces. What matches a rule is shown before them.
const MAX_CODE: usize = 2000;
const MAX_PIECES: usize = 5;
const MAX_MATCH: usize = 200;
/// The same on the page, which has more room.
const MAX_PAGE_CODE: usize = 20_000;
const MAX_PAGE_PIECES: usize = 20;
/// Time that a call waits for a decision when it is made again. Clients give up after a minute.
const PATIENCE: Duration = Duration::from_secs(30);

/// A question that was not answered: the client may ask it and repeat the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// None if the client's person is not the one to decide.
    pub form: Option<ChoiceForm>,
    /// What a model is told whose client cannot ask.
    pub message: String,
}

/// Something that a rule is about.
pub(super) struct Matched<'a> {
    pub(super) rule: &'a ApprovalRule,
    /// Where the code is, and the part of it that matches.
    pub(super) code: Option<(&'a str, &'a str, &'a str)>,
}

/// What a person is asked about a call.
pub(super) struct Question<'a> {
    pub(super) server: Option<&'a str>,
    pub(super) paths: &'a [DocPath],
    pub(super) matched: &'a [Matched<'a>],
    /// Shown where the question is about the call as such.
    pub(super) arguments: Option<&'a Map<String, Value>>,
}

/// A person's decision.
struct Verdict {
    is_allowed: bool,
    by: By,
}

enum By {
    Client,
    /// The client's person or one at the page, when the call was made before.
    Earlier,
    Page {
        id: Arc<str>,
        name: String,
    },
}

impl Verdict {
    fn at_client(is_allowed: bool) -> Self {
        Self {
            is_allowed,
            by: By::Client,
        }
    }

    /// The decision for the audit.
    fn recorded(&self) -> String {
        let what = if self.is_allowed { "allowed" } else { "declined" };
        match &self.by {
            By::Client => format!("{what} by the person at the client"),
            By::Earlier => format!("{what} before"),
            By::Page { id, .. } => format!("{what} by {id} on the page"),
        }
    }
}

impl From<crate::approvals::Verdict> for Verdict {
    fn from(verdict: crate::approvals::Verdict) -> Self {
        Self {
            is_allowed: verdict.is_allowed,
            by: By::Page {
                id: verdict.by,
                name: verdict.by_name,
            },
        }
    }
}

impl Question<'_> {
    /// The rules that ask, each once.
    fn rules(&self) -> Vec<&ApprovalRule> {
        let mut rules: Vec<&ApprovalRule> = self.matched.iter().map(|matched| matched.rule).collect();
        rules.dedup_by_key(|rule| rule.name());
        rules
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.rules().into_iter().map(ApprovalRule::name).collect();
        names.join(", ")
    }

    fn on(&self) -> String {
        let paths: Vec<&str> = self.paths.iter().map(DocPath::as_str).collect();
        paths.join(", ")
    }

    /// Returns whether somebody else than the client's person is to decide.
    fn is_for_others(&self) -> bool {
        self.matched.iter().any(|matched| matched.rule.is_for_others())
    }

    /// The code that rules are about, each piece once.
    fn code(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut shown = HashSet::new();
        let code = self.matched.iter().filter_map(|matched| matched.code);
        code.filter_map(move |(place, _, source)| shown.insert(source).then_some((place, source)))
    }
}

impl Call {
    /// Asks a person, if there is something to ask.
    pub(super) async fn ask(&self, question: &Question<'_>) -> Result<(), ToolError> {
        if question.matched.is_empty() {
            return Ok(());
        }
        let (names, form) = (question.names(), self.form(question));
        let is_granted = self.approvals.lock().granted.contains(&form.version);
        let verdict = match is_granted {
            true => Verdict {
                is_allowed: true,
                by: By::Earlier,
            },
            false => Box::pin(self.verdict(question, &form)).await?,
        };
        let mut state = self.approvals.lock();
        state.decisions.push(format!("{names}: {}", verdict.recorded()));
        if !verdict.is_allowed {
            let by = match verdict.by {
                By::Page { name, .. } => name,
                By::Client | By::Earlier => "the person".to_owned(),
            };
            return Err(ToolError::NotApproved { by, rules: names });
        }
        if !state.granted.contains(&form.version) {
            state.granted.push(form.version);
        }
        Ok(())
    }

    async fn verdict(&self, question: &Question<'_>, form: &ChoiceForm) -> Result<Verdict, ToolError> {
        let (waiting, key) = (&self.services.waiting, self.key_of(&form.version));
        let asks_client = !question.is_for_others();
        let chosen = self.choice(&form.version).filter(|_| asks_client);
        if let Some(is_allowed) = chosen.and_then(allows) {
            // A refusal on the page stands, whatever the client says.
            return Ok(match waiting.withdraw(&key) {
                Some(refused) => refused.into(),
                None => Verdict::at_client(is_allowed),
            });
        }
        // A page that only looks is no call that anybody waits for.
        let standing = match self.reader {
            Reader::PersonOnPage => Standing::Unkept(Unkept::NoPage),
            Reader::Agent | Reader::Person => waiting.ask(key, self.principal.revoked(), || self.asked(question)),
        };
        let standing = match standing {
            Standing::Decided(decided) => return Ok(self.taking(decided)),
            standing => standing,
        };
        if asks_client {
            let reply = tokio::select! {
                reply = self.client().choose(form) => reply,
                Some(decided) = waiting.decided(&key) => return Ok(self.taking(decided)),
            };
            if let Some(is_allowed) = allows(&reply) {
                waiting.withdraw(&key);
                return Ok(Verdict::at_client(is_allowed));
            }
        }
        let is_repeated = matches!(standing, Standing::Waits { is_known: true, .. });
        let asks_by_answering = asks_client && self.client().asks_by_answering();
        // A person on the page has something better to do than to wait.
        if is_repeated && !asks_by_answering && self.reader == Reader::Agent {
            tokio::select! {
                decided = timeout(PATIENCE, waiting.decided(&key)) => if let Ok(Some(decided)) = decided {
                    return Ok(self.taking(decided));
                },
                () = self.client().cancelled() => {}
                () = self.last_call() => {}
            }
        }
        let names = question.names();
        let message = self.told_unanswered(&names, form, &standing);
        let mut state = self.approvals.lock();
        state.decisions.push(format!("{names}: a person is to be asked"));
        let form = asks_client.then(|| form.clone());
        Err(ToolError::Unanswered(Box::new(Unanswered { form, message })))
    }

    /// Keeps what was allowed until the call has made use of it.
    fn taking(&self, Decided { verdict, grant }: Decided) -> Verdict {
        self.approvals.lock().taken.extend(grant);
        verdict.into()
    }

    /// What a model is told, or a person on the page, of a question that nobody has answered.
    fn told_unanswered(&self, names: &str, form: &ChoiceForm, standing: &Standing) -> String {
        let tenant = &self.principal.tenant.name;
        let how = match standing {
            Standing::Waits { call, .. } => self.told_waiting(call),
            Standing::Unkept(Unkept::NoPage) | Standing::Decided(_) => String::new(),
            Standing::Unkept(why) => format!("{why}. "),
        };
        if self.reader != Reader::Agent {
            return format!(
                "a person must allow this (rule {names} of tenant {tenant:?}), and nothing was changed. {how}"
            );
        }
        format!(
            "input_required: a person must allow this call (rule {names} of tenant {tenant:?}), and this client cannot ask one in the \
             middle of a call; nothing was run and nothing was changed. {}\n\n{how}A person can also do it in JupyterLab, or somebody whose \
             token is not under this rule can make the call. Do not look for a way round the rule: tell the person what you \
             need and why.",
            form.message
        )
    }

    fn told_waiting(&self, call: &WaitingCall) -> String {
        let page = self.services.waiting.page().unwrap_or_default();
        let tenant = &self.principal.tenant.name;
        if self.reader != Reader::Agent {
            let how = "It waits on the overview for somebody else of the tenant with permission `admin`. Do it again when they have \
                       allowed it";
            return how.to_owned();
        }
        let until = humantime::format_rfc3339_seconds(call.until);
        format!(
            "It waits as request {} until {until} on the page {page}, where somebody of tenant {tenant:?} with permission `admin` can \
             allow it: tell the person. Then make the same call again, with the same arguments: it waits up to {} s for the \
             decision, and goes on once it is allowed. ",
            call.id,
            PATIENCE.as_secs()
        )
    }

    /// The call as somebody reads it on the page.
    fn asked(&self, question: &Question<'_>) -> AskedCall {
        let code = question.code().take(MAX_PAGE_PIECES);
        AskedCall {
            principal: Arc::clone(&self.principal.id),
            name: self.principal.name.clone(),
            tenant: self.principal.tenant.name.clone(),
            tool: self.tool.unwrap_or_default(),
            server: question.server.map(str::to_owned),
            paths: question.paths.to_vec(),
            rules: question.names(),
            reasons: question.rules().into_iter().map(ToString::to_string).collect(),
            code: code.map(|(place, source)| piece(place, source)).collect(),
            arguments: question.arguments.map(shown_arguments).unwrap_or_default(),
        }
    }

    /// The question for the client's person.
    fn form(&self, question: &Question<'_>) -> ChoiceForm {
        let (tool, on, names) = (self.tool.unwrap_or_default(), question.on(), question.names());
        let of_document = match on.is_empty() {
            true => String::new(),
            false => format!(" on {on}"),
        };
        let mut message = format!(
            "{} wants to call {tool}{of_document}, which a person must allow ({names}).",
            self.principal.name
        );
        let mut version = Sha256::new();
        for part in [tool, &on, &names] {
            version.update(part.len().to_be_bytes());
            version.update(part);
        }
        for (place, found, source) in question.matched.iter().filter_map(|matched| matched.code) {
            version.update(digest(source));
            let found = truncate(found.trim().to_owned(), MAX_MATCH).text;
            let _ = write!(message, "\nA rule is about {found:?} in {place}.");
        }
        for (place, source) in question.code().take(MAX_PIECES) {
            let text = truncate(source.to_owned(), MAX_CODE).text;
            let _ = write!(message, "\n\n{place}:\n{text}");
        }
        if let Some(arguments) = question.arguments {
            let text = serde_json::to_string_pretty(&without_tokens(arguments)).unwrap_or_default();
            let _ = write!(message, "\n\nArguments:\n{}", truncate(text, MAX_CODE).text);
        }
        let version = version.finalize();
        ChoiceForm {
            version: version.iter().take(8).map(|byte| format!("{byte:02x}")).collect(),
            message,
            choices: vec![Choice {
                key: ALLOW.to_owned(),
                title: "Allow".to_owned(),
                description: "Allow this call, this once".to_owned(),
            }],
        }
    }
}

/// What the client's person has decided, if it could ask.
fn allows(reply: &ChoiceReply) -> Option<bool> {
    match reply {
        ChoiceReply::Chosen(keys) => Some(keys.iter().any(|key| key == ALLOW)),
        ChoiceReply::Declined => Some(false),
        ChoiceReply::Unable => None,
    }
}

/// The arguments of a call for a person, without credentials.
fn without_tokens(arguments: &Map<String, Value>) -> Map<String, Value> {
    let mut shown = arguments.clone();
    shown.retain(|name, _| !name.contains("token"));
    shown
}

/// The same one by one, so that texts in them can be read as they are.
fn shown_arguments(arguments: &Map<String, Value>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    // Which documents it is about is said apart.
    let is_said = |name: &str| PATHS.contains(&name) || name == "server";
    for (name, value) in without_tokens(arguments).iter().filter(|(name, _)| !is_said(name)) {
        add_argument(&mut pieces, name.clone(), value);
    }
    pieces.truncate(MAX_PAGE_PIECES);
    pieces
}

fn add_argument(pieces: &mut Vec<Piece>, place: String, value: &Value) {
    if pieces.len() > MAX_PAGE_PIECES {
        return;
    }
    match value {
        Value::String(text) => pieces.push(piece(&place, text)),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                add_argument(pieces, format!("{place}[{index}]"), item);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                add_argument(pieces, format!("{place}.{name}"), member);
            }
        }
        other => pieces.push(piece(&place, &other.to_string())),
    }
}

fn piece(place: &str, text: &str) -> Piece {
    Piece {
        place: truncate(place, MAX_MATCH).text,
        text: truncate(text, MAX_PAGE_CODE).text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_read_one_by_one() {
        let arguments = json!({
            "path": "a.ipynb",
            "cells": [{ "content": "x = 1\ny = 2", "type": "code" }],
            "ranges": [1, 2],
            "jupyter_token": "secret",
        });
        let shown = shown_arguments(arguments.as_object().unwrap());
        let shown: Vec<(&str, &str)> = shown.iter().map(|piece| (&*piece.place, &*piece.text)).collect();
        assert_eq!(
            shown,
            [
                ("cells[0].content", "x = 1\ny = 2"),
                ("cells[0].type", "code"),
                ("ranges", "[1,2]"),
            ]
        );
    }
}
