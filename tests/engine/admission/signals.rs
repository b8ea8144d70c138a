//! Signals: durable before their sender is answered, each seen once, in order.

use std::future::IntoFuture;
use std::time::Duration;

use procession::errors::AskError;
use procession::status::{ProcedureState, WaitReason};
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};
use procession::{Handle, Procedure, ProcedureId};

use crate::support::{Act, Lab, Plan, Planned, Tested, chain, enumerate, enumerate_later, kinds, live, live_in, plan};

async fn submit<P: Procedure>(run: &Run, procedure: P, key: &str) -> Result<Handle<P>, Trouble> {
    Ok(run
        .wait(run.executor.submit(procedure).key(key).into_future())
        .await??)
}

fn seen(act: Act) -> Act {
    Act::Seen(Box::new(act))
}

fn wait(event: &str) -> Act {
    Act::Wait(event.to_owned(), None)
}

/// Sends unless the receiver has ended; a sender without an answer repeats with its key.
async fn send(run: &Run, id: ProcedureId, name: &str, payload: i64, key: &str) -> Result<Option<u32>, Trouble> {
    match run.wait(run.executor.signal(id, name, &payload).key(key)).await? {
        Ok(number) => Ok(Some(number)),
        Err(AskError::Finished { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// Waits at most 10 s for `go`; whoever was too late sees it with the next wait.
fn race() -> Plan {
    let once_more = Act::Held("in flight".to_owned(), Box::new(wait("go")));
    plan(
        "r",
        [
            Act::Wait("go".to_owned(), Some(10_000)),
            seen(once_more),
            seen(Act::Done(1)),
        ],
    )
}

/// What moves first, the clock or the sender, and how many turns lie between.
#[derive(Clone, Copy, Debug, PartialEq)]
enum First {
    Time,
    Signal,
}

/// Lets both meet; gives what the stage after the wait has seen.
async fn meet(lab: &Lab, run: &Run, first: First, turns: usize) -> Result<ProcedureId, Trouble> {
    let handle = submit(run, Planned(race()), "r").await?;
    run.until("it waits", || run.store.commits() == 3).await?;
    let clock = run.world.clock.clone();
    let signal = run.executor.signal(handle.id(), "go", &7_i64).key("s").into_future();
    let mut signal = std::pin::pin!(signal);
    let moved = async {
        if first == First::Signal {
            futures::poll!(&mut signal).is_ready().then_some(()).ok_or(()).ok();
        } else {
            clock.advance(Duration::from_secs(10));
        }
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        clock.advance_to(procession::procedure::Timestamp(10_000_000));
        signal.await
    };
    assert_eq!(moved.await?, 1);
    run.until("the stage after the wait runs", || lab.has("r2")).await?;
    Ok(handle.id())
}

#[test]
fn e_078_event_against_time() -> Tested {
    let mut causes = Vec::new();
    for turns in 0..100 {
        for first in [First::Time, First::Signal] {
            let (world, lab) = (World::new(), Lab::default());
            let id = live_in(&world, &lab, async |run| meet(&lab, run, first, turns).await)?;
            // It crashed while the stage after the wait was in flight: that sees the same again.
            live_in(&world, &lab, async |run| {
                run.until("it runs again", || lab.noted().len() == 2).await?;
                let waits = run.executor.status(id).await?;
                assert!(waits.going, "{first:?}, {turns}: {waits:?}");
                lab.open("in flight");
                run.settle().await;
                let cause = lab.noted()[0].clone();
                assert_eq!(lab.noted()[1], cause, "{first:?}, {turns}");
                if cause == "r2 saw 7" {
                    // Time lost: nothing is left of it, and the next wait goes on.
                    assert_eq!(
                        run.executor.status(id).await?.wait,
                        Some(WaitReason::Event("go".into(), None))
                    );
                    assert_eq!(lab.noted().len(), 2);
                } else {
                    // The signal lost: the next wait takes it.
                    assert_eq!(lab.noted()[1..], ["r2 saw no signal", "r3 saw 7"]);
                    assert_eq!(run.executor.status(id).await?.state, ProcedureState::Success);
                }
                causes.push(cause);
                Ok(())
            })?;
        }
    }
    for expected in ["r2 saw 7", "r2 saw no signal"] {
        assert!(
            causes.iter().any(|cause| cause == expected),
            "the seeds never let the other win"
        );
    }
    assert_eq!(causes.len(), 200);
    Ok(())
}

/// Sleeps while signals come, waits for a, a, b, a, a, and notes what each wait brought.
fn listener() -> Plan {
    let waits = [
        wait("a"),
        seen(wait("a")),
        seen(wait("b")),
        seen(wait("a")),
        seen(wait("a")),
        seen(Act::Done(1)),
    ];
    plan("p", [vec![Act::Sleep(1_000)], waits.to_vec()].concat())
}

async fn listen(lab: &Lab, run: &Run) -> Tested {
    let handle = submit(run, Planned(listener()), "p").await?;
    for (name, payload, number) in [("a", 11, 1), ("b", 21, 2), ("a", 12, 3), ("a", 13, 4)] {
        let answered = send(run, handle.id(), name, payload, &format!("{name}{payload}")).await?;
        assert_eq!(answered, Some(number));
    }
    run.pass(Duration::from_secs(2)).await;
    let status = handle.status().await?;
    assert!(lab.has("p6") && !lab.has("p7"));
    assert_eq!(status.state, ProcedureState::WaitingTimeout);
    assert_eq!(status.wait, Some(WaitReason::Event("a".into(), None)));
    Ok(())
}

const HEARD: [&str; 4] = ["p3 saw 11", "p4 saw 12", "p5 saw 21", "p6 saw 13"];

#[test]
fn e_079_order_name_and_number() -> Tested {
    let check = |plain: &Lab, crashed: &Lab, crashes: usize| {
        assert_eq!(plain.noted(), HEARD);
        let mut heard = crashed.noted();
        heard.dedup();
        assert_eq!(heard, HEARD);
        plain.compare(crashed, crashes)
    };
    let done = enumerate(Lab::default, kinds, listen, &[], check)?;
    assert_eq!(done.commits, 1 + 4 + 2 + 5);
    Ok(())
}

#[test]
fn e_079_order_name_and_number_with_a_restart_after_each_commit() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    for lives in 1.. {
        // Each life commits once besides its start, and dies.
        let plan = FaultPlan::at(1, Fault::CrashAfter);
        if let Ended::Done(()) = world.run(
            plan,
            |builder| kinds(&lab, builder),
            async |run| listen(&lab, run).await,
        )? {
            assert_eq!(lives, 13);
            break;
        }
    }
    let mut heard = lab.noted();
    heard.dedup();
    assert_eq!(heard, HEARD);
    Ok(())
}

#[test]
fn e_080_a_signal_is_durable_before_its_answer() -> Tested {
    let drive = async |lab: &Lab, run: &Run| {
        let waiter = plan(
            "w",
            [
                wait("go"),
                seen(Act::Held("kept".to_owned(), Box::new(wait("go")))),
                seen(Act::Done(1)),
            ],
        );
        let handle = submit(run, Planned(waiter), "w").await?;
        let first = send(run, handle.id(), "go", 7, "s").await?;
        if !lab.is_open("kept") {
            // The stage that saw it is held: the signal is still kept.
            run.until("the waiter has it", || lab.has("w2")).await?;
            assert_eq!(first, Some(1));
            assert_eq!(send(run, handle.id(), "go", 7, "s").await?, first);
        }
        lab.open("kept");
        run.settle().await;
        // Consumed, it is still remembered by its key, and comes to nobody again.
        assert_eq!(send(run, handle.id(), "go", 7, "s").await?, Some(1));
        run.settle().await;
        assert_eq!(handle.status().await?.wait, Some(WaitReason::Event("go".into(), None)));
        assert!(!lab.has("w3"));
        Ok(())
    };
    let check = |plain: &Lab, crashed: &Lab, crashes: usize| {
        assert_eq!(plain.noted(), ["w2 saw 7"]);
        assert!(crashed.noted().iter().all(|note| note == "w2 saw 7"));
        plain.compare(crashed, crashes)
    };
    let done = enumerate(Lab::default, kinds, drive, &[], check)?;
    assert_eq!(done.commits, 4);
    Ok(())
}

#[test]
fn e_080_unknown_and_finished_receivers_are_refused_by_name() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(chain("a", 1)), "a").await?;
        run.wait(handle.outcome()).await??;
        let commits = run.executor.snapshot().await?.commits;
        let ended = handle.status().await?.revision;
        let finished = run.executor.signal(handle.id(), "go", &1_i64).await;
        assert!(
            matches!(&finished, Err(AskError::Finished { id, revision }) if (*id, *revision) == (handle.id(), ended)),
            "{finished:?}"
        );
        let nobody = ProcedureId::new(handle.id().family + 1, 0);
        let unknown = run.executor.signal(nobody, "go", &1_i64).await;
        assert!(
            matches!(&unknown, Err(AskError::Unknown(id)) if *id == nobody),
            "{unknown:?}"
        );
        for (refused, id) in [(finished, handle.id()), (unknown, nobody)] {
            let text = refused.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(text.contains(&id.to_string()), "{text}");
        }
        assert_eq!(run.executor.snapshot().await?.commits, commits);
        Ok(())
    })
}

