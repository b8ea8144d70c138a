//! Panics in user code, wherever it is called: the family pays, nobody else.

use std::future::IntoFuture;
use std::sync::atomic::{AtomicBool, Ordering};

use procession::errors::AskError;
use procession::limits::LockNeed;
use procession::messages::{Submit, SubmitBatch};
use procession::procedure::{ChildOutcome, JoinPolicy, JoinVerdict};
use procession::status::{CauseKind, ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Children, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::support::{Lab, Planned, Tested, chain, enumerate, kinds};

/// Where the panic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Place {
    Execute,
    Rollback,
    Serialize,
    Deserialize,
    Join,
    Locks,
    LocksAtSubmission,
}

/// A number that panics at one value when it is written, at another when it is read.
#[derive(Clone, Copy)]
struct Mine(u32);

const WRITTEN: u32 = 13;
const READ: u32 = 14;

impl Serialize for Mine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert_ne!(self.0, WRITTEN, "a mine is written");
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Mine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        assert_ne!(number, READ, "a mine is read");
        Ok(Self(number))
    }
}

/// Locks were asked for: they panic the first time.
static LOCKS_ASKED: AtomicBool = AtomicBool::new(false);

/// Panics at its place: in its first attempt, or whenever its value is read or its children are judged.
#[derive(Serialize, Deserialize)]
struct Shaky {
    place: Place,
    mine: Mine,
}

impl Procedure for Shaky {
    const KIND: &'static str = "shaky";
    type Stage = u32;
    type Env = Lab;
    type Output = u32;

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if stage == 2 {
            return Ok(Step::Done(2));
        }
        let first = cx.attempt() == 1;
        match self.place {
            Place::Execute if first => panic!("execute"),
            Place::Rollback => return Err(StageError::fail("so that it is undone")),
            Place::Serialize if first => self.mine = Mine(WRITTEN),
            Place::Deserialize => {
                self.mine = Mine(READ);
                return Ok(Step::Wait {
                    event: "go".to_owned(),
                    timeout: None,
                    then: 2,
                });
            }
            Place::Join => {
                let children = Children::new()
                    .and(&Planned(chain("child", 1)))?
                    .join(JoinPolicy::Custom);
                return Ok(Step::Spawn { children, then: 2 });
            }
            Place::Locks => return Ok(Step::Next(2)),
            Place::Execute | Place::Serialize | Place::LocksAtSubmission => {}
        }
        Ok(Step::Done(cx.attempt()))
    }

    async fn rollback(&mut self, _: u32, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        assert!(self.place != Place::Rollback || cx.attempt() > 1, "rollback");
        Ok(())
    }

    fn locks(&self, stage: &u32) -> Vec<LockNeed> {
        assert!(self.place != Place::LocksAtSubmission, "locks at submission");
        let first = *stage == 2 && self.place == Place::Locks && !LOCKS_ASKED.swap(true, Ordering::Relaxed);
        assert!(!first, "locks");
        Vec::new()
    }

    fn join(&self, _: &u32, _: &[ChildOutcome]) -> JoinVerdict {
        panic!("the join rule")
    }
}

/// The healthy ones, and the shaky one in their middle.
async fn submit(run: &Run, place: Place) -> Result<(ProcedureId, Vec<ProcedureId>), Trouble> {
    let mut submits = Vec::new();
    for number in 0..100 {
        submits.push(Submit::new(&Planned(chain(&format!("h{number}-"), 2)))?);
    }
    submits.insert(50, Submit::new(&Shaky { place, mine: Mine(0) })?);
    let mut ids = run
        .wait(run.executor.supervisor().send(SubmitBatch(submits)))
        .await???;
    Ok((ids.remove(50), ids))
}

/// The healthy end, in their order, on the same worker.
async fn healthy(run: &Run, lab: &Lab, ids: &[ProcedureId]) -> Tested {
    for id in ids {
        assert_eq!(run.wait(run.executor.outcome(*id)).await??.output::<i64>()?, Some(7));
    }
    let calls: Vec<String> = lab
        .calls()
        .iter()
        .map(crate::support::Call::short)
        .filter(|call| call.starts_with('h'))
        .collect();
    let round = |stage: u32| (0..100).map(move |number| format!("h{number}-{stage}"));
    assert_eq!(calls, round(1).chain(round(2)).collect::<Vec<_>>());
    Ok(())
}

fn beside_healthy(place: Place, check: impl AsyncFnOnce(&Run, ProcedureId) -> Tested) -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    world
        .run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder).register::<Shaky>(lab.clone()),
            async |run| {
                let (shaky, ids) = submit(run, place).await?;
                healthy(run, &lab, &ids).await?;
                check(run, shaky).await
            },
        )?
        .done()?;
    Ok(())
}

#[test]
fn e_103_a_panic_in_execute_is_one_attempt() -> Tested {
    beside_healthy(Place::Execute, async |run, id| {
        assert_eq!(
            run.wait(run.executor.outcome(id)).await??.output::<u32>()?,
            Some(2),
            "in its second attempt"
        );
        let errors: Vec<_> = run
            .executor
            .history(id)
            .await?
            .into_iter()
            .map(|entry| entry.error)
            .collect();
        assert_eq!(errors, [Some("execute".to_owned()), None]);
        Ok(())
    })
}

