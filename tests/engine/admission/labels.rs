//! Labels and keys: procedures are found by them from their submission on, after every crash, until the result goes.

use std::future::IntoFuture;
use std::time::Duration;

use procession::errors::SubmitError;
use procession::messages::Submit;
use procession::procedure::{Child, Noop, Timestamp};
use procession::provider::Space;
use procession::status::{KeyedProcedure, ListFilter};
use procession::submit::{Label, LabelError};
use procession::testkit::{Run, Trouble};
use procession::{Builder, Children, Handle, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::support::{Act, Lab, Planned, Tested, chain, enumerate, kinds, live, plan};

/// What an order consists of.
#[derive(Serialize, Deserialize)]
struct Order;

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Part {
    Lines,
    Mails,
    End,
}

impl Procedure for Order {
    const KIND: &'static str = "order";
    type Stage = Part;
    type Env = ();
    type Output = ();

    fn first(&self) -> Part {
        Part::Lines
    }

    async fn execute(&mut self, part: Part, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let spawn = |children, then| Ok(Step::Spawn { children, then });
        match part {
            Part::Lines => {
                let own = Child::new(&Noop)?.label("line", "1");
                let both = Child::new(&Noop)?
                    .label("line", "2")
                    .label("customer", "4712")
                    .inherit_labels();
                spawn(Children::new().child(own).child(both), Part::Mails)
            }
            Part::Mails => spawn(Children::of([&Noop])?.and_detached(&Noop)?.inherit_labels(), Part::End),
            Part::End => {
                cx.submit_message(Submit::new(&Noop)?.label("bill", "7"))?;
                Ok(Step::Done(()))
            }
        }
    }
}

fn set_up(lab: &Lab, builder: Builder) -> Builder {
    kinds(lab, builder).register::<Order>(()).register::<Noop>(())
}

async fn order(run: &Run, key: &str) -> Result<Handle<Order>, Trouble> {
    let submission = run
        .executor
        .submit(Order)
        .key(key)
        .label("customer", "4711")
        .label("region", "eu");
    Ok(run.wait(submission.into_future()).await??)
}

async fn found(run: &Run, labels: &[(&str, &str)]) -> Result<Vec<ProcedureId>, Trouble> {
    let filter = ListFilter {
        labels: labels.iter().map(|(name, value)| Label::new(*name, *value)).collect(),
        ..ListFilter::default()
    };
    let page = run.executor.list(filter, None, 100).await?;
    Ok(page.items.into_iter().map(|status| status.id).collect())
}

const QUARTER: Timestamp = Timestamp(15 * 60_000_000);

#[test]
fn a_procedure_is_found_by_its_labels_until_its_result_goes_after_every_crash() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        if run.now() < QUARTER {
            let handle = order(run, "order-1").await?;
            let root = handle.id();
            assert_eq!(handle.status().await?.labels.get("customer"), Some("4711"));
            assert!(found(run, &[("customer", "4711")]).await?.contains(&root));
            run.wait(handle.outcome()).await??;
            run.settle().await;
            let member = |member| ProcedureId::new(root.family, member);
            let of_region = found(run, &[("region", "eu")]).await?;
            // The root, two of its children, and the family that its stage began.
            assert_eq!(of_region.len(), 4, "{of_region:?}");
            assert_eq!(of_region.get(..3), Some(&[root, member(2), member(3)][..]));
            let mail = of_region.last().copied().ok_or("there are four")?;
            assert_eq!(found(run, &[("customer", "4711")]).await?, [root, member(3), mail]);
            assert_eq!(
                found(run, &[("customer", "4712"), ("region", "eu")]).await?,
                [member(2)]
            );
            assert_eq!(found(run, &[("line", "1")]).await?, [member(1)]);
            assert!(found(run, &[("line", "1"), ("region", "eu")]).await?.is_empty());
            // A family that a stage submitted, with a label of its own.
            assert_eq!(found(run, &[("bill", "7")]).await?.len(), 1);
        }
        run.pass(Duration::from_mins(31)).await;
        run.settle().await;
        for space in [Space::Live, Space::Procedures] {
            let left = run.world.disk.dump(&space);
            assert!(left.is_empty(), "index and labels go with the rows: {left:?}");
        }
        assert!(found(run, &[("customer", "4711")]).await?.is_empty());
        Ok(())
    };
    // Submission, lines, two ends, mails, two ends, the end, and the evictions.
    let done = enumerate(Lab::default, set_up, drive, &[], |_, _, _| Ok(()))?;
    assert!(done.commits >= 8, "{done:?}");
    Ok(())
}