#[test]
fn e_081_a_retry_sees_the_same_signal() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let waiter = plan("w", [wait("go"), seen(Act::Retry(2, Box::new(Act::DoneSignal)))]);
        let handle = submit(run, Planned(waiter), "w").await?;
        send(run, handle.id(), "go", 7, "s").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 7);
        Ok(())
    };
    let check = |plain: &Lab, crashed: &Lab, crashes: usize| {
        assert_eq!(plain.noted(), ["w2 saw 7"; 3]);
        assert!(crashed.noted().iter().all(|note| note == "w2 saw 7"));
        plain.compare(crashed, crashes)
    };
    let done = enumerate(Lab::default, kinds, drive, &[], check)?;
    assert_eq!(done.commits, 8);
    Ok(())
}

/// Both cases, each met by one more crash at every commit of the life after it.
#[test]
fn e_078_and_crashed_again_it_still_sees_the_same() -> Tested {
    for first in [First::Time, First::Signal] {
        let prepare = || {
            let (world, lab) = (World::new(), Lab::default());
            live_in(&world, &lab, async |run| meet(&lab, run, first, 3).await)?;
            Ok((world, lab))
        };
        let drive = async |lab: &Lab, run: &Run, _: usize| {
            lab.open("in flight");
            run.settle().await;
            Ok(())
        };
        let check = |lab: &Lab, crashes: usize| {
            let noted = lab.noted();
            let told: Vec<&String> = noted.iter().filter(|note| note.starts_with("r2")).collect();
            assert!((2..=2 + crashes).contains(&told.len()), "{noted:?}");
            assert!(told.iter().all(|note| *note == told[0]), "{noted:?}");
            // A signal that lost is there for the next wait, once.
            let next = noted.iter().any(|note| note == "r3 saw 7");
            assert_eq!(next, told[0] == "r2 saw no signal", "{noted:?}");
            Ok(())
        };
        let commits = enumerate_later(prepare, kinds, drive, check)?;
        // The start's own, the stage in flight, and the one that takes the signal if it lost.
        assert!(commits >= 2, "{first:?}: {commits}");
    }
    Ok(())
}
