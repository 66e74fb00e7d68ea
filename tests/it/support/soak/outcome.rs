//! The numbers of a soak, and what they must be.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::memory::Memory;

#[derive(Debug, Default)]
pub struct Outcome {
    pub requests: usize,
    pub acknowledged: usize,
    /// Acknowledged, not deleted, and not there.
    pub lost: Vec<String>,
    /// There more than once, acknowledged or not.
    pub doubled: Vec<String>,
    /// Acknowledged, and there under another id.
    pub changed_ids: Vec<String>,
    /// Cells of which the deletion was acknowledged.
    pub deleted: usize,
    /// Those of them that are there.
    pub returned: Vec<String>,
    /// Notebooks that differ between the live document, the gateway and the file.
    pub disagreeing: Vec<String>,
    /// Pages that had to be loaded more than once at the end.
    pub reloaded: Vec<String>,
    /// Longest time that a page took to load.
    pub slowest_page: Duration,
    /// Refusals by tools and how often they came.
    pub refused: BTreeMap<String, usize>,
    /// Executions by their ends.
    pub executions: BTreeMap<String, i64>,
    /// Executions that have not ended.
    pub unended: Vec<String>,
    /// Cells that ran.
    pub ran: usize,
    /// Cells that ran twice, or not at all although that was answered.
    pub ran_otherwise: Vec<String>,
    pub cut: usize,
    pub resumed: usize,
    /// What happened to clients without a reason.
    pub disturbed: Vec<String>,
    /// Bearers of revoked tokens who were not cut off in time.
    pub late_cut_offs: Vec<String>,
    pub floods_let_through: usize,
    pub memory: Memory,
}

impl Outcome {
    #[track_caller]
    pub fn assert_nothing_lost_or_doubled(&self) {
        assert!(self.acknowledged > 0, "something was done");
        let wrong = [
            &self.lost,
            &self.doubled,
            &self.changed_ids,
            &self.returned,
            &self.disagreeing,
            &self.unended,
            &self.ran_otherwise,
            &self.disturbed,
            &self.late_cut_offs,
        ];
        assert!(
            wrong.iter().all(|list| list.is_empty()) && self.floods_let_through == 0,
            "{self:#?}"
        );
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} cells asked for, {} acknowledged, {} lost, {} doubled, {} under another id; {} deletions acknowledged, {} \
             came back; {} notebooks disagree; a page took {:.1?} at most to load, and {} had to be loaded again",
            self.requests,
            self.acknowledged,
            self.lost.len(),
            self.doubled.len(),
            self.changed_ids.len(),
            self.deleted,
            self.returned.len(),
            self.disagreeing.len(),
            self.slowest_page,
            self.reloaded.len(),
        )?;
        writeln!(
            f,
            "executions: {:?}, {} have not ended; {} cells ran, {} of them twice or not as answered",
            self.executions,
            self.unended.len(),
            self.ran,
            self.ran_otherwise.len(),
        )?;
        write!(
            f,
            "{} calls cut, {} taken up again; {} clients disturbed; refused because: {:?}",
            self.cut,
            self.resumed,
            self.disturbed.len(),
            self.refused,
        )
    }
}
