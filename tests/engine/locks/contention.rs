//! Many that contend for many locks: everyone ends, nothing is left, and how
//! often one is passed by those who came later is bounded.

use std::collections::{BTreeMap, BTreeSet};

use procession::limits::{LockMode, LockNeed, LockPath, MAX_OVERTAKES};
use procession::messages::{Submit, SubmitBatch};
use procession::status::ProcedureState;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Procedure};

use super::kit::nothing_is_left;
use crate::rollback::helper::Order;
use crate::support::{Act, Holding, Lab, Limited, Plan, Planned, Tested, enumerate, kinds, plan};

/// Procedures of one batch; the engine takes the next when it is at rest between two turns.
const BATCH: usize = 500;

/// Draws what one needs, of so many locks.
fn needs(draw: &mut Order, locks: u64) -> Vec<LockNeed> {
    let count = 1 + draw.below(3);
    let paths = (0..count).map(|_| draw.below(locks)).collect::<BTreeSet<_>>();
    paths
        .into_iter()
        .map(|path| match draw.below(4) {
            0 => LockNeed::shared(LockPath::parse(format!("lock/{path}"))),
            _ => LockNeed::exclusive(LockPath::parse(format!("lock/{path}"))),
        })
        .collect()
}

/// What one life of contention is made of.
struct Contention {
    seed: u64,
    count: usize,
    /// Locks that are contended for.
    locks: u64,
    /// Priorities below this are drawn; 1 makes all equal.
    priorities: u64,
    /// One of so many sleeps while it holds its locks; 0 is none.
    sleepers: u64,
    /// Capacity of the limit of which one of three needs a permit as well.
    permits: Option<u32>,
}

impl Contention {
    fn plans(&self) -> Vec<Plan> {
        let mut draw = Order::new(self.seed);
        let one = |number: usize| {
            let needs = needs(&mut draw, self.locks);
            let priority = i16::try_from(draw.below(self.priorities)).unwrap_or_default();
            let sleeps = self.sleepers > 0 && draw.below(self.sleepers) == 0;
            let acts = if sleeps {
                vec![Act::Sleep(1 + draw.below(50)), Act::Done(1)]
            } else {
                vec![Act::Done(1)]
            };
            plan(&number.to_string(), acts).locks(needs).priority(priority)
        };
        (0..self.count).map(one).collect()
    }

    /// Says how one is submitted: one that sleeps holds its locks for life.
    fn submit(&self, number: usize, plan: &Plan) -> Result<Submit, procession::errors::CodecError> {
        match (plan.acts.len() > 1, self.permits.is_some() && number.is_multiple_of(3)) {
            (true, _) => Submit::new(&Holding(plan.clone())),
            (false, true) => Submit::new(&Limited(plan.clone())),
            (false, false) => Submit::new(&Planned(plan.clone())),
        }
    }

    fn set_up(&self, lab: &Lab, builder: Builder) -> Builder {
        let limit = |builder: Builder, permits| builder.limit(Limited::KIND, permits);
        self.permits.into_iter().fold(kinds(lab, builder), limit)
    }

    /// Submits all in one batch, as a client that repeats itself after a crash, and waits for them.
    async fn all_end(&self, run: &Run) -> Tested {
        let mut submits = Vec::new();
        for (number, plan) in self.plans().iter().enumerate() {
            submits.push(self.submit(number, plan)?.key(plan.name.clone()));
        }
        let ids = run
            .wait(run.executor.supervisor().send(SubmitBatch(submits)))
            .await???;
        for id in ids {
            let outcome = run.wait(run.executor.outcome(id)).await??;
            assert_eq!(outcome.state, ProcedureState::Success, "{id}");
        }
        nothing_is_left(run).await
    }

