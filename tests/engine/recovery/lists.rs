//! History, tree and list: what they show, and that a list neither repeats nor
//! forgets while others run.

use std::collections::BTreeSet;
use std::future::IntoFuture;

use futures::executor::block_on;
use procession::ProcedureId;
use procession::procedure::{Kind, Noop};
use procession::provider::{Batch, JournalStore, Scan, Space};
use procession::status::{Ending, HistoryEntry, ListFilter, ProcedureState, Status, WaitReason};
use procession::testkit::{FaultPlan, MemoryStore, Run, Trouble, World};

use super::crash::failing_undo;
use crate::support::{Act, Lab, Patient, Planned, Tested, chain, end, kinds, live, plan};

/// Family, ending, attempt, of one entry.
fn short(entry: &HistoryEntry) -> (Ending, u32, bool) {
    (entry.ending, entry.attempt, entry.stands)
}

#[test]
fn e_114_history_of_a_failing_undo() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = run
            .wait(run.executor.submit(Patient(failing_undo())).key("k").into_future())
            .await??;
        run.until("stage 3 has failed", || lab.has("a3'")).await?;
        run.settle().await;
        let standing = run.executor.history(handle.id()).await?;
        assert!(
            standing.iter().take(3).all(|entry| entry.stands),
            "all three are to be undone"
        );
        run.wait(handle.outcome()).await?.ok();

        let history = run.executor.history(handle.id()).await?;
        let stages = [
            (Ending::Next, 1, false),
            (Ending::Next, 1, false),
            (Ending::Fail, 1, false),
        ];
        let failed = [
            (Ending::UndoFailed, 1, false),
            (Ending::UndoFailed, 2, false),
            (Ending::UndoFailed, 3, false),
        ];
        let undone = [
            (Ending::Undone, 4, false),
            (Ending::Undone, 1, false),
            (Ending::Undone, 1, false),
        ];
        let expected: Vec<_> = stages.into_iter().chain(failed).chain(undone).collect();
        assert_eq!(history.iter().map(short).collect::<Vec<_>>(), expected);
        let numbers: Vec<u32> = history.iter().map(|entry| entry.number).collect();
        assert_eq!(numbers, (1..=9).collect::<Vec<_>>(), "without a gap");
        for entry in &history {
            assert!(entry.queued <= entry.begun && entry.begun <= entry.ended, "{entry:?}");
            let failed = matches!(entry.ending, Ending::Fail | Ending::UndoFailed);
            assert_eq!(entry.error.is_some(), failed, "{entry:?}");
        }
        // 1, 2 and 4 s between the attempts of the undo.
        let begun: Vec<u64> = history.iter().skip(3).map(|entry| entry.begun.0 / 1_000_000).collect();
        assert_eq!(begun, [0, 1, 3, 7, 7, 7]);
        Ok(())
    })
}

#[test]
fn e_114_history_keeps_the_last_few_attempts_and_their_count() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let tried = plan("a", [Act::Retry(4, Box::new(Act::Done(1)))]);
        let handle = run.wait(run.executor.submit(Patient(tried)).into_future()).await??;
        run.wait(handle.outcome()).await??;
        let attempts: Vec<u32> = run
            .executor
            .history(handle.id())
            .await?
            .iter()
            .map(|entry| entry.attempt)
            .collect();
        assert_eq!(attempts, [1, 2, 3, 4, 5]);
        Ok(())
    })
}

/// Lists all, this many at once; `between` runs after each page.
async fn walk(
    run: &Run,
    filter: &ListFilter,
    limit: usize,
    between: impl AsyncFn(usize) -> Tested,
) -> Result<Vec<Status>, Trouble> {
    let (mut all, mut cursor, mut page_number) = (Vec::new(), None, 0);
    loop {
        let page = run.executor.list(filter.clone(), cursor, limit).await?;
        assert!(page.items.len() <= limit && !page.truncated);
        all.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(all);
        }
        between(page_number).await?;
        page_number += 1;
    }
}

#[test]
fn e_114_a_list_neither_repeats_nor_forgets_while_others_run() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder: procession::Builder| kinds(&lab, builder).register::<Noop>(()).merge(4_096);
    world
        .run(FaultPlan::none(), set_up, async |run| {
            end(run, Patient(failing_undo()), "E-034").await?.ok();
            let mut there = BTreeSet::new();
            for number in 0..1_000 {
                // Every tenth waits, every tenth sleeps, the others end while the list is read.
                let acts = match number % 10 {
                    0 => plan("w", [Act::Wait("go".to_owned(), None), Act::Done(1)]),
                    1 => plan("s", [Act::Sleep(60_000), Act::Done(1)]),
                    _ => plan("h", [Act::Held("go on".to_owned(), Box::new(Act::Done(1)))]),
                };
                there.insert(run.executor.submit(Planned(acts)).await?.id());
            }
            let others = async |number: usize| {
                if number == 3 {
                    lab.open("go on");
                }
                end(run, Planned(chain("new", 2)), &format!("new {number}")).await??;
                Ok(())
            };
            let all = walk(run, &ListFilter::default(), 97, others).await?;
            let ids: Vec<ProcedureId> = all.iter().map(|status| status.id).collect();
            assert!(
                ids.is_sorted() && ids.iter().collect::<BTreeSet<_>>().len() == ids.len(),
                "no row twice"
            );
            assert!(there.iter().all(|id| ids.contains(id)), "no row left out");
            run.settle().await;
            filters(run).await?;
            explained(run).await
        })?
        .done()?;
    Ok(())
}

