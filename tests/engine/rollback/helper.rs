//! Ways to drive a rollback that several files share: clients that repeat
//! themselves after a crash, lives that crash at a given commit, seeded orders.

use std::future::IntoFuture;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use procession::errors::ProcedureError;
use procession::status::{Cause, Ending, NotUndone, ProcedureState, Status, WaitReason};
use procession::testkit::{Ended, Enumeration, Fault, FaultPlan, Final, Run, Trouble, World};
use procession::{Handle, Procedure, ProcedureId};

use crate::support::{Act, Lab, Plan, Planned, Tested, enumerate, kinds};

/// Seeds of a scenario that asks for every order.
pub(crate) const SEEDS: u64 = 200;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Enumerates the crashes of a client; gives the log of the crash-free run.
pub(crate) fn enumerate_client(drive: impl AsyncFn(&Lab, &Run) -> Tested) -> Result<(Enumeration, Lab), Trouble> {
    enumerate_checked(drive, |plain, crashed, crashes| plain.compare(crashed, crashes))
}

/// Enumerates the crashes of a client, and compares the logs in its own way.
pub(crate) fn enumerate_checked(
    drive: impl AsyncFn(&Lab, &Run) -> Tested,
    check: impl Fn(&Lab, &Lab, usize) -> Tested,
) -> Result<(Enumeration, Lab), Trouble> {
    let first: Mutex<Option<Lab>> = Mutex::new(None);
    // Results outlive the times that scenarios let pass.
    let set_up = |lab: &Lab, builder| kinds(lab, builder).retention(DAY, DAY);
    let done = enumerate(Lab::default, set_up, drive, &["rows"], |plain, crashed, crashes| {
        let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| plain.clone());
        check(plain, crashed, crashes)
    })?;
    let lab = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((done, lab.unwrap_or_default()))
}

/// Enumerates single crashes, before and after every commit. For stages that the
/// client holds open side by side: two crashes would make suspects of them, which
/// run one at a time, and the client's order could not come about.
pub(crate) fn enumerate_single(drive: impl AsyncFn(&Lab, &Run) -> Tested) -> Result<(u64, Lab), Trouble> {
    let live = |world: &World, lab: &Lab, plan: FaultPlan| {
        let set_up = |builder| kinds(lab, builder).retention(DAY, DAY);
        world.run(plan, set_up, async |run| {
            drive(lab, run).await?;
            Ok((Final::of(run, &["rows"]).await?, run.store.commits().saturating_sub(1)))
        })
    };
    let plain = Lab::default();
    let (expected, commits) = live(&World::new(), &plain, FaultPlan::none())?.done()?;
    for commit in 1..=commits {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let (world, lab) = (World::new(), Lab::default());
            let ended = live(&world, &lab, FaultPlan::at(commit, fault))?;
            assert!(matches!(ended, Ended::Crashed), "commit {commit} of {commits} crashes");
            let (found, _) = live(&world, &lab, FaultPlan::none())?.done()?;
            if found != expected {
                return Err(format!("commit {commit}, {fault:?}: expected {expected:#?}, found {found:#?}").into());
            }
            plain
                .compare(&lab, 1)
                .map_err(|why| format!("commit {commit}, {fault:?}: {why}"))?;
        }
    }
    Ok((commits, plain))
}

/// Submits with a key: the same handle after every restart.
pub(crate) async fn submit<P: Procedure>(run: &Run, procedure: P, key: &str) -> Result<Handle<P>, Trouble> {
    Ok(run
        .wait(run.executor.submit(procedure).key(key).into_future())
        .await??)
}

/// Tells how a procedure stands when everything is at rest.
pub(crate) async fn at_rest(run: &Run, id: ProcedureId) -> Result<Status, Trouble> {
    run.settle().await;
    Ok(run.executor.status(id).await?)
}

/// Returns the states of a family by member.
pub(crate) async fn states(run: &Run, id: ProcedureId) -> Result<Vec<ProcedureState>, Trouble> {
    let tree = run.executor.tree(id).await?;
    Ok(tree.iter().map(|status| status.state).collect())
}

