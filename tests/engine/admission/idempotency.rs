//! Idempotency keys: the same key and value are the same procedure, whoever asks and whenever.

use std::future::IntoFuture;

use procession::errors::{ProcedureError, SubmitError};
use procession::messages::{Submit, SubmitBatch};
use procession::status::ListFilter;
use procession::testkit::{Run, Trouble, World};
use procession::{Handle, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::support::{Act, Lab, Plan, Planned, Tested, chain, enumerate, failing, kinds, live, live_in, plan};

async fn submit(run: &Run, procedure: &Plan, key: &str) -> Result<Handle<Planned>, Trouble> {
    Ok(run
        .wait(run.executor.submit(Planned(procedure.clone())).key(key).into_future())
        .await??)
}

async fn commits(run: &Run) -> Result<u64, Trouble> {
    Ok(run.executor.snapshot().await?.commits)
}

fn held() -> Plan {
    plan("a", [Act::Held("a".to_owned(), Box::new(Act::Done(7)))])
}

/// Another payload with the same key is refused by name, and leaves nothing.
async fn conflicts(run: &Run, id: ProcedureId) -> Tested {
    let before = commits(run).await?;
    let refused = run.executor.submit(Planned(chain("b", 1))).key("k").into_future().await;
    match refused {
        Err(SubmitError::KeyConflict { key, id: stands_for }) => assert_eq!((key.as_str(), stands_for), ("k", id)),
        other => return Err(format!("{:?}", other.map(|handle| handle.id())).into()),
    }
    assert_eq!(commits(run).await?, before);
    Ok(())
}

#[test]
fn e_086_same_key_same_id() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let id = live_in(&world, &lab, async |run| {
        let first = submit(run, &held(), "k").await?;
        assert_eq!(submit(run, &held(), "k").await?.id(), first.id());
        assert_eq!(commits(run).await?, 1);
        conflicts(run, first.id()).await?;
        lab.open("a");
        assert_eq!(run.wait(first.outcome()).await??, 7);
        let again = submit(run, &held(), "k").await?;
        assert_eq!((again.id(), run.wait(again.outcome()).await??), (first.id(), 7));
        assert_eq!(commits(run).await?, 2);
        conflicts(run, first.id()).await?;
        Ok(first.id())
    })?;
    live_in(&world, &lab, async |run| {
        let again = submit(run, &held(), "k").await?;
        assert_eq!((again.id(), run.wait(again.outcome()).await??), (id, 7));
        conflicts(run, id).await?;
        assert_eq!(commits(run).await?, 0);
        Ok(())
    })?;
    assert_eq!(lab.line(), "a1");
    Ok(())
}

#[test]
fn e_086_same_key_same_id_through_crashes() -> Tested {
    let drive = async |lab: &Lab, run: &Run| {
        let first = submit(run, &held(), "k").await?;
        let again = submit(run, &held(), "k").await?;
        lab.open("a");
        run.wait(first.outcome()).await??;
        let late = submit(run, &held(), "k").await?;
        assert_eq!((again.id(), late.id()), (first.id(), first.id()));
        assert_eq!(run.wait(late.outcome()).await??, 7);
        conflicts(run, first.id()).await
    };
    let done = enumerate(Lab::default, kinds, drive, &[], |plain, crashed, crashes| {
        plain.compare(crashed, crashes)
    })?;
    assert_eq!(done.commits, 2);
    Ok(())
}

/// Two ask in the same instant, so many turns apart; gives the commits when both had their answer.
async fn two_at_once(lab: &Lab, run: &Run, turns: usize, second_first: bool) -> Result<u64, Trouble> {
    let (near, far) = (
        if second_first { turns } else { 0 },
        if second_first { 0 } else { turns },
    );
    let ask = async |turns: usize| {
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        run.executor.submit(Planned(held())).key("k").into_future().await
    };
    let (one, other) = futures::join!(ask(near), ask(far));
    let (one, other) = (one?, other?);
    assert_eq!(one.id(), other.id());
    let answered = commits(run).await?;
    lab.open("a");
    assert_eq!(run.wait(one.outcome()).await??, run.wait(other.outcome()).await??);
    Ok(answered)
}

