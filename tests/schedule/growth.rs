//! A schedule runs for ever in the same space.

use std::time::Duration;

use procession::schedule::{Overlap, Schedule};
use procession::testkit::{FaultPlan, Run, TestClock, Trouble, World};
use procession::{Builder, ProcedureId};

use crate::work::{NAME, Tested, taking};

const TICKS: u64 = 10_000;

/// Entries of the schedule's family in the journal, and their bytes.
async fn stored(run: &Run, id: ProcedureId) -> Result<(usize, usize), Trouble> {
    let export = run.executor.export(id).await?;
    let bytes = export.entries.iter().map(|entry| entry.key.len() + entry.value.len());
    Ok((export.entries.len(), bytes.sum()))
}

#[test]
fn ten_thousand_ticks_leave_no_more_than_the_first_hundreds() -> Tested {
    // Results of runs go soon, so that the test has few of them.
    let set_up = |builder: Builder| {
        let short = Duration::from_secs(10);
        taking(Duration::ZERO)(builder).retention(short, short)
    };
    // An instant of today has as many bytes as that of any tick.
    let clock = TestClock::new();
    clock.advance(Duration::from_secs(1_800_000_000));
    World::with_clock(clock)
        .run(FaultPlan::none(), set_up, async |run| {
            let schedule = Schedule::every(NAME, Duration::from_secs(1))?.overlap(Overlap::Queue(3));
            let id = run.executor.schedule(schedule).await?.id();
            run.pass(Duration::from_secs(500)).await;
            let (entries, bytes) = stored(run, id).await?;
            run.pass(Duration::from_secs(TICKS - 500)).await;
            let (now_entries, now_bytes) = stored(run, id).await?;
            assert_eq!(now_entries, entries);
            // The numbers of a hundred visits grow by a byte or two each.
            assert!(now_bytes < bytes + 500, "{bytes} have become {now_bytes}");
            let value = run.executor.value::<Schedule>(id).await?.ok_or("it lives")?;
            assert_eq!((value.runs(), value.skipped()), (TICKS, 0));
            assert!(run.executor.mailbox(id).await?.kept.is_empty());
            assert!(run.executor.snapshot().await?.live_families == 1);
            assert!(run.executor.verdicts().await?.is_empty());
            Ok(())
        })?
        .done()
}
