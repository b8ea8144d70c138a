//! Reading a value from outside, and of a member of one's own family.

use std::time::Duration;

use procession::errors::{ProcedureError, ReadError, UpgradeError};
use procession::procedure::{JoinPolicy, Noop, Old, RetryPolicy};
use procession::testkit::{FaultPlan, Run, World};
use procession::{Builder, Children, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::submit;
use crate::rollback::helper::rolled_back;
use crate::support::{Lab, Tested, enumerate};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Does {
    Ends,
    Fails,
    Waits,
    Holds,
}

/// Runs two stages. The second may fail, wait, or be held open.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Counter {
    count: u32,
    does: Does,
}

impl Procedure for Counter {
    const KIND: &'static str = "counter";
    type Stage = u32;
    type Env = Lab;
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        self.count += 1;
        match (stage, self.does) {
            (1, _) => Ok(Step::Next(2)),
            (2, Does::Fails) => Err(StageError::fail("boom")),
            (2, Does::Waits) => Ok(Step::Wait {
                event: "go".to_owned(),
                timeout: None,
                then: 3,
            }),
            (2, Does::Holds) => {
                cx.env().note("it runs");
                cx.env().gate("held").await;
                Ok(Step::Done(()))
            }
            _ => Ok(Step::Done(())),
        }
    }
}

/// Looks like a counter when encoded.
#[derive(Debug, Serialize, Deserialize)]
struct Twin {
    count: u32,
    does: Does,
}

impl Procedure for Twin {
    const KIND: &'static str = "twin";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(()))
    }
}

fn counter(does: Does) -> Counter {
    Counter { count: 0, does }
}

fn set_up(lab: &Lab, builder: Builder) -> Builder {
    lab.begin_life();
    builder.register::<Counter>(lab.clone()).register::<Family>(())
}

fn live(world: &World, lab: &Lab, drive: impl AsyncFnOnce(&Run) -> Tested) -> Tested {
    world
        .run(FaultPlan::none(), |builder| set_up(lab, builder), drive)?
        .done()
}

async fn count(run: &Run, id: ProcedureId) -> Result<Option<u32>, ReadError> {
    let value = run.executor.value::<Counter>(id).await?;
    Ok(value.map(|counter| counter.count))
}

#[test]
fn g_074_a_value_is_what_was_committed_last() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live(&world, &lab, async |run| {
        let ended = submit(run, counter(Does::Ends), "ended").await?;
        run.wait(ended.outcome()).await??;
        let failed = submit(run, counter(Does::Fails), "failed").await?;
        rolled_back(run.wait(failed.outcome()).await?)?;
        let parked = submit(run, counter(Does::Waits), "parked").await?;
        let running = submit(run, counter(Does::Holds), "running").await?;
        run.until("its second stage runs", || !lab.noted().is_empty()).await?;
        run.settle().await;
        assert_eq!(count(run, ended.id()).await?, Some(2));
        assert_eq!(
            count(run, failed.id()).await?,
            Some(1),
            "the stage that failed left nothing"
        );
        assert_eq!(count(run, parked.id()).await?, Some(2));
        assert_eq!(
            count(run, running.id()).await?,
            Some(1),
            "its second stage is not committed"
        );
        assert_eq!(count(run, ProcedureId::root(99)).await?, None);
        assert_eq!(count(run, ProcedureId::new(1, 7)).await?, None);
        run.pass(Duration::from_hours(1)).await;
        assert_eq!(count(run, ended.id()).await?, None, "it was evicted");
        Ok(())
    })?;
    live(&world, &lab, async |run| {
        assert_eq!(count(run, ProcedureId::root(3)).await?, Some(2), "after a restart, too");
        Ok(())
    })
}

#[test]
fn g_074_a_value_of_another_type_is_an_error() -> Tested {
    live(&World::new(), &Lab::default(), async |run| {
        let id = submit(run, counter(Does::Waits), "a").await?.id();
        run.settle().await;
        let twin = run.executor.value::<Twin>(id).await;
        assert!(
            matches!(&twin, Err(ReadError::Codec(error)) if error.to_string()
                == format!("the stored value cannot be read: {id} is of the kind \"counter\", and the type asked for is \
                    of the kind \"twin\"")),
            "{twin:?}"
        );
        let shape = run.executor.value::<Family>(id).await;
        assert!(matches!(&shape, Err(ReadError::Codec(_))), "{:?}", shape.err());
        let unit = run.executor.value::<Noop>(id).await;
        assert!(matches!(&unit, Err(ReadError::Codec(_))), "{:?}", unit.err());
        Ok(())
    })
}