#[test]
fn e_087_two_at_once() -> Tested {
    for turns in 0..100 {
        for second_first in [false, true] {
            let lab = Lab::default();
            live(&lab, async |run| {
                // Both have waited for the one commit there was.
                assert_eq!(two_at_once(&lab, run, turns, second_first).await?, 1);
                assert_eq!(run.executor.list(ListFilter::default(), None, 10).await?.items.len(), 1);
                assert_eq!(commits(run).await?, 2);
                Ok(())
            })?;
            assert_eq!(lab.line(), "a1");
        }
    }
    Ok(())
}

#[test]
fn e_087_two_at_once_through_crashes() -> Tested {
    let drive = async |lab: &Lab, run: &Run| two_at_once(lab, run, 0, false).await.map(|_| ());
    let done = enumerate(Lab::default, kinds, drive, &[], |plain, crashed, crashes| {
        plain.compare(crashed, crashes)
    })?;
    assert_eq!(done.commits, 2);
    Ok(())
}

/// Submits what fails, and checks that it failed.
async fn fails(run: &Run) -> Result<ProcedureId, Trouble> {
    let handle = submit(run, &failing("a", 2), "k").await?;
    match run.wait(handle.outcome()).await? {
        Err(ProcedureError::RolledBack { cause, .. }) => assert_eq!(cause.text, "boom"),
        other => return Err(format!("it ended with {other:?}").into()),
    }
    Ok(handle.id())
}

#[test]
fn e_088_the_key_of_a_failure() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let id = live_in(&world, &lab, async |run| {
        let id = fails(run).await?;
        let ended = commits(run).await?;
        assert_eq!(fails(run).await?, id);
        assert_eq!(commits(run).await?, ended);
        Ok(id)
    })?;
    live_in(&world, &lab, async |run| {
        assert_eq!(fails(run).await?, id);
        assert_eq!(commits(run).await?, 0);
        Ok(())
    })?;
    assert_eq!(lab.line(), "a1 a2 a2' a1'");
    let drive = async |_: &Lab, run: &Run| {
        let first = fails(run).await?;
        assert_eq!(fails(run).await?, first);
        Ok(())
    };
    let done = enumerate(Lab::default, kinds, drive, &[], |plain, crashed, crashes| {
        plain.compare(crashed, crashes)
    })?;
    assert_eq!(done.commits, 5);
    Ok(())
}

/// A kind that nobody registers.
#[derive(Serialize, Deserialize)]
struct Stranger;

impl Procedure for Stranger {
    const KIND: &'static str = "stranger";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(()))
    }
}

async fn rows(run: &Run) -> Result<Vec<ProcedureId>, Trouble> {
    Ok(run
        .executor
        .list(ListFilter::default(), None, 100)
        .await?
        .items
        .iter()
        .map(|status| status.id)
        .collect())
}

fn five(names: &str) -> Result<Vec<Submit>, Trouble> {
    (0..5)
        .map(|number| {
            let name = format!("{names}{number}");
            Ok(Submit::new(&Planned(chain(&name, 1)))?.key(name))
        })
        .collect()
}

#[test]
fn e_090_a_batch_is_one() -> Tested {
    let drive = async |lab: &Lab, run: &Run| {
        let before = rows(run).await?;
        assert!(before.is_empty() || before.len() == 5, "{before:?}");
        let ids = run
            .wait(run.executor.supervisor().send(SubmitBatch(five("a")?)))
            .await???;
        assert!(ids.is_sorted() && ids.len() == 5, "{ids:?}");
        for (number, id) in ids.iter().enumerate() {
            run.wait(run.executor.outcome(*id)).await??;
            assert_eq!(
                lab.id(&format!("a{number}")),
                Some(*id),
                "the numbers are in the order given"
            );
        }
        let ended = commits(run).await?;
        let mut unknown = five("b")?;
        unknown.insert(3, Submit::new(&Stranger)?);
        match run.wait(run.executor.supervisor().send(SubmitBatch(unknown))).await?? {
            Err(SubmitError::UnknownKind { kind }) => assert_eq!(kind.as_str(), "stranger"),
            other => return Err(format!("{other:?}").into()),
        }
        assert_eq!((rows(run).await?, commits(run).await?), (ids, ended));
        Ok(())
    };
    let done = enumerate(Lab::default, kinds, drive, &[], |plain, crashed, crashes| {
        plain.compare(crashed, crashes)
    })?;
    assert_eq!(done.commits, 1 + 5);
    Ok(())
}
