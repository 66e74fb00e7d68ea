//! Frequency of records, and the reports on executions whose process was killed.

use store::{AbandonedExecution, ExecutionRecord};

use super::*;

impl Scene {
    /// Runs so many cells, each in so long.
    fn run_cells(&mut self, count: usize, each: Duration) {
        for _ in 0..count {
            let run = self.run();
            self.says([status(&run, "busy"), execute_input(&run)]);
            self.pass(each);
            self.says([reply(&run, "ok"), status(&run, "idle")]);
        }
    }
}

/// The execution as the next process finds it after the first was killed, with its kernel gone.
fn taken_up(record: ExecutionRecord) -> Arc<Execution> {
    let left = AbandonedExecution { record, noted_at: None };
    let execution = Arc::new(Execution::resumed(left, None, 10_000));
    let mut scene = Scene::new();
    scene.feed(Input::Resume(Arc::clone(&execution)));
    scene.pass(Duration::from_secs(20));
    for _ in 0..20 {
        if execution.status().is_finished() {
            break;
        }
        scene.answer_probe();
        scene.pass(Duration::from_secs(20));
    }
    execution
}

fn statuses(execution: &Execution) -> Vec<ExecutionStatus> {
    execution.snapshot().cells.iter().map(|cell| cell.status).collect()
}

#[test]
fn the_records_of_many_cells_do_not_grow_in_number_with_them() {
    for count in [1000, 5000] {
        let (mut scene, execution) = Scene::running(count);
        scene.run_cells(count, Duration::from_millis(1));
        assert_ended(&scene, &execution, ExecutionStatus::Completed, "");
        assert_eq!(scene.sent.len(), count);
        let by_time = count / 250 + 1;
        assert!(
            scene.records <= 70 + 2 * by_time,
            "{} records of {count} cells",
            scene.records
        );
    }
}

#[test]
fn of_a_few_cells_or_slow_ones_each_is_recorded() {
    let (mut scene, _) = Scene::running(60);
    scene.run_cells(60, Duration::from_millis(1));
    assert!(scene.records >= 60, "{} records", scene.records);
    let (mut scene, execution) = Scene::running(100);
    scene.run_cells(50, Duration::from_millis(600));
    assert_eq!(
        execution.record().terms.sent_before,
        51,
        "none is told to be sent before it is"
    );
}

#[test]
fn what_runs_for_a_while_after_quick_cells_is_recorded_soon() {
    let (mut scene, execution) = Scene::running(1000);
    scene.run_cells(100, Duration::ZERO);
    let before = scene.records;
    scene.pass(Duration::from_secs(1));
    assert!(scene.records > before);
    assert!(execution.record().cells[100].msg_id.is_some());
}

#[test]
fn cells_that_may_have_been_sent_are_lost_and_not_cancelled() {
    let (mut scene, execution) = Scene::running(1000);
    let mut record = execution.record();
    for _ in 0..100 {
        let sent = scene.records;
        scene.run_cells(1, Duration::ZERO);
        if scene.records > sent {
            record = execution.record();
        }
    }
    // The process was killed some cells after its last record.
    let (ended, sent) = (execution.progress().0, record.terms.sent_before);
    assert!(ended < sent, "the record tells of {sent} cells when {ended} have ended");
    let execution = taken_up(record);
    let statuses = statuses(&execution);
    assert!(
        statuses[..sent]
            .iter()
            .all(|status| *status != ExecutionStatus::Cancelled),
        "{statuses:?}"
    );
    assert!(
        statuses[sent..]
            .iter()
            .all(|status| *status == ExecutionStatus::Cancelled),
        "{statuses:?}"
    );
    assert_eq!(execution.status(), ExecutionStatus::Lost);
}

#[test]
fn what_was_never_sent_is_cancelled_by_a_restart() {
    let execution = taken_up(cells("ana", 3).record());
    assert_eq!(statuses(&execution), [ExecutionStatus::Cancelled; 3]);
    let reason = execution.snapshot().reason.unwrap_or_default();
    assert_eq!(reason, "the gateway restarted before this ran");
}
