//! Labels as earlier releases left them, and labels that are missing.

use std::future::IntoFuture;
use std::time::Duration;

use futures::executor::block_on;
use procession::procedure::{Child, Noop};
use procession::provider::{Batch, JournalStore, Space};
use procession::status::{ListFilter, ProcedureState};
use procession::submit::Label;
use procession::testkit::{FaultPlan, MemoryStore, Run, Trouble, World};
use procession::{Builder, Children, Procedure, ProcedureId, StageContext, StageError, Step};
use procession_actors::journal::keys;
use procession_actors::testkit::format;
use procession_actors::testkit::labels::index_agrees;
use procession_kernel::{Labels, Record, Row, RowLabels};
use serde::{Deserialize, Serialize};

use crate::support::Tested;

/// Waits to be told, and has two children then: one inherits its labels, one adds a label.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Told;

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Stage {
    Rest,
    Children,
    End,
}

impl Procedure for Told {
    const KIND: &'static str = "told";
    type Stage = Stage;
    type Env = ();
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Rest
    }

    async fn execute(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Rest => Ok(Step::Wait {
                event: "go".into(),
                timeout: None,
                then: Stage::Children,
            }),
            Stage::Children => {
                let same = Child::new(&Noop)?.inherit_labels();
                let more = Child::new(&Noop)?.inherit_labels().label("line", "2");
                Ok(Step::Spawn {
                    children: Children::new().child(same).child(more),
                    then: Stage::End,
                })
            }
            Stage::End => Ok(Step::Done(())),
        }
    }
}

fn set_up(builder: Builder) -> Builder {
    builder.register::<Told>(()).register::<Noop>(())
}

async fn begin(run: &Run, customer: &str) -> Result<ProcedureId, Trouble> {
    let submission = run.executor.submit(Told).label("customer", customer);
    let id = run.wait(submission.into_future()).await??.id();
    run.settle().await;
    Ok(id)
}

async fn found(run: &Run, name: &str, value: &str) -> Result<Vec<ProcedureId>, Trouble> {
    let filter = ListFilter {
        labels: vec![Label::new(name, value)],
        ..ListFilter::default()
    };
    let page = run.executor.list(filter, None, 100).await?;
    Ok(page.items.into_iter().map(|status| status.id).collect())
}

fn rewrite(world: &World, change: impl FnOnce(&mut Batch) -> Tested) -> Tested {
    let store = MemoryStore::open(&world.disk, FaultPlan::none())?;
    let mut batch = Batch::new(block_on(store.acquire())?);
    change(&mut batch)?;
    block_on(store.append(batch))?;
    Ok(())
}

/// Makes the rows of a family look as formats 4 to 6 had them: labels inside, and under long digests in the index.
fn make_old(world: &World, family: u64) -> Tested {
    let rows = format::rows(&world.disk.dump(&Space::Procedures))?;
    rewrite(world, |batch| {
        for mut row in rows.into_iter().filter(|row| row.id.family == family) {
            let labels = Labels::clone(&row.labels);
            batch.delete(Space::Procedures, &keys::labels(row.id));
            for label in labels.iter() {
                batch.delete(Space::Live, &keys::label(label.digest(), family));
                batch.put(Space::Live, &keys::label(label.long_digest(), family), &[]);
            }
            row.labels = RowLabels::in_row(labels);
            write(batch, row)?;
        }
        Ok(())
    })
}

fn write(batch: &mut Batch, row: Row) -> Tested {
    for write in format::writes(&[Record::Row(Box::new(row))])?.writes() {
        batch.put(write.space.clone(), write.key, write.value.unwrap_or_default());
    }
    Ok(())
}

#[test]
fn a_family_with_labels_of_format_6_goes_on_is_found_and_goes() -> Tested {
    let world = World::new();
    let ids = world.run(FaultPlan::none(), set_up, async |run| {
        Ok([begin(run, "4711").await?, begin(run, "4711").await?])
    })?;
    let [old, new] = ids.done()?;
    make_old(&world, old.family)?;
    let agrees = || index_agrees(&world.disk.dump(&Space::Procedures), &world.disk.dump(&Space::Live));
    agrees()?;
    world
        .run(FaultPlan::none(), set_up, async |run| {
            let member = |root: ProcedureId, member| ProcedureId::new(root.family, member);
            assert_eq!(found(run, "customer", "4711").await?, [old, new]);
            assert_eq!(run.executor.status(old).await?.labels.get("customer"), Some("4711"));
            for root in [old, new] {
                run.executor.signal(root, "go", &()).await?;
                let outcome = run.wait(run.executor.outcome(root)).await??;
                assert_eq!(outcome.state, ProcedureState::Success);
            }
            run.settle().await;
            agrees()?;
            let all = [old, new].map(|root| [root, member(root, 1), member(root, 2)]);
            assert_eq!(found(run, "customer", "4711").await?, all.concat());
            assert_eq!(found(run, "line", "2").await?, [member(old, 2), member(new, 2)]);
            // Members that name an entry were born under this format, and the old root keeps its labels inside.
            let rows = format::rows(&world.disk.dump(&Space::Procedures))?;
            let entries: Vec<_> = rows.iter().map(|row| row.labels.entry()).collect();
            assert_eq!(entries, [None, Some(1), Some(2), Some(0), Some(0), Some(2)]);
            let export = run.executor.export(old).await?;
            assert_eq!(export.format, 2, "earlier releases would find no labels");
            let shown: Vec<Labels> = export.procedures.iter().map(|member| member.labels.clone()).collect();
            let expected = rows.iter().take(3).map(|row| Labels::clone(&row.labels));
            assert_eq!(shown, expected.collect::<Vec<_>>());
            run.pass(Duration::from_mins(31)).await;
            run.settle().await;
            for space in [Space::Live, Space::Procedures] {
                let left = world.disk.dump(&space);
                assert!(left.is_empty(), "{left:?}");
            }
            Ok(())
        })?
        .done()
}

#[test]
fn a_family_whose_labels_are_missing_or_damaged_is_set_aside_and_named() -> Tested {
    let world = World::new();
    let ids = world.run(FaultPlan::none(), set_up, async |run| {
        let ids = [begin(run, "1").await?, begin(run, "2").await?, begin(run, "3").await?];
        Ok(ids)
    })?;
    let [missing, damaged, sound] = ids.done()?;
    rewrite(&world, |batch| {
        batch.delete(Space::Procedures, &keys::labels(missing));
        batch.put(Space::Procedures, &keys::labels(damaged), &[1, 0xc1]);
        Ok(())
    })?;
    world
        .run(FaultPlan::none(), set_up, async |run| {
            let quarantined = run.executor.snapshot().await?.quarantined;
            let why = |root: ProcedureId| quarantined.iter().find(|(family, _)| *family == root.family);
            for (root, part) in [(missing, "are missing"), (damaged, "the labels of")] {
                let said = why(root).map(|(_, why)| why.as_str()).unwrap_or_default();
                assert!(said.contains(part), "{said}");
                let listed = run.executor.list(ListFilter::default(), None, 10).await?;
                assert!(listed.unreadable.contains(&root), "{listed:?}");
            }
            assert!(why(sound).is_none());
            assert_eq!(found(run, "customer", "3").await?, [sound]);
            Ok(())
        })?
        .done()
}
