//! Bulk: one verb for many, each exactly once, whatever crashes on the way.

use std::collections::BTreeMap;
use std::future::IntoFuture;

use procession::ProcedureId;
use procession::operate::{Bulk, BulkReport, BulkVerb};
use procession::status::ProcedureState as State;
use procession::testkit::{Run, Trouble};

use crate::rollback::helper::submit;
use crate::support::{Act, Lab, Planned, Tested, each_crash, kinds, live, plan};

const WHY: &str = "a quiet night";

async fn waiting(run: &Run, key: &str) -> Result<ProcedureId, Trouble> {
    let plan = plan(key, [Act::Wait("never".to_owned(), None), Act::Done(1)]);
    let id = submit(run, Planned(plan), key).await?.id();
    run.settle().await;
    Ok(id)
}

/// Submits a bulk, and waits for what it says.
async fn made(run: &Run, bulk: Bulk) -> Result<(ProcedureId, BulkReport), Trouble> {
    let handle = run
        .wait(run.executor.submit(bulk).key("the bulk").into_future())
        .await??;
    let report = run.wait(handle.outcome()).await??;
    Ok((handle.id(), report))
}

/// Counts the entries of the audit by verb.
async fn entries(run: &Run) -> Result<BTreeMap<String, usize>, Trouble> {
    let mut entries = BTreeMap::new();
    for entry in run.executor.audit(None, 1_000).await? {
        assert_eq!((entry.who.as_str(), entry.why.as_str()), ("ann", WHY));
        *entries.entry(entry.words).or_default() += 1;
    }
    Ok(entries)
}

#[test]
fn each_says_what_became_of_it() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let (a, b) = (waiting(run, "a").await?, waiting(run, "b").await?);
        let gone = ProcedureId::new(99, 0);
        let (id, report) = made(run, Bulk::new(BulkVerb::Abort, [a, gone, b], "ann", WHY)).await?;
        assert_eq!((report.done, report.refused), (2, 1));
        let told: Vec<_> = report.outcomes.iter().map(|outcome| outcome.id.as_str()).collect();
        assert_eq!(told, [a.to_string(), gone.to_string(), b.to_string()]);
        assert!(
            report.outcomes[1]
                .refused
                .as_deref()
                .is_some_and(|why| why.contains("99.0"))
        );
        run.settle().await;
        for id in [a, b] {
            assert_eq!(run.executor.status(id).await?.state, State::RolledBack);
        }
        let keys: Vec<_> = run
            .executor
            .audit(None, 9)
            .await?
            .into_iter()
            .filter_map(|entry| entry.key)
            .collect();
        assert!(
            keys.iter().all(|key| key.as_str().starts_with(&format!("{id}: "))),
            "{keys:?}"
        );
        Ok(())
    })
}

#[test]
fn none_is_no_work() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let (_, report) = made(run, Bulk::new(BulkVerb::Pause, [], "ann", WHY)).await?;
        assert_eq!(report, BulkReport::default());
        Ok(())
    })
}

#[test]
fn an_abort_of_it_stops_it_between_stages() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let ids = [waiting(run, "a").await?, waiting(run, "b").await?];
        let by = procession::operate::OperatorRequest::new("ann", WHY);
        run.executor
            .pause(
                procession::operate::PauseScope::Kind("procession.bulk".into()),
                by.clone(),
            )
            .await?;
        let bulk = Bulk::new(BulkVerb::Pause, ids, "ann", WHY);
        let handle = run.wait(run.executor.submit(bulk).into_future()).await??;
        run.executor.abort(handle.id(), by).await?;
        run.settle().await;
        assert!(run.executor.status(handle.id()).await?.ended.is_some());
        assert!(!run.executor.status(ids[0]).await?.paused);
        Ok(())
    })
}

#[test]
fn each_is_operated_exactly_once_whatever_crashes() -> Tested {
    let done = each_crash(
        |_| Lab::default(),
        kinds,
        async |_: &Lab, run: &Run| {
            let mut ids = Vec::new();
            for key in ["a", "b", "c"] {
                ids.push(waiting(run, key).await?);
            }
            let bulk = Bulk::new(BulkVerb::Pause, ids.clone(), "ann", WHY).at_once(2);
            let (_, report) = made(run, bulk).await?;
            assert_eq!((report.done, report.refused), (3, 0), "{report:?}");
            let expected: BTreeMap<String, usize> = ids.iter().map(|id| (format!("pause {id}"), 1)).collect();
            assert_eq!(entries(run).await?, expected);
            let mut numbers: Vec<_> = report.outcomes.iter().filter_map(|outcome| outcome.number).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, [0, 1, 2], "each outcome names its entry");
            for id in ids {
                assert!(run.executor.status(id).await?.paused);
            }
            Ok(())
        },
        |_, _| Ok(()),
    )?;
    assert!(done.commits >= 12, "{done:?}");
    assert!(done.second > 0, "{done:?}");
    Ok(())
}

#[test]
fn one_that_was_begun_before_filters_were_kept_is_read() -> Tested {
    let bulk = Bulk::new(BulkVerb::Retry, [ProcedureId::root(7)], "ann", WHY).chosen_by("kind:job");
    let mut stored = serde_json::to_value(&bulk)?;
    assert_eq!(serde_json::from_value::<Bulk>(stored.clone())?, bulk);
    let filter = stored.as_object_mut().and_then(|fields| fields.remove("filter"));
    assert_eq!(filter, Some("kind:job".into()));
    let before: Bulk = serde_json::from_value(stored)?;
    assert_eq!(
        (before.filter(), before.who(), before.why(), before.left()),
        (None, "ann", WHY, 1)
    );
    Ok(())
}
