//! Attempts: delays that code chooses, time limits, and attempts that were cut off.

use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use procession::errors::ProcedureError;
use procession::messages::{Submit, SubmitBatch};
use procession::procedure::{RetryPolicy, Timestamp};
use procession::provider::Clock;
use procession::sequence::{Sequence, Steps};
use procession::status::{CauseKind, Ending, WaitReason};
use procession::testkit::{FaultPlan, Run, TestClock, Trouble, World};
use procession::{Builder, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::{crash, enumerate_client, submit};
use crate::support::{
    Act, Lab, Patient, Plan, Planned, Tested, UndoAct, chain, end, enumerate_later, enumerate_plan, kinds, live,
    live_in, plan,
};

/// Five attempts: at once, after 7 s, and after the policy's 4 s.
fn says_when() -> Plan {
    let delays = vec![Some(0), Some(7_000), None];
    plan("p", [Act::RetryAfter(delays, Box::new(Act::Done(7)))])
}

async fn begun(run: &Run, id: ProcedureId) -> Result<Vec<u64>, Trouble> {
    let history = run.executor.history(id).await?;
    Ok(history.iter().map(|entry| entry.begun.0 / 1_000_000).collect())
}

#[test]
fn f_011_retries_that_say_when() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    // One restart in each delay: at 3 s, and at 9 s.
    for seconds in [3, 6] {
        world.run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder),
            async |run| {
                let id = submit(run, Patient(says_when()), "p").await?.id();
                run.pass(Duration::from_secs(seconds)).await;
                let wait = run.executor.status(id).await?.wait;
                assert!(matches!(wait, Some(WaitReason::Backoff(2..=3, _))), "{wait:?}");
                crash::<Tested>(run).await
            },
        )?;
    }
    live_in(&world, &lab, async |run| {
        let handle = submit(run, Patient(says_when()), "p").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 7);
        assert_eq!(begun(run, handle.id()).await?, [0, 0, 7, 11]);
        assert_eq!(run.now(), Timestamp(11_000_000));
        Ok(())
    })?;
    assert_eq!(lab.line(), "p1 p1 p1 p1");
    Ok(())
}

#[test]
fn f_011_each_attempt_is_a_commit_and_each_delay_that_is_none_costs_none() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        assert_eq!(end(run, Patient(says_when()), "p").await??, 7);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (7, "p1 p1 p1 p1"));
    Ok(())
}

#[test]
fn f_011_a_stranger_that_is_ready_goes_between_two_attempts() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let before = run.store.commits();
        let batch = SubmitBatch(vec![
            Submit::new(&Patient(says_when()))?,
            Submit::new(&Planned(chain("s", 1)))?,
        ]);
        let ids = run.wait(run.executor.supervisor().send(batch)).await???;
        for id in ids {
            run.wait(run.executor.outcome(id)).await??;
        }
        assert_eq!(run.store.commits() - before, 7 + 1, "the stranger's end is one more");
        Ok(())
    })?;
    assert_eq!(lab.line(), "p1 s1 p1 p1 p1");
    Ok(())
}

#[test]
fn delays_that_the_code_chooses_use_attempts_up() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let never = plan("p", [Act::RetryAfter(vec![Some(0); 9], Box::new(Act::Done(7)))]);
        match end(run, Planned(never), "p").await? {
            Err(ProcedureError::RolledBack { cause, .. }) => {
                assert_eq!(
                    (cause.kind, cause.text.as_str()),
                    (CauseKind::AttemptsExhausted, "attempt 3")
                );
            }
            other => return Err(format!("{other:?}").into()),
        }
        assert_eq!(run.now(), Timestamp(0));
        Ok(())
    })?;
    assert_eq!(lab.line(), "p1 p1 p1 p1'");
    Ok(())
}

#[test]
fn a_stage_without_a_delay_lets_others_have_its_lock_first() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let again = plan("p", [Act::RetryAfter(vec![Some(0)], Box::new(Act::Done(7)))]).exclusive("t");
        let batch = SubmitBatch(vec![
            Submit::new(&Planned(again))?,
            Submit::new(&Planned(chain("s", 1).exclusive("t")))?,
        ]);
        let ids = run.wait(run.executor.supervisor().send(batch)).await???;
        for id in ids {
            run.wait(run.executor.outcome(id)).await??;
        }
        Ok(())
    })?;
    assert_eq!(lab.line(), "p1 s1 p1");
    Ok(())
}

