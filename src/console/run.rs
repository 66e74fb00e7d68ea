//! Executions: a list with the last lines of output, one by itself, and ending it.

mod outputs;

use jupyter_client::counted;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded;

use self::outputs::{tail, text_of};
use super::{
    Fields, Place, Reply,
    desk::{Desk, Failure},
    document::link,
    layout::Frame,
    live::Part,
    markup::{Button, Tone, csrf, nothing, output, path, state, status_words, time},
    overview::{failed, server_name},
};

/// Lines of output in the list, and characters that are asked for them.
const TAIL_LINES: usize = 4;
const MAX_TAIL: usize = 100_000;
/// Executions whose output is in the list.
const MAX_TAILS: usize = 4;
/// Executions that are over in the list.
const MAX_PAST: usize = 5;
/// The same of the page of one execution.
const PAGE_LINES: usize = 2_000;
const MAX_OUTPUT: usize = 400_000;

/// Answer of `list_executions`.
#[derive(Deserialize)]
pub(super) struct Executions {
    pub(super) executions: Vec<Summary>,
}

#[derive(Deserialize)]
pub(super) struct Summary {
    execution_id: String,
    path: Option<String>,
    server: String,
    status: String,
    cells: usize,
    started_at: Option<String>,
    ended_at: Option<String>,
    reason: Option<String>,
}

/// Answer of `get_execution`.
#[derive(Deserialize)]
struct Details {
    #[serde(flatten)]
    summary: About,
    cells: Vec<Cell>,
    reason: Option<String>,
    input_request: Option<InputRequest>,
}

#[derive(Deserialize)]
struct About {
    execution_id: String,
    path: Option<String>,
    server: String,
    status: String,
    started_at: Option<String>,
    ended_at: Option<String>,
}

#[derive(Deserialize)]
struct Cell {
    #[serde(default)]
    cell_id: String,
    index: usize,
    status: String,
    outputs: Vec<Value>,
}

#[derive(Deserialize)]
struct InputRequest {
    prompt: String,
    password: bool,
}

impl Executions {
    /// The numbers of executions that run and wait, in words.
    pub(super) fn news(&self) -> String {
        let count = |status: &str| self.executions.iter().filter(|run| run.status == status).count();
        let counts = [
            (count("running"), "running"),
            (count("input_required"), "waiting for input"),
            (count("queued"), "queued"),
        ];
        let told = counts.iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told.map(|(count, word)| format!("{count} {word}")).collect();
        told.join(", ")
    }
}

impl Summary {
    fn is_over(&self) -> bool {
        is_over(&self.status)
    }
}

fn is_over(status: &str) -> bool {
    !matches!(status, "running" | "queued" | "input_required")
}

fn run_link(root: &str, id: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("id", id)
        .finish();
    format!("{root}console/run?{query}")
}

/// Executions, those that go on first.
pub(super) async fn list(desk: &Desk, runs: &[Summary]) -> Markup {
    let mut tails = Vec::new();
    for run in runs.iter().filter(|run| !run.is_over()) {
        let shows_tail = run.status != "queued" && tails.len() < MAX_TAILS;
        tails.push((
            run,
            if shows_tail {
                tail_of(desk, run).await
            } else {
                String::new()
            },
        ));
    }
    let over: Vec<&Summary> = runs.iter().filter(|run| run.is_over()).collect();
    html! {
        @if runs.is_empty() { (nothing("Nothing was run yet. What agents with your token run appears here.")) }
        @for (run, tail) in &tails { (open_run(desk, run, tail)) }
        @if !over.is_empty() { ul.rows.past { @for run in over.into_iter().take(MAX_PAST) { (past_run(desk, run)) } } }
    }
}

async fn tail_of(desk: &Desk, run: &Summary) -> String {
    let arguments = json!({ "execution_id": run.execution_id, "max_cell_output_size": MAX_TAIL });
    let details = desk.read::<Details>("get_execution", arguments).await;
    let outputs = details.map(|details| all_outputs(&details.cells)).unwrap_or_default();
    tail(&outputs, TAIL_LINES).to_owned()
}

fn all_outputs(cells: &[Cell]) -> String {
    cells.iter().map(|cell| text_of(&cell.outputs)).collect()
}

fn open_run(desk: &Desk, run: &Summary, tail: &str) -> Markup {
    html! {
        article.card.run {
            div.head {
                div.what {
                    a.title href=(run_link(desk.root, &run.execution_id)) { (subject(run.path.as_deref())) }
                    span.quiet { (server_name(desk, &run.server)) (cells(run.cells)) }
                }
                (state(&status_words(&run.status), Tone::of_execution(&run.status)))
                (cancel_button(desk, &run.execution_id, run.path.as_deref()))
            }
            @if let Some(started) = &run.started_at { p.quiet { "since " (time(started)) } }
            @if let Some(reason) = &run.reason { p.quiet { (reason) } }
            @if !tail.is_empty() { (output(tail, "Last lines of output")) }
        }
    }
}

fn past_run(desk: &Desk, run: &Summary) -> Markup {
    html! {
        li.row {
            div.what {
                a.title href=(run_link(desk.root, &run.execution_id)) { (subject(run.path.as_deref())) }
                span.quiet { (server_name(desk, &run.server)) (cells(run.cells)) }
                @if let Some(reason) = &run.reason { span.problem { (reason) } }
            }
            @if let Some(ended) = &run.ended_at { span.quiet { (time(ended)) } }
            (state(&status_words(&run.status), Tone::of_execution(&run.status)))
        }
    }
}

