//! A sender's key stands for one signal, and what was consumed takes no room from what waits.

use procession::errors::AskError;
use procession::messages::{Broadcast, SendSignal};
use procession::operate::{OperatorRequest, PauseScope};
use procession::testkit::{Run, World};
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::rollback::helper::{commits, submit};
use crate::support::{Act, Lab, Planned, Tested, kinds, live, live_in, plan};

fn is_conflict<T: std::fmt::Debug>(answer: Result<T, AskError>) {
    let text = answer.as_ref().err().map(ToString::to_string).unwrap_or_default();
    assert!(text.contains("\"k\" was used for another"), "{answer:?}");
}

fn is_bad_key<T: std::fmt::Debug>(answer: Result<T, AskError>) {
    let text = answer.as_ref().err().map(ToString::to_string).unwrap_or_default();
    assert!(text.contains("a key must have 1 to"), "{answer:?}");
}

fn ann(key: &str) -> OperatorRequest {
    OperatorRequest::new("ann", "look").key(key)
}

#[test]
fn a_key_stands_for_one_signal_over_restarts_too() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let other_signals = async |run: &Run| {
        let id = submit(
            run,
            Planned(plan("a", [Act::Wait("never".into(), None), Act::Done(1)])),
            "a",
        )
        .await?
        .id();
        run.settle().await;
        assert_eq!(run.executor.signal(id, "go", &1_i64).key("k").await?, 1);
        let before = commits(run).await?;
        assert_eq!(run.executor.signal(id, "go", &1_i64).key("k").await?, 1);
        is_conflict(run.executor.signal(id, "stop", &1_i64).key("k").await);
        is_conflict(run.executor.signal(id, "go", &2_i64).key("k").await);
        let message = SendSignal::new(id, "stop", &1_i64)?.key("k");
        is_conflict(run.executor.supervisor().send(message).await?);
        is_conflict(
            run.executor
                .operate(procession::messages::Operate::signal(id, "stop", &1_i64, ann("k"))?)
                .await,
        );
        assert_eq!(commits(run).await?, before, "nothing of them is stored");
        assert_eq!(run.executor.signal(id, "stop", &1_i64).key("k2").await?, 2);
        Ok(())
    };
    live_in(&world, &lab, other_signals)?;
    live_in(&world, &lab, async |run| {
        let id = procession::ProcedureId::root(1);
        assert_eq!(run.executor.signal(id, "go", &1_i64).key("k").await?, 1);
        is_conflict(run.executor.signal(id, "stop", &1_i64).key("k").await);
        is_conflict(run.executor.signal(id, "go", &2_i64).key("k").await);
        Ok(())
    })
}

#[test]
fn a_key_stands_for_one_signal_after_it_was_consumed() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let acts = [
            Act::Wait("go".into(), None),
            Act::Wait("never".into(), None),
            Act::Done(1),
        ];
        let id = submit(run, Planned(plan("a", acts)), "a").await?.id();
        run.settle().await;
        assert_eq!(run.executor.signal(id, "go", &1_i64).key("k").await?, 1);
        run.settle().await;
        assert!(lab.has("a2"), "it was consumed");
        assert_eq!(run.executor.signal(id, "go", &1_i64).key("k").await?, 1);
        is_conflict(run.executor.signal(id, "go", &2_i64).key("k").await);
        is_conflict(run.executor.signal(id, "stop", &1_i64).key("k").await);
        Ok(())
    })
}

#[test]
fn a_request_with_a_payload_is_repeated_with_the_same() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let id = submit(
            run,
            Planned(plan("a", [Act::Wait("never".into(), None), Act::Done(1)])),
            "a",
        )
        .await?
        .id();
        run.settle().await;
        let first = run
            .executor
            .operate(procession::messages::Operate::signal(id, "go", &1_i64, ann("k"))?)
            .await?;
        assert_eq!(
            run.executor
                .operate(procession::messages::Operate::signal(id, "go", &1_i64, ann("k"))?)
                .await?,
            first
        );
        // As long, and another one.
        is_conflict(
            run.executor
                .operate(procession::messages::Operate::signal(id, "go", &2_i64, ann("k"))?)
                .await,
        );
        let broadcast = |payload: i64| Broadcast::new("go", &payload).map(|message| message.key("b"));
        let send = async |message| run.executor.supervisor().send(message).await;
        send(broadcast(1)?).await??;
        send(broadcast(1)?).await??;
        assert!(send(broadcast(2)?).await?.is_err());
        Ok(())
    })
}

#[test]
fn an_empty_key_is_refused() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let id = submit(
            run,
            Planned(plan("a", [Act::Wait("never".into(), None), Act::Done(1)])),
            "a",
        )
        .await?
        .id();
        run.settle().await;
        let before = commits(run).await?;
        is_bad_key(run.executor.signal(id, "go", &1_i64).key("").await);
        is_bad_key(
            run.executor
                .operate(procession::messages::Operate::signal(id, "go", &1_i64, ann(""))?)
                .await,
        );
        is_bad_key(run.executor.pause(PauseScope::One(id), ann("")).await);
        is_bad_key(
            run.executor
                .supervisor()
                .send(Broadcast::new("go", &1_i64)?.key(""))
                .await?,
        );
        assert_eq!(commits(run).await?, before);
        Ok(())
    })
}

/// Listens for beats for ever.
#[derive(Serialize, Deserialize)]
struct Lease;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Beat;

impl Procedure for Lease {
    const KIND: &'static str = "lease";
    type Stage = Beat;
    type Env = ();
    type Output = ();

    fn first(&self) -> Beat {
        Beat
    }

    async fn execute(&mut self, _: Beat, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Wait {
            event: "beat".to_owned(),
            timeout: None,
            then: Beat,
        })
    }

    async fn rollback(&mut self, _: Beat, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        Ok(())
    }
}

#[test]
fn keyed_signals_that_are_consumed_at_once_go_on_for_ever() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder| kinds(&lab, builder).register::<Lease>(()).max_signals(10);
    for life in 0..2 {
        let ended = world.run(procession::testkit::FaultPlan::none(), set_up, async |run| {
            let handle = submit(run, Lease, "lease").await?;
            run.settle().await;
            for beat in 0..25 {
                let key = format!("{life} {beat}");
                let number = run
                    .wait(run.executor.signal(handle.id(), "beat", &()).key(&key))
                    .await??;
                assert_eq!(number, life * 25 + beat + 1);
                run.settle().await;
            }
            Ok(())
        })?;
        ended.done()?;
    }
    Ok(())
}