    /// Runs all, and gives how often the one was passed that was passed most.
    fn passed_most(&self) -> Result<u32, Trouble> {
        let (lab, plans) = (Lab::default(), self.plans());
        let set_up = |builder: Builder| self.set_up(&lab, builder).merge(64);
        World::new()
            .run(FaultPlan::none(), set_up, async |run: &Run| {
                let mut waits = Vec::new();
                for (batch, first) in plans.chunks(BATCH).zip((0..).step_by(BATCH)) {
                    let submits: Result<Vec<_>, _> = batch
                        .iter()
                        .zip(first..)
                        .map(|(plan, number)| self.submit(number, plan))
                        .collect();
                    let ids = run
                        .wait(run.executor.supervisor().send(SubmitBatch(submits?)))
                        .await???;
                    waits.extend(ids);
                }
                for id in waits {
                    run.wait(run.executor.outcome(id)).await??;
                }
                nothing_is_left(run).await
            })?
            .done()?;
        if let Some(clash) = lab.clashes().first() {
            return Err(clash.clone().into());
        }
        Ok(passed_most(&lab, &plans))
    }
}

/// Counts, for each, the first calls of later ones that conflict with it and came before its own.
fn passed_most(lab: &Lab, plans: &[Plan]) -> u32 {
    let mut served: BTreeMap<String, Vec<(usize, LockMode)>> = BTreeMap::new();
    let (mut most, mut count) = (0, 0);
    for call in lab.calls().iter().filter(|call| call.stage == 1) {
        let number: usize = call.name.parse().unwrap_or_default();
        count += 1;
        let mut passed_by: Vec<usize> = Vec::new();
        for need in plans
            .get(number)
            .and_then(|plan| plan.locks.get(&1))
            .into_iter()
            .flatten()
        {
            let at = served.entry(need.path.to_string()).or_default();
            let conflicts = |mode| need.mode == LockMode::Exclusive || mode == LockMode::Exclusive;
            let later = at.iter().filter(|(other, mode)| *other > number && conflicts(*mode));
            passed_by.extend(later.map(|(other, _)| *other));
            at.push((number, need.mode));
        }
        passed_by.sort_unstable();
        passed_by.dedup();
        most = most.max(u32::try_from(passed_by.len()).unwrap_or(u32::MAX));
    }
    assert_eq!(count, plans.len(), "each ran once");
    most
}

#[test]
fn ten_thousand_contend_for_a_hundred_locks_and_nobody_is_passed() -> Tested {
    let all = Contention {
        seed: 1,
        count: 10_000,
        locks: 100,
        priorities: 1,
        sleepers: 0,
        permits: None,
    };
    assert_eq!(all.passed_most()?, 0);
    Ok(())
}

#[test]
fn ten_thousand_of_any_priority_are_passed_a_bounded_number_of_times() -> Tested {
    let all = Contention {
        seed: 2,
        count: 10_000,
        locks: 100,
        priorities: 5,
        sleepers: 0,
        permits: Some(20),
    };
    let most = all.passed_most()?;
    assert!(most > 0 && most <= MAX_OVERTAKES, "{most}");
    Ok(())
}

#[test]
fn holders_that_sleep_are_waited_for_in_order() -> Tested {
    let all = Contention {
        seed: 3,
        count: 1_000,
        locks: 100,
        priorities: 1,
        sleepers: 3,
        permits: None,
    };
    assert_eq!(all.passed_most()?, 0);
    Ok(())
}

#[test]
fn a_dozen_contend_for_four_locks_through_crashes() -> Tested {
    let all = Contention {
        seed: 4,
        count: 12,
        locks: 4,
        priorities: 3,
        sleepers: 0,
        permits: Some(2),
    };
    let done = enumerate(
        Lab::default,
        |lab, builder| all.set_up(lab, builder),
        async |_: &Lab, run: &Run| all.all_end(run).await,
        &[],
        |plain, crashed, crashes| plain.compare(crashed, crashes),
    )?;
    // The batch and a stage for each, at least; a grant after waiting for most of them.
    assert!(done.commits > 1 + 12 + 4, "{done:?}");
    Ok(())
}