#[test]
fn e_103_a_panic_in_rollback_is_one_attempt() -> Tested {
    beside_healthy(Place::Rollback, async |run, id| {
        let outcome = run.wait(run.executor.outcome(id)).await??;
        assert_eq!(outcome.state, ProcedureState::RolledBack);
        assert_eq!(
            outcome.cause.map(|cause| cause.text),
            Some("so that it is undone".to_owned())
        );
        let errors: Vec<_> = run
            .executor
            .history(id)
            .await?
            .into_iter()
            .map(|entry| entry.error)
            .collect();
        assert_eq!(
            errors,
            [
                Some("so that it is undone".to_owned()),
                Some("rollback".to_owned()),
                None
            ]
        );
        Ok(())
    })
}

#[test]
fn e_103_a_panic_in_serialize_is_one_attempt() -> Tested {
    beside_healthy(Place::Serialize, async |run, id| {
        assert_eq!(run.wait(run.executor.outcome(id)).await??.output::<u32>()?, Some(2));
        let errors: Vec<_> = run
            .executor
            .history(id)
            .await?
            .into_iter()
            .map(|entry| entry.error)
            .collect();
        assert!(
            errors
                .first()
                .is_some_and(|error| error.as_deref().is_some_and(|text| text.contains("a mine is written"))),
            "{errors:?}"
        );
        Ok(())
    })
}

#[test]
fn e_103_a_panic_in_deserialize_at_revival_quarantines() -> Tested {
    beside_healthy(Place::Deserialize, async |run, id| {
        run.settle().await;
        assert!(matches!(
            run.executor.status(id).await?.wait,
            Some(WaitReason::Event(..))
        ));
        run.executor.signal(id, "go", &()).await?;
        run.settle().await;
        assert_eq!(run.executor.status(id).await?.wait, Some(WaitReason::Quarantined));
        let quarantined = run.executor.snapshot().await?.quarantined;
        let [(family, why)] = &quarantined[..] else {
            return Err(format!("{quarantined:?}").into());
        };
        assert_eq!(*family, id.family);
        assert!(why.contains("a mine is read"), "{why}");
        // The worker lives.
        let after = run
            .wait(run.executor.submit(Planned(chain("after", 1))).into_future())
            .await??;
        assert_eq!(run.wait(after.outcome()).await??, 7);
        Ok(())
    })
}

#[test]
fn e_103_a_panic_in_the_join_rule_fails_the_parent_with_its_text() -> Tested {
    beside_healthy(Place::Join, async |run, id| {
        let outcome = run.wait(run.executor.outcome(id)).await??;
        assert_eq!(outcome.state, ProcedureState::RolledBack);
        let cause = outcome.cause.ok_or("it failed without a cause")?;
        assert_eq!(
            (cause.kind, cause.text.as_str()),
            (CauseKind::JoinUnmet, "join panicked: the join rule")
        );
        Ok(())
    })
}

#[test]
fn e_103_a_panic_in_locks_is_one_attempt() -> Tested {
    beside_healthy(Place::Locks, async |run, id| {
        assert_eq!(run.wait(run.executor.outcome(id)).await??.output::<u32>()?, Some(2));
        let entries = run.executor.history(id).await?;
        let errors: Vec<_> = entries.into_iter().map(|entry| entry.error).collect();
        assert_eq!(errors, [Some("locks panicked: locks".to_owned()), None, None]);
        Ok(())
    })
}

/// The submitter's own thread asks, and gets an error; nothing is submitted.
#[test]
fn e_103_a_panic_in_locks_at_submission_is_an_error() {
    let shaky = Shaky {
        place: Place::LocksAtSubmission,
        mine: Mine(0),
    };
    let refused = Submit::new(&shaky).err().map(|error| error.to_string());
    let text = "the procedure cannot be submitted: a question to it panicked: locks at submission";
    assert_eq!(refused.as_deref(), Some(text));
}

/// Beside one healthy family, small enough to be crashed at every commit; what panics once does so again.
async fn beside_one(run: &Run, place: Place) -> Tested {
    let shaky = Shaky { place, mine: Mine(0) };
    let shaky = run
        .wait(run.executor.submit(shaky).key("shaky").into_future())
        .await??;
    let sound = Planned(chain("h", 2));
    let sound = run
        .wait(run.executor.submit(sound).key("sound").into_future())
        .await??;
    assert_eq!(run.wait(sound.outcome()).await??, 7);
    if place != Place::Deserialize {
        // How it ends is compared by the final world.
        run.wait(shaky.outcome()).await?.ok();
        return Ok(());
    }
    run.settle().await;
    match run.wait(run.executor.signal(shaky.id(), "go", &()).key("go")).await? {
        // Set aside already, by a start that called it.
        Ok(_) | Err(AskError::NotNow { .. }) => {}
        Err(other) => return Err(other.into()),
    }
    run.settle().await;
    assert_eq!(shaky.status().await?.wait, Some(WaitReason::Quarantined));
    Ok(())
}

#[test]
fn e_103_panics_through_crashes() -> Tested {
    let places = [
        // Submissions, the healthy one's two stages, and what each place says.
        (Place::Execute, 2 + 2 + 3),
        (Place::Rollback, 2 + 2 + 4),
        (Place::Serialize, 2 + 2 + 3),
        (Place::Deserialize, 2 + 2 + 2),
        (Place::Join, 2 + 2 + 4),
    ];
    for (place, commits) in places {
        let done = enumerate(
            Lab::default,
            |lab, builder| kinds(lab, builder).register::<Shaky>(lab.clone()),
            async |_: &Lab, run: &Run| beside_one(run, place).await,
            &[],
            |plain, crashed, crashes| plain.compare(crashed, crashes),
        )
        .map_err(|why| format!("{place:?}: {why}"))?;
        assert_eq!(done.commits, commits, "{place:?}");
    }
    Ok(())
}