#[test]
fn an_undo_that_says_when_is_tried_again_then() -> Tested {
    for (ms, commits) in [(7_000, 6), (0, 5)] {
        let failing = plan("p", [Act::Fail("boom".to_owned())]).undo(1, UndoAct::FailAfter(1, ms));
        // Submitted, failed, tried to undo, undone; a delay ends in a commit.
        let (done, lab) = enumerate_plan(&failing)?;
        assert_eq!((done.commits, lab.line().as_str()), (commits - 1, "p1 p1' p1'"));
        live(&Lab::default(), async |run| {
            end(run, Planned(failing.clone()), "p")
                .await?
                .err()
                .ok_or("it ended well")?;
            assert_eq!(run.now(), Timestamp(ms * 1_000));
            Ok(())
        })?;
    }
    Ok(())
}

fn hangs() -> Plan {
    plan("p", [Act::Hang(1, 1_000, Box::new(Act::Done(7)))])
}

#[test]
fn f_012_a_future_that_does_not_end_in_its_time() -> Tested {
    let (done, lab) = enumerate_plan(&hangs())?;
    assert_eq!((done.commits, lab.line().as_str()), (4, "p1 p1"));
    live(&Lab::default(), async |run| {
        let handle = submit(run, Planned(hangs()), "p").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 7);
        let history = run.executor.history(handle.id()).await?;
        let [first, second] = &history[..] else {
            return Err(format!("{history:?}").into());
        };
        assert_eq!(
            (first.ending, first.error.as_deref()),
            (Ending::Retry, Some("timed out after 1 s"))
        );
        assert_eq!(
            (first.ended, second.begun),
            (Timestamp(1_000_000), Timestamp(2_000_000))
        );
        Ok(())
    })
}

/// A stage that is held while it is out, then fails once; and one more.
fn cut_off() -> Plan {
    let held = Act::Held("go".to_owned(), Box::new(Act::Retry(1, Box::new(Act::Next))));
    plan(
        "p",
        [Act::Repeated(Box::new(held)), Act::Repeated(Box::new(Act::Done(7)))],
    )
}

/// One life in which the stage is out when it ends: by a crash, or a drain that gives up.
fn lives_until_out(world: &World, lab: &Lab, by_drain: bool) -> Tested {
    let calls = lab.count("p1");
    world.run(
        FaultPlan::none(),
        |builder| kinds(lab, builder),
        async |run| {
            submit(run, Planned(cut_off()), "p").await?;
            run.until("its stage is out", || lab.count("p1") > calls).await?;
            if by_drain {
                let report = run.wait(run.executor.drain(Duration::from_secs(1))).await??;
                assert_eq!((report.finished_calls, report.cut_off_calls), (0, 1));
                return Ok(());
            }
            crash::<Tested>(run).await
        },
    )?;
    Ok(())
}

/// Ends it; gives what each call was told.
fn told(world: &World, lab: &Lab) -> Result<Vec<String>, Trouble> {
    lab.open("go");
    live_in(world, lab, async |run| {
        let handle = submit(run, Planned(cut_off()), "p").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 7);
        Ok(lab.noted())
    })
}

#[test]
fn f_012_a_call_is_told_how_often_its_attempt_was_cut_off() -> Tested {
    // How each life ended, and what the calls of the stage were told.
    let cases: [(&[bool], &[u32]); 5] = [
        (&[], &[0]),
        (&[false], &[0, 1]),
        (&[false, false], &[0, 1, 2]),
        (&[true], &[0, 1]),
        (&[true, false, true], &[0, 1, 2, 3]),
    ];
    for (lives, expected) in cases {
        let (world, lab) = (World::new(), Lab::default());
        for by_drain in lives {
            lives_until_out(&world, &lab, *by_drain)?;
        }
        let mut said: Vec<String> = expected.iter().map(|times| format!("p1 repeated {times}")).collect();
        // The next attempt, and the next stage.
        said.extend(["p1 repeated 0", "p2 repeated 0"].map(str::to_owned));
        assert_eq!(told(&world, &lab)?, said, "{lives:?}");
    }
    Ok(())
}

#[test]
fn f_012_whatever_crash_follows_it_ends_alike() -> Tested {
    for by_drain in [false, true] {
        let prepare = || {
            let (world, lab) = (World::new(), Lab::default());
            lives_until_out(&world, &lab, by_drain)?;
            lab.open("go");
            Ok((world, lab))
        };
        let drive = async |_: &Lab, run: &Run, _: usize| {
            assert_eq!(end(run, Planned(cut_off()), "p").await??, 7);
            Ok(())
        };
        let check = |lab: &Lab, crashes: usize| {
            for said in lab.noted() {
                let times: usize = said.rsplit(' ').next().unwrap_or_default().parse()?;
                assert!(times <= 1 + crashes, "{said} after {crashes} crashes");
            }
            Ok(())
        };
        // The start's own, an attempt that fails, its backoff, two stages.
        assert_eq!(enumerate_later(prepare, kinds, drive, check)?, 1 + 4);
    }
    Ok(())
}

