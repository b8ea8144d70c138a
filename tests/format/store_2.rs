//! A whole store as version 2 left it: locks, pauses, acts of operators, an archive, a key
//! that outlives its result. It loads, and all that was under way goes on.

use std::future::IntoFuture;
use std::time::Duration;

use procession::limits::LockNeed;
use procession::operate::{AbortAnswer, BypassAs, BypassScope, OperatorRequest, PauseScope};
use procession::procedure::{Kind, OnTimeout, Timestamp};
use procession::status::{Mark, ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, Run, World};
use procession::{Builder, Handle, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::store::{dump, install};
use crate::{Line, Tested, golden};

/// What the procedures of the stored world do. Never changed: its values are in the golden file.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Part {
    Finish,
    Hold,
    Queue,
    Sleep,
    PastReturn,
    Timed,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Stage {
    Begin,
    End,
}

macro_rules! frozen {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        struct $name {
            part: Part,
        }

        impl Procedure for $name {
            const KIND: &'static str = $kind;
            const HOLD_LOCKS: bool = true;
            type Stage = Stage;
            /// Whether what asks for another attempt succeeds by now.
            type Env = bool;
            type Output = String;

            fn first(&self) -> Stage {
                Stage::Begin
            }

            async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
                run(&self.part, stage, *cx.env(), cx.out_of_time())
            }

            fn locks(&self, _: &Stage) -> Vec<LockNeed> {
                match self.part {
                    Part::Hold => vec![LockNeed::exclusive("ns/table"), LockNeed::shared("ns/other")],
                    Part::Queue => vec![LockNeed::shared("ns/table/region")],
                    Part::Finish | Part::Sleep | Part::PastReturn | Part::Timed => Vec::new(),
                }
            }

            fn rollback_supported(&self, stage: &Stage) -> bool {
                !(matches!(self.part, Part::PastReturn) && *stage == Stage::End)
            }

            fn timeout(&self) -> Option<Duration> {
                matches!(self.part, Part::Timed).then_some(Duration::from_hours(3))
            }

            fn on_timeout(&self) -> OnTimeout {
                OnTimeout::Execute
            }

            fn expected(&self, _: &Stage) -> Option<Duration> {
                Some(Duration::from_mins(1))
            }
        }
    };
}

frozen! {
    /// The kind of most.
    Kept, "kept"
}
frozen! {
    /// Of this kind one is paused as a kind.
    Idle, "idle"
}
frozen! {
    /// Its code is gone.
    Gone, "gone"
}

fn run<P>(part: &Part, stage: Stage, succeeds: bool, out_of_time: bool) -> Result<Step<P>, StageError>
where
    P: Procedure<Stage = Stage, Output = String>,
{
    let then = Stage::End;
    let wait = || Step::Wait {
        event: "go".to_owned(),
        timeout: None,
        then,
    };
    match (stage, part) {
        (Stage::Begin, Part::Hold | Part::Timed) => Ok(wait()),
        (Stage::Begin, Part::Sleep) => Ok(Step::Sleep {
            until: Timestamp(2 * 3_600_000_000),
            then,
        }),
        (Stage::Begin, Part::Finish | Part::Queue | Part::PastReturn) => Ok(Step::Next(then)),
        (Stage::End, Part::PastReturn) if !succeeds => Err(StageError::retry("not yet")),
        (Stage::End, _) => Ok(Step::Done(format!("{part:?} {out_of_time}"))),
    }
}

fn set_up(builder: Builder, succeeds: bool) -> Builder {
    builder.register::<Kept>(succeeds).register::<Idle>(succeeds)
}

type Trouble = Box<dyn std::error::Error>;

async fn submit<P: Procedure>(run: &Run, procedure: P, key: &str) -> Result<Handle<P>, Trouble> {
    let submission = run.executor.submit(procedure);
    let handle = run.wait(submission.key(key).into_future()).await??;
    run.settle().await;
    Ok(handle)
}

fn by() -> OperatorRequest {
    OperatorRequest::new("ann", "a test")
}

/// Makes all that ends or is archived, and lets its results go but for a key.
async fn make_past(run: &Run) -> Tested {
    let kept = run.executor.submit(Kept { part: Part::Finish });
    let kept = run
        .wait(kept.key_for("long", Duration::from_hours(24)).into_future())
        .await??;
    run.wait(kept.outcome()).await??;
    submit(run, Gone { part: Part::Hold }, "gone").await?;
    run.pass(Duration::from_mins(16)).await;
    Ok(())
}

async fn make_present(run: &Run) -> Tested {
    let quarantined = run.executor.snapshot().await?.quarantined;
    let (gone, _) = quarantined.first().ok_or("its code is gone")?;
    run.executor.discharge(*gone, by().key("discharged")).await?;
    submit(run, Kept { part: Part::Hold }, "hold").await?;
    submit(run, Kept { part: Part::Queue }, "queue").await?;
    let sleep = submit(run, Kept { part: Part::Sleep }, "sleep").await?;
    run.executor.pause(PauseScope::One(sleep.id()), by()).await?;
    submit(run, Kept { part: Part::PastReturn }, "past").await?;
    submit(run, Kept { part: Part::Timed }, "timed").await?;
    run.executor.pause(PauseScope::Kind(Kind::from("idle")), by()).await?;
    submit(run, Idle { part: Part::Finish }, "idle").await?;
    let bypassed = submit(run, Kept { part: Part::Timed }, "bypassed").await?;
    run.executor
        .bypass(bypassed.id(), BypassScope::Alone, BypassAs::Success, by())
        .await?;
    run.settle().await;
    Ok(())
}