/// Returns what the engine counted: commits of this run.
pub(crate) async fn commits(run: &Run) -> Result<u64, Trouble> {
    run.settle().await;
    Ok(run.executor.snapshot().await?.commits)
}

/// Returns why a procedure was rolled back.
pub(crate) fn rolled_back<T>(outcome: Result<T, ProcedureError>) -> Result<(Cause, Vec<NotUndone>), Trouble> {
    match outcome {
        Err(ProcedureError::RolledBack { cause, not_undone }) => Ok((cause, not_undone)),
        Err(other) => Err(format!("it was not rolled back, but {other}").into()),
        Ok(_) => Err("it succeeded".into()),
    }
}

/// Tells whether it waits for an operator, with its rollback failed.
pub(crate) fn is_parked(status: &Status) -> bool {
    status.state == ProcedureState::Failed && status.wait == Some(WaitReason::RollbackFailed)
}

/// Lives one life after the other, each crashing at the commit given for it,
/// and then one to the end. Returns how many crashed, and what was called.
pub(crate) fn lives<T>(
    faults: &[(u64, Fault)],
    lab: &Lab,
    drive: impl AsyncFn(&Run) -> Result<T, Trouble>,
) -> Result<(usize, T), Trouble> {
    let world = World::new();
    let mut crashes = 0;
    for (commit, fault) in faults {
        let plan = FaultPlan::at(*commit, *fault);
        match world.run(plan, |builder| kinds(lab, builder), &drive)? {
            Ended::Crashed => crashes += 1,
            Ended::Done(given) => return Ok((crashes, given)),
        }
    }
    let given = world
        .run(FaultPlan::none(), |builder| kinds(lab, builder), &drive)?
        .done()?;
    Ok((crashes, given))
}

/// Submits a plan and gives why it was rolled back.
pub(crate) async fn fails(run: &Run, plan: &Plan) -> Result<Cause, Trouble> {
    let handle = submit(run, Planned(plan.clone()), "k").await?;
    Ok(rolled_back(run.wait(handle.outcome()).await?)?.0)
}

/// Returns what of a family was executed and undone, in commit order: member, visit, and whether it is an undo.
pub(crate) async fn committed(run: &Run, id: ProcedureId) -> Result<Vec<(u32, u32, bool)>, Trouble> {
    let history = run.executor.history(id).await?;
    let mut done = Vec::new();
    for entry in history {
        match entry.ending {
            Ending::Undone => done.push((entry.member, entry.visit, true)),
            Ending::UndoFailed | Ending::UndoSkipped => {}
            Ending::Next
            | Ending::Done
            | Ending::Spawn
            | Ending::Sleep
            | Ending::Wait
            | Ending::Asked
            | Ending::Retry
            | Ending::Fail
            | Ending::Panic => done.push((entry.member, entry.visit, false)),
            _ => {}
        }
    }
    Ok(done)
}

/// Numbers from a seed: the same for the same seed.
pub(crate) struct Order(u64);

impl Order {
    /// Begins with a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Draws a number below this one.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }

    /// Lets a body take a drawn number of turns before it does what it does.
    pub(crate) fn late(&mut self, act: Act) -> Act {
        let turns = u32::try_from(self.below(12)).unwrap_or(0);
        Act::Turns(turns, Box::new(act))
    }
}

/// Runs a scenario under every seed; the first that fails is named.
pub(crate) fn under_seeds(scenario: impl Fn(u64) -> Tested) -> Tested {
    under_so_many_seeds(SEEDS, scenario)
}

/// Runs a scenario under the seeds from 1 on, so many of them.
pub(crate) fn under_so_many_seeds(count: u64, scenario: impl Fn(u64) -> Tested) -> Tested {
    if let Some(seed) = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        return scenario(seed);
    }
    for seed in 1..=count {
        scenario(seed).map_err(|why| format!("seed {seed}: {why}; replay it with SEED={seed} and this test's name"))?;
    }
    Ok(())
}