#[test]
fn g_075_retries_and_a_yield_leave_the_count_of_cut_offs_as_it_is() -> Tested {
    let yields = Act::Yield(1, Box::new(Act::Done(7)));
    let held = Act::Held("go".to_owned(), Box::new(yields));
    let all = || plan("p", [Act::Repeated(Box::new(Act::Retry(1, Box::new(held.clone()))))]);
    let (world, lab) = (World::new(), Lab::default());
    // Two crashes, then a drain whose deadline passes.
    for (by_drain, calls) in [(false, 2), (false, 3), (true, 4)] {
        world.run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder),
            async |run| {
                submit(run, Planned(all()), "p").await?;
                run.settle().await;
                run.pass(Duration::from_secs(1)).await;
                run.until("its stage is out", || lab.count("p1") == calls).await?;
                if by_drain {
                    let report = run.wait(run.executor.drain(Duration::from_secs(1))).await??;
                    assert_eq!((report.finished_calls, report.cut_off_calls), (0, 1));
                    return Ok(());
                }
                crash::<Tested>(run).await
            },
        )?;
    }
    lab.open("go");
    live_in(&world, &lab, async |run| {
        let handle = submit(run, Planned(all()), "p").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 7);
        Ok(())
    })?;
    let told = [0, 0, 1, 2, 3, 3].map(|times| format!("p1 repeated {times}"));
    assert_eq!(lab.noted(), told);
    Ok(())
}

/// Calls another system, which answers after 10 s, and waits for 3 s in its first attempt.
#[derive(Serialize, Deserialize)]
struct Calling;

impl Procedure for Calling {
    const KIND: &'static str = "calling";
    type Stage = ();
    type Env = (Said, TestClock);
    type Output = String;

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let (said, clock) = cx.env().clone();
        let answers = clock.now().after(Duration::from_secs(10));
        let call = async move {
            let _dropped = Dropped(said.clone(), "call");
            clock.sleep_until(answers).await;
            said.say("answered".to_owned());
            "done".to_owned()
        };
        let patience = Duration::from_secs(if cx.attempt() == 1 { 3 } else { 11 });
        Ok(Step::Done(cx.within(patience, call).await?))
    }
}

#[test]
fn g_075_a_call_that_takes_too_long_is_dropped_and_made_again() -> Tested {
    let (world, said) = (World::new(), Said::default());
    let env = (said.clone(), world.clock.clone());
    let drive = async |run: &Run| {
        let handle = submit(run, Calling, "p").await?;
        run.settle().await;
        run.pass(Duration::from_secs(3)).await;
        run.settle().await;
        assert_eq!(
            said.all(),
            ["call dropped"],
            "its future is dropped when the time is up"
        );
        assert_eq!(run.wait(handle.outcome()).await??, "done");
        let history = run.executor.history(handle.id()).await?;
        let [first, second] = &history[..] else {
            return Err(format!("{history:?}").into());
        };
        assert_eq!(
            (first.ending, first.error.as_deref(), first.ended),
            (Ending::Retry, Some("timed out after 3 s"), Timestamp(3_000_000))
        );
        assert_eq!(second.begun, Timestamp(4_000_000), "after the backoff");
        assert_eq!(run.now(), Timestamp(14_000_000));
        Ok(())
    };
    let register = |builder: Builder| builder.register::<Calling>(env);
    world.run(FaultPlan::none(), register, drive)?.done()?;
    assert_eq!(said.all(), ["call dropped", "answered", "call dropped"]);
    Ok(())
}

/// What a call said, outside the engine.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    fn say(&self, text: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Says that it was dropped.
struct Dropped(Said, &'static str);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.say(format!("{} dropped", self.1));
    }
}

/// Its first attempt and its first undo hang; both have limits.
#[derive(Serialize, Deserialize)]
struct Hanging {
    fails: bool,
    left: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    Ask,
    Decide,
}

impl Procedure for Hanging {
    const KIND: &'static str = "hanging";
    type Stage = Stage;
    type Env = Said;
    type Output = u32;

    fn first(&self) -> Stage {
        Stage::Ask
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Ask => {
                // What it leaves when it is cut off must not be seen.
                self.left += 1;
                cx.put("rows", "asked", &self.left)?;
                if cx.attempt() == 1 {
                    let _dropped = Dropped(cx.env().clone(), "Ask");
                    pending::<()>().await;
                }
                Ok(Step::Next(Stage::Decide))
            }
            Stage::Decide if self.fails => Err(StageError::fail("no")),
            Stage::Decide => Ok(Step::Done(self.left)),
        }
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        if matches!(stage, Stage::Ask) && cx.attempt() == 1 {
            let _dropped = Dropped(cx.env().clone(), "undo of Ask");
            pending::<()>().await;
        }
        Ok(())
    }

    fn stage_timeout(&self, stage: &Stage) -> Option<Duration> {
        match stage {
            Stage::Ask => Some(Duration::from_millis(1_500)),
            Stage::Decide => None,
        }
    }

    fn undo_timeout(&self, _: &Stage) -> Option<Duration> {
        Some(Duration::from_secs(4))
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(2)
    }
}

