//! Hooks of recovery: each unfinished procedure has each once per start, before anything runs.

use std::collections::BTreeSet;
use std::future::IntoFuture;

use procession::procedure::Hooks;
use procession::status::{ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Children, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::support::{Act, Lab, Patient, Tested, enumerate_later, plan};

/// What a procedure does when it is run.
#[derive(Clone, Serialize, Deserialize)]
enum Does {
    /// Ends at once.
    Ends,
    /// Stays in its body until the gate `go` is open.
    Runs,
    /// Waits for the event `go`.
    Waits,
    /// Fails in its second stage, whose undo lasts until the gate `go` is open.
    RollsBack,
    /// Waits for these.
    Has(Vec<Watched>),
    /// Waits for a child of another kind.
    HasPatient,
}

/// A procedure that writes to the log whatever is called.
#[derive(Clone, Serialize, Deserialize)]
struct Watched(String, Does);

impl Procedure for Watched {
    const KIND: &'static str = "watched";
    type Stage = u32;
    type Env = Lab;
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let lab = cx.env();
        lab.note(format!("stage {}{stage}", self.0));
        if stage > 1 {
            return match self.1 {
                Does::RollsBack => Err(StageError::fail("boom")),
                _ => Ok(Step::Done(())),
            };
        }
        Ok(match &self.1 {
            Does::Ends => Step::Done(()),
            Does::Runs => {
                lab.gate("go").await;
                Step::Done(())
            }
            Does::Waits => Step::Wait {
                event: "go".to_owned(),
                timeout: None,
                then: 2,
            },
            Does::RollsBack => Step::Next(2),
            Does::Has(watched) => {
                let mut children = Children::new();
                for child in watched {
                    children = children.and(child)?;
                }
                Step::Spawn { children, then: 2 }
            }
            Does::HasPatient => Step::Spawn {
                children: Children::new().and(&Patient(plan("p", [Act::Wait("go".to_owned(), None)])))?,
                then: 2,
            },
        })
    }

    async fn rollback(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        cx.env().note(format!("undo {}{stage}", self.0));
        cx.env().gate("go").await;
        Ok(())
    }

    fn hooks() -> Hooks<Self> {
        Hooks::<Self>::new()
            .before_recover(Self::before)
            .after_recover(Self::after)
    }
}

impl Watched {
    async fn before(&self, lab: &Lab) -> Result<(), StageError> {
        lab.note(format!("before {}", self.0));
        // All have begun before the first ends: the engine calls several at once.
        tokio::task::yield_now().await;
        if lab.is_open(&format!("{} fails before", self.0)) {
            return Err(StageError::fail("its table is gone"));
        }
        Ok(())
    }

    async fn after(&self, lab: &Lab) -> Result<(), StageError> {
        lab.note(format!("after {}", self.0));
        assert!(!lab.is_open(&format!("{} panics after", self.0)), "its table is odd");
        Ok(())
    }
}

/// The same without hooks.
#[derive(Clone, Serialize, Deserialize)]
struct Unwatched;

impl Procedure for Unwatched {
    const KIND: &'static str = "unwatched";
    type Stage = ();
    type Env = Lab;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Wait {
            event: "go".to_owned(),
            timeout: None,
            then: (),
        })
    }
}

/// One with a single hook.
#[derive(Clone, Serialize, Deserialize)]
struct OneHook;

impl Procedure for OneHook {
    const KIND: &'static str = "one_hook";
    type Stage = ();
    type Env = Lab;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Wait {
            event: "go".to_owned(),
            timeout: None,
            then: (),
        })
    }

    fn hooks() -> Hooks<Self> {
        Hooks::<Self>::new().after_recover(async |_, lab| {
            lab.note("after one");
            Ok(())
        })
    }
}

fn both(lab: &Lab, builder: Builder) -> Builder {
    builder
        .register::<Watched>(lab.clone())
        .register::<Unwatched>(lab.clone())
}

fn watched(name: &str, does: Does) -> Watched {
    Watched(name.to_owned(), does)
}

async fn submit<P: Procedure>(run: &Run, procedure: P) -> Result<ProcedureId, Trouble> {
    Ok(run.wait(run.executor.submit(procedure).into_future()).await??.id())
}

