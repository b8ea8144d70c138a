//! The mailbox of a procedure: bounds per kind, many signals at once, the last of a name, signals from stages.

use std::future::IntoFuture;
use std::time::Duration;

use procession::errors::{AskError, NotNow};
use procession::health::Rule;
use procession::messages::SendSignal;
use procession::operate::{OperatorRequest, PauseScope};
use procession::procedure::{HistoryDetail, RetryPolicy};
use procession::status::ProcedureState;
use procession::testkit::{Check, FaultPlan, Run, Trouble, World};
use procession::{Builder, Executor, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::rollback::helper::{commits, rolled_back, submit};
use crate::support::{Lab, Tested, enumerate, kinds};

/// Takes this many signals and notes each; then ends, or waits for a signal that never comes.
#[derive(Serialize, Deserialize)]
struct Taker {
    takes: u32,
    ends: bool,
}

impl Procedure for Taker {
    const KIND: &'static str = "taker";
    const SIGNALS: Option<usize> = Some(100);
    const SIGNAL_KEYS: usize = 3;
    type Stage = u32;
    type Env = Lab;
    type Output = ();

    fn first(&self) -> u32 {
        0
    }

    async fn execute(&mut self, taken: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if let Some(signal) = cx.signal() {
            let last = if signal.last { ", the last" } else { "" };
            let payload: u32 = signal.payload()?;
            cx.env().note(format!("{payload}{last}"));
        }
        if taken == self.takes && self.ends {
            return Ok(Step::Done(()));
        }
        let event = if taken == self.takes { "never" } else { "go" };
        Ok(Step::Wait {
            event: event.to_owned(),
            timeout: None,
            then: taken + 1,
        })
    }
}

/// Sends two signals in its first stage, which fails once first if it is told to.
#[derive(Serialize, Deserialize)]
struct Sender {
    to: ProcedureId,
    retries: bool,
}

impl Procedure for Sender {
    const KIND: &'static str = "sender";
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        0
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if stage > 0 {
            return Ok(Step::Done(()));
        }
        cx.put("rows", "sent", &1_i64)?;
        cx.send_signal(self.to, "go", &1_u32)?;
        cx.send_signal_keyed(self.to, "go", &2_u32, "second")?;
        cx.send_signal_keyed(self.to, "go", &2_u32, "second")?;
        if self.retries && cx.attempt() == 1 {
            return Err(StageError::Retry("not yet".to_owned()));
        }
        Ok(Step::Next(1))
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(2)
    }
}

fn set_up(lab: &Lab, builder: Builder) -> Builder {
    kinds(lab, builder)
        .register::<Taker>(lab.clone())
        .register::<Sender>(())
}

fn in_life(world: &World, lab: &Lab, drive: impl AsyncFnOnce(&Run) -> Tested) -> Tested {
    world
        .run(FaultPlan::none(), |builder| set_up(lab, builder), drive)?
        .done()
}

fn ann() -> OperatorRequest {
    OperatorRequest::new("ann", "look")
}

async fn paused(run: &Run, takes: u32) -> Result<ProcedureId, Trouble> {
    let id = submit(run, Taker { takes, ends: false }, "taker").await?.id();
    run.settle().await;
    run.executor.pause(PauseScope::One(id), ann()).await?;
    Ok(id)
}

/// Repeats, conflicts and one signal too many: no commit for any of them.
async fn is_full(run: &Run, id: ProcedureId) -> Tested {
    let before = commits(run).await?;
    assert_eq!(run.executor.signal(id, "go", &5_u32).key("k5").await?, 5);
    let other = run.executor.signal(id, "go", &6_u32).key("k5").await;
    assert!(
        matches!(&other, Err(AskError::SignalConflict { number: 5, .. })),
        "{other:?}"
    );
    let full = run.executor.signal(id, "go", &101_u32).key("k101").await;
    assert!(
        matches!(&full, Err(AskError::NotNow { kind: NotNow::Full, text: why }) if why.starts_with("100 signals wait")),
        "{full:?}"
    );
    assert_eq!(commits(run).await?, before);
    let mailbox = run.executor.mailbox(id).await?;
    assert_eq!(mailbox.kept, [("go".to_owned(), 100)].into());
    assert!(mailbox.oldest.is_some() && mailbox.closed.is_empty());
    Ok(())
}

