//! Reads that fail with an input/output error: nothing is damaged, so nothing is quarantined. They
//! are tried again, and a verdict tells of them as long as they fail.

use std::future::IntoFuture;
use std::time::Duration;

use procession::errors::{AskError, ReadError, StartError, StoreError, SubmitError};
use procession::provider::Space;
use procession::status::ProcedureState;
use procession::testkit::{Ended, FaultPlan, ReadFault, Run, Trouble, World};
use procession::{Handle, ProcedureId};

use crate::support::{Act, Lab, Patient, Plan, Planned, Tested, kinds, live, plan, spawn};

async fn submitted(run: &Run, plan: Plan) -> Result<Handle<Planned>, Trouble> {
    Ok(run.wait(run.executor.submit(Planned(plan)).into_future()).await??)
}

/// Asks until the answer is not that the store cannot be read: a client is told, and asks again.
async fn state_of(run: &Run, id: ProcedureId) -> Result<ProcedureState, Trouble> {
    for _ in 0..10 {
        match run.wait(run.executor.outcome(id)).await? {
            Ok(outcome) => return Ok(outcome.state),
            Err(AskError::Read(ReadError::Store(StoreError::Io { .. }))) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err("its outcome cannot be read ten times in a row".into())
}

async fn nothing_is_quarantined(run: &Run) -> Tested {
    let quarantined = run.executor.snapshot().await?.quarantined;
    assert!(quarantined.is_empty(), "{quarantined:?}");
    Ok(())
}

/// Two stages that are undone, and one that fails when the gate opens.
fn rolling_back() -> Plan {
    let fails = Act::Held("fail".to_owned(), Box::new(Act::Fail("boom".to_owned())));
    plan("r", [Act::Next, Act::Next, fails])
}

#[test]
fn a_rollback_begins_once_its_history_can_be_read() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submitted(run, rolling_back()).await?;
        run.until("its last stage runs", || lab.has("r3")).await?;
        run.store.fail_reads(ReadFault::times(3).of(Space::History));
        lab.open("fail");
        assert_eq!(state_of(run, handle.id()).await?, ProcedureState::RolledBack);
        assert_eq!(lab.line(), "r1 r2 r3 r3' r2' r1'");
        assert_eq!(run.store.failed_reads(), 3);
        nothing_is_quarantined(run).await
    })
}

#[test]
fn a_parked_procedure_goes_on_once_its_value_can_be_read() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submitted(run, plan("w", [Act::Wait("go".to_owned(), None), Act::DoneSignal])).await?;
        run.settle().await;
        run.store.fail_reads(ReadFault::times(5));
        run.wait(run.executor.signal(handle.id(), "go", &7_i64)).await??;
        assert_eq!(run.wait(handle.outcome()).await??, 7);
        assert!(run.store.failed_reads() >= 5);
        nothing_is_quarantined(run).await
    })
}

/// Parked, woken by a signal and by time, with children, and rolling back.
async fn mixture(run: &Run, lab: &Lab) -> Result<Vec<ProcedureState>, Trouble> {
    let plans = [
        plan("w", [Act::Wait("go".to_owned(), None), Act::DoneSignal]),
        plan("s", [Act::Sleep(50), Act::Done(1)]),
        plan(
            "p",
            [spawn([plan("p.0", [Act::Sleep(20), Act::Done(2)])]), Act::Done(3)],
        ),
        rolling_back(),
    ];
    let mut handles = Vec::new();
    for plan in plans {
        handles.push(submitted(run, plan).await?);
    }
    run.until("the last stage of r runs", || lab.has("r3")).await?;
    lab.open("fail");
    let waits = handles.first().ok_or("nobody was submitted")?.id();
    run.wait(run.executor.signal(waits, "go", &7_i64)).await??;
    let mut states = Vec::new();
    for handle in &handles {
        states.push(state_of(run, handle.id()).await?);
    }
    nothing_is_quarantined(run).await?;
    Ok(states)
}

#[test]
fn whichever_read_fails_once_all_end_as_if_none_had() -> Tested {
    let mut sound = Vec::new();
    for read in 0.. {
        let (world, lab) = (World::new(), Lab::default());
        let ended = world.run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder),
            async |run| {
                // The first life is without a fault, and says what there is to read.
                let fault = if read == 0 {
                    ReadFault::none()
                } else {
                    ReadFault::once().after(read - 1)
                };
                run.store.fail_reads(fault);
                let states = mixture(run, &lab).await?;
                Ok((states, run.store.failed_reads()))
            },
        )?;
        let Ended::Done((states, failed)) = ended else {
            return Err("no crash is planned".into());
        };
        if read == 0 {
            sound = states;
            continue;
        }
        assert_eq!(states, sound, "read {read}");
        if failed == 0 {
            assert!(read > 5, "only {read} reads");
            return Ok(());
        }
    }
    Ok(())
}

