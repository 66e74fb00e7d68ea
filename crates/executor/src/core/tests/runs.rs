//! Runs from their request to their end.

use std::time::Duration;

use serde_json::json;
use store::ExecutionStatus;

use super::*;
use crate::core::input::{Obstacle, Rewritten};

#[test]
fn a_run_ends_with_reply_and_idle_in_either_order_and_the_next_begins() {
    for reply_first in [true, false] {
        let (mut scene, execution) = Scene::begun(2);
        let run = scene.run();
        let (reply, idle) = (reply(&run, "ok"), status(&run, "idle"));
        let order = if reply_first { [reply, idle] } else { [idle, reply] };
        let [first, second] = order;
        scene.says([first]);
        assert_eq!(
            (execution.progress(), scene.sent.len()),
            ((0, 2), 1),
            "half an end is none"
        );
        scene.says([second]);
        assert_eq!((execution.progress(), scene.sent.len()), ((1, 2), 2));
        let run = scene.run();
        scene.says([status(&run, "busy"), reply_ok(&run), status(&run, "idle")]);
        assert_ended(&scene, &execution, ExecutionStatus::Completed, "");
        scene.pass(Duration::from_secs(1));
        assert!(scene.core.is_idle() && scene.core.timer().is_none());
    }
}

fn reply_ok(run: &str) -> Message {
    reply(run, "ok")
}

#[test]
fn an_output_after_the_end_is_kept_and_written() {
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    scene.says([print(&run, "a "), reply(&run, "ok"), status(&run, "idle")]);
    assert_ended(&scene, &execution, ExecutionStatus::Completed, "");
    let written = scene.writes;
    scene.says([print(&run, "late")]);
    scene.pass(Duration::from_secs(2));
    assert_eq!(text_of(&execution), "a late");
    assert!(scene.writes > written);
}

#[test]
fn a_failure_stops_the_batch_unless_it_is_to_go_on() {
    for stops in [true, false] {
        let mut scene = Scene::new();
        let mut two = cells("ana", 2);
        two.stop_on_error = stops;
        let execution = scene.execute(two);
        let run = scene.run();
        scene.says([status(&run, "busy"), reply(&run, "error"), status(&run, "idle")]);
        assert_eq!(scene.sent.len(), if stops { 1 } else { 2 });
        if stops {
            assert_ended(&scene, &execution, ExecutionStatus::Failed, "ValueError: no");
        }
    }
}

#[test]
fn a_cell_that_is_meant_to_raise_an_error_stops_nothing() {
    let mut scene = Scene::new();
    let two = cells("ana", 2);
    two.lock().cells[0].may_raise = true;
    let execution = scene.execute(two);
    for answer in ["error", "ok"] {
        let run = scene.run();
        scene.says([status(&run, "busy"), reply(&run, answer), status(&run, "idle")]);
    }
    assert_ended(&scene, &execution, ExecutionStatus::Completed, "");
}

#[test]
fn a_request_that_the_kernel_dropped_is_sent_again_but_not_for_ever() {
    let (mut scene, execution) = Scene::running(1);
    for _ in 0..10 {
        let run = scene.run();
        scene.says([status(&run, "busy"), reply(&run, "aborted"), status(&run, "idle")]);
    }
    assert_eq!(scene.sent.len(), 6);
    assert_ended(
        &scene,
        &execution,
        ExecutionStatus::Cancelled,
        "the kernel skipped this",
    );
}

#[test]
fn what_has_begun_is_not_sent_again() {
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    scene.says([reply(&run, "aborted"), status(&run, "idle")]);
    assert_eq!(scene.sent.len(), 1);
    assert_ended(&scene, &execution, ExecutionStatus::Cancelled, "it was interrupted");
}

#[test]
fn outputs_are_gathered_and_the_end_is_written_with_the_result() {
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    for n in 0..100 {
        scene.says([print(&run, &format!("{n} "))]);
        scene.pass(Duration::from_millis(1));
    }
    assert!(scene.writes <= 4, "{} writes in 100 ms", scene.writes);
    scene.pass(Duration::from_millis(100));
    let written = scene.writes;
    let result = message(
        Channel::Iopub,
        "execute_result",
        &run,
        json!({ "data": { "text/plain": "1" }, "metadata": {} }),
    );
    scene.says([result]);
    scene.pass(Duration::from_millis(1));
    scene.says([reply(&run, "ok"), status(&run, "idle")]);
    scene.pass(Duration::from_secs(5));
    assert_eq!(scene.writes, written + 1);
    assert_ended(&scene, &execution, ExecutionStatus::Completed, "");
}