#[test]
fn f_015_keys_and_bounds_of_a_mailbox() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    in_life(&world, &lab, async |run| {
        let id = paused(run, 10).await?;
        for number in 1..=100_u32 {
            let key = format!("k{number}");
            assert_eq!(run.executor.signal(id, "go", &number).key(&key).await?, number);
        }
        is_full(run, id).await
    })?;
    in_life(&world, &lab, async |run| {
        let id = ProcedureId::root(1);
        is_full(run, id).await?;
        run.executor.resume(PauseScope::One(id), ann()).await?;
        run.settle().await;
        let taken: Vec<String> = (1..=10).map(|number| number.to_string()).collect();
        assert_eq!(lab.noted(), taken);
        let before = commits(run).await?;
        assert_eq!(run.executor.signal(id, "go", &10_u32).key("k10").await?, 10);
        assert_eq!(commits(run).await?, before);
        assert_eq!(run.executor.signal(id, "go", &7_u32).key("k7").await?, 101);
        assert_eq!(commits(run).await?, before + 1, "its key was forgotten");
        Ok(())
    })?;
    in_life(&world, &lab, async |run| {
        let id = ProcedureId::root(1);
        let before = commits(run).await?;
        assert_eq!(run.executor.signal(id, "go", &10_u32).key("k10").await?, 10);
        assert_eq!(run.executor.signal(id, "go", &7_u32).key("k7").await?, 101);
        assert_eq!(commits(run).await?, before);
        assert_eq!(run.executor.mailbox(id).await?.kept, [("go".to_owned(), 91)].into());
        Ok(())
    })
}

fn go(to: ProcedureId, payload: u32) -> Result<SendSignal, Trouble> {
    Ok(SendSignal::new(to, "go", &payload)?)
}

async fn is_closed(run: &Run, id: ProcedureId, other: u32) -> Tested {
    let before = commits(run).await?;
    let closed = run.executor.signal(id, "go", &9_u32).await;
    assert!(
        matches!(&closed, Err(AskError::Closed { name, .. }) if name == "go"),
        "{closed:?}"
    );
    assert_eq!(commits(run).await?, before);
    assert_eq!(run.executor.mailbox(id).await?.closed, ["go"]);
    assert_eq!(run.executor.signal(id, "other", &9_u32).await?, other);
    Ok(())
}

#[test]
fn f_016_many_at_once_and_the_last() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    in_life(&world, &lab, async |run| {
        let id = paused(run, 100).await?;
        let ended = submit(run, Taker { takes: 0, ends: true }, "ended").await?;
        run.wait(ended.outcome()).await??;
        let before = commits(run).await?;
        let many = (0..99).map(|number| go(id, number)).collect::<Result<Vec<_>, _>>()?;
        let numbers: Vec<u32> = (1..=99).collect();
        assert_eq!(run.executor.signal_all(many).await?, numbers);
        assert_eq!(commits(run).await?, before + 1);
        let refused = run.executor.signal_all(vec![go(id, 7)?, go(ended.id(), 7)?]).await;
        assert!(
            matches!(&refused, Err(AskError::Finished { id, .. }) if *id == ended.id()),
            "{refused:?}"
        );
        let over = run.executor.signal_all(vec![go(id, 7)?, go(id, 8)?]).await;
        assert!(matches!(&over, Err(AskError::NotNow { .. })), "{over:?}");
        let crowd = (0..10_001).map(|_| go(id, 7)).collect::<Result<Vec<_>, _>>()?;
        let crowd = run.executor.signal_all(crowd).await;
        assert!(
            matches!(
                &crowd,
                Err(AskError::BatchTooLarge {
                    size: 10_001,
                    limit: 10_000
                })
            ),
            "{crowd:?}"
        );
        assert_eq!(run.executor.signal_all(Vec::new()).await?, Vec::<u32>::new());
        assert_eq!(commits(run).await?, before + 1, "nothing of them is stored");
        assert_eq!(run.executor.mailbox(id).await?.kept, [("go".to_owned(), 99)].into());
        assert_eq!(run.executor.signal_all(vec![go(id, 99)?.last()]).await?, [100]);
        run.executor.resume(PauseScope::One(id), ann()).await?;
        run.settle().await;
        let taken = (0..99).map(|number| number.to_string());
        let taken: Vec<String> = taken.chain(["99, the last".to_owned()]).collect();
        assert_eq!(lab.noted(), taken);
        is_closed(run, id, 101).await
    })?;
    in_life(&world, &lab, async |run| {
        is_closed(run, ProcedureId::root(1), 102).await
    })
}