fn hanging(said: &Said, builder: Builder) -> Builder {
    builder.register::<Hanging>(said.clone())
}

#[test]
fn a_stage_is_dropped_when_its_time_is_up_and_tried_again() -> Tested {
    let said = Said::default();
    let drive = async |run: &Run| {
        let handle = submit(run, Hanging { fails: false, left: 0 }, "p").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 1, "the first left nothing");
        let history = run.executor.history(handle.id()).await?;
        let told: Vec<_> = history
            .iter()
            .map(|entry| (entry.ending, entry.error.as_deref()))
            .collect();
        let expected = [
            (
                Ending::Retry,
                Some(
                    "timed out after 1.5 s, the limit of this stage (`stage_timeout`); raise it if the stage needs longer",
                ),
            ),
            (Ending::Next, None),
            (Ending::Done, None),
        ];
        assert_eq!(told, expected);
        assert_eq!(run.now(), Timestamp(2_500_000), "its limit, and one backoff");
        Ok(())
    };
    let world = World::new();
    world
        .run(FaultPlan::none(), |builder| hanging(&said, builder), drive)?
        .done()?;
    assert_eq!(said.all(), ["Ask dropped"]);
    Ok(())
}

#[test]
fn an_undo_is_dropped_when_its_time_is_up_and_tried_again() -> Tested {
    let said = Said::default();
    let drive = async |run: &Run| {
        let handle = submit(run, Hanging { fails: true, left: 0 }, "p").await?;
        run.wait(handle.outcome()).await?.err().ok_or("it ended well")?;
        let history = run.executor.history(handle.id()).await?;
        let failed = history.iter().find(|entry| entry.ending == Ending::UndoFailed);
        let text = failed.and_then(|entry| entry.error.as_deref());
        assert_eq!(
            text,
            Some("timed out after 4 s, the limit of this undo (`undo_timeout`); raise it if the undo needs longer")
        );
        assert_eq!(run.now(), Timestamp(2_500_000 + 5_000_000));
        Ok(())
    };
    let world = World::new();
    world
        .run(FaultPlan::none(), |builder| hanging(&said, builder), drive)?
        .done()?;
    assert_eq!(said.all(), ["Ask dropped", "undo of Ask dropped"]);
    Ok(())
}

#[test]
fn a_step_of_a_sequence_has_its_time() -> Tested {
    let steps = || {
        Steps::new()
            .step("ask", async |cx| {
                if cx.attempt() == 1 {
                    pending::<()>().await;
                }
                Ok(())
            })
            .timeout("ask", Duration::from_secs(3))
            .undo("ask", async |cx| {
                if cx.attempt() == 1 {
                    pending::<()>().await;
                }
                Ok(())
            })
            .undo_timeout("ask", Duration::from_secs(2))
            .step("fail", async |_| Err(StageError::fail("no")))
    };
    let drive = async |run: &Run| {
        let handle = submit(run, Sequence::new(["ask", "fail"]), "p").await?;
        run.wait(handle.outcome()).await?.err().ok_or("it ended well")?;
        let history = run.executor.history(handle.id()).await?;
        let errors: Vec<&str> = history.iter().filter_map(|entry| entry.error.as_deref()).collect();
        let step = "timed out after 3 s, the limit of the step (`Steps::timeout`); raise it if the step needs longer";
        let undo =
            "timed out after 2 s, the limit of the step (`Steps::undo_timeout`); raise it if the step needs longer";
        assert_eq!(errors, [step, "no", undo]);
        assert_eq!(run.now(), Timestamp(7_000_000));
        Ok(())
    };
    let register = |builder: Builder| builder.register::<Sequence>(steps());
    World::new().run(FaultPlan::none(), register, drive)?.done()
}

/// Ends with the bound of its own value.
#[derive(Serialize, Deserialize)]
struct Bound;

impl Procedure for Bound {
    const KIND: &'static str = "bound";
    type Stage = ();
    type Env = ();
    type Output = usize;

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(cx.max_payload()))
    }
}

#[test]
fn a_stage_is_told_the_bound_of_values() -> Tested {
    let ends = async |run: &Run| end(run, Bound, "p").await;
    let plain = |builder: Builder| builder.register::<Bound>(());
    let bounded = |builder: Builder| plain(builder).max_payload(4_096);
    let by_default = World::new().run(FaultPlan::none(), plain, ends)?.done()??;
    let told = World::new().run(FaultPlan::none(), bounded, ends)?.done()??;
    assert_eq!((by_default, told), (1 << 20, 4_096));
    Ok(())
}