fn subject(document: Option<&str>) -> Markup {
    document.map_or_else(|| html! { "code in a kernel of its own" }, path)
}

fn cells(count: usize) -> String {
    match count {
        0 => String::new(),
        count => counted(count, "cell"),
    }
}

fn cancel_button(desk: &Desk, id: &str, document: Option<&str>) -> Markup {
    html! {
        @if desk.may_use("cancel_execution") {
            (Button {
                action: "cancel",
                label: "Cancel",
                about: document.unwrap_or("this run"),
                fields: &[("id", id)],
                confirm: None,
                class: "danger",
            }.markup(desk))
        }
    }
}

/// The page of one execution.
pub(super) async fn page(desk: &Desk, id: &str) -> Result<Reply, Failure> {
    let details = details(desk, id).await?;
    let about = &details.summary;
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("page", "run")
        .append_pair("id", id)
        .finish();
    let body = html! {
        (crumbs(desk, about))
        h1 { "Run of " (subject(about.path.as_deref())) }
        (part(desk, &details).region())
        (question(desk, &details).region())
    };
    let frame = Frame {
        title: "Run",
        current: "",
        live: Some(query).filter(|_| !is_over(&about.status)),
        body,
    };
    Ok(frame.show(desk))
}

fn crumbs(desk: &Desk, about: &About) -> Markup {
    html! {
        nav.crumbs aria-label="Where this is" {
            a href={ (desk.root) "console" } { "Overview" }
            @if let Some(path) = &about.path {
                a href=(link(desk.root, &Place { server: about.server.clone(), path: path.clone() })) { (path) }
            }
        }
    }
}

pub(super) async fn parts(desk: &Desk, id: &str) -> Vec<Part> {
    match details(desk, id).await {
        Ok(details) => vec![part(desk, &details), question(desk, &details)],
        Err(failure) => vec![Part::new("run", failed(&failure))],
    }
}

async fn details(desk: &Desk, id: &str) -> Result<Details, Failure> {
    let arguments = json!({ "execution_id": id, "max_cell_output_size": MAX_OUTPUT });
    desk.read("get_execution", arguments).await
}

fn part(desk: &Desk, details: &Details) -> Part {
    let about = &details.summary;
    let words = status_words(&about.status);
    let content = html! {
        div.head {
            (state(&words, Tone::of_execution(&about.status)))
            span.quiet {
                @if let Some(started) = &about.started_at { "started " (time(started)) }
                @if let Some(ended) = &about.ended_at { ", ended " (time(ended)) }
            }
            @if !is_over(&about.status) { (cancel_button(desk, &about.execution_id, about.path.as_deref())) }
        }
        @if let Some(reason) = &details.reason {
            @match about.status == "cancelled" {
                true => { p.quiet.reason { (reason) } }
                false => { p.problem { (reason) } }
            }
        }
        @for cell in &details.cells {
            section.card.cell {
                div.head {
                    h2 { @if cell.cell_id.is_empty() { "Code" } @else { "Cell " (cell.index) } }
                    (state(&status_words(&cell.status), Tone::of_execution(&cell.status)))
                }
                @let text = text_of(&cell.outputs);
                @if text.is_empty() { (nothing("No output.")) } @else { (output(tail(&text, PAGE_LINES), "Output")) }
            }
        }
    };
    Part {
        news: format!("The run is {words}"),
        ..Part::new("run", content)
    }
}

/// What the code asks. A part of its own, so that nobody loses what they are typing when there is more output.
fn question(desk: &Desk, details: &Details) -> Part {
    let id = &details.summary.execution_id;
    let content = html! { @if let Some(request) = &details.input_request { (answer_form(desk, id, request)) } };
    Part {
        news: details
            .input_request
            .as_ref()
            .map_or_else(String::new, |_| "The code asks for input".to_owned()),
        ..Part::new("question", content)
    }
}

fn answer_form(desk: &Desk, id: &str, request: &InputRequest) -> Markup {
    html! {
        section.card aria-labelledby="input-head" {
            h2 #input-head { "The code asks for input" }
            form.stack method="post" action={ (desk.root) "console/answer" } {
                (csrf(desk))
                input type="hidden" name="id" value=(id);
                label for="input" { @if request.prompt.trim().is_empty() { "Input" } @else { (request.prompt) } }
                input #input name="input" type=(if request.password { "password" } else { "text" }) autocomplete="off";
                button.primary type="submit" { "Send" }
            }
        }
    }
}

/// Ends an execution.
pub(super) async fn cancel(desk: &Desk, id: &str) -> Result<String, Failure> {
    let cancelled: Message = desk.act("cancel_execution", json!({ "execution_id": id })).await?;
    Ok(format!("{}.", cancelled.message.trim_end_matches('.')))
}

/// Answers what an execution asks.
pub(super) async fn answer(desk: &Desk, form: &Fields) -> Result<String, Failure> {
    let arguments = json!({ "execution_id": form.get("id"), "input": form.get("input") });
    let _: Details = desk.act("get_execution", arguments).await?;
    Ok("The answer was sent.".to_owned())
}

/// The page after a form about an execution.
pub(super) fn after(form: &Fields) -> String {
    run_link("../", form.get("id"))
}

/// The sentence in which most tools answer.
#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) message: String,
}