fn f_017(retries: bool, expected: u64) -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let taker = submit(run, Taker { takes: 2, ends: true }, "taker").await?;
        run.settle().await;
        let sender = Sender {
            to: taker.id(),
            retries,
        };
        let sender = submit(run, sender, "sender").await?;
        run.wait(sender.outcome()).await??;
        run.wait(taker.outcome()).await??;
        Ok(())
    };
    let check = |plain: &Lab, crashed: &Lab, _: usize| {
        assert_eq!(plain.noted(), ["1", "2"]);
        let mut noted = crashed.noted();
        noted.dedup();
        assert_eq!(noted, ["1", "2"], "each is taken once, whatever is called twice");
        Ok(())
    };
    let done = enumerate(Lab::default, set_up, drive, &["rows"], check)?;
    assert_eq!(done.commits, expected);
    Ok(())
}

#[test]
fn f_015_keys_and_bounds_hold_whatever_crashes() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let id = submit(run, Taker { takes: 10, ends: false }, "taker").await?.id();
        run.settle().await;
        run.executor.pause(PauseScope::One(id), ann().key("pause")).await?;
        // A client that comes back after the resumption finds some of its keys forgotten.
        if run.executor.status(id).await?.paused {
            let many = (1..=100).map(|number| Ok::<_, Trouble>(go(id, number)?.key(format!("k{number}"))));
            let numbers = run.executor.signal_all(many.collect::<Result<_, _>>()?).await?;
            assert_eq!(numbers, (1..=100).collect::<Vec<u32>>());
            is_full(run, id).await?;
        }
        run.executor.resume(PauseScope::One(id), ann().key("resume")).await?;
        run.settle().await;
        assert_eq!(run.executor.signal(id, "go", &10_u32).key("k10").await?, 10);
        assert_eq!(run.executor.signal(id, "go", &7_u32).key("k7").await?, 101);
        assert_eq!(run.executor.mailbox(id).await?.kept, [("go".to_owned(), 91)].into());
        Ok(())
    };
    let done = enumerate(Lab::default, set_up, drive, &[], takes_once)?;
    // Submit, its first stage, pause, signals, resume, ten stages, and the key that was forgotten.
    assert_eq!(done.commits, 16);
    Ok(())
}

/// Each signal is taken by the commit of one stage, whatever is called twice.
fn takes_once(plain: &Lab, crashed: &Lab, _: usize) -> Tested {
    let once = |lab: &Lab| {
        let mut noted = lab.noted();
        noted.dedup();
        noted
    };
    assert_eq!(plain.noted(), once(plain));
    assert_eq!(once(crashed), plain.noted());
    Ok(())
}

