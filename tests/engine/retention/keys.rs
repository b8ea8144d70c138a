//! Idempotency keys: they die with the result, or outlive it as long as the submitter said.

use std::future::IntoFuture;
use std::time::Duration;

use procession::errors::{AskError, ProcedureError};
use procession::procedure::Timestamp;
use procession::provider::Space;
use procession::testkit::{Run, Trouble};
use procession::{Handle, ProcedureId};

use crate::support::{Lab, Planned, Tested, chain, enumerate, kinds, live};

const DAY: Duration = Duration::from_hours(24);

fn minutes(minutes: u64) -> Timestamp {
    Timestamp(minutes * 60_000_000)
}

async fn until(run: &Run, at: Timestamp) {
    run.pass(at.since(run.now())).await;
}

async fn submit(run: &Run, key: &str) -> Result<Handle<Planned>, Trouble> {
    let submission = run.executor.submit(Planned(chain(key, 1)));
    let submission = match key {
        "m" => submission.key_for(key, DAY),
        _ => submission.key(key),
    };
    Ok(run.wait(submission.into_future()).await??)
}

async fn ends(run: &Run, key: &str) -> Result<ProcedureId, Trouble> {
    let handle = submit(run, key).await?;
    assert_eq!(run.wait(handle.outcome()).await??, 7);
    Ok(handle.id())
}

/// The id is that of the first, and its result is gone.
async fn is_remembered(run: &Run, first: ProcedureId) -> Tested {
    let again = submit(run, "m").await?;
    assert_eq!(again.id(), first);
    let gone = again.outcome().await;
    assert!(
        matches!(&gone, Err(ProcedureError::Ask(AskError::Unknown(id))) if *id == first),
        "{gone:?}"
    );
    let text = gone.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("its result was evicted"), "{text}");
    Ok(())
}

fn noted(lab: &Lab, place: usize) -> Result<ProcedureId, Trouble> {
    let notes = lab.noted();
    Ok(notes.get(place).ok_or("it was noted")?.parse()?)
}

#[test]
fn e_111_a_key_may_outlive_its_result() -> Tested {
    let drive = async |lab: &Lab, run: &Run| {
        if run.now() < minutes(15) {
            let ids = [ends(run, "k").await?, ends(run, "m").await?];
            if lab.noted().is_empty() {
                ids.iter().for_each(|id| lab.note(id.to_string()));
            }
        }
        let (k, m) = (noted(lab, 0)?, noted(lab, 1)?);
        if run.now() < minutes(35) {
            until(run, minutes(20)).await;
            assert!(run.executor.status(m).await.is_err(), "evicted");
            is_remembered(run, m).await?;
            let anew = ends(run, "k").await?;
            assert!(anew > m && anew > k, "{anew} is another than {k}");
        }
        if run.now() < minutes(24 * 60) {
            until(run, minutes(24 * 60 - 1)).await;
            is_remembered(run, m).await?;
        }
        until(run, minutes(25 * 60)).await;
        let anew = ends(run, "m").await?;
        assert!(anew > m, "{anew} is another than {m}");
        Ok(())
    };
    let done = enumerate(Lab::default, kinds, drive, &[], |plain, _, _| {
        assert_eq!(plain.line(), "k1 m1 k1 m1");
        Ok(())
    })?;
    // Each of the four runs has two; the first two go together, then the second `k`, then the key `m`.
    assert_eq!(done.commits, 4 * 2 + 1 + 1 + 1);
    Ok(())
}

#[test]
fn e_111_a_key_that_is_asked_for_less_long_lives_as_long_as_its_result() -> Tested {
    live(&Lab::default(), async |run| {
        let submission = run.executor.submit(Planned(chain("a", 1)));
        let short = Duration::from_secs(1);
        let first = run.wait(submission.key_for("a", short).into_future()).await??;
        run.wait(first.outcome()).await??;
        until(run, minutes(14)).await;
        assert_eq!(submit(run, "a").await?.id(), first.id());
        until(run, minutes(15)).await;
        assert_ne!(submit(run, "a").await?.id(), first.id());
        Ok(())
    })
}

#[test]
fn e_111_nothing_is_left_of_a_kept_key_in_the_end() -> Tested {
    live(&Lab::default(), async |run| {
        ends(run, "m").await?;
        until(run, minutes(16)).await;
        let left = |space: &Space| run.world.disk.dump(space).len();
        assert_eq!(
            [left(&Space::Procedures), left(&Space::Keys), left(&Space::Finished)],
            [0, 1, 1]
        );
        until(run, minutes(24 * 60)).await;
        assert_eq!([left(&Space::Keys), left(&Space::Finished)], [0, 0]);
        Ok(())
    })
}
