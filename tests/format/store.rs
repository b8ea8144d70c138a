//! A whole store as version 1 left it: it loads, and all that was under way goes on.

use std::future::IntoFuture;
use std::time::Duration;

use futures::executor::block_on;
use procession::operate::OperatorRequest;
use procession::procedure::{RetryPolicy, Timestamp};
use procession::provider::{Batch, JournalStore, Space};
use procession::status::{Key, ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, MemoryStore, Run, World};
use procession::{Builder, Children, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::{Line, Tested, golden};

/// What the procedures of the stored world do. Never changed: its values are in the golden file.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Part {
    Finish,
    Await,
    Sleep,
    Spawn,
    Fail,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Frozen {
    part: Part,
    log: Vec<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    Begin,
    End,
}

impl Procedure for Frozen {
    const KIND: &'static str = "frozen";
    type Stage = Stage;
    /// Whether undos succeed.
    type Env = bool;
    type Output = Vec<String>;

    fn first(&self) -> Stage {
        Stage::Begin
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        self.log.push(format!("{stage:?}"));
        let then = Stage::End;
        match (stage, &self.part) {
            (Stage::Begin, Part::Finish | Part::Fail) => {
                cx.put("rows", format!("{:?}", self.part), &1_u32)?;
                Ok(Step::Next(then))
            }
            (Stage::Begin, Part::Await) => Ok(Step::Wait {
                event: "go".to_owned(),
                timeout: None,
                then,
            }),
            (Stage::Begin, Part::Sleep) => Ok(Step::Sleep {
                until: Timestamp(3_600_000_000),
                then,
            }),
            (Stage::Begin, Part::Spawn) => {
                let child = |part| Frozen { part, log: Vec::new() };
                let children = Children::of(&[child(Part::Await), child(Part::Finish)])?.width(1);
                Ok(Step::Spawn { children, then })
            }
            (Stage::End, Part::Fail) => Err(StageError::fail("as it was written")),
            (Stage::End, Part::Finish | Part::Await | Part::Sleep | Part::Spawn) => Ok(Step::Done(self.log.clone())),
        }
    }

    async fn rollback(&mut self, _: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        if *cx.env() {
            Ok(())
        } else {
            Err(StageError::retry("not yet"))
        }
    }

    fn limit(&self) -> Option<procession::limits::LimitKey> {
        Some("gate".into())
    }

    fn retry_undo() -> RetryPolicy {
        RetryPolicy::default().attempts(5)
    }
}

const PARTS: [(Part, &str); 5] = [
    (Part::Finish, "finish"),
    (Part::Await, "await"),
    (Part::Sleep, "sleep"),
    (Part::Spawn, "spawn"),
    (Part::Fail, "fail"),
];

pub(crate) fn spaces() -> Vec<Space> {
    let mut spaces = Space::ENGINE.to_vec();
    spaces.push(Space::User(Key::from("rows")));
    spaces
}

pub(crate) fn set_up(builder: Builder, undo: bool) -> Builder {
    builder.register::<Frozen>(undo)
}

async fn submit(run: &Run) -> Result<Vec<ProcedureId>, Box<dyn std::error::Error>> {
    let mut ids = Vec::new();
    for (part, key) in PARTS {
        let procedure = Frozen { part, log: Vec::new() };
        ids.push(
            run.wait(run.executor.submit(procedure).key(key).into_future())
                .await??
                .id(),
        );
        run.settle().await;
    }
    Ok(ids)
}

/// Writes such a world; how the golden file was made.
fn write() -> Result<Vec<Line>, Box<dyn std::error::Error>> {
    let world = World::new();
    world
        .run(
            FaultPlan::none(),
            |builder| set_up(builder, false).limit("gate", 9),
            async |run| {
                let ids = submit(run).await?;
                let waits = *ids.get(1).ok_or("there are five")?;
                run.executor.signal(waits, "later", &7_u32).key("s").await?;
                run.executor
                    .set_limit("gate", Some(5), OperatorRequest::new("ann", "a test"))
                    .await?;
                Ok(())
            },
        )?
        .done()?;
    Ok(dump(&world))
}

/// Returns what is on a world's disk, as lines of a golden file.
pub(crate) fn dump(world: &World) -> Vec<Line> {
    let mut lines = Vec::new();
    for space in spaces() {
        lines.extend(world.disk.dump(&space).into_iter().map(|(key, value)| Line {
            name: "store".to_owned(),
            space: space.name(),
            key,
            value: Some(value),
        }));
    }
    lines
}

/// Returns the golden world.
pub(crate) fn stored() -> Result<World, Box<dyn std::error::Error>> {
    install(&golden("v1/store.hex", write)?)
}

/// Puts the golden world on a disk, as if this release had just been installed there.
pub(crate) fn install(lines: &[Line]) -> Result<World, Box<dyn std::error::Error>> {
    let world = World::new();
    let store = MemoryStore::open(&world.disk, FaultPlan::none())?;
    let mut batch = Batch::new(block_on(store.acquire())?);
    for line in lines {
        let space = spaces().into_iter().find(|space| space.name() == line.space);
        batch.put(
            space.ok_or("an unknown keyspace")?,
            &line.key,
            line.value.as_deref().unwrap_or_default(),
        );
    }
    block_on(store.append(batch))?;
    Ok(world)
}

async fn is_as_it_was(run: &Run, ids: &[ProcedureId]) -> Tested {
    let mut states = Vec::new();
    for id in ids {
        let status = run.executor.status(*id).await?;
        states.push((status.state, status.wait, status.stage));
    }
    let end = || "End".to_owned();
    let expected = [
        (ProcedureState::Success, None, end()),
        (
            ProcedureState::WaitingTimeout,
            Some(WaitReason::Event("go".into(), None)),
            end(),
        ),
        (
            ProcedureState::WaitingTimeout,
            Some(WaitReason::Timer(Timestamp(3_600_000_000))),
            end(),
        ),
        (ProcedureState::Waiting, Some(WaitReason::Children), end()),
        (
            ProcedureState::Failed,
            Some(WaitReason::Backoff(1, Timestamp(1_000_000))),
            end(),
        ),
    ];
    assert_eq!(states, expected);
    let limits = run.executor.limits().await?;
    let gate = limits
        .iter()
        .find(|limit| limit.key.as_str() == "gate")
        .ok_or("its limit is gone")?;
    assert_eq!(
        (gate.limit, gate.used),
        (Some(5), 4),
        "as set at run time, and held by the living"
    );
    assert_eq!(run.executor.get::<u32>("rows", "Finish").await?, Some(1));
    Ok(())
}

#[test]
fn a_store_of_version_1_loads_and_goes_on() -> Tested {
    let world = stored()?;
    world
        .run(
            FaultPlan::none(),
            |builder| set_up(builder, true).strict(true),
            async |run| {
                assert!(run.executor.snapshot().await?.quarantined.is_empty());
                let before = run.store.commits();
                // The keys are known: nothing is submitted.
                let ids = submit(run).await?;
                assert_eq!(run.store.commits(), before);
                is_as_it_was(run, &ids).await?;
                let [finish, waits, sleeps, spawns, fails] = ids[..] else {
                    return Err("there are five".into());
                };
                assert_eq!(
                    run.executor.signal(waits, "later", &7_u32).key("s").await?,
                    1,
                    "its key is remembered"
                );
                for id in [waits, ProcedureId::new(spawns.family, 1)] {
                    run.executor.signal(id, "go", &()).await?;
                }
                run.pass(Duration::from_hours(1)).await;
                // Results have gone by now, but for the sleeper's: read what is left in time.
                assert_eq!(
                    run.executor.outcome(sleeps).await?.output::<Vec<String>>()?,
                    Some(vec!["Begin".to_owned(), "End".to_owned()])
                );
                for id in [finish, waits, spawns] {
                    assert!(run.executor.status(id).await.is_err(), "{id} ended an hour ago");
                }
                assert_eq!(run.executor.status(fails).await?.state, ProcedureState::RolledBack);
                let listed = run.executor.failures(None, 10).await?.items;
                assert_eq!(
                    listed.iter().map(|entry| entry.family).collect::<Vec<_>>(),
                    [fails.family]
                );
                run.pass(Duration::from_hours(14 * 24)).await;
                assert!(run.executor.status(fails).await.is_err(), "it ended 14 days ago");
                assert!(run.executor.failures(None, 10).await?.items.is_empty());
                assert_eq!(run.executor.snapshot().await?.live_families, 0);
                Ok(())
            },
        )?
        .done()?;
    Ok(())
}

#[test]
fn what_version_1_had_under_way_ends_as_it_was_to() -> Tested {
    let world = stored()?;
    world
        .run(
            FaultPlan::none(),
            |builder| set_up(builder, true),
            async |run| {
                let ids = submit(run).await?;
                let [finish, waits, sleeps, spawns, fails] = ids[..] else {
                    return Err("there are five".into());
                };
                for id in [waits, ProcedureId::new(spawns.family, 1)] {
                    run.executor.signal(id, "go", &()).await?;
                }
                for id in [finish, waits, spawns] {
                    assert_eq!(run.executor.outcome(id).await?.state, ProcedureState::Success, "{id}");
                }
                let failed = run.wait(run.executor.outcome(fails)).await??;
                assert_eq!(failed.state, ProcedureState::RolledBack);
                assert_eq!(
                    failed.cause.map(|cause| cause.text),
                    Some("as it was written".to_owned())
                );
                assert_eq!(
                    run.wait(run.executor.outcome(sleeps)).await??.state,
                    ProcedureState::Success
                );
                // New families get new numbers.
                let next = Frozen {
                    part: Part::Finish,
                    log: Vec::new(),
                };
                let next = run.wait(run.executor.submit(next).into_future()).await??;
                assert!(ids.iter().all(|id| id.family < next.id().family));
                Ok(())
            },
        )?
        .done()?;
    Ok(())
}
