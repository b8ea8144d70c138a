//! What a stage leaves for its undo: a note, or word that there is nothing to undo.

use procession::operate::OperatorRequest;
use procession::status::{Ending, ProcedureState, note};
use procession::testkit::{FaultPlan, World};

use super::helper::{enumerate_client, lives, rolled_back, states, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, UndoAct, chain, end, enumerate_plan, kinds, live, plan, spawn};

fn boxed(act: Act) -> Box<Act> {
    Box::new(act)
}

fn gives_up() -> Act {
    Act::GiveUp("boom".to_owned())
}

fn noting(text: &str, then: Act) -> Act {
    Act::Note(text.to_owned(), boxed(then))
}

fn clean(then: Act) -> Act {
    Act::NothingToUndo(boxed(then))
}

/// Ten stages; those of these numbers stand. The last does this.
fn ten(standing: &[usize], last: Act) -> Plan {
    let mut acts: Vec<Act> = (1..10)
        .map(|stage| {
            if standing.contains(&stage) {
                Act::Next
            } else {
                clean(Act::Next)
            }
        })
        .collect();
    acts.push(last);
    plan("p", acts)
}

#[test]
fn g_069_a_rollback_passes_over_stages_with_nothing_to_undo() -> Tested {
    let (done, lab) = enumerate_plan(&ten(&[3, 5, 8], clean(gives_up())))?;
    assert_eq!(done.commits, 1 + 10 + 3);
    assert_eq!(lab.line(), "p1 p2 p3 p4 p5 p6 p7 p8 p9 p10 p8' p5' p3'");
    Ok(())
}

#[test]
fn g_069_with_nothing_to_undo_at_all_the_failure_is_the_end() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(ten(&[], clean(gives_up()))), "p").await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(states(run, handle.id()).await?, [ProcedureState::RolledBack]);
        Ok(())
    })?;
    assert_eq!(done.commits, 11);
    assert!(!lab.line().contains('\''), "{}", lab.line());
    Ok(())
}

#[test]
fn g_069_a_plan_lists_what_stands_and_no_more() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let last = Act::Held("go".to_owned(), boxed(Act::Done(7)));
        let handle = submit(run, Planned(ten(&[3, 5, 8], last)), "p").await?;
        run.until("the tenth is out", || lab.has("p10")).await?;
        let by = OperatorRequest::new("ann", "see first").dry_run();
        let told = run.executor.abort(handle.id(), by).await?;
        let plan = told.plan.ok_or("a dry run has a plan")?;
        assert_eq!(plan.undone.iter().map(|member| member.stages).collect::<Vec<_>>(), [3]);
        let history = run.executor.history(handle.id()).await?;
        let listed = plan.stages(&history);
        // Visits count from 0.
        let visits: Vec<u32> = listed.iter().map(|stage| stage.entry.visit).collect();
        assert_eq!(visits, [7, 4, 2]);
        lab.open("go");
        assert_eq!(run.wait(handle.outcome()).await??, 7);
        Ok(())
    })
}

#[test]
fn g_069_failed_attempts_stand_until_the_visit_ends_with_nothing_to_undo() -> Tested {
    let child = plan("c", [clean(Act::Retry(2, boxed(Act::Done(1))))]).compensated();
    let root = plan("r", [spawn([child]), Act::Fail("boom".to_owned())]);
    let (_, lab) = enumerate_plan(&root)?;
    assert_eq!(lab.line(), "r1 c1 c1 c1 r2 r2' r1'", "no undo of the child");
    Ok(())
}

#[test]
fn g_069_a_stage_that_declares_it_and_panics_is_undone() -> Tested {
    let (_, lab) = enumerate_plan(&plan("p", [clean(Act::Panic(9, boxed(Act::Done(1))))]))?;
    assert_eq!(lab.line(), "p1 p1 p1 p1'");
    let (_, lab) = enumerate_plan(&plan("p", [clean(Act::Fail("boom".to_owned()))]))?;
    assert_eq!(lab.line(), "p1 p1'", "nor does a stage error keep it");
    Ok(())
}

/// Three stages that note, one that notes nothing, and one that fails: with a note as well.
fn notes(last: Act) -> Plan {
    let acts = [
        noting("one", Act::Next),
        noting("of a failed attempt", Act::Retry(1, boxed(noting("two", Act::Next)))),
        Act::Next,
        noting("four", last),
    ];
    (1..=4).fold(plan("p", acts), |plan, stage| plan.undo(stage, UndoAct::ReadNote))
}

