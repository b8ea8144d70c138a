//! Rows of older versions: read as they are, upgraded once, or set aside with the reason.

use std::cell::RefCell;
use std::future::IntoFuture;

use procession::errors::{AskError, StartError, UpgradeError};
use procession::messages::{Submit, SubmitBatch};
use procession::operate::AbortAnswer;
use procession::procedure::Old;
use procession::status::{ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::support::{Lab, Patient, Planned, Tested, chain, enumerate_later, kinds};

thread_local! {
    /// Versions that `upgrade` was called with: a world runs on the thread of its test.
    static UPGRADED: RefCell<Vec<u16>> = const { RefCell::new(Vec::new()) };
}

fn upgraded() -> Vec<u16> {
    UPGRADED.with_borrow(Clone::clone)
}

/// A table's name, as each version has it, that waits for the event `go` after its first stage.
macro_rules! version {
    ($name:ident, $version:literal, { $($field:ident: $type:ty),* }, $text:expr $(, $oldest:literal, $upgrade:expr)?) => {
        #[derive(Clone, Debug, Serialize, Deserialize)]
        struct $name {
            $($field: $type),*
        }

        impl Procedure for $name {
            const KIND: &'static str = "named";
            const VERSION: u16 = $version;
            $(const OLDEST: u16 = $oldest;)?
            type Stage = u32;
            type Env = Lab;
            type Output = String;

            fn first(&self) -> u32 {
                1
            }

            async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
                let (text, lab) = ($text, cx.env());
                lab.note(format!("{stage}.{} {}", cx.attempt(), text(self)));
                match stage {
                    1 => Ok(Step::Wait { event: "go".to_owned(), timeout: None, then: 2 }),
                    2 if lab.yields(&text(self), 1) => Ok(Step::Yield),
                    2 if cx.attempt() == 1 => Err(StageError::retry("once")),
                    2 => Ok(Step::Next(3)),
                    _ => Ok(Step::Done(text(self))),
                }
            }

            async fn rollback(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
                let text = $text;
                cx.env().note(format!("{stage}'.{} {}", cx.attempt(), text(self)));
                if cx.attempt() == 1 {
                    return Err(StageError::retry("once"));
                }
                Ok(())
            }

            $(
                fn upgrade(version: u16, old: Old<'_>) -> Result<Self, UpgradeError> {
                    UPGRADED.with_borrow_mut(|upgraded| upgraded.push(version));
                    $upgrade(version, old)
                }
            )?
        }
    };
}

version!(First, 1, { name: String }, |first: &First| format!("{}?", first.name));
version!(Second, 2, { names: Vec<String> }, |second: &Second| second.names.join("+"));
version!(Third, 3, { names: Vec<String>, owner: String }, Third::text, 1, Third::from_old);
version!(ThirdAlone, 3, { names: Vec<String>, owner: String }, |third: &ThirdAlone| third.owner.clone());
version!(Later, 4, { names: Vec<String>, owner: String }, |later: &Later| later.owner.clone(), 2, |_, _| {
    Err(UpgradeError::new("not needed here"))
});
version!(Panics, 3, { owner: String }, |panics: &Panics| panics.owner.clone(), 1, |_, _| panic!("a mine"));
version!(Refuses, 3, { owner: String }, |refuses: &Refuses| refuses.owner.clone(), 1, |_, old: Old<'_>| {
    // A value of another shape.
    Ok(Refuses { owner: old.decode::<Second>()?.names.join("") })
});

impl Third {
    fn text(&self) -> String {
        format!("{} of {}", self.names.join("+"), self.owner)
    }

    fn from_old(version: u16, old: Old<'_>) -> Result<Self, UpgradeError> {
        let names = match version {
            1 => vec![old.decode::<First>()?.name],
            _ => old.decode::<Second>()?.names,
        };
        let owner = format!("version {version}");
        Ok(Self { names, owner })
    }
}

fn with<P: Procedure<Env = Lab>>(lab: &Lab, builder: Builder) -> Builder {
    kinds(lab, builder).register::<P>(lab.clone())
}

fn life<P: Procedure<Env = Lab>, T>(
    world: &World,
    lab: &Lab,
    drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    world
        .run(FaultPlan::none(), |builder| with::<P>(lab, builder), drive)?
        .done()
}

async fn submit<P: Procedure>(run: &Run, procedure: P) -> Result<ProcedureId, Trouble> {
    let handle = run.wait(run.executor.submit(procedure).into_future()).await??;
    run.settle().await;
    Ok(handle.id())
}

/// Leaves a row of version 1, and one of version 2, each by the code of its time.
fn rows(world: &World, lab: &Lab) -> Result<(ProcedureId, ProcedureId), Trouble> {
    let name = "a".to_owned();
    let first = life::<First, _>(world, lab, async |run| submit(run, First { name }).await)?;
    let names = vec!["b".to_owned(), "c".to_owned()];
    // The row of version 1 is set aside meanwhile: that code does not read it.
    let second = life::<Second, _>(world, lab, async |run| submit(run, Second { names }).await)?;
    Ok((first, second))
}

