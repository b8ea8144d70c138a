//! More changes at once than the limiter's mailbox has room for: it hears them in the order of their commits.

use std::pin::pin;

use futures::future::join_all;
use procession::operate::OperatorRequest;
use procession::testkit::{Fault, FaultPlan, Run, World};

use super::limits::{submit, usage};
use crate::support::{Lab, Planned, Tested, chain, kinds};

/// Four times as many as the limiter's mailbox has room for.
const CHANGES: u32 = 4_096;

/// The start, a submission, its only stage.
const BEFORE: u64 = 3;

#[test]
fn the_newest_capacity_stands_however_many_are_set_by_one_batch() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder| kinds(&lab, builder).limit("limited", 1).merge(2 * CHANGES as usize);
    let drive = async |run: &Run| {
        let ended = submit(run, Planned(chain("e", 1)), "e").await?;
        run.wait(ended.outcome()).await??;
        assert_eq!(run.store.commits(), BEFORE);
        // The first waits for its receipt, and all others meanwhile become one batch.
        let all = (1..=CHANGES).map(|limit| {
            run.executor
                .set_limit("limited", Some(limit), OperatorRequest::new("ann", "more of them"))
        });
        let mut all = pin!(join_all(all));
        assert!(futures::poll!(&mut all).is_pending());
        // It goes on with the receipt of that batch, in the same turn of the supervisor: what is at
        // the end of the supervisor's list of futures then takes its place.
        let mut acknowledged = pin!(run.executor.acknowledge(ended.id()));
        assert!(futures::poll!(&mut acknowledged).is_pending());
        run.settle().await;
        run.store.release_receipts();
        let told = run.wait(all).await?;
        assert!(
            told.iter().all(Result::is_ok),
            "{:?}",
            told.iter().find(|told| told.is_err())
        );
        run.wait(acknowledged).await??;
        assert_eq!(usage(run, "limited").await?.limit, Some(CHANGES));
        Ok(())
    };
    world
        .run(FaultPlan::at(BEFORE, Fault::Withhold), set_up, drive)?
        .done()?;
    Ok(())
}
