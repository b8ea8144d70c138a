//! The ready-made procedures: a sequence of named steps, and the one that does nothing.

use std::future::IntoFuture;
use std::sync::{Mutex, PoisonError};

use procession::errors::SubmitError;
use procession::messages::SubmitBatch;
use procession::procedure::Noop;
use procession::provider::Space;
use procession::sequence::{Sequence, Steps};
use procession::status::{ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, ReadFault, Run, Trouble, World};
use procession::{Builder, StageError};

use crate::support::{Lab, Planned, Tested, chain, end, enumerate, kinds};

const NAMES: [&str; 3] = ["copy", "switch", "clean"];

/// The steps of these names: each notes its call, and hands a word on.
fn steps(lab: &Lab, names: &[&'static str]) -> Steps {
    names.iter().fold(Steps::new(), |steps, &name| {
        let (does, undoes) = (lab.clone(), lab.clone());
        steps
            .step(name, async move |cx| {
                does.note(name);
                let mut words: Vec<String> = cx.input()?;
                if words.iter().any(|word| *word == format!("hold {name}")) {
                    does.gate(name).await;
                }
                if words.iter().any(|word| *word == format!("fail {name}")) {
                    return Err(StageError::fail(format!("{name} fails")));
                }
                words.push(name.to_owned());
                cx.put("rows", "words", &words)?;
                cx.set_input(&words)
            })
            .undo(name, async move |cx| {
                undoes.note(format!("{name}'"));
                let mut words: Vec<String> = cx.input()?;
                words.retain(|word| word != name);
                cx.put("rows", "words", &words)?;
                cx.set_input(&words)
            })
    })
}

fn sequence(words: &[&str]) -> Result<Sequence, Trouble> {
    Ok(Sequence::new(NAMES).with_input(words)?)
}

fn whole(lab: &Lab, builder: Builder) -> Builder {
    kinds(lab, builder)
        .register::<Noop>(())
        .register::<Sequence>(steps(lab, &NAMES))
}

/// What ran in the crash-free life ran in the crashed one, at most once more for each crash.
fn compare(plain: &Lab, crashed: &Lab, crashes: usize) -> Tested {
    let (plain, crashed) = (plain.noted(), crashed.noted());
    for name in plain.iter().chain(&crashed) {
        let count = |notes: &[String]| notes.iter().filter(|note| *note == name).count();
        let (expected, found) = (count(&plain), count(&crashed));
        if expected == 0 || found < expected || found > expected + crashes {
            return Err(format!("{name} ran {found} times for {expected}, with {crashes} crashes").into());
        }
    }
    Ok(())
}

#[test]
fn e_046_noop_takes_two_commits() -> Tested {
    let done = enumerate(
        Lab::default,
        whole,
        async |_: &Lab, run: &Run| {
            end(run, Noop, "noop").await??;
            Ok(())
        },
        &[],
        |_, _, _| Ok(()),
    )?;
    assert_eq!(done.commits, 2);
    Ok(())
}

/// Crashes a sequence at every commit; gives the commits and the calls of the crash-free life.
fn crash_everywhere(words: &[&str]) -> Result<(u64, Vec<String>), Trouble> {
    let calls = Mutex::new(Vec::new());
    let done = enumerate(
        Lab::default,
        whole,
        async |_: &Lab, run: &Run| {
            // How it ends is compared by the final world.
            end(run, sequence(words)?, "sequence").await?.ok();
            Ok(())
        },
        &["rows"],
        |plain, crashed, crashes| {
            *calls.lock().unwrap_or_else(PoisonError::into_inner) = plain.noted();
            compare(plain, crashed, crashes)
        },
    )?;
    let calls = calls.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((done.commits, calls))
}

#[test]
fn e_046_a_sequence_of_three_takes_four_commits() -> Tested {
    let (commits, calls) = crash_everywhere(&[])?;
    assert_eq!(commits, 4);
    assert_eq!(calls, NAMES);
    Ok(())
}

#[test]
fn e_046_a_sequence_that_fails_in_its_third_step_is_undone_in_reverse() -> Tested {
    let (commits, calls) = crash_everywhere(&["fail clean"])?;
    assert_eq!(commits, 7);
    assert_eq!(calls, ["copy", "switch", "clean", "clean'", "switch'", "copy'"]);
    Ok(())
}

#[test]
fn e_046_a_missing_name_quarantines_that_family_alone() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let id = world
        .run(
            FaultPlan::none(),
            |builder| whole(&lab, builder),
            async |run| {
                let held = sequence(&["hold clean"])?;
                let handle = run.wait(run.executor.submit(held).key("held").into_future()).await??;
                run.until("the third step runs", || lab.noted().len() == 3).await?;
                assert_eq!(handle.status().await?.stage, "clean", "it is shown by its name");
                Ok(handle.id())
            },
        )?
        .done()?;

    world
        .run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder).register::<Sequence>(steps(&lab, &["copy", "switch"])),
            async |run| {
                run.settle().await;
                assert_eq!(run.executor.status(id).await?.wait, Some(WaitReason::Quarantined));
                let quarantined = run.executor.snapshot().await?.quarantined;
                let why = "no step is registered with the name \"clean\"";
                assert_eq!(quarantined, [(id.family, format!("{id}: {why}"))]);
                let again = run.executor.submit(sequence(&["hold clean"])?).key("held").await?;
                assert_eq!(again.id(), id, "its key still stands for it");
                assert_eq!(end(run, Planned(chain("other", 2)), "other").await??, 7);
                Ok(())
            },
        )?
        .done()?;

    lab.open("clean");
    world
        .run(
            FaultPlan::none(),
            |builder| whole(&lab, builder),
            async |run| {
                let outcome = run.wait(run.executor.outcome(id)).await??;
                assert_eq!(outcome.state, ProcedureState::Success);
                let words: Option<Vec<String>> = run.executor.get("rows", "words").await?;
                assert_eq!(
                    words.unwrap_or_default(),
                    ["hold clean", "copy", "switch", "clean"],
                    "each step saw what the one before it left"
                );
                Ok(())
            },
        )?
        .done()?;
    assert_eq!(
        lab.noted(),
        ["copy", "switch", "clean", "clean"],
        "nothing ran twice but the last"
    );
    Ok(())
}

