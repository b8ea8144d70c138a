//! Batches by message, and their keys.

use procession::errors::SubmitError;
use procession::messages::{Submit, SubmitBatch};
use procession::testkit::Run;

use crate::support::{Lab, Planned, Tested, chain, live};

async fn send(run: &Run, submits: Vec<Submit>) -> Result<usize, SubmitError> {
    let sent = run.executor.supervisor().send(SubmitBatch(submits)).await;
    sent.map_err(|_| SubmitError::Stopped)?.map(|ids| ids.len())
}

fn keyed(name: &str, key: &str) -> Result<Submit, procession::errors::CodecError> {
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