#[test]
fn e_097_a_row_is_upgraded_once() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let (first, second) = rows(&world, &lab)?;
    life::<Third, _>(&world, &lab, async |run| {
        run.settle().await;
        assert!(run.executor.snapshot().await?.quarantined.is_empty());
        assert!(upgraded().is_empty(), "a parked row is left as it is");
        for (id, version) in [(first, 1), (second, 2)] {
            assert_eq!(run.executor.status(id).await?.version, version);
            run.executor.signal(id, "go", &()).await?;
            run.settle().await;
            // It has yielded, and backs off: what it does with its value is not stored.
            let status = run.executor.status(id).await?;
            assert!(matches!(status.wait, Some(WaitReason::Backoff(1, _))), "{status:?}");
            assert_eq!(status.version, 3, "the commit of the retry holds the upgraded value");
        }
        Ok(())
    })?;
    assert_eq!(upgraded(), [1, 2]);

    // The next start reads what was upgraded; so would code that knows no older version.
    life::<Third, _>(&world, &lab, async |run| {
        for (id, text) in [(first, "a of version 1"), (second, "b+c of version 2")] {
            let outcome = run.wait(run.executor.outcome(id)).await??;
            assert_eq!(outcome.output::<String>()?.as_deref(), Some(text));
        }
        Ok(())
    })?;
    assert_eq!(upgraded(), [1, 2], "once for each row");
    let of_first: Vec<String> = lab.noted().into_iter().filter(|note| note.contains(" a")).collect();
    let expected = [
        "1.1 a?",
        "2.1 a of version 1",
        "2.1 a of version 1",
        "2.2 a of version 1",
        "3.1 a of version 1",
    ];
    assert_eq!(of_first, expected);
    Ok(())
}

#[test]
fn e_097_an_undo_upgrades_once_as_well() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let (first, _) = rows(&world, &lab)?;
    life::<Third, _>(&world, &lab, async |run| {
        let answer = run
            .executor
            .abort(first, procession::operate::OperatorRequest::new("the test", "to undo"))
            .await?;
        assert_eq!(answer.abort, Some(AbortAnswer::WillRollBack));
        run.settle().await;
        assert_eq!(
            run.executor.status(first).await?.version,
            3,
            "with the undo that failed"
        );
        let outcome = run.wait(run.executor.outcome(first)).await??;
        assert_eq!(outcome.state, ProcedureState::RolledBack);
        Ok(())
    })?;
    assert_eq!(upgraded(), [1]);
    assert!(
        lab.noted()
            .ends_with(&["1'.1 a of version 1".to_owned(), "1'.2 a of version 1".to_owned()])
    );
    Ok(())
}

/// What `strict` refuses to start with.
fn refused<P: Procedure<Env = Lab>>(world: &World, lab: &Lab) -> Result<Vec<String>, Trouble> {
    let before = world.disk.len();
    let strict = world.run(
        FaultPlan::none(),
        |builder| {
            builder
                .register::<Planned>(lab.clone())
                .register::<P>(lab.clone())
                .strict(true)
        },
        async |_| Ok(()),
    );
    assert_eq!(world.disk.len(), before, "nothing was written");
    let error = strict.err().ok_or("strict started without the code")?;
    match error.downcast_ref::<StartError>() {
        Some(StartError::NoCode { families }) => Ok(families.clone()),
        _ => Err(format!("another error: {error}").into()),
    }
}

