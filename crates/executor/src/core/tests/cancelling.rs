//! Cancellations and interrupts, at every point of a run.

use std::time::Duration;

use store::ExecutionStatus;

use super::*;
use crate::core::actor::Reason;

#[test]
fn what_waits_behind_another_is_cancelled_without_an_interrupt() {
    let (mut scene, first) = Scene::begun(1);
    let second = scene.execute(cells("bo", 2));
    scene.feed(Input::Cancel(Arc::clone(&second)));
    assert_ended(
        &scene,
        &second,
        ExecutionStatus::Cancelled,
        "it was cancelled before it ran",
    );
    assert_eq!(scene.interrupts, 0);
    scene.feed(Input::Cancel(Arc::clone(&second)));
    let run = scene.run();
    scene.says([reply(&run, "ok"), status(&run, "idle")]);
    assert_ended(&scene, &first, ExecutionStatus::Completed, "");
    assert_ended(&scene, &second, ExecutionStatus::Cancelled, "");
    assert_eq!(scene.sent.len(), 1);
}

#[test]
fn one_that_is_cancelled_before_it_comes_does_not_run() {
    let (mut scene, execution) = (Scene::new(), Arc::new(cells("ana", 1)));
    scene.feed(Input::Cancel(Arc::clone(&execution)));
    scene.feed(Input::Execute(Arc::clone(&execution)));
    assert!(scene.sent.is_empty());
    assert_ended(&scene, &execution, ExecutionStatus::Cancelled, "before it ran");
}

#[test]
fn what_runs_is_interrupted_and_the_rest_does_not_run() {
    let (mut scene, execution) = Scene::begun(2);
    let run = scene.run();
    scene.feed(Input::Cancel(Arc::clone(&execution)));
    assert_eq!(scene.interrupts, 1);
    scene.says([interrupted_reply(&run), status(&run, "idle")]);
    assert_eq!(scene.sent.len(), 1);
    assert_ended(&scene, &execution, ExecutionStatus::Cancelled, "it was cancelled");
}

#[test]
fn code_that_swallows_the_interrupt_does_not_bring_what_follows_to_run() {
    let (mut scene, execution) = Scene::begun(2);
    let run = scene.run();
    scene.feed(Input::Cancel(Arc::clone(&execution)));
    scene.says([reply(&run, "ok"), status(&run, "idle")]);
    assert_eq!(scene.sent.len(), 1);
    assert_ended(&scene, &execution, ExecutionStatus::Cancelled, "it was cancelled");
}

#[test]
fn a_run_that_the_kernel_has_not_begun_is_interrupted_when_it_begins() {
    let (mut scene, execution) = Scene::running(1);
    let run = scene.run();
    scene.feed(Input::Cancel(Arc::clone(&execution)));
    assert_eq!(scene.interrupts, 0, "it would hit what somebody else runs");
    scene.says([status(&run, "busy")]);
    assert_eq!(scene.interrupts, 0);
    scene.says([execute_input(&run)]);
    assert_eq!(scene.interrupts, 1);
    scene.says([interrupted_reply(&run), status(&run, "idle")]);
    assert_ended(&scene, &execution, ExecutionStatus::Cancelled, "it was cancelled");
}

#[test]
fn an_interrupt_that_makes_the_kernel_forget_to_reply_ends_the_run() {
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    scene.feed(Input::Cancel(Arc::clone(&execution)));
    scene.says([status(&run, "idle")]);
    scene.answer_probe();
    assert_ended(&scene, &execution, ExecutionStatus::Cancelled, "it was cancelled");
}

#[test]
fn a_cancellation_behind_a_persons_code_leaves_that_alone() {
    let mut scene = Scene::new();
    scene.finds.busy = true;
    let execution = scene.execute(cells("ana", 1));
    assert!(scene.sent.is_empty() && execution.is_awaiting_kernel());
    assert_eq!(scene.probes.len(), 1, "a probe waits in its place");
    scene.feed(Input::Cancel(Arc::clone(&execution)));
    assert_eq!(scene.interrupts, 0);
    assert_ended(&scene, &execution, ExecutionStatus::Cancelled, "before it ran");
    scene.answer_probe();
    assert!(scene.sent.is_empty());
}

#[test]
fn an_interrupt_by_somebody_else_is_told_by_name() {
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    scene.feed(Input::Interrupted(actor("bo")));
    scene.says([interrupted_reply(&run), status(&run, "idle")]);
    assert_ended(
        &scene,
        &execution,
        ExecutionStatus::Cancelled,
        "agent `bo` interrupted the kernel",
    );
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    scene.says([interrupted_reply(&run), status(&run, "idle")]);
    assert_ended(
        &scene,
        &execution,
        ExecutionStatus::Failed,
        "a person interrupted the kernel",
    );
}

#[test]
fn an_interrupt_just_before_a_run_begins_counts_for_it_but_not_for_ever() {
    for (waits, status_then) in [(1, ExecutionStatus::Cancelled), (11, ExecutionStatus::Failed)] {
        let mut scene = Scene::new();
        scene.feed(Input::Interrupted(actor("bo")));
        let execution = scene.execute(cells("ana", 1));
        let run = scene.run();
        scene.says([status(&run, "busy"), execute_input(&run)]);
        scene.pass(Duration::from_secs(waits));
        scene.says([interrupted_reply(&run), status(&run, "idle")]);
        assert_ended(&scene, &execution, status_then, "interrupted the kernel");
    }
}

#[test]
fn who_leaves_the_kernel_ends_what_runs_and_what_waits() {
    let (mut scene, first) = Scene::begun(1);
    let second = scene.execute(cells("bo", 1));
    let why = Reason::by(actor("bo"), "restarted the kernel");
    scene.feed(Input::LeaveKernel(why));
    assert_ended(&scene, &first, ExecutionStatus::Cancelled, "agent `bo` restarted");
    assert_ended(&scene, &second, ExecutionStatus::Cancelled, "not run: you restarted");
    scene.execute(cells("ana", 1));
    assert_eq!(
        (scene.lookups, scene.sent.len()),
        (2, 2),
        "a kernel is looked for again"
    );
}