/// A counter's value as an earlier and as a later version has it.
#[derive(Serialize, Deserialize)]
struct Aged<const NEW: bool> {
    #[serde(default)]
    first: u32,
    #[serde(default)]
    sum: u32,
}

impl<const NEW: bool> Procedure for Aged<NEW> {
    const KIND: &'static str = "aged";
    const VERSION: u16 = if NEW { 2 } else { 1 };
    const OLDEST: u16 = 1;
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, _: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Wait {
            event: "go".to_owned(),
            timeout: None,
            then: 1,
        })
    }

    fn upgrade(_: u16, old: Old<'_>) -> Result<Self, UpgradeError> {
        let old: Aged<false> = old.decode()?;
        match old.first {
            0 => Err(UpgradeError::new("there was no first")),
            first => Ok(Self { first: 0, sum: first }),
        }
    }
}

#[test]
fn g_074_an_older_value_is_upgraded_in_memory() -> Tested {
    let world = World::new();
    let drive = async |run: &Run| {
        for (key, first) in [("a", 7), ("b", 0)] {
            submit(run, Aged::<false> { first, sum: 0 }, key).await?;
        }
        run.settle().await;
        let newer = run.executor.value::<Aged<true>>(ProcedureId::root(1)).await?;
        assert_eq!(newer.map(|aged| aged.sum), Some(7));
        Ok(())
    };
    world
        .run(FaultPlan::none(), |builder| builder.register::<Aged<false>>(()), drive)?
        .done()?;
    let drive = async |run: &Run| {
        let commits = run.store.commits();
        let (good, bad) = (ProcedureId::root(1), ProcedureId::root(2));
        for _ in 0..2 {
            let aged = run.executor.value::<Aged<true>>(good).await?;
            assert_eq!(aged.map(|aged| aged.sum), Some(7));
            assert_eq!(run.executor.status(good).await?.version, 1, "nothing is stored");
        }
        let error = run.executor.value::<Aged<true>>(bad).await.err();
        assert_eq!(
            error.map(|error| error.to_string()).as_deref(),
            Some("the stored value cannot be read: version 1: there was no first")
        );
        assert_eq!(run.store.commits(), commits);
        run.executor.signal(good, "go", &()).await?;
        run.settle().await;
        assert_eq!(run.executor.status(good).await?.version, 2);
        let old = run.executor.value::<Aged<false>>(good).await.err();
        assert_eq!(
            old.map(|error| error.to_string()).as_deref(),
            Some("the stored value cannot be read: version 2 of \"aged\" is newer than the code, which reads up to 1")
        );
        Ok(())
    };
    world
        .run(FaultPlan::none(), |builder| builder.register::<Aged<true>>(()), drive)?
        .done()
}

/// Asks how far its child had come, and what a stranger's value is.
#[derive(Serialize, Deserialize)]
struct Family {
    stranger: ProcedureId,
}

impl Procedure for Family {
    const KIND: &'static str = "family";
    type Stage = u32;
    type Env = ();
    type Output = (Option<u32>, bool, bool);

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if stage == 1 {
            return Ok(Step::Spawn {
                children: Children::new()
                    .and(&counter(Does::Fails))?
                    .join(JoinPolicy::AllFinished),
                then: 2,
            });
        }
        let child = cx.children().first().map(|child| child.id);
        let child = child.ok_or_else(|| StageError::fail("it has no child"))?;
        let count = cx.value_of::<Counter>(child).await?.map(|counter| counter.count);
        let stranger = cx.value_of::<Counter>(self.stranger).await?;
        let own = cx.value_of::<Self>(cx.id()).await?;
        Ok(Step::Done((count, stranger.is_none(), own.is_some())))
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(1)
    }
}

#[test]
fn g_074_a_parent_reads_the_value_of_a_child_that_failed() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let stranger = submit(run, counter(Does::Waits), "stranger").await?.id();
        let family = submit(run, Family { stranger }, "family").await?;
        let told: Result<_, ProcedureError> = run.wait(family.outcome()).await?;
        assert_eq!(told?, (Some(1), true, true));
        Ok(())
    };
    enumerate(Lab::default, set_up, drive, &[], |_, _, _| Ok(()))?;
    Ok(())
}