#[test]
fn e_046_a_name_that_is_not_there_is_refused_at_submission() -> Tested {
    let lab = Lab::default();
    let known = steps(&lab, &NAMES);
    World::new()
        .run(
            FaultPlan::none(),
            |builder| whole(&lab, builder),
            async |run| {
                let refused = run
                    .executor
                    .submit(Sequence::new(["copy", "swich", "cleen", "swich"]))
                    .await;
                let Err(SubmitError::Unsupported { why }) = refused.map(|handle| handle.id()) else {
                    return Err("it was not refused".into());
                };
                assert_eq!(why, "no step is registered with the name \"swich\", \"cleen\"");
                assert_eq!(run.store.commits(), 1, "nothing of it is stored");
                let unknown = known.sequence(["swich"]).err();
                assert_eq!(unknown.map(|unknown| unknown.names), Some(vec!["swich".to_owned()]));
                assert_eq!(
                    known.sequence(NAMES).map_err(|error| error.to_string()),
                    Ok(Sequence::new(NAMES))
                );
                Ok(())
            },
        )?
        .done()?;
    Ok(())
}

#[test]
fn a_message_is_checked_where_it_is_made() -> Tested {
    let lab = Lab::default();
    let (unfit, fit) = (|| Sequence::new(["swich"]), || Sequence::new(["copy"]));
    let work = async |run: &Run| {
        let refused = run.executor.submit(unfit()).into_message().await;
        assert!(
            matches!(refused, Err(SubmitError::Unsupported { .. })),
            "{:?}",
            refused.err()
        );
        assert_eq!(run.store.commits(), 1, "nothing of it is stored");
        let fit = fit().with_input(&Vec::<String>::new())?;
        let messages = vec![run.executor.submit(fit).key("k").into_message().await?];
        let ids = run.executor.supervisor().send(SubmitBatch(messages)).await??;
        let repeated = run.executor.submit(unfit()).key("k").into_message().await;
        assert!(
            repeated.is_ok(),
            "the key was used before, so the conflict is for the engine to tell"
        );
        assert_eq!(ids.len(), 1);
        Ok(())
    };
    World::new()
        .run(FaultPlan::none(), |builder| whole(&lab, builder), work)?
        .done()?;
    Ok(())
}

#[test]
fn a_key_that_cannot_be_read_is_not_taken_for_unused() -> Tested {
    let lab = Lab::default();
    let work = async |run: &Run| {
        run.store.fail_reads(ReadFault::once().of(Space::Keys));
        let refused = run.executor.submit(Sequence::new(["swich"])).key("k").await;
        let refused = refused.map(|handle| handle.id());
        assert!(matches!(refused, Err(SubmitError::KeyUnread { .. })), "{refused:?}");
        Ok(())
    };
    World::new()
        .run(FaultPlan::none(), |builder| whole(&lab, builder), work)?
        .done()?;
    Ok(())
}

#[test]
fn a_sequence_of_no_steps_succeeds() -> Tested {
    let lab = Lab::default();
    World::new()
        .run(
            FaultPlan::none(),
            |builder| whole(&lab, builder),
            async |run| {
                end(run, Sequence::new(Vec::<String>::new()), "empty").await??;
                assert_eq!(run.store.commits(), 3, "start, submission, end");
                Ok(())
            },
        )?
        .done()?;
    Ok(())
}