/// Lives one life, and gives what its log holds.
fn live(world: &World, lab: &Lab, drive: impl AsyncFnOnce(&Run) -> Tested) -> Result<Vec<String>, Trouble> {
    world
        .run(FaultPlan::none(), |builder| both(lab, builder), drive)?
        .done()?;
    Ok(lab.noted())
}

#[test]
fn e_096_each_unfinished_procedure_has_each_hook_once_before_anything_runs() -> Tested {
    let world = World::new();
    let first = Lab::default();
    let set_up = |builder| both(&first, builder).register::<Patient>(first.clone());
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            let family = vec![watched("ended", Does::Ends), watched("child", Does::Waits)];
            for procedure in [
                watched("running", Does::Runs),
                watched("parked", Does::Waits),
                watched("failing", Does::RollsBack),
                watched("parent", Does::Has(family)),
                watched("finished", Does::Ends),
                watched("quarantined", Does::HasPatient),
            ] {
                submit(run, procedure).await?;
            }
            submit(run, Unwatched).await?;
            run.settle().await;
            Ok(())
        })?
        .done()?;
    let hooks = |noted: &[String]| noted.iter().any(|note| note.starts_with("before"));
    assert!(!hooks(&first.noted()), "nothing was recovered yet");

    for life in 2..4 {
        let lab = Lab::default();
        let noted = live(&world, &lab, async |run| {
            run.settle().await;
            let snapshot = run.executor.snapshot().await?;
            assert_eq!(snapshot.quarantined.len(), 1, "the family of a kind that is not there");
            Ok(())
        })?;
        let unfinished = ["child", "failing", "parent", "parked", "running"];
        let called = |hook: &str| {
            unfinished
                .iter()
                .map(|name| format!("{hook} {name}"))
                .collect::<BTreeSet<_>>()
        };
        let part = |from: usize| noted.iter().skip(from).take(5).cloned().collect::<BTreeSet<_>>();
        assert_eq!(part(0), called("before"), "life {life}: {noted:?}");
        assert_eq!(part(5), called("after"), "life {life}: {noted:?}");
        let rest: BTreeSet<&str> = noted.iter().skip(10).map(String::as_str).collect();
        assert_eq!(rest, BTreeSet::from(["stage running1", "undo failing2"]), "life {life}");
        assert_eq!(noted.len(), 12, "each once: {noted:?}");
    }
    Ok(())
}

#[test]
fn one_hook_is_enough_and_the_others_are_not_called() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder: Builder| builder.register::<OneHook>(lab.clone());
    for _ in 0..2 {
        world
            .run(FaultPlan::none(), set_up, async |run: &Run| {
                if run.executor.list(Default::default(), None, 10).await?.items.is_empty() {
                    submit(run, OneHook).await?;
                }
                run.settle().await;
                assert!(run.executor.snapshot().await?.quarantined.is_empty());
                Ok(())
            })?
            .done()?;
    }
    assert_eq!(lab.noted(), ["after one"]);
    Ok(())
}

#[test]
fn a_hook_that_fails_sets_its_family_aside_for_this_start() -> Tested {
    let world = World::new();
    let mut ids = Vec::new();
    live(&world, &Lab::default(), async |run| {
        for name in ["a", "b", "c"] {
            ids.push(submit(run, watched(name, Does::Waits)).await?);
        }
        run.settle().await;
        Ok(())
    })?;
    let [a, b, c] = ids.as_slice() else {
        return Err("three were submitted".into());
    };

    let lab = Lab::default();
    lab.open("a fails before");
    lab.open("b panics after");
    let noted = live(&world, &lab, async |run| {
        let snapshot = run.executor.snapshot().await?;
        let found: Vec<(u64, String)> = vec![
            (a.family, format!("before_recover of {a}: its table is gone")),
            (b.family, format!("after_recover of {b}: its table is odd")),
        ];
        assert_eq!(snapshot.quarantined, found);
        assert_eq!(snapshot.recovered.quarantined, found);
        assert_eq!((snapshot.recovered.families, snapshot.recovered.procedures), (1, 1));
        for id in [a, b] {
            assert_eq!(run.executor.status(*id).await?.wait, Some(WaitReason::Quarantined));
        }
        assert_eq!(
            run.store.commits(),
            1,
            "the start's own commit only: hooks leave nothing"
        );
        run.wait(run.executor.signal(*c, "go", &())).await??;
        let outcome = run.wait(run.executor.outcome(*c)).await??;
        assert_eq!(outcome.state, ProcedureState::Success, "the others run");
        Ok(())
    })?;
    let after_a = noted.iter().any(|note| note == "after a");
    assert!(!after_a, "it is set aside already: {noted:?}");

    // The next start tries again.
    live(&world, &Lab::default(), async |run| {
        assert!(run.executor.snapshot().await?.quarantined.is_empty());
        for id in [a, b] {
            run.wait(run.executor.signal(*id, "go", &())).await??;
            let outcome = run.wait(run.executor.outcome(*id)).await??;
            assert_eq!(outcome.state, ProcedureState::Success);
        }
        Ok(())
    })?;
    Ok(())
}