#[test]
fn e_097_a_dropped_version_and_an_unknown_kind_are_set_aside_or_refused() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let (first, second) = rows(&world, &lab)?;
    // A family with two members whose kind goes.
    let unknown = life::<Third, _>(&world, &lab, async |run| {
        let waits = || crate::support::Act::Wait("go".to_owned(), None);
        let plan = crate::support::plan("u", [waits(), crate::support::Act::Done(9)]);
        submit(run, Patient(plan)).await
    })?;

    let dropped = |id: ProcedureId, version: u16, reads: &str| {
        format!("{id}: version {version} of \"named\" is no longer read: the code reads {reads}")
    };
    let gone = format!("{unknown}: no procedure of kind \"patient\" is registered");
    let listed = |id: ProcedureId, why: &str| format!("{} ({why})", id.family);
    assert_eq!(
        refused::<Later>(&world, &lab)?,
        [listed(first, &dropped(first, 1, "2 to 4")), listed(unknown, &gone)]
    );
    assert_eq!(
        refused::<ThirdAlone>(&world, &lab)?,
        [
            listed(first, &dropped(first, 1, "only 3")),
            listed(second, &dropped(second, 2, "only 3")),
            listed(unknown, &gone)
        ]
    );

    let without = |builder: Builder| {
        builder
            .register::<Planned>(lab.clone())
            .register::<ThirdAlone>(lab.clone())
    };
    world
        .run(FaultPlan::none(), without, async |run| {
            let quarantined = run.executor.snapshot().await?.quarantined;
            assert_eq!(
                quarantined,
                [
                    (first.family, dropped(first, 1, "only 3")),
                    (second.family, dropped(second, 2, "only 3")),
                    (unknown.family, gone.clone())
                ]
            );
            for id in [first, second, unknown] {
                assert_eq!(run.executor.status(id).await?.wait, Some(WaitReason::Quarantined));
            }
            Ok(())
        })?
        .done()?;

    // With the code back each goes on where it was.
    life::<Third, _>(&world, &lab, async |run| {
        assert!(run.executor.snapshot().await?.quarantined.is_empty());
        for id in [first, second, unknown] {
            run.executor.signal(id, "go", &()).await?;
            let outcome = run.wait(run.executor.outcome(id)).await??;
            assert_eq!(outcome.state, ProcedureState::Success);
        }
        Ok(())
    })?;
    assert_eq!(upgraded(), [1, 2]);
    let begun = lab.noted().iter().filter(|note| note.starts_with("1.1 ")).count();
    assert_eq!(begun, 2, "no first stage ran again");
    Ok(())
}

/// Revives a row of version 1 with code that cannot upgrade it, beside healthy families; then with code that can.
fn cannot<P: Procedure<Env = Lab>>(reason: &str) -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let (first, _) = rows(&world, &lab)?;
    life::<P, _>(&world, &lab, async |run| {
        run.executor.signal(first, "go", &()).await?;
        let healthy = (0..100).map(|number| Submit::new(&Planned(chain(&format!("h{number}-"), 2))));
        let submits = healthy.collect::<Result<Vec<_>, _>>()?;
        let ids = run
            .wait(run.executor.supervisor().send(SubmitBatch(submits)))
            .await???;
        for id in ids {
            assert_eq!(run.wait(run.executor.outcome(id)).await??.output::<i64>()?, Some(7));
        }
        run.settle().await;
        assert_eq!(run.executor.status(first).await?.wait, Some(WaitReason::Quarantined));
        let quarantined = run.executor.snapshot().await?.quarantined;
        let why = quarantined.iter().find(|(family, _)| *family == first.family);
        let why = why.map(|(_, why)| why.as_str()).unwrap_or_default();
        assert!(why.contains(reason) && why.contains(&first.to_string()), "{why}");
        Ok(())
    })?;
    assert_eq!(upgraded(), [1]);
    let stages: Vec<String> = lab.calls().iter().map(crate::support::Call::short).collect();
    let round = |stage: u32| (0..100).map(move |number| format!("h{number}-{stage}"));
    assert_eq!(
        stages,
        round(1).chain(round(2)).collect::<Vec<_>>(),
        "the healthy ended in their order"
    );

    life::<Third, _>(&world, &lab, async |run| {
        let outcome = run.wait(run.executor.outcome(first)).await??;
        assert_eq!(outcome.output::<String>()?.as_deref(), Some("a of version 1"));
        Ok(())
    })
}

#[test]
fn e_103_a_panic_in_upgrade_quarantines() -> Tested {
    cannot::<Panics>("upgrade panicked: a mine")
}

#[test]
fn e_097_an_upgrade_that_fails_quarantines_with_its_reason() -> Tested {
    cannot::<Refuses>("version 1 of \"named\": the stored value is not of the type asked for")
}

#[test]
fn e_097_rows_are_upgraded_however_that_life_crashes() -> Tested {
    let prepare = || {
        let (world, lab) = (World::new(), Lab::default());
        let ids = rows(&world, &lab)?;
        Ok((world, (lab, ids)))
    };
    let set_up = |(lab, _): &(Lab, _), builder| with::<Third>(lab, builder);
    let drive = async |(_, ids): &(Lab, (ProcedureId, ProcedureId)), run: &Run, _: usize| {
        for (id, text) in [(ids.0, "a of version 1"), (ids.1, "b+c of version 2")] {
            let sent = run.wait(run.executor.signal(id, "go", &()).key("go")).await?;
            assert!(matches!(sent, Ok(_) | Err(AskError::Finished { .. })), "{sent:?}");
            let outcome = run.wait(run.executor.outcome(id)).await??;
            assert_eq!(outcome.output::<String>()?.as_deref(), Some(text));
        }
        Ok(())
    };
    // The start's own; for each the signal, the retry, the end of its backoff, two stages.
    assert_eq!(enumerate_later(prepare, set_up, drive, |_, _| Ok(()))?, 1 + 2 * 5);
    Ok(())
}
