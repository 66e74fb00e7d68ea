//! The life of the kernel: restarts, deaths, cuts, missing messages, other people's code, and hand-over.

use std::time::Duration;

use jupyter_client::RunningKernel;
use store::{AbandonedExecution, ExecutionStatus};

use super::*;
use crate::{ExecutionError, policy::STARTING_TIMEOUT};

fn server_says(state: &str) -> Input {
    let kernel = json!({ "id": "k1", "name": "python3", "execution_state": state, "connections": 1 });
    let kernel: RunningKernel = serde_json::from_value(kernel).expect("a kernel");
    Input::ServerAnswered(Ok(Some(kernel)))
}

#[test]
fn a_kernel_that_dies_fails_what_runs_and_cancels_what_waits() {
    for (state, words) in [
        ("restarting", "died while this ran"),
        ("dead", "could not start it again"),
    ] {
        let (mut scene, first) = Scene::begun(2);
        let second = scene.execute(cells("bo", 1));
        scene.says([lifecycle(state)]);
        assert_ended(&scene, &first, ExecutionStatus::Failed, words);
        assert_ended(&scene, &second, ExecutionStatus::Cancelled, "not run: the kernel died");
        assert_eq!(scene.renewals, 1);
        scene.execute(cells("ana", 1));
        assert_eq!(scene.sent.len(), 1, "the new process is not heard yet");
        scene.pass(Duration::from_millis(150));
        scene.answer_probe();
        assert_eq!(scene.sent.len(), 2);
    }
}

#[test]
fn a_restart_or_a_shutdown_by_a_person_cancels() {
    let ends = [
        (shutdown_reply(true), "a person restarted the kernel"),
        (shutdown_reply(false), "a person shut the kernel down"),
        (lifecycle("starting"), "a person restarted the kernel"),
    ];
    for (end, words) in ends {
        let (mut scene, execution) = Scene::begun(1);
        scene.pass(STARTING_TIMEOUT);
        scene.says([end]);
        assert_ended(&scene, &execution, ExecutionStatus::Cancelled, words);
    }
}

#[test]
fn a_new_kernel_may_say_that_it_starts_after_the_first_run_has_begun() {
    let (mut scene, execution) = Scene::begun(1);
    scene.says([lifecycle("starting")]);
    assert_eq!(execution.status(), ExecutionStatus::Running);
    let run = scene.run();
    scene.says([reply(&run, "ok"), status(&run, "idle")]);
    assert_ended(&scene, &execution, ExecutionStatus::Completed, "");
}

#[test]
fn a_request_that_a_restart_overtook_runs_in_the_new_process_or_is_lost() {
    for runs in [true, false] {
        let (mut scene, execution) = Scene::running(1);
        scene.says([shutdown_reply(true)]);
        assert_eq!(execution.status(), ExecutionStatus::Running);
        let (run, probe) = (scene.run(), scene.probe());
        if runs {
            scene.says([status(&run, "busy"), reply(&run, "ok"), status(&run, "idle")]);
            assert_ended(&scene, &execution, ExecutionStatus::Completed, "");
        } else {
            scene.says([info_reply(&probe), status(&probe, "idle")]);
            assert_ended(
                &scene,
                &execution,
                ExecutionStatus::Lost,
                "restarted before the run began",
            );
        }
        assert_eq!(scene.sent.len(), 1);
    }
}

#[test]
fn a_cut_with_all_that_was_said_buffered_leaves_no_trace() {
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    scene.feed(Input::ConnectionLost);
    scene.feed(Input::ConnectionRestored);
    scene.says([print(&run, "a"), reply(&run, "ok"), status(&run, "idle")]);
    scene.answer_probe();
    assert_ended(&scene, &execution, ExecutionStatus::Completed, "");
    assert_eq!(execution.snapshot().reason, None);
}

#[test]
fn a_cut_in_which_others_listened_is_told() {
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    scene.feed(Input::ConnectionLost);
    scene.listeners = 2;
    scene.feed(Input::ConnectionRestored);
    scene.says([reply(&run, "ok"), status(&run, "idle")]);
    assert_ended(&scene, &execution, ExecutionStatus::Completed, "output may be missing");
}

