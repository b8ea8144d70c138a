//! Results of a kind that says itself how long they are kept.

use std::future::IntoFuture;
use std::time::Duration;

use procession::errors::AskError;
use procession::procedure::Timestamp;
use procession::testkit::{Run, Trouble};
use procession::{Procedure, ProcedureId};

use super::kinds::{HOUR, Kept, all};
use crate::support::{Lab, Planned, Tested, chain, enumerate};

const MINUTE: Duration = Duration::from_mins(1);
const BEFORE: Duration = Duration::from_micros(1);

async fn ends<P: Procedure<Output = i64>>(run: &Run, procedure: P, key: &str) -> Result<ProcedureId, Trouble> {
    let handle = run
        .wait(run.executor.submit(procedure).key(key).into_future())
        .await??;
    assert_eq!(run.wait(handle.outcome()).await??, 7);
    Ok(handle.id())
}

/// Passes to just before this time, where the result is there, and to it, where it is gone.
async fn goes_at(run: &Run, id: ProcedureId, after: Duration) -> Tested {
    let at = Timestamp(0).after(after);
    if run.now() < at {
        run.pass(at.since(run.now()) - BEFORE).await;
        assert_eq!(run.executor.outcome(id).await?.output::<i64>()?, Some(7));
    }
    run.pass(at.since(run.now())).await;
    let gone = run.executor.outcome(id).await.map(|outcome| outcome.state);
    assert!(
        matches!(&gone, Err(AskError::Unknown(unknown)) if *unknown == id),
        "{gone:?}"
    );
    Ok(())
}

#[test]
fn e_089_three_roots_go_each_at_its_time() -> Tested {
    let drive = async |lab: &Lab, run: &Run| {
        if run.now() < Timestamp(0).after(MINUTE) {
            let ids = [
                ends(run, Planned(chain("never", 1)), "never").await?,
                ends(run, Planned(chain("early", 1)), "early").await?,
                ends(run, Kept, "kept").await?,
            ];
            if lab.noted().is_empty() {
                ids.iter().for_each(|id| lab.note(id.to_string()));
            }
            run.pass(MINUTE.saturating_sub(run.now().since(Timestamp(0)))).await;
        }
        let notes = lab.noted();
        let ids = notes
            .iter()
            .map(|id| id.parse())
            .collect::<Result<Vec<ProcedureId>, _>>()?;
        let [never, early, kept] = ids[..] else {
            return Err("there are three".into());
        };
        if run.now() < Timestamp(0).after(MINUTE * 6) {
            run.executor.acknowledge(early).await?;
        }
        goes_at(run, early, MINUTE * 6).await?;
        goes_at(run, never, MINUTE * 15).await?;
        goes_at(run, kept, HOUR).await
    };
    let done = enumerate(Lab::default, all, drive, &[], |plain, crashed, crashes| {
        plain.compare(crashed, crashes)
    })?;
    assert_eq!(
        done.commits,
        3 * 2 + 1 + 3,
        "submitted and ended, acknowledged, evicted"
    );
    Ok(())
}

#[test]
fn e_089_a_kind_says_also_how_long_after_the_acknowledgement() -> Tested {
    let drive = async |lab: &Lab, run: &Run| {
        if run.now() < Timestamp(0).after(MINUTE) {
            let id = ends(run, Kept, "kept").await?;
            if lab.noted().is_empty() {
                lab.note(id.to_string());
            }
            run.pass(MINUTE.saturating_sub(run.now().since(Timestamp(0)))).await;
        }
        let id: ProcedureId = lab.noted().first().ok_or("it was noted")?.parse()?;
        if run.now() == Timestamp(0).after(MINUTE) {
            run.executor.acknowledge(id).await?;
        }
        goes_at(run, id, MINUTE + HOUR / 2).await
    };
    let done = enumerate(Lab::default, all, drive, &[], |_, _, _| Ok(()))?;
    assert_eq!(done.commits, 2 + 1 + 1);
    Ok(())
}