#[test]
fn f_016_many_at_once_and_the_last_whatever_crashes() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let id = submit(run, Taker { takes: 4, ends: false }, "taker").await?.id();
        let ended = submit(run, Taker { takes: 0, ends: true }, "ended").await?;
        run.wait(ended.outcome()).await??;
        run.settle().await;
        run.executor.pause(PauseScope::One(id), ann().key("pause")).await?;
        if run.executor.status(id).await?.paused {
            let keyed = |number: u32| Ok::<_, Trouble>(go(id, number)?.key(format!("k{number}")));
            let sent = vec![keyed(1)?, keyed(2)?, keyed(3)?];
            assert_eq!(run.executor.signal_all(sent).await?, [1, 2, 3]);
            let refused = run.executor.signal_all(vec![go(id, 7)?, go(ended.id(), 7)?]).await;
            assert!(refused.is_err());
            assert_eq!(run.executor.signal_all(vec![keyed(4)?.last()]).await?, [4]);
        }
        run.executor.resume(PauseScope::One(id), ann().key("resume")).await?;
        run.settle().await;
        let closed = run.executor.signal(id, "go", &9_u32).await;
        assert!(matches!(&closed, Err(AskError::Closed { .. })), "{closed:?}");
        assert_eq!(run.executor.signal(id, "other", &9_u32).key("other").await?, 5);
        let mailbox = run.executor.mailbox(id).await?;
        assert_eq!(mailbox.kept, [("other".to_owned(), 1)].into());
        assert_eq!(mailbox.closed, ["go"]);
        Ok(())
    };
    let check = |plain: &Lab, crashed: &Lab, crashes: usize| {
        assert_eq!(plain.noted(), ["1", "2", "3", "4, the last"]);
        takes_once(plain, crashed, crashes)
    };
    let done = enumerate(Lab::default, set_up, drive, &[], check)?;
    // Two submissions, two first stages, pause, two messages, resume, four stages, and the other signal.
    assert_eq!(done.commits, 13);
    Ok(())
}

#[test]
fn f_017_signals_from_a_stage_under_double_execution() -> Tested {
    for retries in [false, true] {
        let submits = async move |_: &Lab, run: &Run| {
            let taker = run.executor.submit(Taker { takes: 2, ends: true }).key("taker");
            let to = taker.into_future().await?.id();
            let sender = run.executor.submit(Sender { to, retries }).key("sender");
            Ok(sender.into_future().await?.id())
        };
        let check = Check::submitting(|| Ok(Lab::default()), set_up, submits);
        let check = check.afterwards(async |lab: &Lab, run: &Run, _| {
            // A crash may skip its number, so it is found by its key.
            let taker = run.executor.submit(Taker { takes: 2, ends: true }).key("taker");
            let id = taker.into_future().await?.id();
            assert_eq!(run.executor.status(id).await?.state, ProcedureState::Success);
            let mut noted = lab.noted();
            noted.dedup();
            assert_eq!(noted, ["1", "2"], "each was sent once");
            Ok(())
        });
        check.run_stages_twice()?;
        check.crash_at_every_commit()?;
    }
    Ok(())
}

#[test]
fn a_full_mailbox_takes_the_signal_that_its_owner_waits_for() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    in_life(&world, &lab, async |run| {
        let id = submit(run, Taker { takes: 0, ends: false }, "taker").await?.id();
        run.settle().await;
        let many = (1..=100).map(|number| go(id, number)).collect::<Result<Vec<_>, _>>()?;
        run.executor.signal_all(many).await?;
        let full = run.executor.signal(id, "go", &101_u32).await;
        assert!(matches!(&full, Err(AskError::NotNow { .. })), "{full:?}");
        Ok(())
    })?;
    in_life(&world, &lab, async |run| {
        let id = ProcedureId::root(1);
        assert_eq!(run.executor.signal(id, "never", &101_u32).await?, 101);
        run.settle().await;
        // It has taken that one, and takes one after the other of those that filled its mailbox.
        assert_eq!(lab.noted().first().map(String::as_str), Some("101"));
        Ok(())
    })
}

/// A client that does not look at `Signal::last` waits again, and nothing can come.
#[test]
fn a_wait_for_a_closed_event_is_told() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let is_told = async |run: &Run, id: ProcedureId| {
        let verdicts = run.executor.verdicts().await?;
        let [verdict] = verdicts.as_slice() else {
            return Err(format!("one verdict: {verdicts:?}").into());
        };
        assert_eq!((verdict.rule, verdict.procedure), (Rule::NoProgress, Some(id)));
        assert_eq!(verdict.fact("event"), Some("go"));
        assert!(
            verdict.text.contains("the last signal of it was sent"),
            "{}",
            verdict.text
        );
        Ok::<(), Trouble>(())
    };
    in_life(&world, &lab, async |run| {
        let id = submit(run, Taker { takes: 2, ends: true }, "taker").await?.id();
        run.settle().await;
        run.executor.signal_all(vec![go(id, 1)?.last()]).await?;
        run.settle().await;
        is_told(run, id).await
    })?;
    in_life(&world, &lab, async |run| {
        let id = ProcedureId::root(1);
        is_told(run, id).await?;
        assert_eq!(run.executor.broadcast("go", &2_u32).await?, 1);
        let outcome = run.wait(run.executor.outcome(id)).await??;
        assert_eq!(outcome.state, ProcedureState::Success);
        assert_eq!(run.executor.verdicts().await?, []);
        Ok(())
    })
}

