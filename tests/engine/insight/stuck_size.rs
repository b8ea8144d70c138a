//! What has grown large, takes longer than it usually does, or has no room left: told before it
//! is too late, with what made it so, and no more once that is gone.

use std::future::IntoFuture;
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use procession::health::{Rule, Thresholds};
use procession::provider::DiskRoom;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Children, Handle, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::{at, the_verdict, told};
use super::stuck_crashed::follow;
use crate::support::{Act, Lab, Planned, Tested, enumerate, kinds, plan};

const BOUND: usize = 2_000;

/// Its value is as large as its stages say, one after the other; it sleeps for a second after each.
#[derive(Clone, Serialize, Deserialize)]
struct Bulky {
    sizes: Vec<usize>,
    value: String,
}

impl Bulky {
    fn new(born: usize, sizes: &[usize]) -> Self {
        Self {
            sizes: sizes.to_vec(),
            value: "x".repeat(born),
        }
    }
}

impl Procedure for Bulky {
    const KIND: &'static str = "bulky";
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let Some(size) = self.sizes.get(stage as usize - 1) else {
            return Ok(Step::Done(()));
        };
        self.value = "x".repeat(*size);
        Ok(Step::Sleep {
            until: cx.now().after(Duration::from_secs(1)),
            then: stage + 1,
        })
    }
}

/// Runs until the lab opens the gate; nobody says how long that is expected to take.
#[derive(Clone, Serialize, Deserialize)]
struct Paced(String);

impl Procedure for Paced {
    const KIND: &'static str = "paced";
    type Stage = String;
    type Env = Lab;
    type Output = ();

    fn first(&self) -> String {
        "Copy".to_owned()
    }

    async fn execute(&mut self, _: String, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.env().gate(&self.0).await;
        Ok(Step::Done(()))
    }
}

/// Waits for an event, beside as many as it says, which do the same.
#[derive(Clone, Serialize, Deserialize)]
struct Wide(usize);

impl Procedure for Wide {
    const KIND: &'static str = "wide";
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if self.0 > 0 {
            let children = Children::of(&vec![Self(0); self.0])?;
            return Ok(Step::Spawn { children, then: 2 });
        }
        if stage == 2 {
            return Ok(Step::Done(()));
        }
        Ok(Step::Wait {
            event: "go".into(),
            timeout: None,
            then: 2,
        })
    }
}

fn set_up(lab: &Lab, builder: Builder, thresholds: Thresholds) -> Builder {
    kinds(lab, builder)
        .register::<Bulky>(())
        .register::<Paced>(lab.clone())
        .register::<Wide>(())
        .max_payload(BOUND)
        .thresholds(thresholds)
}

fn live(thresholds: Thresholds, drive: impl AsyncFnOnce(&Run, &Lab) -> Tested) -> Tested {
    let lab = Lab::default();
    World::new()
        .run(
            FaultPlan::none(),
            |builder| set_up(&lab, builder, thresholds),
            async |run| drive(run, &lab).await,
        )?
        .done()
}

async fn submit<P: Procedure>(run: &Run, procedure: P) -> Result<Handle<P>, Trouble> {
    let handle = run.wait(run.executor.submit(procedure).into_future()).await??;
    run.settle().await;
    Ok(handle)
}

#[test]
fn e_115_a_payload_that_has_grown_names_the_stage() -> Tested {
    live(Thresholds::default(), async |run, _| {
        let bulky = submit(run, Bulky::new(10, &[20, 1_200, 1_100, 900])).await?;
        assert_eq!(told(run).await?, []);
        run.pass(Duration::from_secs(1)).await;
        let verdict = the_verdict(run).await?;
        assert_eq!(
            (verdict.rule, verdict.procedure, verdict.since),
            (Rule::Size, Some(bulky.id()), at(1))
        );
        assert_eq!(verdict.fact("what"), Some("payload"));
        assert_eq!(verdict.fact("bound"), Some("2000"));
        assert_eq!(
            (verdict.fact("stage"), verdict.fact("grown_by")),
            (Some("3"), Some("2"))
        );
        let size: usize = verdict.fact("size").unwrap_or_default().parse()?;
        assert!((1_200..1_250).contains(&size), "{size}");
        // It has shrunk, and is large all the same: the same stage made it so.
        run.pass(Duration::from_secs(1)).await;
        let verdict = the_verdict(run).await?;
        assert_eq!(
            (verdict.fact("stage"), verdict.fact("grown_by")),
            (Some("4"), Some("2"))
        );
        assert_eq!(verdict.since, at(1), "it is the same verdict");
        run.pass(Duration::from_secs(1)).await;
        assert_eq!(told(run).await?, []);
        run.wait(bulky.outcome()).await??;
        Ok(())
    })
}