async fn filters(run: &Run) -> Tested {
    let quiet = async |_: usize| Ok(());
    let live_only = ListFilter {
        live_only: true,
        ..ListFilter::default()
    };
    assert_eq!(walk(run, &live_only, 50, quiet).await?.len(), 200);
    let rolled_back = ListFilter {
        state: Some(ProcedureState::RolledBack),
        ..ListFilter::default()
    };
    assert_eq!(walk(run, &rolled_back, 50, quiet).await?.len(), 1);
    let kind = ListFilter {
        kind: Some(Kind::from("patient")),
        ..ListFilter::default()
    };
    let patient = walk(run, &kind, 50, quiet).await?;
    assert_eq!(patient.len(), 1);
    let tree = run.executor.tree(patient.first().ok_or("it is listed")?.id).await?;
    assert_eq!(tree, patient);
    Ok(())
}

/// Every row has a state, its reason, and since when.
async fn explained(run: &Run) -> Tested {
    for status in walk(run, &ListFilter::default(), 1_000, async |_| Ok(())).await? {
        assert!(status.since >= status.submitted);
        assert_eq!(
            status.ended.is_some(),
            matches!(status.state, ProcedureState::Success | ProcedureState::RolledBack)
        );
        match (&status.state, &status.wait) {
            (ProcedureState::WaitingTimeout, Some(WaitReason::Event(..) | WaitReason::Timer(_))) => {
                assert_eq!(status.stage, "2")
            }
            (ProcedureState::Success | ProcedureState::RolledBack, None) => {}
            other => return Err(format!("{} is in {other:?}", status.id).into()),
        }
    }
    Ok(())
}

#[test]
fn e_114_a_list_over_its_scan_budget_says_so() -> Tested {
    /// Rows that one request reads.
    const BUDGET: u64 = 100_000;
    let (world, lab) = (World::new(), Lab::default());
    crate::support::live_in(&world, &lab, async |run| {
        Ok(end(run, Planned(chain("a", 1)), "k").await??)
    })?;
    // As many finished families as that, made of the one that there is; new ones come behind them.
    {
        let store = MemoryStore::open(&world.disk, FaultPlan::none())?;
        let epoch = block_on(store.acquire())?;
        let scan = Scan {
            space: Space::Procedures,
            from: Vec::new(),
            to: None,
            limit: 1,
        };
        let (_, row) = block_on(store.scan(scan))?
            .into_iter()
            .next()
            .ok_or("the row is there")?;
        let mut batch = Batch::new(epoch);
        for family in 1_000..1_000 + BUDGET {
            let key = [&family.to_be_bytes()[..], &[0; 4]].concat();
            batch.put(Space::Procedures, &key, &row);
        }
        batch.put(Space::Meta, b"families", &(1_000 + BUDGET).to_be_bytes());
        block_on(store.append(batch))?;
    }
    crate::support::live_in(&world, &lab, async |run| {
        let waiting = plan("w", [Act::Wait("go".to_owned(), None), Act::Done(1)]);
        let waiting = run.executor.submit(Planned(waiting)).await?.id();
        run.settle().await;
        let none = ListFilter {
            state: Some(ProcedureState::RolledBack),
            ..ListFilter::default()
        };
        let page = run.executor.list(none.clone(), None, 10).await?;
        assert_eq!(
            (page.items.len(), page.scanned as u64, page.truncated),
            (0, BUDGET, true)
        );
        let rest = run.executor.list(none, page.next, 10).await?;
        assert_eq!(
            (rest.items.len(), rest.scanned, rest.truncated, rest.next),
            (0, 2, false, None)
        );
        // Whoever asks for the live ones alone does not read the others.
        let live_only = ListFilter {
            live_only: true,
            ..ListFilter::default()
        };
        let page = run.executor.list(live_only, None, 10).await?;
        let ids: Vec<ProcedureId> = page.items.iter().map(|status| status.id).collect();
        assert_eq!((ids, page.scanned, page.next), (vec![waiting], 1, None));
        Ok(())
    })
}
