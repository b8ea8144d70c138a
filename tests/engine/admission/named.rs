//! Those who hold limits and locks, and those who wait, by name; and of when the wait reason of a row is.

use std::time::Duration;

use procession::health::Particulars;
use procession::limits::{LockMode, LockWaiter};
use procession::operate::OperatorRequest;
use procession::status::WaitReason;
use procession::testkit::World;

use super::limits::{held, live_in, submit, usage};
use crate::support::{Lab, Limited, Planned, Tested};

/// One has the permit. Another waits for it, needs a lock besides, and finds that one taken by a third when the limit
/// is raised.
#[test]
fn holders_and_waiters_are_named_and_an_explanation_is_of_now() -> Tested {
    let lab = Lab::default();
    live_in(&World::new(), &lab, &[("limited", 1)], async |run| {
        let first = submit(run, Limited(held("a")), "a").await?;
        run.pass(Duration::from_secs(60)).await;
        let asked = run.now();
        let second = submit(run, Limited(held("b").exclusive("t")), "b").await?;
        run.settle().await;
        let third = submit(run, Planned(held("c").exclusive("t")), "c").await?;
        run.settle().await;

        let limit = usage(run, "limited").await?;
        assert_eq!((limit.used, limit.holders), (1, vec![first.id()]));
        assert_eq!((limit.waiting, limit.waiters), (1, vec![(second.id(), Some(asked))]));

        run.pass(Duration::from_secs(60)).await;
        let by = OperatorRequest::new("ann", "a test");
        run.executor.set_limit("limited", Some(2), by).await?;
        run.settle().await;
        let locks = run.executor.locks().await?;
        let lock = locks.first().ok_or("the lock is held")?;
        assert_eq!(lock.holders, [(third.id(), LockMode::Exclusive)]);
        let told = |waiter: &LockWaiter| (waiter.id, waiter.mode, waiter.since);
        let waiters: Vec<_> = lock.waiters.iter().map(told).collect();
        assert_eq!(waiters, [(second.id(), LockMode::Exclusive, Some(asked))]);
        assert_eq!(lock.waiting, [second.id()]);

        let status = second.status().await?;
        assert_eq!(status.wait, Some(WaitReason::Permit("limited".into())), "as it parked");
        let explained = run.executor.explain(second.id()).await?.particulars;
        let is_lock = matches!(&explained, Some(Particulars::Lock { need, .. }) if need.path.as_str() == "t");
        assert!(is_lock, "{explained:?}");

        for gate in ["a", "b", "c"] {
            lab.open(gate);
        }
        run.wait(second.outcome()).await??;
        let limit = usage(run, "limited").await?;
        assert!(limit.holders.is_empty() && limit.waiters.is_empty());
        Ok(())
    })
}

/// More than can be named are counted.
#[test]
fn a_hundred_are_named_and_all_are_counted() -> Tested {
    let lab = Lab::default();
    live_in(&World::new(), &lab, &[("limited", 1)], async |run| {
        submit(run, Limited(held("first")), "first").await?;
        for number in 0..102 {
            submit(run, Limited(held("rest")), &format!("rest {number}")).await?;
        }
        run.settle().await;
        let limit = usage(run, "limited").await?;
        assert_eq!((limit.waiting, limit.waiters.len()), (102, 100));
        Ok(())
    })
}
