//! Kinds that keep only the newest entries of their history, and reading a history backwards.

use procession::messages::SendSignal;
use procession::procedure::{HistoryDetail, RetryPolicy};
use procession::provider::Space;
use procession::status::{HistoryEntry, note};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::submit;
use crate::support::{Act, Lab, Tested, chain, enumerate, live, plan, spawn};

/// Waits for a signal in each stage, and notes its number; ends with the entries that a stage reads, if it is told to
/// end.
#[derive(Serialize, Deserialize)]
struct Waiter {
    notes: bool,
    ends_after: Option<u32>,
}

impl Procedure for Waiter {
    const KIND: &'static str = "waiter";
    const ROLLBACK: bool = false;
    const HISTORY: HistoryDetail = HistoryDetail::Newest(10);
    const SIGNAL_KEYS: usize = 0;
    type Stage = u32;
    type Env = ();
    type Output = Vec<u32>;

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, number: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if self.notes {
            cx.note(&number)?;
            if number == 20 && cx.attempt() == 1 {
                return Err(StageError::retry("busy"));
            }
        }
        if self.ends_after.is_some_and(|last| number > last) {
            let read = cx.history(None, 4).await?;
            let rest = cx.history(read.last().map(|entry| entry.number), 100).await?;
            return Ok(Step::Done(read.iter().chain(&rest).map(|entry| entry.number).collect()));
        }
        Ok(Step::Wait {
            event: "go".to_owned(),
            timeout: None,
            then: number + 1,
        })
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(3)
    }
}

fn waiters(builder: Builder) -> Builder {
    builder.register::<Waiter>(())
}

/// Reads the whole history from its newest entry on, page by page.
async fn pages(run: &Run, id: ProcedureId, limit: usize) -> Result<Vec<HistoryEntry>, Trouble> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let page = run.executor.history_page(id, before, limit).await?;
        assert!(page.entries.len() <= limit);
        all.extend(page.entries);
        match page.next {
            Some(next) => before = Some(next),
            None => return Ok(all),
        }
    }
}

/// 25 stages wait; the 20th fails once first. So there are 26 entries, and the newest ten are kept.
async fn waits(run: &Run, ends: bool) -> Result<ProcedureId, Trouble> {
    let waiter = Waiter {
        notes: true,
        ends_after: ends.then_some(25),
    };
    let id = submit(run, waiter, "w").await?.id();
    let signals = (1..=24).map(|number| Ok(SendSignal::new(id, "go", &number)?.key(format!("{number}"))));
    run.settle().await;
    // Repeats of consumed signals are not recognised: this kind remembers no key.
    if run.executor.status(id).await?.stage == "2" {
        run.executor
            .signal_all(signals.collect::<Result<_, Trouble>>()?)
            .await?;
    }
    while run.executor.status(id).await?.stage != "26" {
        run.pass(std::time::Duration::from_secs(1)).await;
    }
    Ok(id)
}

fn told(entries: &[HistoryEntry]) -> Result<Vec<(u32, Option<u32>)>, Trouble> {
    entries
        .iter()
        .map(|entry| Ok((entry.number, note::<u32>(entry)?)))
        .collect()
}

#[test]
fn f_018_the_newest_entries_are_kept_with_their_notes() -> Tested {
    let world = World::new();
    let expected: Vec<(u32, Option<u32>)> = (17..=26)
        .rev()
        .map(|number| (number, Some(if number > 20 { number - 1 } else { number })))
        .collect();
    for _ in 0..2 {
        world
            .run(FaultPlan::none(), waiters, async |run| {
                let id = waits(run, false).await?;
                for limit in [1, 3, 10, 1_000] {
                    assert_eq!(told(&pages(run, id, limit).await?)?, expected, "{limit} at once");
                }
                assert_eq!(run.executor.history(id).await?.len(), 10);
                assert_eq!(run.executor.history_page(id, Some(17), 5).await?.entries, []);
                Ok(())
            })?
            .done()?;
    }
    assert_eq!(world.disk.dump(&Space::History).len(), 10);
    Ok(())
}

#[test]
fn f_018_a_stage_reads_its_own_history_and_nothing_is_left_after_eviction() -> Tested {
    let world = World::new();
    world
        .run(FaultPlan::none(), waiters, async |run| {
            let id = waits(run, true).await?;
            run.executor.signal(id, "go", &0_u32).await?;
            let outcome = run.wait(run.executor.outcome(id)).await?;
            let read: Vec<u32> = outcome?.output()?.ok_or("it has an output")?;
            assert_eq!(read, Vec::from_iter((17..=26).rev()));
            run.pass(std::time::Duration::from_secs(24 * 3_600)).await;
            run.settle().await;
            assert!(run.executor.status(id).await.is_err(), "its result is gone");
            Ok(())
        })?
        .done()?;
    for space in [Space::Procedures, Space::Payloads, Space::History, Space::Signals] {
        assert_eq!(world.disk.dump(&space), [], "{space:?}");
    }
    Ok(())
}