#[test]
fn an_end_that_fell_into_a_cut_is_lost_and_one_half_of_it_is_enough() {
    let (mut scene, execution) = Scene::begun(1);
    scene.feed(Input::ConnectionLost);
    scene.feed(Input::ConnectionRestored);
    scene.answer_probe();
    assert_ended(&scene, &execution, ExecutionStatus::Lost, "was lost");
    let (mut scene, execution) = Scene::begun(1);
    let run = scene.run();
    scene.feed(Input::ConnectionLost);
    scene.feed(Input::ConnectionRestored);
    scene.says([reply(&run, "ok")]);
    scene.answer_probe();
    assert_ended(&scene, &execution, ExecutionStatus::Completed, "output may be missing");
}

#[test]
fn nothing_is_sent_while_the_connection_is_down() {
    let (mut scene, execution) = Scene::begun(2);
    let run = scene.run();
    scene.says([reply(&run, "ok")]);
    scene.feed(Input::ConnectionLost);
    scene.says([status(&run, "idle")]);
    assert_eq!((scene.sent.len(), execution.progress()), (1, (1, 2)));
    scene.feed(Input::ConnectionRestored);
    assert_eq!(scene.sent.len(), 2);
}

#[test]
fn a_cancellation_is_repeated_after_a_cut() {
    let (mut scene, execution) = Scene::begun(1);
    scene.feed(Input::Cancel(Arc::clone(&execution)));
    scene.feed(Input::ConnectionLost);
    scene.feed(Input::ConnectionRestored);
    assert_eq!(scene.interrupts, 2);
}

#[test]
fn a_silent_kernel_is_asked_about_probed_and_connected_to_anew() {
    let (mut scene, execution) = Scene::begun(1);
    scene.pass(Duration::from_secs(6));
    assert_eq!(scene.server_questions, 1);
    scene.feed(server_says("busy"));
    assert_eq!((scene.probes.len(), scene.renewals), (0, 0), "it works");
    scene.pass(Duration::from_secs(6));
    scene.feed(server_says("idle"));
    assert_eq!((scene.probes.len(), scene.renewals), (1, 0));
    scene.pass(Duration::from_secs(6));
    scene.feed(server_says("idle"));
    assert_eq!(scene.renewals, 1, "it did not answer");
    scene.feed(Input::ConnectionLost);
    scene.feed(Input::ConnectionRestored);
    scene.answer_probe();
    assert_ended(&scene, &execution, ExecutionStatus::Lost, "was lost");
}

#[test]
fn a_kernel_that_answered_a_question_meanwhile_is_not_connected_to_anew() {
    let (mut scene, execution) = Scene::begun(1);
    scene.says([status("ask-1", "busy"), status("ask-1", "idle")]);
    for _ in 0..3 {
        scene.pass(Duration::from_secs(6));
        scene.feed(server_says("idle"));
    }
    assert_eq!((scene.probes.len(), scene.renewals), (1, 0), "the server does not know");
    let run = scene.run();
    scene.says([reply(&run, "ok"), status(&run, "idle")]);
    assert_ended(&scene, &execution, ExecutionStatus::Completed, "");
}

#[test]
fn a_kernel_that_does_not_exist_any_more_loses_what_ran_there() {
    let (mut scene, first) = Scene::begun(1);
    let second = scene.execute(cells("bo", 1));
    scene.pass(Duration::from_secs(6));
    scene.feed(Input::ServerAnswered(Ok(None)));
    assert_ended(&scene, &first, ExecutionStatus::Lost, "no longer exists");
    assert_ended(&scene, &second, ExecutionStatus::Cancelled, "not run");
}