#[test]
fn code_that_is_nothing_is_not_sent_and_a_cell_that_is_gone_is_skipped() {
    let mut scene = Scene::new();
    scene.prepares = false;
    let execution = scene.execute(cells("ana", 3));
    let input = |scene: &mut Scene, code| Input::Prepared {
        execution: scene.prepared.pop().expect("asked for"),
        unsaved: Vec::new(),
        code,
    };
    let nothing = Code {
        source: " \n".to_owned(),
        replaces: Some(1),
    };
    for code in [Ok(nothing), Err(Obstacle::CellGone), Err(Obstacle::NotCode)] {
        let input = input(&mut scene, code);
        scene.feed(input);
    }
    assert!(scene.sent.is_empty());
    assert_ended(&scene, &execution, ExecutionStatus::Completed, "the cell was deleted");
}

#[test]
fn an_end_that_does_not_arrive_is_written_again_until_it_is_hopeless() {
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    scene.says([reply(&run, "ok"), status(&run, "idle")]);
    assert_ended(&scene, &execution, ExecutionStatus::Completed, "");
    // A run whose end is on its way, as a driver has it whose server does not answer.
    let (mut core, now) = (core(scene.now), scene.now);
    let execution = Arc::new(cells("bo", 1));
    let found = FoundKernel::Other(kernel_info("k1", false));
    let mut effects = core.on(Input::Execute(Arc::clone(&execution)), now);
    effects.extend(core.on(Input::KernelFound(Ok(found)), now));
    effects.extend(core.on(prepared(Arc::clone(&execution)), now));
    let run = effects
        .iter()
        .find_map(|effect| match effect {
            Effect::Execute { msg_id, .. } => Some(msg_id.clone()),
            _ => None,
        })
        .expect("a request");
    for message in [status(&run, "busy"), reply(&run, "ok"), status(&run, "idle")] {
        core.on(Input::Message(message), now);
    }
    assert!(!core.is_idle(), "its end is on its way");
    let lost = || Input::EndArrived {
        run: run.clone(),
        arrived: false,
    };
    for attempt in 1..5 {
        let effects = core.on(lost(), now);
        assert!(matches!(effects[..], [Effect::RewriteEnd(_)]));
        let result = Rewritten::Written;
        let effects = core.on(
            Input::EndRewritten {
                run: run.clone(),
                result,
            },
            now,
        );
        assert!(matches!(effects[..], [Effect::AwaitEnd { attempts, .. }] if attempts == attempt));
    }
    core.on(lost(), now);
    let result = Rewritten::Written;
    core.on(Input::EndRewritten { run, result }, now);
    assert!(core.is_idle(), "it is given up");
}

#[test]
fn executions_of_one_queue_run_one_after_the_other() {
    let (mut scene, first) = Scene::running(1);
    let second = scene.execute(cells("bo", 1));
    assert_eq!(scene.sent.len(), 1);
    assert_eq!(second.status(), ExecutionStatus::Queued);
    let run = scene.run();
    scene.says([status(&run, "busy"), status(&run, "idle"), reply(&run, "ok")]);
    assert_eq!(scene.sent.len(), 2);
    assert_ended(&scene, &first, ExecutionStatus::Completed, "");
    assert_eq!(scene.lookups, 1, "the kernel is known");
}

#[test]
fn only_cells_that_wait_for_a_while_are_shown_as_queued() {
    let mut scene = Scene::new();
    let mut callers: Vec<_> = (0..20).map(|_| scene.execute(cells("ana", 1))).collect();
    for _ in 0..100 {
        scene.pass(Duration::from_millis(20));
        let run = scene.run();
        scene.says([status(&run, "busy"), reply(&run, "ok"), status(&run, "idle")]);
        callers.push(scene.execute(cells("ana", 1)));
    }
    assert_eq!(scene.marked, 0, "each is over before a person would look");
    scene.pass(Duration::from_secs(1));
    assert_eq!(scene.marked, 19, "all but the one that was sent");
}