/// How many keyed signals one procedure consumes; more with the environment variable `SIGNALS`, for measurements.
fn crowd() -> u32 {
    let asked = std::env::var("SIGNALS").ok().and_then(|count| count.parse().ok());
    asked.unwrap_or(3_000)
}

/// Signals that are sent at once.
const AT_ONCE: u32 = 1_000;

/// Consumes a number of signals, more than it may have: consumed signals do not count, and few keys are kept.
#[derive(Serialize, Deserialize)]
struct Consumer {
    left: u32,
}

impl Procedure for Consumer {
    const KIND: &'static str = "consumer";
    const SIGNALS: Option<usize> = Some(2 * AT_ONCE as usize);
    const ROLLBACK: bool = false;
    const HISTORY: HistoryDetail = HistoryDetail::Stack;
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if cx.signal().is_some() {
            self.left -= 1;
        }
        if self.left == 0 {
            return Ok(Step::Done(()));
        }
        Ok(Step::Wait {
            event: "go".to_owned(),
            timeout: None,
            then: (),
        })
    }
}

#[actix_rt::test]
async fn a_crowd_of_keyed_signals_goes_through_one_procedure() -> Tested {
    let (directory, all) = (tempfile::tempdir()?, crowd());
    let executor = Executor::builder(directory.path().join("journal"))
        .register::<Consumer>(())
        .start()
        .await?;
    let handle = executor.submit(Consumer { left: all }).await?;
    let id = handle.id();
    let mut sent = 0;
    while sent < all {
        let upto = all.min(sent + AT_ONCE);
        let many = (sent..upto).map(|number| Ok::<_, Trouble>(go(id, number)?.key(number.to_string())));
        match executor.signal_all(many.collect::<Result<_, _>>()?).await {
            Ok(numbers) => {
                assert_eq!(numbers.last(), Some(&upto));
                sent = upto;
            }
            // Only those that wait count; it comes back when some were consumed.
            Err(AskError::NotNow {
                kind: NotNow::Full,
                text: why,
            }) => {
                assert!(why.contains("signals wait"), "{why}");
                while executor.mailbox(id).await?.kept.values().sum::<u32>() > AT_ONCE {
                    actix_rt::task::yield_now().await;
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    handle.await?;
    let kept = executor.mailbox(id).await;
    assert!(matches!(kept, Err(AskError::Finished { .. })), "{kept:?}");
    let commits = executor.snapshot().await?.commits;
    assert!(commits <= u64::from(all) + u64::from(all / AT_ONCE) + 4, "{commits}");
    executor.drain(Duration::from_secs(60)).await?;
    Ok(())
}

#[test]
fn f_017_signals_from_a_stage() -> Tested {
    f_017(false, 7)
}

#[test]
fn f_017_signals_from_a_stage_that_is_tried_again() -> Tested {
    f_017(true, 9)
}

#[test]
fn f_017_a_signal_that_is_refused_fails_the_attempt() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    in_life(&world, &lab, async |run| {
        let ended = submit(run, Taker { takes: 0, ends: true }, "ended").await?;
        run.wait(ended.outcome()).await??;
        let sender = Sender {
            to: ended.id(),
            retries: false,
        };
        let sender = submit(run, sender, "sender").await?;
        let (cause, _) = rolled_back(run.wait(sender.outcome()).await?)?;
        assert_eq!(
            cause.text,
            format!(
                "its signal to {} was refused: {} has ended, or is not known",
                ended.id(),
                ended.id()
            )
        );
        let left: Option<i64> = run.executor.get("rows", "sent").await?;
        assert_eq!(left, None, "the attempt left nothing");
        Ok(())
    })
}