#[test]
fn e_115_a_payload_that_was_large_from_the_beginning() -> Tested {
    live(Thresholds::default(), async |run, lab| {
        run.executor
            .pause(
                procession::operate::PauseScope::All,
                procession::operate::OperatorRequest::new("the test", "to look at it"),
            )
            .await?;
        let bulky = submit(run, Bulky::new(1_500, &[])).await?;
        let verdict = the_verdict(run).await?;
        assert_eq!((verdict.rule, verdict.procedure), (Rule::Size, Some(bulky.id())));
        assert_eq!(
            (verdict.fact("what"), verdict.fact("grown_by")),
            (Some("payload"), None)
        );
        assert!(
            verdict.text.contains("it was submitted with this size"),
            "{}",
            verdict.text
        );
        assert_eq!(lab.line(), "");
        Ok(())
    })
}

#[test]
fn e_115_a_large_payload_is_told_of_however_it_crashes() -> Tested {
    let sizes = [1_200, 900];
    let drive = async |_: &Lab, run: &Run| {
        let bulky = run
            .executor
            .submit(Bulky::new(10, &sizes))
            .key("k")
            .into_future()
            .await?;
        let large = |sleeps: usize| sleeps > 0 && sizes.get(sleeps - 1).is_some_and(|size| *size > 1_000);
        follow(run, bulky.id(), |_, sleeps| large(sleeps).then_some(Rule::Size)).await
    };
    let set_up = |lab: &Lab, builder: Builder| set_up(lab, builder, Thresholds::default());
    let compare = |_: &Lab, _: &Lab, _: usize| Ok(());
    // The submission; two stages that sleep, two wakes, the end.
    assert_eq!(enumerate(Lab::default, set_up, drive, &[], compare)?.commits, 6);
    Ok(())
}

#[test]
fn e_115_a_history_that_grows_and_grows() -> Tested {
    let thresholds = Thresholds::default().stages(3);
    live(thresholds, async |run, _| {
        let bulky = submit(run, Bulky::new(1, &[1; 4])).await?;
        run.pass(Duration::from_secs(1)).await;
        assert_eq!(told(run).await?, []);
        run.pass(Duration::from_secs(1)).await;
        let verdict = the_verdict(run).await?;
        assert_eq!((verdict.rule, verdict.procedure), (Rule::Size, Some(bulky.id())));
        let facts = ["what", "size", "bound", "stage"].map(|name| verdict.fact(name));
        assert_eq!(facts, [Some("history"), Some("3"), None, Some("4")]);
        run.pass(Duration::from_secs(2)).await;
        run.wait(bulky.outcome()).await??;
        assert_eq!(told(run).await?, []);
        Ok(())
    })
}

#[test]
fn e_115_signals_that_nobody_takes() -> Tested {
    let thresholds = Thresholds::default().size_percent(1);
    live(thresholds, async |run, _| {
        let waits = plan("w", [Act::Wait("go".to_owned(), None), Act::Done(1)]);
        let waits = submit(run, Planned(waits)).await?;
        for number in 0..99 {
            run.executor.signal(waits.id(), "other", &number).await?;
        }
        assert_eq!(told(run).await?, []);
        run.executor.signal(waits.id(), "other", &99).await?;
        let verdict = the_verdict(run).await?;
        assert_eq!((verdict.rule, verdict.procedure), (Rule::Size, Some(waits.id())));
        let facts = ["what", "size", "bound"].map(|name| verdict.fact(name));
        assert_eq!(facts, [Some("signals"), Some("100"), Some("10000")]);
        // One that is taken is remembered for its key, and takes no room.
        run.executor.signal(waits.id(), "go", &0).key("k").await?;
        run.wait(waits.outcome()).await??;
        assert_eq!(told(run).await?, []);
        let waits = plan(
            "v",
            [Act::Wait("go".to_owned(), None), Act::Wait("never".to_owned(), None)],
        );
        let waits = submit(run, Planned(waits)).await?;
        for number in 0..99 {
            run.executor.signal(waits.id(), "other", &number).await?;
        }
        run.executor.signal(waits.id(), "go", &0).key("k").await?;
        assert_eq!(told(run).await?, []);
        run.executor.signal(waits.id(), "other", &99).await?;
        let verdict = the_verdict(run).await?;
        let facts = ["what", "size", "taken"].map(|name| verdict.fact(name));
        assert_eq!(facts, [Some("signals"), Some("100"), Some("1")]);
        Ok(())
    })
}

