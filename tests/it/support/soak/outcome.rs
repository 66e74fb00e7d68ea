//! Outcomes of the cells that agents asked for.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    super::{
        Agent, Human,
        notebook::{CellView, sources_on_disk},
    },
    Plan, Site, path,
    worker::{Answer, CellRequest},
};

/// Time that everybody may take to agree when nothing is disturbed any more.
const TIMEOUT: Duration = Duration::from_secs(90);
/// An answer has room for so many.
const CELLS_PER_READ: usize = 50;

#[derive(Debug, Default)]
pub struct Outcome {
    pub requests: usize,
    pub acknowledged: usize,
    /// Acknowledged, and not there.
    pub lost: Vec<String>,
    /// There more than once, acknowledged or not.
    pub doubled: Vec<String>,
    /// Acknowledged, and there under another id.
    pub changed_ids: Vec<String>,
    /// Notebooks that differ between the live document, the gateway and the file.
    pub disagreeing: Vec<String>,
    pub peak_bytes: usize,
}

impl Outcome {
    #[track_caller]
    pub fn assert_nothing_lost_or_doubled(&self) {
        assert!(self.acknowledged > 0, "something was done");
        assert!(
            self.lost.is_empty()
                && self.doubled.is_empty()
                && self.changed_ids.is_empty()
                && self.disagreeing.is_empty(),
            "{self:#?}"
        );
    }
}

pub(super) async fn judge(site: &Site, plan: &Plan, requests: Vec<CellRequest>) -> Outcome {
    let mut outcome = Outcome {
        requests: requests.len(),
        ..Outcome::default()
    };
    for number in 0..plan.notebooks {
        let cells = settled(site, number, &mut outcome).await;
        let requests = requests.iter().filter(|request| request.notebook == number);
        count(&mut outcome, number, requests, &cells);
    }
    let refused: HashSet<&str> = requests.iter().filter_map(refusal).collect();
    println!(
        "{} asked, {} acknowledged, {} lost, {} doubled, {} under another id; refused because: {refused:?}",
        outcome.requests,
        outcome.acknowledged,
        outcome.lost.len(),
        outcome.doubled.len(),
        outcome.changed_ids.len(),
    );
    outcome
}

fn refusal(request: &CellRequest) -> Option<&str> {
    match &request.answer {
        Answer::Refused(why) => Some(why),
        _ => None,
    }
}

/// The cells of a notebook as somebody sees them who opens it when everybody agrees.
#[expect(clippy::await_holding_invalid_type, reason = "nothing is restarted any more")]
async fn settled(site: &Site, number: usize, outcome: &mut Outcome) -> Vec<CellView> {
    let lab = site.lab.lock().await;
    let agent = site.agent().await;
    let (path, file) = (path(number), lab.file(&path(number)));
    let human = Human::join_at(&lab.url(), lab.token(), &path).await;
    let until = Instant::now() + TIMEOUT;
    loop {
        let live = human.cells();
        let on_disk = sources_on_disk(&file);
        let sources: Vec<&str> = live.iter().map(|cell| cell.source.as_str()).collect();
        let known = known(&agent, &path, live.len()).await;
        if on_disk.as_deref().is_some_and(|saved| saved == sources) && known == sources {
            human.leave().await;
            return live;
        }
        if Instant::now() > until {
            outcome.disagreeing.push(format!(
                "{path}: {} cells live, {:?} on disk, {} in the gateway",
                live.len(),
                on_disk.map(|saved| saved.len()),
                known.len(),
            ));
            return live;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The sources that the gateway knows, and whether there are more than expected.
async fn known(agent: &Agent, path: &str, expected: usize) -> Vec<String> {
    let mut known = Vec::new();
    for start in (0..expected).step_by(CELLS_PER_READ) {
        let ranges = json!([{ "start": start, "end": expected.min(start + CELLS_PER_READ) }]);
        let read = agent
            .call("read_nb_cells", json!({ "path": path, "ranges": ranges }))
            .await;
        let cells = read.structured["cells"].as_array().into_iter().flatten();
        known.extend(cells.filter_map(|cell| cell["source"].as_str().map(str::to_owned)));
    }
    known
}

fn count<'a>(
    outcome: &mut Outcome,
    number: usize,
    requests: impl Iterator<Item = &'a CellRequest>,
    cells: &[CellView],
) {
    let mut ids: HashMap<&str, Vec<&str>> = HashMap::new();
    for cell in cells {
        ids.entry(&cell.source).or_default().push(&cell.id);
    }
    for request in requests {
        let there = ids.get(&*request.mark).map_or(&[][..], Vec::as_slice);
        let tell = || {
            let (mark, at, answer) = (&request.mark, request.at, &request.answer);
            format!("{mark} in {} after {at:.1?}, {answer:?}: {there:?}", path(number))
        };
        if there.len() > 1 {
            outcome.doubled.push(tell());
        }
        if let Answer::Acknowledged(id) = &request.answer {
            outcome.acknowledged += 1;
            if there.is_empty() {
                outcome.lost.push(tell());
            } else if !there.contains(&&**id) {
                outcome.changed_ids.push(tell());
            }
        }
    }
}
