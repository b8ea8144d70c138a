//! Very many procedures that ask: which of them are named, what is counted, and what a restart changes.

use std::collections::BTreeSet;
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use procession::ProcedureId;
use procession::health::{Rule, Verdict};
use procession::messages::{Submit, SubmitBatch};
use procession::operate::OperatorRequest;
use procession::procedure::Timestamp;
use procession::status::{ListFilter, Status};
use procession::testkit::{Run, Trouble, World};

use crate::support::{Act, Lab, Planned, Tested, live_in, plan};

/// Of each batch; the batches are a second apart.
const BATCH: usize = 250;
const BATCHES: usize = 8;
const NAMED: usize = 1_000;

fn by(key: &str) -> OperatorRequest {
    OperatorRequest::new("ann", "so it is").key(key)
}

/// Submits all, oldest first.
async fn submit_all(run: &Run) -> Result<Vec<ProcedureId>, Trouble> {
    let asks = Planned(plan("p", [Act::Ask("drop t?".to_owned(), None), Act::DoneAnswer]));
    let mut ids = Vec::new();
    for _ in 0..BATCHES {
        let batch: Vec<Submit> = (0..BATCH).map(|_| Submit::new(&asks)).collect::<Result<_, _>>()?;
        ids.extend(run.wait(run.executor.supervisor().send(SubmitBatch(batch))).await???);
        run.settle().await;
        run.pass(Duration::from_secs(1)).await;
    }
    Ok(ids)
}

/// Returns the procedures that verdicts name, and the verdict that counts the others.
async fn undecided(run: &Run) -> Result<(BTreeSet<ProcedureId>, Verdict), Trouble> {
    let mut verdicts = run.executor.verdicts().await?;
    verdicts.retain(|verdict| verdict.rule == Rule::Undecided);
    let named = verdicts.iter().filter_map(|verdict| verdict.procedure).collect();
    let mut others = verdicts.into_iter().filter(|verdict| verdict.procedure.is_none());
    let counted = others.next().ok_or("the others are not counted")?;
    assert_eq!(others.next(), None);
    Ok((named, counted))
}

async fn all_live(run: &Run) -> Result<Vec<Status>, Trouble> {
    let filter = ListFilter {
        live_only: true,
        ..ListFilter::default()
    };
    let (mut all, mut from) = (Vec::new(), None);
    loop {
        let page = run.executor.list(filter.clone(), from, 500).await?;
        all.extend(page.items);
        from = page.next;
        if from.is_none() {
            return Ok(all);
        }
    }
}

/// Returns the gauge of verdicts that a decision is due.
fn gauge(snapshotter: &Snapshotter) -> Option<f64> {
    let all = snapshotter.snapshot().into_vec();
    all.into_iter().find_map(|(key, _, _, value)| {
        let is_it =
            key.key().name() == "procession_stuck" && key.key().labels().any(|label| label.value() == "undecided");
        if let (true, DebugValue::Gauge(value)) = (is_it, value) {
            Some(value.into_inner())
        } else {
            None
        }
    })
}

#[test]
fn g_072_the_oldest_roots_that_ask_are_named_and_all_are_counted() -> Tested {
    let (recorder, world, lab) = (DebuggingRecorder::new(), World::new(), Lab::default());
    let all = BATCH * BATCHES;
    let before = metrics::with_local_recorder(&recorder, || {
        live_in(&world, &lab, async |run| {
            let ids = submit_all(run).await?;
            let (named, counted) = undecided(run).await?;
            let oldest: BTreeSet<ProcedureId> = ids.iter().take(NAMED).copied().collect();
            assert_eq!(named, oldest);
            assert_eq!(counted.fact("more"), Some((all - NAMED).to_string().as_str()));
            assert_eq!(counted.since, Timestamp(4_000_000), "of the oldest that is not named");
            assert_eq!(gauge(&recorder.snapshotter()), Some(all as f64));

            // Three of the oldest are settled; those next in age are named instead.
            let [one, two, three] = ids.first_chunk().ok_or("there are more")?;
            run.executor.decide(*one, &7_i64, by("answer")).await?;
            run.executor.retry_now(*two, by("retry")).await?;
            run.executor.abort(*three, by("abort")).await?;
            run.settle().await;
            let (named, counted) = undecided(run).await?;
            let oldest: BTreeSet<ProcedureId> = ids.iter().skip(3).take(NAMED).copied().collect();
            assert_eq!(named, oldest);
            assert_eq!(counted.fact("more"), Some((all - 3 - NAMED).to_string().as_str()));
            let rows = all_live(run).await?;
            assert_eq!(rows.len(), all - 3);
            Ok((rows, named, counted.text))
        })
    })?;
    live_in(&world, &lab, async |run| {
        run.settle().await;
        let (named, counted) = undecided(run).await?;
        assert_eq!(
            (all_live(run).await?, named, counted.text),
            before,
            "a start reads the same"
        );
        Ok(())
    })
}