/// Writes such a world; how the golden file was made.
fn write() -> Result<Vec<Line>, Trouble> {
    let world = World::new();
    let with_gone = |builder: Builder| set_up(builder, false).register::<Gone>(false);
    world.run(FaultPlan::none(), with_gone, make_past)?.done()?;
    let without = |builder: Builder| set_up(builder, false);
    world.run(FaultPlan::none(), without, make_present)?.done()?;
    Ok(dump(&world))
}

/// When the golden world was left.
const LEFT: Timestamp = Timestamp(16 * 60_000_000);

fn stored() -> Result<World, Trouble> {
    let world = install(&golden("v2/store.hex", write)?)?;
    world.clock.advance_to(LEFT);
    Ok(world)
}

async fn id(run: &Run, part: Part, key: &str) -> Result<ProcedureId, Trouble> {
    Ok(submit(run, Kept { part }, key).await?.id())
}

/// The keys are known: nothing is submitted, and every row is as it was.
async fn is_as_it_was(run: &Run) -> Tested {
    let before = run.store.commits();
    let parts = [
        (
            Part::Hold,
            "hold",
            ProcedureState::WaitingTimeout,
            "waits for the event go",
        ),
        (
            Part::Queue,
            "queue",
            ProcedureState::Initializing,
            "waits for the lock ns/table/region",
        ),
        (Part::Sleep, "sleep", ProcedureState::WaitingTimeout, "sleeps"),
        (
            Part::PastReturn,
            "past",
            ProcedureState::WaitingTimeout,
            "backs off after attempt 1",
        ),
        (
            Part::Timed,
            "timed",
            ProcedureState::WaitingTimeout,
            "waits for the event go",
        ),
    ];
    for (part, key, state, wait) in parts {
        let status = run.executor.status(id(run, part, key).await?).await?;
        let reason = status.wait.map(|wait| wait.to_string()).unwrap_or_default();
        assert_eq!((status.state, reason.as_str()), (state, wait), "{key}");
        assert_eq!(status.paused, key == "sleep");
        assert_eq!(status.past_no_return.is_some(), key == "past");
        assert_eq!(status.locks.len(), if key == "hold" { 2 } else { 0 });
    }
    let idle = submit(run, Idle { part: Part::Finish }, "idle").await?;
    assert_eq!(idle.status().await?.wait, Some(WaitReason::Paused));
    let bypassed = id(run, Part::Timed, "bypassed").await?;
    assert_eq!(run.executor.outcome(bypassed).await?.mark, Some(Mark::Bypassed));
    let long = id(run, Part::Finish, "long").await?;
    assert!(run.executor.status(long).await.is_err(), "its key outlives it");
    assert_eq!(run.store.commits(), before);
    Ok(())
}

async fn operators_are_remembered(run: &Run) -> Tested {
    let audit = run.executor.audit(None, 10).await?;
    let verbs: Vec<&str> = audit
        .iter()
        .rev()
        .map(|entry| entry.words.split(' ').next().unwrap_or_default())
        .collect();
    assert_eq!(verbs, ["discharge", "pause", "pause", "bypass"]);
    let archive = run.executor.archive().await?;
    let [gone] = &archive[..] else {
        return Err("one was archived".into());
    };
    let export = run.executor.archived(gone.family).await?;
    assert_eq!((export.procedures.len(), export.unreadable.len()), (1, 0));
    assert!(export.quarantined.is_some_and(|why| why.contains("\"gone\"")));
    let again = run.executor.discharge(gone.family, by().key("discharged")).await?;
    assert_eq!(
        again.number,
        audit.last().map(|entry| entry.number),
        "it was done already"
    );
    Ok(())
}

#[test]
fn a_store_of_version_2_loads_and_goes_on() -> Tested {
    let world = stored()?;
    world
        .run(
            FaultPlan::none(),
            |builder| set_up(builder, true).strict(true),
            async |run| {
                is_as_it_was(run).await?;
                operators_are_remembered(run).await?;
                ends(run).await
            },
        )?
        .done()
}

async fn ends(run: &Run) -> Tested {
    let past = id(run, Part::PastReturn, "past").await?;
    let answer = run.executor.abort(past, OperatorRequest::new("ann", "a test")).await?;
    assert!(
        matches!(&answer.abort, Some(AbortAnswer::TooLate(why)) if why.contains("End")),
        "{answer:?}"
    );
    let queue = id(run, Part::Queue, "queue").await?;
    let hold = id(run, Part::Hold, "hold").await?;
    run.executor.signal(hold, "go", &()).await?;
    let sleep = id(run, Part::Sleep, "sleep").await?;
    let timed = id(run, Part::Timed, "timed").await?;
    let idle = submit(run, Idle { part: Part::Finish }, "idle").await?;
    run.executor.resume(PauseScope::Kind(Kind::from("idle")), by()).await?;
    run.executor.resume(PauseScope::One(sleep), by()).await?;
    let outputs = [
        (hold, "Hold false"),
        (queue, "Queue false"),
        (idle.id(), "Finish false"),
        (past, "PastReturn false"),
        (sleep, "Sleep false"),
        (timed, "Timed true"),
    ];
    for (id, output) in outputs {
        let outcome = run.wait(run.executor.outcome(id)).await??;
        assert_eq!(outcome.output::<String>()?.as_deref(), Some(output));
    }
    run.pass(Duration::from_hours(24)).await;
    let anew = id(run, Part::Finish, "long").await?;
    assert!(anew > timed, "its key is gone by now");
    Ok(())
}
