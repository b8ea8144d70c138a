//! A commit that fails: nothing that rests on it is told to anyone, everybody
//! who waits learns why, and the next start has all that was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use actix::prelude::*;
use futures::future::{Either, FutureExt, join_all, select};
use procession::errors::{AskError, ProcedureError, SubmitError};
use procession::status::{ChangeFeed, Seq};
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};
use procession::{Builder, Handle, Procedure, ProcedureId};

use crate::lifecycle::withheld;
use crate::support::{Act, Lab, Limited, Planned, Tested, chain, enumerate_later, kinds, plan, spawn};

/// What the clients were told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Notes>>);

#[derive(Default)]
struct Notes {
    acknowledged: BTreeMap<String, ProcedureId>,
    ended: BTreeSet<String>,
    failed: Vec<String>,
    changes: Vec<Seq>,
}

impl Told {
    fn with<T>(&self, work: impl FnOnce(&mut Notes) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Reader(Told);

impl Actor for Reader {
    type Context = Context<Self>;
}

impl Handler<ChangeFeed> for Reader {
    type Result = ();

    fn handle(&mut self, feed: ChangeFeed, _: &mut Self::Context) {
        if let ChangeFeed::Change(change) = feed {
            self.0.with(|notes| notes.changes.push(change.seq));
        }
    }
}

fn set_up(lab: &Lab, builder: Builder) -> Builder {
    kinds(lab, builder).limit("limited", 1)
}

/// Submits, waits for the end, and notes what it was told.
async fn client<P: Procedure>(run: &Run, told: &Told, procedure: P, key: &str) {
    let submitted: Result<Handle<P>, SubmitError> = run.executor.submit(procedure).key(key).into_future().await;
    let handle = match submitted {
        Ok(handle) => handle,
        Err(SubmitError::JournalFailed(why)) => return told.with(|notes| notes.failed.push(why)),
        Err(other) => return told.with(|notes| notes.failed.push(format!("another error: {other}"))),
    };
    told.with(|notes| notes.acknowledged.insert(key.to_owned(), handle.id()));
    match handle.outcome().await {
        Ok(_) => told.with(|notes| {
            notes.ended.insert(key.to_owned());
        }),
        Err(ProcedureError::Ask(AskError::JournalFailed(why))) => told.with(|notes| notes.failed.push(why)),
        Err(other) => told.with(|notes| notes.failed.push(format!("another error: {other}"))),
    }
}

/// Sends the event once the child that waits for it is there.
async fn sender(run: &Run, lab: &Lab, told: &Told, over: impl Future<Output = ()>) {
    let begun = async {
        while !lab.has("c1") {
            tokio::task::yield_now().await;
        }
    };
    if let Either::Right(_) = select(pin!(begun), pin!(over)).await {
        return;
    }
    let Some(child) = lab.id("c") else { return };
    match run.executor.signal(child, "go", &1_i64).key("s").await {
        Ok(_) | Err(AskError::Finished { .. }) => {}
        Err(AskError::JournalFailed(why)) => told.with(|notes| notes.failed.push(why)),
        Err(other) => told.with(|notes| notes.failed.push(format!("another error: {other}"))),
    }
}

/// The family of E-003, a stranger who waits for its permit, a subscriber, ten
/// submitters: until all have their answers, or nothing moves any more.
async fn clients(run: &Run, lab: &Lab, told: &Told) -> Result<bool, Trouble> {
    run.executor.subscribe(Reader(told.clone()).start().recipient()).await?;
    let child = plan("c", [Act::Wait("go".to_owned(), None), Act::DoneSignal]);
    let root = Limited(plan("r", [spawn([child]), Act::Done(1)]));
    let family = client(run, told, root, "r").shared();
    let submitters = (0..10).map(|number| {
        let name = format!("p{number}-");
        async move { client(run, told, Planned(chain(&name, 1)), &name).await }
    });
    let all = futures::future::join4(
        family.clone(),
        client(run, told, Limited(chain("s", 1)), "s"),
        sender(run, lab, told, family),
        join_all(submitters),
    );
    let mut all = pin!(all);
    for _ in 0..4 {
        if futures::poll!(&mut all).is_ready() {
            return Ok(true);
        }
        run.settle().await;
    }
    Ok(false)
}

/// Lives one life in which this commit is not proved; gives what was seen.
fn unproved(commit: u64, fault: Fault) -> Result<(World, Lab, Told), Trouble> {
    let (world, lab, told) = (World::new(), Lab::default(), Told::default());
    world
        .run(
            FaultPlan::at(commit, fault),
            |builder| set_up(&lab, builder),
            async |run| {
                let answered = clients(run, &lab, &told).await?;
                if fault == Fault::Withhold {
                    assert!(run.store.is_withholding() && !answered);
                    return Ok(());
                }
                assert!(answered, "every sender has its answer");
                refuses(run, &told, fault).await
            },
        )?
        .done()?;
    Ok((world, lab, told))
}

/// The process stays up, says why, and tries no later commit.
async fn refuses(run: &Run, told: &Told, fault: Fault) -> Tested {
    let why = match fault {
        Fault::FailSync => "a sync failed: input/output error",
        Fault::FailNoSpace => "no space left on device",
        _ => "a write failed: input/output error",
    };
    let failed = told.with(|notes| notes.failed.clone());
    assert!(
        !failed.is_empty() && failed.iter().all(|text| text.contains(why)),
        "{failed:?}"
    );
    let poisoned = run
        .executor
        .snapshot()
        .await?
        .poisoned
        .ok_or("the snapshot does not say why")?;
    assert!(poisoned.contains(why), "{poisoned}");
    let refused = run.executor.submit(Planned(chain("late", 1))).await.err();
    assert!(
        matches!(&refused, Some(SubmitError::JournalFailed(text)) if text.contains(why)),
        "{refused:?}"
    );
    assert_eq!(run.store.appends_after_failure(), 0);
    Ok(())
}

/// The next start: who was acknowledged is there under its id, and all end.
fn goes_on(world: &World, lab: &Lab, before: &Told) -> Tested {
    let told = Told::default();
    let ended = world.run(
        FaultPlan::none(),
        |builder| set_up(lab, builder),
        async |run| {
            assert!(clients(run, lab, &told).await?);
            Ok(())
        },
    )?;
    assert!(matches!(ended, Ended::Done(())));
    let (now, ended, failed) = told.with(|notes| (notes.acknowledged.clone(), notes.ended.len(), notes.failed.clone()));
    assert_eq!((ended, failed), (12, Vec::new()));
    before.with(|before| {
        for (key, id) in &before.acknowledged {
            assert_eq!(now.get(key), Some(id), "{key} was acknowledged");
        }
    });
    Ok(())
}

#[test]
fn e_100_a_commit_fails() -> Tested {
    // The family: submit, spawn, wait, signal, child, root. The stranger: submit,
    // grant, its stage. Ten submitters: two each.
    const COMMITS: u64 = 6 + 3 + 20;
    let count = {
        let (world, lab, told) = (World::new(), Lab::default(), Told::default());
        world
            .run(
                FaultPlan::none(),
                |builder| set_up(&lab, builder),
                async |run| {
                    assert!(clients(run, &lab, &told).await?);
                    Ok(run.store.commits() - 1)
                },
            )?
            .done()?
    };
    assert_eq!(count, COMMITS);
    for commit in 1..=COMMITS {
        // At rest with its receipt withheld, all has happened that does not rest on it.
        let (_, seen, withheld) = unproved(commit, Fault::Withhold)?;
        for fault in [Fault::FailWrite, Fault::FailSync, Fault::FailNoSpace] {
            let (world, lab, told) =
                unproved(commit, fault).map_err(|why| format!("commit {commit}, {fault:?}: {why}"))?;
            for call in lab.calls() {
                assert!(seen.has(&call.short()), "{} rests on commit {commit}", call.short());
            }
            told.with(|told| {
                withheld.with(|withheld| {
                    assert!(told.ended.is_subset(&withheld.ended));
                    assert!(
                        told.acknowledged
                            .keys()
                            .all(|key| withheld.acknowledged.contains_key(key))
                    );
                    assert!(told.changes.iter().all(|seq| withheld.changes.contains(seq)));
                    assert!(told.changes.is_sorted());
                });
            });
            goes_on(&world, &lab, &told).map_err(|why| format!("after commit {commit}, {fault:?}: {why}"))?;
        }
    }
    Ok(())
}

/// The family of E-003 alone; the life after the failure is crashed at each of its commits.
#[test]
fn e_100_the_start_after_it_crashes_too() -> Tested {
    for commit in 1..=withheld::COMMITS {
        for fault in [Fault::FailWrite, Fault::FailSync, Fault::FailNoSpace] {
            let prepare = || {
                let (world, lab) = (World::new(), Lab::default());
                let ended = world.run(
                    FaultPlan::at(commit, fault),
                    |builder| set_up(&lab, builder),
                    async |run| Ok(withheld::client(run, Limited).await.is_err()),
                )?;
                assert!(matches!(ended, Ended::Done(true)), "its client was told");
                Ok((world, lab))
            };
            let drive = async |_: &Lab, run: &Run, _: usize| withheld::client(run, Limited).await;
            let check = |lab: &Lab, crashes: usize| {
                for body in ["r1", "c1", "c2", "r2", "s1"] {
                    assert!((1..=2 + crashes).contains(&lab.count(body)), "{body} in {}", lab.line());
                }
                Ok(())
            };
            enumerate_later(prepare, set_up, drive, check)
                .map_err(|why| format!("after commit {commit}, {fault:?}: {why}"))?;
        }
    }
    Ok(())
}