#[test]
fn f_018_whatever_crash_comes_the_window_is_the_same() -> Tested {
    let drive = async |(): &(), run: &Run| {
        let id = submit(
            run,
            Waiter {
                notes: false,
                ends_after: Some(12),
            },
            "w",
        )
        .await?
        .id();
        for number in 1..=12_u32 {
            run.settle().await;
            let status = run.executor.status(id).await?;
            if status.ended.is_none() && status.stage == (number + 1).to_string() {
                run.executor.signal(id, "go", &number).key(number.to_string()).await?;
            }
        }
        let outcome = run.wait(run.executor.outcome(id)).await?;
        let read: Vec<u32> = outcome?.output()?.ok_or("it has an output")?;
        assert_eq!(read, Vec::from_iter((3..=12).rev()));
        assert_eq!(run.executor.history(id).await?.len(), 10);
        Ok(())
    };
    enumerate(
        || (),
        |(): &(), builder| waiters(builder),
        drive,
        &[],
        |(), (), _| Ok(()),
    )?;
    Ok(())
}

#[test]
fn a_page_is_of_the_whole_family_and_passes_over_numbers_that_are_gone() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        // Of ten attempts the newest five are kept, and the last.
        let many = Act::RetryAfter(vec![Some(0); 4], Box::new(Act::Next));
        let root = plan("p", [many, spawn([chain("c", 2)]), Act::Done(7)]);
        let id = submit(run, crate::support::Patient(root), "p").await?.id();
        run.wait(run.executor.outcome(id)).await??;
        let mut forwards = run.executor.history(id).await?;
        forwards.reverse();
        for limit in [1, 2, 100] {
            let numbers = |entries: &[HistoryEntry]| entries.iter().map(|entry| entry.number).collect::<Vec<_>>();
            assert_eq!(
                numbers(&pages(run, id, limit).await?),
                numbers(&forwards),
                "{limit} at once"
            );
        }
        let unknown = run.executor.history_page(ProcedureId::root(99), None, 10).await;
        assert!(unknown.is_err(), "{unknown:?}");
        Ok(())
    })
}

/// Consumes a number of signals with keys, each awaited; returns its id and the bytes of rows that a start reads of it.
fn consumes(world: &World, count: u32) -> Result<usize, Trouble> {
    world
        .run(FaultPlan::none(), waiters, async |run| {
            let waiter = Waiter {
                notes: false,
                ends_after: None,
            };
            let id = submit(run, waiter, "w").await?.id();
            for first in (0..count).step_by(1_000) {
                let numbers = first..count.min(first + 1_000);
                let signals = numbers.map(|number| Ok(SendSignal::new(id, "go", &number)?.key(number.to_string())));
                run.executor
                    .signal_all(signals.collect::<Result<_, Trouble>>()?)
                    .await?;
                run.settle().await;
            }
            let status = run.executor.status(id).await?;
            assert_eq!(
                status.stage,
                (count + 2).to_string(),
                "none was refused, and all were consumed"
            );
            assert_eq!(run.executor.verdicts().await?, []);
            Ok(())
        })?
        .done()?;
    Ok([Space::Procedures, Space::History, Space::Signals]
        .iter()
        .map(|space| world.disk.dump(space).len())
        .sum())
}

#[test]
fn f_019_an_endless_procedure_grows_nowhere() -> Tested {
    let few = consumes(&World::new(), 25)?;
    let world = World::new();
    assert_eq!(consumes(&world, 20_000)?, few, "as many entries on the disk");
    world
        .run(FaultPlan::none(), waiters, async |run| {
            let recovered = run.executor.snapshot().await?.recovered;
            assert_eq!((recovered.families, recovered.procedures), (1, 1));
            let id = submit(
                run,
                Waiter {
                    notes: false,
                    ends_after: None,
                },
                "w",
            )
            .await?
            .id();
            run.executor.signal(id, "go", &0_u32).await?;
            run.settle().await;
            assert_eq!(run.executor.status(id).await?.stage, "20003");
            assert_eq!(run.executor.verdicts().await?, []);
            Ok(())
        })?
        .done()
}
