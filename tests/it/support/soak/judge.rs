//! What became of the cells that agents asked for, once nothing is disturbed any more.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use serde_json::json;
use sqlx::{Row, SqlitePool};

use super::{
    super::{
        Agent, Era, Human,
        notebook::{CellView, sources_on_disk},
    },
    Plan,
    outcome::Outcome,
    site::{Site, path},
    worker::{Answer, CellRequest, Deletion, RAN},
};

/// Time that everybody may take to agree when nothing is disturbed any more.
const TIMEOUT: Duration = Duration::from_secs(90);
/// An answer has room for so many.
const CELLS_PER_READ: usize = 50;

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
    count_runs(site, &requests, &mut outcome).await;
    for request in &requests {
        if let Answer::Refused(why) = &request.answer {
            // What comes after the first words names cells and times.
            let why: String = why.chars().take(35).collect();
            *outcome.refused.entry(why).or_default() += 1;
        }
    }
    {
        let mut clients = site.clients.lock().expect("no panic");
        (outcome.cut, outcome.resumed) = (clients.cut, clients.resumed);
        outcome.disturbed = std::mem::take(&mut clients.disturbed);
    }
    println!("{outcome}");
    println!(
        "connections that the last gateway closed: {}",
        site.closed_connections().await
    );
    outcome
}

/// The cells of a notebook as somebody sees them who opens it when everybody agrees.
async fn settled(site: &Site, number: usize, outcome: &mut Outcome) -> Vec<CellView> {
    let (url, token, file) = {
        let lab = site.lab.lock().await;
        (lab.url(), lab.token(), lab.file(&path(number)))
    };
    let agent = site.agent(0, Era::Modern).await;
    let path = path(number);
    let until = Instant::now() + TIMEOUT;
    let mut human = None;
    loop {
        let Some(page) = &human else {
            let began = Instant::now();
            match Human::try_join_at(&url, token, &path).await {
                Ok(page) => {
                    outcome.slowest_page = outcome.slowest_page.max(began.elapsed());
                    human = Some(page);
                }
                // A person would load the page again, and may have to once in a while.
                Err(why) if Instant::now() < until => {
                    let told = format!("{path} after {:.1?}: {why}", began.elapsed());
                    println!("a page had to be loaded again: {told}");
                    outcome.reloaded.push(told);
                }
                Err(why) => {
                    outcome.disagreeing.push(format!("{path} cannot be opened: {why}"));
                    return Vec::new();
                }
            }
            continue;
        };
        let live = page.cells();
        let on_disk = sources_on_disk(&file);
        let sources: Vec<&str> = live.iter().map(|cell| cell.source.as_str()).collect();
        let known = known(&agent, &path, live.len()).await;
        if on_disk.as_deref().is_some_and(|saved| saved == sources) && known == sources {
            if let Some(page) = human {
                page.leave().await;
            }
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
        let there = ids.get(&*request.source).map_or(&[][..], Vec::as_slice);
        let tell = || {
            let (mark, at, answer) = (&request.mark, request.at, &request.answer);
            let deletion = request.deletion;
            format!(
                "{mark} in {} after {at:.1?}, {answer:?}, deletion {deletion:?}: {there:?}",
                path(number)
            )
        };
        if there.len() > 1 {
            outcome.doubled.push(tell());
        }
        let Answer::Acknowledged(id) = &request.answer else {
            continue;
        };
        outcome.acknowledged += 1;
        match request.deletion {
            Deletion::Not if there.is_empty() => outcome.lost.push(tell()),
            Deletion::Acknowledged if !there.is_empty() => outcome.returned.push(tell()),
            Deletion::Not | Deletion::Asked | Deletion::Acknowledged => {}
        }
        outcome.deleted += usize::from(request.deletion == Deletion::Acknowledged);
        if !there.is_empty() && !there.contains(&&**id) {
            outcome.changed_ids.push(tell());
        }
    }
}

/// Counts how often each cell ran, and how executions ended.
async fn count_runs(site: &Site, requests: &[CellRequest], outcome: &mut Outcome) {
    let pool = SqlitePool::connect(&site.store_url()).await.expect("the database");
    let until = Instant::now() + TIMEOUT;
    loop {
        let open: Vec<String> = sqlx::query_scalar("SELECT execution_id FROM executions WHERE ended_at IS NULL")
            .fetch_all(&pool)
            .await
            .unwrap_or_default();
        if open.is_empty() || Instant::now() > until {
            outcome.unended = open;
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // The beginning of a reason tells enough, and what was completed needs none.
    let ended = "SELECT CASE status WHEN 'completed' THEN status ELSE status || ' ' || coalesce(substr(reason, 1, 30), '') END, \
                 count(*) FROM executions GROUP BY 1";
    for row in sqlx::query(ended).fetch_all(&pool).await.expect("the executions") {
        outcome.executions.insert(row.get(0), row.get(1));
    }
    pool.close().await;
    let file = site.lab.lock().await.file(RAN);
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for mark in std::fs::read_to_string(file).unwrap_or_default().lines() {
        *runs.entry(mark.to_owned()).or_default() += 1;
    }
    outcome.ran = runs.len();
    for request in requests {
        let times = runs.get(&request.mark).copied().unwrap_or_default();
        if times > 1 || request.is_completed && times == 0 {
            let told = format!("{} in {} ran {times} times", request.mark, path(request.notebook));
            outcome.ran_otherwise.push(told);
        }
    }
}
