//! Batches by message: their keys, and what is asked of each value before anything is stored.

use procession::messages::{Submit, SubmitBatch};
use procession::testkit::{FaultPlan, Run, World};
use procession::{Procedure, StageContext, StageError, Step, SubmitError};
use serde::{Deserialize, Serialize};

use crate::support::{Lab, Planned, Tested, chain, kinds, live};

async fn send(run: &Run, submits: Vec<Submit>) -> Result<usize, SubmitError> {
    let sent = run.executor.supervisor().send(SubmitBatch(submits)).await;
    sent.map_err(|_| SubmitError::Stopped)?.map(|ids| ids.len())
}

fn keyed(name: &str, key: &str) -> Result<Submit, procession::CodecError> {
    Ok(Submit::new(&Planned(chain(name, 1)))?.key(key))
}

#[test]
fn a_conflict_within_a_batch_names_both_places() -> Tested {
    live(&Lab::default(), async |run| {
        let submits = vec![keyed("a", "1")?, keyed("b", "k")?, keyed("c", "2")?, keyed("d", "k")?];
        let why = send(run, submits).await.err().ok_or("it was taken")?.to_string();
        assert!(why.contains("1 and 3 of the batch") && why.contains("\"k\""), "{why}");
        assert_eq!(run.executor.snapshot().await?.live_families, 0);
        // Of equal submissions one is stored, and all get its id.
        let taken = send(run, vec![keyed("a", "1")?, keyed("b", "k")?, keyed("b", "k")?]).await?;
        run.settle().await;
        assert_eq!(
            (
                taken,
                run.executor.list(Default::default(), None, 10).await?.items.len()
            ),
            (3, 2)
        );
        Ok(())
    })
}

#[test]
fn a_conflict_with_what_was_submitted_before_names_its_id() -> Tested {
    live(&Lab::default(), async |run| {
        send(run, vec![keyed("a", "k")?]).await?;
        let refused = send(run, vec![keyed("b", "2")?, keyed("c", "k")?]).await;
        let Err(SubmitError::KeyConflict { id, .. }) = &refused else {
            return Err(format!("{refused:?}").into());
        };
        assert_eq!(*id, procession::ProcedureId::root(1));
        Ok(())
    })
}

/// Says whether it can run here.
#[derive(Serialize, Deserialize)]
struct Picky(bool);

impl Procedure for Picky {
    const KIND: &'static str = "picky";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) -> Self::Stage {}

    fn check(&self, (): &Self::Env) -> Result<(), String> {
        self.0.then_some(()).ok_or_else(|| "it does not fit".to_owned())
    }

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(()))
    }

    async fn rollback(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        Ok(())
    }
}

fn is_unfit<T: std::fmt::Debug>(answer: &Result<T, SubmitError>) {
    assert!(
        matches!(answer, Err(SubmitError::Unfit { why }) if why == "it does not fit"),
        "{answer:?}"
    );
}

#[test]
fn what_comes_by_message_is_checked_as_well() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let ended = world.run(
        FaultPlan::none(),
        |builder| kinds(&lab, builder).register::<Picky>(()),
        async |run| {
            is_unfit(&run.executor.supervisor().send(Submit::new(&Picky(false))?).await?);
            is_unfit(&send(run, vec![Submit::new(&Picky(true))?, Submit::new(&Picky(false))?]).await);
            run.settle().await;
            assert_eq!(run.executor.snapshot().await?.commits, 1, "nothing is stored");
            assert_eq!(
                send(run, vec![Submit::new(&Picky(true))?, Submit::new(&Picky(true))?]).await?,
                2
            );
            Ok(())
        },
    )?;
    ended.done()
}
