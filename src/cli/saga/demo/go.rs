//! One case of the demo: from where an earlier process was killed, to its end.

use std::fs;
use std::path::Path;
use std::time::Duration;

use procession::errors::StoreError;
use procession::saga::Sagas;
use procession::testkit::{Simulated, TestClock, Trouble};

use super::super::super::exit::Failure;
use super::super::cases::{self, Compared, Double, Found, Life, Lived, Notes};
use super::results::Verdict;
use super::{Named, Seata};

/// How long ends are kept: longer than any case.
const KEPT: Duration = Duration::from_hours(24 * 30);

/// Runs a case.
pub(super) async fn go(root: &Path, named: &Named) -> Result<Verdict, Failure> {
    let expected = expected(named);
    let mut verdict = Verdict {
        case: named.name.clone(),
        file: named.file().to_owned(),
        found: expected.clone(),
        expected,
        commits: None,
        was_killed: false,
        differs: None,
    };
    if let Some(refused) = &named.case.refused {
        verdict.differs = cases::refuse(&named.case, refused, &read)
            .err()
            .map(|why| why.to_string());
        return Ok(verdict);
    }
    let place = root.join(&named.name);
    fs::create_dir_all(&place).map_err(|error| Failure::new(format!("{} cannot be made: {error}", place.display())))?;
    match live(&place, named, &mut verdict).await {
        Ok(found) => {
            verdict.found = pair(found.status(), found.compensation(), found.standing());
            verdict.commits = (!verdict.was_killed).then_some(found.commits);
        }
        Err(why) => match why.downcast::<StoreError>() {
            // Another process has the directory, or its disk is full: nothing is known of the case, and nothing is noted.
            Ok(error) => return Err(Failure::from(*error)),
            Err(why) => {
                verdict.found = "differs".to_owned();
                verdict.differs = Some(why.to_string());
            }
        },
    }
    Ok(verdict)
}

async fn live(place: &Path, named: &Named, verdict: &mut Verdict) -> Result<Box<Found>, Trouble> {
    let double = Double::default();
    let sagas = cases::sagas(&named.case, &double, &read)?;
    let (notes, noted) = Notes::open(&place.join("notes.jsonl"))?;
    let clock = TestClock::new();
    clock.advance_to(noted.now);
    verdict.was_killed = noted.is_begun;
    double.go_on(&named.case, clock.clone(), notes, noted);
    loop {
        match live_once(place, named, &sagas, &double, &clock, verdict.was_killed).await? {
            Lived::Restarts(down) => clock.advance(down),
            Lived::Over(found) => return Ok(found),
        }
    }
}

async fn live_once(
    place: &Path,
    named: &Named,
    sagas: &Sagas,
    double: &Double,
    clock: &TestClock,
    was_killed: bool,
) -> Result<Lived, Trouble> {
    let set_up = |builder: procession::Builder| builder.sagas(sagas.clone()).retention(KEPT, KEPT);
    let ground = Simulated::start(&place.join("journal"), clock.clone(), set_up).await?;
    let life = Life {
        case: &named.case,
        sagas,
        double,
        ground: &ground,
        compared: if was_killed { Compared::End } else { Compared::All },
    };
    let lived = life.live().await;
    // Shown as it was killed: what was out is made again by the next life.
    ground.executor.shutdown().await;
    lived
}

/// Reads a definition.
fn read(name: &str) -> Result<Vec<u8>, Trouble> {
    let file = Seata::get(name).ok_or_else(|| format!("there is no definition {name}"))?;
    Ok(file.data.into_owned())
}

/// Returns what the last step of a case expects, in short.
fn expected(named: &Named) -> String {
    if named.case.refused.is_some() {
        return "refused".to_owned();
    }
    let expect = named.case.steps.iter().rev().map(|step| &step.expect);
    let text = |name: &str| {
        let mut values = expect.clone().filter_map(|expect| expect.get(name));
        values.next().and_then(|value| value.as_str())
    };
    let last = named.case.steps.last().map(|step| &step.expect);
    let compensation = last.and_then(|expect| expect.get("compensation")?.as_str());
    pair(
        text("status").unwrap_or("-"),
        compensation,
        text("standing").unwrap_or("ended"),
    )
}

/// Returns status and compensation, and how a saga stands that has not ended.
fn pair(status: &str, compensation: Option<&str>, standing: &str) -> String {
    let pair = format!("({status},{})", compensation.unwrap_or("–"));
    match standing {
        "ended" => pair,
        standing => format!("{pair} {}", standing.replace('_', " ")),
    }
}