#[test]
fn a_family_set_aside_by_its_hook_keeps_its_permit() -> Tested {
    let world = World::new();
    let limited = |lab: &Lab, builder| both(lab, builder).limit("watched", 1);
    let used = async |run: &Run| -> Result<(u32, usize), Trouble> {
        let limits = run.executor.limits().await?;
        let limit = limits.first().ok_or("the limit is not known")?;
        Ok((limit.used, limit.waiting))
    };
    for hook in ["a fails before", "a panics after", "none"] {
        let lab = Lab::default();
        lab.open(hook);
        world
            .run(
                FaultPlan::none(),
                |builder| limited(&lab, builder),
                async |run: &Run| {
                    if run.executor.list(Default::default(), None, 10).await?.items.is_empty() {
                        submit(run, watched("a", Does::Waits)).await?;
                        submit(run, watched("b", Does::Ends)).await?;
                    }
                    run.settle().await;
                    assert_eq!(used(run).await?, (1, 1), "{hook}");
                    assert!(!lab.noted().contains(&"stage b1".to_owned()), "{hook}");
                    Ok(())
                },
            )?
            .done()?;
    }
    Ok(())
}

/// In each life all hooks come first: one of each kind for whoever is unfinished at its start.
fn hooks_first(life: &[String]) -> Tested {
    let of = |hook: &str| -> Vec<String> {
        let names = life.iter().filter_map(|note| note.strip_prefix(hook));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        names
    };
    let (before, after) = (of("before "), of("after "));
    let calls: Vec<&String> = life.iter().skip(before.len() + after.len()).collect();
    let hook = |note: &&String| note.starts_with("before ") || note.starts_with("after ");
    let distinct: BTreeSet<&String> = before.iter().collect();
    let own = |call: &&String| before.iter().any(|name| call.contains(name.as_str()));
    if before != after || distinct.len() != before.len() || calls.iter().any(hook) || !calls.iter().all(own) {
        return Err(format!("hooks and calls of one life: {life:?}").into());
    }
    Ok(())
}

#[test]
fn e_096_each_start_calls_them_however_it_crashes() -> Tested {
    let prepare = || {
        let (world, lab) = (World::new(), Lab::default());
        live(&world, &lab, async |run| {
            let family = vec![watched("ended", Does::Ends), watched("child", Does::Waits)];
            for procedure in [
                watched("running", Does::Runs),
                watched("failing", Does::RollsBack),
                watched("parent", Does::Has(family)),
                watched("finished", Does::Ends),
            ] {
                submit(run, procedure).await?;
            }
            run.settle().await;
            Ok(())
        })?;
        Ok((world, lab))
    };
    let set_up = |lab: &Lab, builder: Builder| {
        lab.note("a life");
        both(lab, builder)
    };
    let drive = async |lab: &Lab, run: &Run, _: usize| {
        lab.open("go");
        run.settle().await;
        Ok(())
    };
    let check = |lab: &Lab, crashes: usize| {
        let noted = lab.noted();
        let lives: Vec<&[String]> = noted.split(|note| note == "a life").skip(1).collect();
        assert_eq!(lives.len(), crashes + 1);
        assert_eq!(lives[0].iter().filter(|note| note.starts_with("before ")).count(), 4);
        lives.into_iter().try_for_each(hooks_first)
    };
    // The start's own, the running one's end, two undos.
    assert_eq!(enumerate_later(prepare, set_up, drive, check)?, 4);
    Ok(())
}