#[test]
fn e_115_a_family_that_is_large_names_whoever_has_the_children() -> Tested {
    let thresholds = Thresholds::default().size_percent(0);
    live(thresholds, async |run, _| {
        let wide = submit(run, Wide(30)).await?;
        let verdict = the_verdict(run).await?;
        assert_eq!(
            (verdict.rule, verdict.procedure),
            (Rule::Size, Some(ProcedureId::root(wide.id().family)))
        );
        let facts = ["what", "size", "bound", "children"].map(|name| verdict.fact(name));
        assert_eq!(facts, [Some("members"), Some("31"), Some("1000000"), Some("30")]);
        Ok(())
    })
}

#[test]
fn e_115_a_stage_that_takes_longer_than_it_usually_does() -> Tested {
    live(Thresholds::default(), async |run, lab| {
        for _ in 0..99 {
            submit(run, Paced("usual".to_owned())).await?;
        }
        run.pass(Duration::from_secs(2)).await;
        lab.open("usual");
        run.settle().await;
        // Of 99 nobody can say what 99 of 100 take.
        let first = submit(run, Paced("first".to_owned())).await?;
        run.pass(Duration::from_hours(1)).await;
        assert_eq!(told(run).await?, []);
        lab.open("first");
        run.wait(first.outcome()).await??;

        let second = submit(run, Paced("second".to_owned())).await?;
        run.pass(Duration::from_secs(8)).await;
        assert_eq!(told(run).await?, []);
        run.pass(Duration::from_millis(1)).await;
        let verdict = the_verdict(run).await?;
        assert_eq!(
            (verdict.rule, verdict.procedure, verdict.since),
            (Rule::Overrun, Some(second.id()), at(3_602))
        );
        let facts = ["expected", "usual", "time"].map(|name| verdict.fact(name));
        assert_eq!(facts, [None, Some("8s"), Some("8.001s")]);
        lab.open("second");
        run.wait(second.outcome()).await??;
        assert_eq!(told(run).await?, []);
        Ok(())
    })
}

#[test]
fn e_115_a_disk_that_is_nearly_full_is_told_of_before_it_is() -> Tested {
    const GIB: u64 = 1 << 30;
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let shown = || {
        let all = snapshotter.snapshot().into_vec();
        let free = all
            .into_iter()
            .find(|(key, ..)| key.key().name() == "procession_journal_disk_free_bytes");
        match free {
            Some((.., DebugValue::Gauge(value))) => value.into_inner(),
            _ => f64::NAN,
        }
    };
    metrics::with_local_recorder(&recorder, || {
        live(Thresholds::default(), async |run, _| {
            let free = async |free: u64, whole: u64| {
                run.store.set_disk_room(DiskRoom { free, whole });
                // One health check measures, the next one tells.
                told(run).await?;
                run.settle().await;
                told(run).await
            };
            assert_eq!(free(GIB, 100 * GIB).await?, []);
            assert_eq!(free(GIB - 1, 100 * GIB).await?, [(Rule::DiskNearlyFull, None)]);
            let verdict = the_verdict(run).await?;
            let facts = ["free", "least", "whole"].map(|name| verdict.fact(name).map(str::to_owned));
            assert_eq!(facts, [GIB - 1, GIB, 100 * GIB].map(|bytes| Some(bytes.to_string())));
            let room = run.executor.snapshot().await?.disk_room;
            assert_eq!(room.map(|room| room.free), Some(GIB - 1));
            // A tenth of a small disk will do.
            assert_eq!(free(GIB / 10, GIB).await?, []);
            assert_eq!(free(GIB / 10 - 1, GIB).await?, [(Rule::DiskNearlyFull, None)]);
            assert_eq!(free(GIB, GIB).await?, []);
            assert_eq!(shown(), GIB as f64);
            Ok(())
        })
    })
}
