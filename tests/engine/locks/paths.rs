//! Which paths exclude which, asked through the engine.

use procession::limits::{LockNeed, LockPath};
use procession::status::ProcedureState;
use procession::testkit::Run;

use super::kit::{at_rest, for_lock, holder, nothing_is_left, submit};
use crate::lifecycle::kit::enumerate_client;
use crate::support::{Lab, Planned, Tested, chain, live};

/// A holder, and what it excludes of all that is asked for.
const EXCLUDED: [(&str, &[&str]); 4] = [
    (
        "x ns",
        &[
            "x ns", "s ns", "x ns/t", "s ns/t", "x ns/t/r", "s ns/t/r", "x ns/u", "s ns/u",
        ],
    ),
    ("x ns/t", &["x ns", "x ns/t", "s ns/t", "x ns/t/r", "s ns/t/r"]),
    ("s ns/t", &["x ns", "x ns/t"]),
    ("x ns/t/r", &["x ns", "x ns/t", "x ns/t/r", "s ns/t/r"]),
];

const ASKED: [&str; 10] = [
    "x ns", "s ns", "x ns/t", "s ns/t", "x ns/t/r", "s ns/t/r", "x ns/u", "s ns/u", "x other", "s other",
];

fn need(text: &str) -> LockNeed {
    match text.split_once(' ') {
        Some(("x", path)) => LockNeed::exclusive(LockPath::parse(path)),
        _ => LockNeed::shared(LockPath::parse(text.trim_start_matches("s "))),
    }
}

/// One holds, one asks; gives whether the second ran beside the first.
async fn beside(lab: &Lab, run: &Run, holds: &str, asks: &str, parked: bool) -> Tested {
    let first = submit(run, Planned(holder("h", "").locks([need(holds)])), "h").await?;
    let second = submit(run, Planned(chain("a", 1).locks([need(asks)])), "a").await?;
    let status = at_rest(run, second.id()).await?;
    if !lab.is_open("h") {
        if parked {
            let path = need(asks).path;
            assert_eq!(status.wait, for_lock(path.as_str()), "{asks} beside {holds}");
            assert!(!lab.has("a1"));
        } else {
            assert_eq!(status.state, ProcedureState::Success, "{asks} beside {holds}");
        }
    }
    lab.open("h");
    run.wait(first.outcome()).await??;
    run.wait(second.outcome()).await??;
    nothing_is_left(run).await
}

/// Whoever is asked for beside each holder, this is how it goes.
async fn drive(lab: &Lab, run: &Run, holds: &str, asks: &str, parked: bool) -> Tested {
    // Met by two crashes, the two that run go one after the other.
    if run.executor.snapshot().await?.epoch.0 > 2 {
        lab.open("h");
    }
    beside(lab, run, holds, asks, parked).await
}

const fn commits(parked: bool) -> u64 {
    if parked { 5 } else { 4 }
}

#[test]
fn e_068_a_path_excludes_what_lies_at_and_under_it() -> Tested {
    for (holds, excluded) in EXCLUDED {
        for asks in ASKED {
            let (lab, parked) = (Lab::default(), excluded.contains(&asks));
            live(&lab, async |run| {
                drive(&lab, run, holds, asks, parked).await?;
                let found = run.executor.snapshot().await?.commits;
                assert_eq!(found, commits(parked), "{asks} beside {holds}");
                Ok(())
            })?;
        }
    }
    Ok(())
}

#[test]
fn e_068_and_so_it_does_through_crashes() -> Tested {
    for (holds, excluded) in EXCLUDED {
        // One that every holder excludes, and one that all but the first let pass.
        for asks in ["x ns", "s ns/u"] {
            let parked = excluded.contains(&asks);
            let drive = async |lab: &Lab, run: &Run| drive(lab, run, holds, asks, parked).await;
            let (done, _) = enumerate_client(drive).map_err(|why| format!("{asks} beside {holds}: {why}"))?;
            assert_eq!(done.commits, commits(parked), "{asks} beside {holds}");
        }
    }
    Ok(())
}