#[test]
fn a_key_tells_how_its_procedure_stands_after_every_crash() -> Tested {
    let drive = async |lab: &Lab, run: &Run| {
        let find = async || run.executor.find("order-1").await;
        if run.now() < QUARTER {
            let submission = run.executor.submit(Order).key_for("order-1", Duration::from_hours(24));
            let handle = run.wait(submission.into_future()).await??;
            assert_eq!(find().await?.map(|found| found.id()), Some(handle.id()));
            run.wait(handle.outcome()).await??;
            let ended = find().await?;
            assert!(
                matches!(&ended, Some(KeyedProcedure::Ended(status)) if status.id == handle.id()),
                "{ended:?}"
            );
            if lab.noted().is_empty() {
                lab.note(handle.id().to_string());
            }
        }
        let first: ProcedureId = lab.noted().first().ok_or("it was noted")?.parse()?;
        let until = Timestamp(24 * 3_600_000_000);
        if run.now() < until {
            run.pass(Duration::from_mins(31)).await;
            let gone = KeyedProcedure::Gone {
                id: first,
                until: Some(until),
            };
            assert_eq!(find().await?, Some(gone));
        }
        run.pass(Duration::from_hours(25)).await;
        assert_eq!(find().await?, None);
        Ok(())
    };
    enumerate(Lab::default, set_up, drive, &[], |_, _, _| Ok(())).map(drop)
}

#[test]
fn a_key_finds_one_that_lives_and_nothing_else() -> Tested {
    live(&Lab::default(), async |run| {
        let waits = plan("w", [Act::Held("gate".to_owned(), Box::new(Act::Done(1)))]);
        let submission = run.executor.submit(Planned(waits)).key("held");
        let handle = run.wait(submission.into_future()).await??;
        let found = run.executor.find("held").await?.ok_or("it is there")?;
        assert!(matches!(&found, KeyedProcedure::Live(status) if status.id == handle.id()));
        assert_eq!(run.executor.find("hel").await?, None);
        Ok(())
    })
}

#[test]
fn labels_out_of_bounds_are_refused_and_leave_nothing() -> Tested {
    live(&Lab::default(), async |run| {
        let commits = run.store.commits();
        let one = || Planned(chain("a", 1));
        let many = (0..17).fold(run.executor.submit(one()), |submission, at| {
            submission.label(format!("l{at}"), "")
        });
        let refused = many.await.err();
        assert!(
            matches!(refused, Some(SubmitError::BadLabels(LabelError::TooMany(17)))),
            "{refused:?}"
        );
        let long = Submit::new(&one())?.label("note", "x".repeat(257));
        let refused = run
            .executor
            .supervisor()
            .send(long)
            .await?
            .err()
            .ok_or("it was taken")?;
        assert_eq!(
            refused.to_string(),
            "the value of the label \"note\" has 257 bytes, over the limit of 256; shorten it, or put it into the \
             procedure's own value"
        );
        assert_eq!(run.store.commits(), commits);
        Ok(())
    })
}

#[test]
fn a_repeat_keeps_the_first_labels() -> Tested {
    live(&Lab::default(), async |run| {
        let submit = |region: &str| {
            let one = Planned(chain("a", 1));
            run.executor.submit(one).key("k").label("region", region).into_future()
        };
        let first = run.wait(submit("eu")).await??;
        let again = run.wait(submit("us")).await??;
        assert_eq!(again.id(), first.id());
        assert_eq!(first.status().await?.labels.get("region"), Some("eu"));
        assert!(found(run, &[("region", "us")]).await?.is_empty());
        Ok(())
    })
}