#[test]
fn what_a_person_runs_is_waited_for() {
    let (mut scene, first) = Scene::begun(2);
    let run = scene.run();
    scene.says([status("theirs", "busy"), reply(&run, "ok"), status(&run, "idle")]);
    assert_eq!(scene.sent.len(), 1);
    assert!(first.is_awaiting_kernel());
    scene.says([status("theirs", "idle")]);
    assert_eq!(scene.sent.len(), 1, "more of theirs may be in the kernel's queue");
    scene.answer_probe();
    assert_eq!(scene.sent.len(), 2);
    assert!(!first.is_awaiting_kernel());
}

#[test]
fn another_kernel_of_the_notebook_is_found_out_before_the_next_run() {
    let (mut scene, execution) = Scene::begun(2);
    let run = scene.run();
    scene.finds = kernel_info("k2", false);
    scene.pass(Duration::from_secs(3));
    let changed = scene.now.at;
    scene.feed(Input::KernelsChanged(changed));
    scene.pass(Duration::from_secs(2));
    scene.says([reply(&run, "ok"), status(&run, "idle")]);
    assert_eq!((scene.lookups, scene.sent.len()), (2, 2));
    assert_eq!(execution.snapshot().kernel_id.as_deref(), Some("k2"));
}

#[test]
fn no_kernel_fails_all_that_waits() {
    let (mut core, now) = {
        let scene = Scene::new();
        (scene.core, scene.now)
    };
    let execution = Arc::new(cells("ana", 2));
    core.on(Input::Execute(Arc::clone(&execution)), now);
    let error = ExecutionError::Unknown { id: "x".to_owned() };
    core.on(Input::KernelFound(Err(error)), now);
    assert_eq!(execution.status(), ExecutionStatus::Failed);
    assert!(core.is_idle());
}

#[test]
fn the_next_process_takes_up_what_runs_and_sends_nothing_again() {
    for end_is_seen in [true, false] {
        let (mut scene, execution) = Scene::begun(2);
        let run = scene.run();
        scene.says([print(&run, "before ")]);
        scene.feed(Input::Stop);
        scene.feed(Input::Drained);
        assert!(scene.finished.is_empty());
        let left = AbandonedExecution {
            record: execution.record_with_outputs(),
            noted_at: Some(scene.now.time),
        };
        let resumed = Arc::new(Execution::resumed(left, None, 1000));
        let mut next = Scene::new();
        next.feed(Input::Resume(Arc::clone(&resumed)));
        if end_is_seen {
            next.says([print(&run, "after"), reply(&run, "ok"), status(&run, "idle")]);
            assert_ended(&next, &resumed, ExecutionStatus::Cancelled, "the gateway restarted");
            assert_eq!(text_of(&resumed), "before after");
        } else {
            next.answer_probe();
            assert_ended(&next, &resumed, ExecutionStatus::Lost, "unknown how the run ended");
        }
        assert!(next.sent.is_empty());
    }
}

#[test]
fn what_an_earlier_process_had_only_queued_is_cancelled() {
    let mut scene = Scene::new();
    let execution = cells("ana", 1);
    let record = execution.record();
    let resumed = Arc::new(Execution::resumed(
        AbandonedExecution { record, noted_at: None },
        None,
        1000,
    ));
    scene.feed(Input::Resume(Arc::clone(&resumed)));
    assert_ended(&scene, &resumed, ExecutionStatus::Cancelled, "before this ran");
    assert!(scene.core.is_idle());
}

#[test]
fn two_runs_of_earlier_processes_in_one_notebook_both_end() {
    let (scene, execution) = Scene::begun(1);
    let left = || AbandonedExecution {
        record: execution.record(),
        noted_at: Some(scene.now.time),
    };
    let (first, second) = (
        Arc::new(Execution::resumed(left(), None, 1000)),
        Arc::new(Execution::resumed(left(), None, 1000)),
    );
    let mut next = Scene::new();
    next.feed(Input::Resume(Arc::clone(&first)));
    next.feed(Input::Resume(Arc::clone(&second)));
    next.answer_probe();
    assert_eq!(first.status(), ExecutionStatus::Lost);
    assert_eq!(second.status(), ExecutionStatus::Lost);
}
