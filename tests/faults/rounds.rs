//! Two engines side by side in one process on real disks that get full, or whose syncs fail, while others try to
//! open the same journals: shut down and started again, round after round. Nothing of them is left in the process.

use std::path::Path;
use std::time::Duration;

use futures::future::join;
use procession::errors::{AskError, ProcedureError, StartError, StoreError, SubmitError};
use procession::{Executor, Handle};

use crate::Outcome;
use crate::census::{Census, alone, in_system};
use crate::disk::{Mounted, apart, skip};
use crate::other::shell;
use crate::place::Ground;
use crate::unsynced::make_image;
use crate::work::{Tally, engine};

/// How many rounds there are, unless the variable says.
const ROUNDS: u64 = 3;
const ROUNDS_VARIABLE: &str = "PROCESSION_END_ROUNDS";
/// Bytes of a submission, so that the room is used up soon.
const FILLER: usize = 16_000;
/// Submissions at which a disk that is to get full should long be.
const ENOUGH: u64 = 100_000;
/// How long an answer may take at most.
const DEADLINE: Duration = Duration::from_secs(30);

fn rounds() -> Outcome<u64> {
    let given = std::env::var(ROUNDS_VARIABLE).ok();
    Ok(given.map_or(Ok(ROUNDS), |text| text.parse())?)
}

/// Starts an engine; a second opener of its journal is refused meanwhile.
async fn start(journal: &Path) -> Outcome<Executor> {
    let executor = engine(journal).workers(1).start().await?;
    match engine(journal).start().await {
        Err(StartError::Store(StoreError::Held { .. })) => Ok(executor),
        Err(error) => Err(error.into()),
        Ok(_) => Err("two engines on one journal".into()),
    }
}

/// Submits until the journal fails. Returns what was acknowledged, and what the failure said.
async fn submit_until_it_fails(executor: &Executor, from: u64) -> Outcome<(Vec<Handle<Tally>>, String)> {
    let mut handles = Vec::new();
    for number in from..from + ENOUGH {
        let filler = "x".repeat(FILLER);
        match executor.submit(Tally { number, filler }).await {
            Ok(handle) => handles.push(handle),
            Err(SubmitError::JournalFailed(error)) => return Ok((handles, error)),
            Err(error) => return Err(error.into()),
        }
    }
    Err("the disk never failed".into())
}

/// One engine's life up to the failure of its journal, and its shutdown; `breaks` makes it fail.
async fn live_until_it_fails(
    journal: &Path,
    from: u64,
    breaks: impl FnOnce() -> Outcome,
) -> Outcome<Vec<Handle<Tally>>> {
    let executor = start(journal).await?;
    let first = executor.submit(Tally::plain(from)).await?;
    assert_eq!(first.wait_for(DEADLINE).await?, from);
    breaks()?;
    let (handles, error) = submit_until_it_fails(&executor, from + 1).await?;
    assert!(error.contains("os error"), "{error}");
    for handle in &handles {
        match handle.wait_for(DEADLINE).await {
            Ok(_) | Err(ProcedureError::Ask(AskError::JournalFailed(_))) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let report = executor.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    Ok(handles)
}

/// The next engine on the same disk, now with room, has all that was acknowledged, and runs it to its end.
async fn live_again(journal: &Path, before: &[Handle<Tally>]) -> Outcome {
    let executor = start(journal).await?;
    for handle in before {
        executor.handle::<Tally>(handle.id()).wait_for(DEADLINE).await?;
    }
    let report = executor.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    Ok(())
}

#[test]
fn two_engines_whose_disks_get_full_leave_nothing_however_often() -> Outcome {
    let test = "rounds::two_engines_whose_disks_get_full_leave_nothing_however_often";
    apart(test, || {
        let _alone = alone();
        let rounds = rounds()?;
        in_system(async {
            let census = Census::take()?;
            for round in 0..rounds {
                let (one, other) = (Ground::new()?, Ground::new()?);
                let one_disk = Mounted::memory(&one.journal, "2m")?;
                let other_disk = Mounted::memory(&other.journal, "3m")?;
                let nothing = || Ok(());
                let lives = join(
                    live_until_it_fails(&one.journal, 0, nothing),
                    live_until_it_fails(&other.journal, ENOUGH, nothing),
                );
                let (before, other_before) = lives.await;
                one_disk.remount("size=64m")?;
                other_disk.remount("size=64m")?;
                let (before, other_before) = (before?, other_before?);
                let again = join(
                    live_again(&one.journal, &before),
                    live_again(&other.journal, &other_before),
                );
                let again = again.await;
                again.0?;
                again.1?;
                // A file that is still open keeps its file system mounted.
                one_disk.unmount()?;
                other_disk.unmount()?;
                let left = census.is_all_there_is().await;
                left.map_err(|error| format!("round {round}: {error}"))?;
            }
            Ok(())
        })
    })
}

#[test]
fn an_engine_whose_syncs_fail_leaves_nothing_however_often() -> Outcome {
    let test = "rounds::an_engine_whose_syncs_fail_leaves_nothing_however_often";
    apart(test, || {
        let _alone = alone();
        let rounds = rounds()?;
        in_system(async {
            let census = Census::take()?;
            for round in 0..rounds {
                let ground = Ground::new()?;
                let below = ground.path().join("below");
                let below_disk = Mounted::memory(&below, "32m")?;
                let (image, ballast) = (below.join("image"), below.join("ballast"));
                if let Err(error) = make_image(&image) {
                    return skip(test, &error.to_string());
                }
                let disk = match Mounted::image(&image, &ground.journal) {
                    Ok(disk) => disk,
                    Err(error) => return skip(test, &error.to_string()),
                };
                // The image's own room is promised, and not there.
                let breaks = || shell("cat /dev/zero >\"$1\" 2>&- || true", &[ballast.as_ref()]);
                let before = live_until_it_fails(&ground.journal, 0, breaks).await?;
                std::fs::remove_file(&ballast)?;
                // On the same pages first: a loop device takes a write that its file cut short for a whole one, so
                // the last sync that succeeded may have lied. The next start writes anew what may not be on disk.
                live_again(&ground.journal, &before).await?;
                disk.unmount()?;
                let disk = Mounted::image(&image, &ground.journal)?;
                live_again(&ground.journal, &before).await?;
                disk.unmount()?;
                below_disk.unmount()?;
                let left = census.is_all_there_is().await;
                left.map_err(|error| format!("round {round}: {error}"))?;
            }
            Ok(())
        })
    })
}
