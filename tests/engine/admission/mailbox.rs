//! The mailbox of a procedure: bounds per kind, many signals at once, the last of a name, signals from stages.

use procession::messages::SendSignal;
use procession::testkit::{FaultPlan, Run, Trouble, World, enumerate};
use procession::{
    AskError, Builder, OperatorRequest, Pause, Procedure, ProcedureId, RetryPolicy, StageContext, StageError, Step,
};
use serde::{Deserialize, Serialize};

use crate::rollback::helper::{commits, rolled_back, submit};
use crate::support::{Lab, Tested, kinds};

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
    run.executor.pause(Pause::One(id), ann()).await?;
    Ok(id)
}

/// Repeats, conflicts and one signal too many: no commit for any of them.
async fn is_full(run: &Run, id: ProcedureId) -> Tested {
    let before = commits(run).await?;
    assert_eq!(run.executor.signal(id, "go", &5_u32, Some("k5")).await?, 5);
    let other = run.executor.signal(id, "go", &6_u32, Some("k5")).await;
    assert!(
        matches!(&other, Err(AskError::SignalConflict { number: 5, .. })),
        "{other:?}"
    );
    let full = run.executor.signal(id, "go", &101_u32, Some("k101")).await;
    assert!(
        matches!(&full, Err(AskError::NotNow(why)) if why.starts_with("100 signals wait")),
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
            assert_eq!(run.executor.signal(id, "go", &number, Some(&key)).await?, number);
        }
        is_full(run, id).await
    })?;
    in_life(&world, &lab, async |run| {
        let id = ProcedureId::root(1);
        is_full(run, id).await?;
        run.executor.resume(Pause::One(id), ann()).await?;
        run.settle().await;
        let taken: Vec<String> = (1..=10).map(|number| number.to_string()).collect();
        assert_eq!(lab.noted(), taken);
        let before = commits(run).await?;
        assert_eq!(run.executor.signal(id, "go", &10_u32, Some("k10")).await?, 10);
        assert_eq!(commits(run).await?, before);
        assert_eq!(run.executor.signal(id, "go", &7_u32, Some("k7")).await?, 101);
        assert_eq!(commits(run).await?, before + 1, "its key was forgotten");
        Ok(())
    })?;
    in_life(&world, &lab, async |run| {
        let id = ProcedureId::root(1);
        let before = commits(run).await?;
        assert_eq!(run.executor.signal(id, "go", &10_u32, Some("k10")).await?, 10);
        assert_eq!(run.executor.signal(id, "go", &7_u32, Some("k7")).await?, 101);
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
    let closed = run.executor.signal(id, "go", &9_u32, None).await;
    assert!(
        matches!(&closed, Err(AskError::Closed { name, .. }) if name == "go"),
        "{closed:?}"
    );
    assert_eq!(commits(run).await?, before);
    assert_eq!(run.executor.mailbox(id).await?.closed, ["go"]);
    assert_eq!(run.executor.signal(id, "other", &9_u32, None).await?, other);
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
        assert!(matches!(&over, Err(AskError::NotNow(_))), "{over:?}");
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
        run.executor.resume(Pause::One(id), ann()).await?;
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