#[test]
fn a_store_that_cannot_be_read_is_told_until_it_can() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let mut handles = Vec::new();
        for name in ["a", "b"] {
            handles.push(submitted(run, plan(name, [Act::Wait("go".to_owned(), None), Act::DoneSignal])).await?);
        }
        run.settle().await;
        run.store.fail_reads(ReadFault::for_good().of(Space::Payloads));
        run.pass(Duration::from_secs(1)).await;
        let begun = run.now();
        for handle in &handles {
            run.wait(run.executor.signal(handle.id(), "go", &7_i64)).await??;
        }
        run.pass(Duration::from_secs(600)).await;
        let told = run.executor.verdicts().await?;
        let [verdict] = told.as_slice() else {
            return Err(format!("one verdict is expected: {told:?}").into());
        };
        assert_eq!(verdict.rule.as_str(), "store_unreadable");
        assert_eq!((verdict.since, verdict.procedure), (begun, None));
        assert_eq!(verdict.fact("reads"), Some("2"));
        let count: u64 = verdict.fact("failures").ok_or("it has no count")?.parse()?;
        // Doubling from 10 ms to 10 s: ten times in the first ten seconds, and six times a minute after that.
        assert!((60..200).contains(&count), "tried {count} times");
        assert!(verdict.text.contains("input/output error"), "{}", verdict.text);
        nothing_is_quarantined(run).await?;

        run.store.fail_reads(ReadFault::none());
        for handle in &handles {
            assert_eq!(run.wait(handle.outcome()).await??, 7);
        }
        assert_eq!(run.executor.verdicts().await?, Vec::new());
        Ok(())
    })
}

#[test]
fn whichever_read_of_a_start_fails_the_start_is_refused_and_nothing_is_quarantined() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let ids = world
        .run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder),
            async |run| {
                let waits = plan("w", [Act::Wait("go".to_owned(), None), Act::DoneSignal]);
                let waits = submitted(run, waits).await?.id();
                let stuck = plan("f", [Act::Next, Act::Fail("boom".to_owned())]);
                let stuck = stuck.undo(1, crate::support::UndoAct::Held("undo".to_owned()));
                let stuck = run.wait(run.executor.submit(Patient(stuck)).into_future()).await??.id();
                run.until("the undo runs", || lab.has("f1'")).await?;
                Ok((waits, stuck))
            },
        )?
        .done()?;
    lab.open("undo");
    let mut refusals = 0;
    for read in 0.. {
        let fork = world.fork();
        let plan = FaultPlan::none().reads(ReadFault::once().after(read));
        let started = fork.run(
            plan,
            |builder| kinds(&lab, builder),
            async |run| {
                run.store.fail_reads(ReadFault::none());
                nothing_is_quarantined(run).await?;
                run.wait(run.executor.signal(ids.0, "go", &7_i64)).await??;
                assert_eq!(state_of(run, ids.0).await?, ProcedureState::Success);
                assert_eq!(state_of(run, ids.1).await?, ProcedureState::RolledBack);
                Ok(run.store.failed_reads())
            },
        );
        match started {
            Ok(Ended::Done(0)) => {
                assert!(refusals > 5, "a start reads only {refusals} times");
                return Ok(());
            }
            // It had started, and tried again what it read for the first stage.
            Ok(Ended::Done(_)) => {}
            Ok(Ended::Crashed) => return Err("no crash is planned".into()),
            Err(error) => {
                refusals += 1;
                let refused = error.downcast_ref::<StartError>();
                assert!(
                    matches!(refused, Some(StartError::Store(StoreError::Io { .. }))),
                    "read {read}: {error}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_submission_whose_key_cannot_be_read_is_refused_and_may_be_repeated() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let submit = || run.executor.submit(Planned(plan("k", [Act::Done(1)]))).key("k");
        run.store.fail_reads(ReadFault::once().of(Space::Keys));
        let refused = run.wait(submit().into_future()).await?.map(|handle| handle.id());
        let Err(error @ SubmitError::KeyUnread { .. }) = refused else {
            return Err(format!("it got {refused:?}").into());
        };
        let text = error.to_string();
        assert!(text.starts_with("the key \"k\" could not be looked up"), "{text}");
        assert!(text.ends_with("submit again, with the same key"), "{text}");
        assert_eq!(run.executor.snapshot().await?.poisoned, None);
        assert_eq!(run.store.commits(), 1, "nothing of it is stored");
        let first = run.wait(submit().into_future()).await??.id();
        assert_eq!(run.wait(submit().into_future()).await??.id(), first);
        assert_eq!(lab.line(), "k1");
        Ok(())
    })
}
