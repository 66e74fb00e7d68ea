//! Questions of running code.

use std::time::Duration;

use store::ExecutionStatus;
use tokio::sync::oneshot;

use super::*;
use crate::ExecutionError;

fn answer(scene: &mut Scene, execution: &Arc<Execution>, number: Option<usize>) -> Result<(), ExecutionError> {
    let (reply, mut told) = oneshot::channel();
    scene.feed(Input::Answer {
        execution: Arc::clone(execution),
        value: "Ada".to_owned(),
        number,
        reply,
    });
    told.try_recv().expect("a reply")
}

#[test]
fn a_question_is_shown_after_what_was_printed_before_it() {
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    scene.says([ask(&run)]);
    assert_eq!(execution.question(), None, "what was printed may still be on its way");
    scene.pass(Duration::from_millis(5));
    scene.says([print(&run, "Welcome\n")]);
    scene.pass(Duration::from_millis(19));
    assert_eq!(execution.question(), None);
    scene.pass(Duration::from_millis(2));
    let question = execution.question().expect("a question");
    assert_eq!((question.prompt.as_str(), question.number), ("name?", 0));
    assert_eq!(execution.status(), ExecutionStatus::InputRequired);
    assert_eq!(text_of(&execution), "Welcome\n");
}

#[test]
fn a_question_is_shown_although_a_thread_goes_on_printing() {
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    scene.says([ask(&run)]);
    for _ in 0..11 {
        scene.says([print(&run, ".")]);
        scene.pass(Duration::from_millis(10));
    }
    assert!(execution.question().is_some());
}

#[test]
fn an_answer_lets_the_code_go_on() {
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    assert!(answer(&mut scene, &execution, None).is_err(), "nothing is asked");
    scene.says([ask(&run)]);
    scene.pass(Duration::from_millis(30));
    assert_eq!(answer(&mut scene, &execution, Some(7)), Ok(()));
    assert!(execution.question().is_some(), "the answer to another question");
    assert_eq!(answer(&mut scene, &execution, Some(0)), Ok(()));
    assert_eq!(
        (execution.question(), execution.status()),
        (None, ExecutionStatus::Running)
    );
    assert!(answer(&mut scene, &execution, None).is_err(), "it was answered");
    scene.says([ask(&run)]);
    scene.pass(Duration::from_millis(30));
    assert_eq!(execution.question().expect("another").number, 1);
    scene.says([reply(&run, "ok"), status(&run, "idle")]);
    assert_ended(&scene, &execution, ExecutionStatus::Completed, "");
    assert_eq!(execution.question(), None);
}

#[test]
fn a_question_that_nobody_answers_is_given_up() {
    let (mut scene, execution) = Scene::begun(2);
    let run = scene.run();
    scene.says([ask(&run)]);
    scene.pass(INPUT_TIMEOUT.saturating_sub(Duration::from_millis(1)));
    assert_eq!(scene.interrupts, 0);
    scene.pass(Duration::from_millis(2));
    assert_eq!((scene.interrupts, execution.question()), (1, None));
    scene.feed(Input::Interrupted(actor("bo")));
    scene.says([interrupted_reply(&run), status(&run, "idle")]);
    assert_ended(
        &scene,
        &execution,
        ExecutionStatus::Cancelled,
        "nobody answered its question within 1m",
    );
    assert!(text_of(&execution).contains("nobody answered within 1m"));
    assert_eq!(scene.sent.len(), 1);
}

#[test]
fn a_run_that_ends_before_its_question_is_shown_asks_nothing() {
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    scene.says([ask(&run), interrupted_reply(&run), status(&run, "idle")]);
    scene.pass(Duration::from_secs(1));
    assert_ended(&scene, &execution, ExecutionStatus::Failed, "");
    assert_eq!(execution.question(), None);
}

#[test]
fn a_question_is_in_the_record_at_once_and_is_put_again_by_the_next_process() {
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    scene.says([ask(&run)]);
    let record = execution.record();
    assert!(record.cells[0].asks.is_some());
    let left = store::AbandonedExecution { record, noted_at: None };
    let resumed = Arc::new(Execution::resumed(left, None, 1000));
    let mut next = Scene::new();
    next.feed(Input::Resume(Arc::clone(&resumed)));
    assert_eq!(resumed.question().expect("the question").prompt, "name?");
    assert_eq!(answer(&mut next, &resumed, None), Ok(()));
    assert!(next.sent.is_empty(), "nothing is sent twice");
}