#[test]
fn g_070_each_undo_reads_the_note_of_its_own_stage() -> Tested {
    for last in [gives_up(), Act::Fail("boom".to_owned())] {
        let (done, lab) = enumerate_client(async |_, run| {
            let handle = submit(run, Planned(notes(last.clone())), "p").await?;
            rolled_back(run.wait(handle.outcome()).await?)?;
            let history = run.executor.history(handle.id()).await?;
            let noted = history.iter().map(note::<String>).collect::<Result<Vec<_>, _>>()?;
            let noted: Vec<&str> = noted.iter().map(|note| note.as_deref().unwrap_or("-")).collect();
            let stages = ["one", "of a failed attempt", "two", "-", "four"];
            assert_eq!(noted, [&stages[..], &["undone"; 4]].concat());
            Ok(())
        })?;
        // Four stages, one twice, with the end of its backoff, and four undos.
        assert_eq!(done.commits, 1 + 5 + 1 + 4);
        let read: Vec<String> = lab.noted().into_iter().filter(|line| line.contains("read")).collect();
        assert_eq!(
            read,
            [
                "p4' read Some(\"four\")",
                "p3' read None",
                "p2' read Some(\"two\")",
                "p1' read Some(\"one\")",
            ]
        );
    }
    Ok(())
}

#[test]
fn g_070_a_yield_and_a_panic_leave_no_note() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let acts = [
            noting("yielded", Act::Yield(1, boxed(Act::Next))),
            noting("panicked", Act::Panic(1, boxed(Act::Done(7)))),
        ];
        let handle = submit(run, Planned(plan("p", acts)), "p").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 7);
        let history = run.executor.history(handle.id()).await?;
        let told: Vec<(Ending, bool)> = history
            .iter()
            .map(|entry| (entry.ending, entry.note.is_some()))
            .collect();
        assert_eq!(
            told,
            [(Ending::Next, true), (Ending::Panic, false), (Ending::Done, true)]
        );
        Ok(())
    })
}

#[test]
fn g_070_a_note_has_64_kib_at_most() -> Tested {
    // A text of this length takes three bytes more: the mark of its length.
    for (bytes, error) in [
        (65_533, None),
        (65_534, Some("a note of 65537 bytes is over the limit of 65536")),
    ] {
        let (_, lab) = enumerate_client(async |_, run| {
            let noted = noting(&"x".repeat(bytes), Act::Done(7));
            let outcome = end(run, Planned(plan("p", [noted])), "p").await?;
            match error {
                None => assert_eq!(outcome?, 7),
                Some(text) => assert_eq!(rolled_back(outcome)?.0.text, text),
            }
            Ok(())
        })?;
        assert_eq!(lab.count("p1"), 1, "it is not tried again");
    }
    Ok(())
}

#[test]
fn g_070_notes_are_read_after_a_restart_in_mid_rollback() -> Tested {
    use procession::testkit::Fault;

    let lab = Lab::default();
    // Submitted, four stages, one of them twice, and a delay: the ninth commit is the undo of the third stage.
    let faults = [(9, Fault::CrashBefore), (1, Fault::CrashAfter), (1, Fault::CrashAfter)];
    let (crashes, ()) = lives(&faults, &lab, async |run| {
        let handle = submit(run, Planned(notes(gives_up())), "k").await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        Ok(())
    })?;
    assert_eq!(crashes, 3);
    for stage in 1..=4 {
        let line = format!("p{stage}' read");
        let read: Vec<String> = lab.noted().into_iter().filter(|read| read.starts_with(&line)).collect();
        assert!(read.windows(2).all(|pair| pair[0] == pair[1]), "{read:?}");
    }
    Ok(())
}

#[test]
fn g_070_nothing_is_left_of_them_after_eviction() -> Tested {
    use procession::provider::Space;

    let (world, lab) = (World::new(), Lab::default());
    world
        .run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder),
            async |run| {
                let ended = submit(run, Planned(notes(gives_up())), "p").await?;
                rolled_back(run.wait(ended.outcome()).await?)?;
                run.pass(std::time::Duration::from_hours(14 * 24)).await;
                // Evictions are made where something else is.
                submit(run, Planned(chain("q", 1)), "q").await?;
                run.settle().await;
                assert!(run.executor.status(ended.id()).await.is_err(), "its result is gone");
                Ok(())
            },
        )?
        .done()?;
    let of_first = |(key, _): &(Vec<u8>, Vec<u8>)| key.starts_with(&1_u64.to_be_bytes());
    for space in [Space::Procedures, Space::Payloads, Space::History] {
        assert!(!world.disk.dump(&space).iter().any(of_first), "{space:?}");
    }
    Ok(())
}
