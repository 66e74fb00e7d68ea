//! The client behind a call, as a slow tool needs it: it can be told the progress,
//! its person can be asked, and it can leave.

use async_trait::async_trait;

use executor::Question;

/// Outcome of a question to the client's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientReply {
    Answered(String),
    /// The person does not want to answer.
    Declined,
    /// This client cannot ask in the middle of a call.
    Unable,
}

/// Things that the client's person can choose among.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceForm {
    /// Changes with what is shown, so that nobody accepts what they did not see.
    pub version: String,
    pub message: String,
    pub choices: Vec<Choice>,
}

/// Something that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Names it in the answer.
    pub key: String,
    pub title: String,
    pub description: String,
}

/// Outcome of a choice that the client's person was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChoiceReply {
    /// The keys of what was chosen.
    Chosen(Vec<String>),
    /// The person does not want to choose.
    Declined,
    /// This client cannot ask in the middle of a call.
    Unable,
}

/// By default a client that waits for the answer and does nothing else.
#[async_trait]
pub trait Client: Send + Sync {
    /// Returns whether the client can follow an execution as a task, and so need not wait for it.
    fn knows_tasks(&self) -> bool {
        false
    }

    /// Returns whether the client wants progress notifications.
    fn follows(&self) -> bool {
        false
    }

    async fn progress(&self, _message: &str) {}

    /// Shows a question to the client's person. Must not be logged, and neither must the answer.
    async fn ask(&self, _: &Question) -> ClientReply {
        ClientReply::Unable
    }

    /// Lets the client's person choose.
    async fn choose(&self, _: &ChoiceForm) -> ChoiceReply {
        ChoiceReply::Unable
    }

    /// Returns whether the client's person is asked by an answer, with which the client repeats the call.
    fn asks_by_answering(&self) -> bool {
        false
    }

    /// Resolves when the call is no longer wanted, unless that drops the call itself.
    async fn cancelled(&self) {
        std::future::pending::<()>().await;
    }

    /// Resolves when nobody waits for the answer any more, where a client may lose its connection and come back.
    async fn left(&self) {
        std::future::pending::<()>().await;
    }

    /// Returns whether the client cancelled the call, rather than lost its connection.
    fn takes_back(&self) -> bool {
        false
    }
}

/// Resumption of an earlier call by one that repeats it: nothing is done again, its execution is resumed.
#[derive(Clone)]
pub struct Resumption {
    pub execution_id: String,
    pub input: Input,
}

/// Input that a call brings for the execution it resumes.
#[derive(Clone)]
pub enum Input {
    /// The answer to what it asks, and to which of its questions, if that is known.
    Answer { value: String, number: Option<usize> },
    /// The person does not want to answer.
    Declined,
    /// No input: the execution is only looked at.
    Nothing,
}
