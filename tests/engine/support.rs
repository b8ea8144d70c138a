//! What the scenarios are written with, and short ways to run them.

mod again;
mod disk;
mod kinds;
mod lab;
mod plan;
mod store;

pub(crate) use again::{at_every_commit, each_crash, enumerate_later, live_through};
pub(crate) use disk::rows;
pub(crate) use kinds::{
    Active, Circling, Final, Holding, Jittery, Limited, Once, Patient, Planned, Tidy, in_runs, is_pure_here, listed,
    purely,
};
pub(crate) use lab::{Call, Lab};
pub(crate) use plan::{Act, Plan, UndoAct, chain, failing, plan, spawn};
pub(crate) use store::{CountsAppends, InterceptedStore, StoreCalls};

use std::future::IntoFuture;
use std::sync::{Mutex, PoisonError};

use procession::errors::ProcedureError;
use procession::health::{Rule, Verdict};
use procession::testkit::{self, Enumeration, FaultPlan, Run, Trouble, World};
use procession::{Builder, Handle, Procedure};

/// What a test gives.
pub(crate) type Tested = Result<(), Trouble>;

/// Registers every kind of plan.
pub(crate) fn kinds(lab: &Lab, builder: Builder) -> Builder {
    lab.begin_life();
    builder
        .register::<Planned>(lab.clone())
        .register::<Patient>(lab.clone())
        .register::<Final>(lab.clone())
        .register::<Limited>(lab.clone())
        .register::<Once>(lab.clone())
        .register::<Holding>(lab.clone())
        .register::<Active>(lab.clone())
        .register::<Circling>(lab.clone())
        .register::<Jittery>(lab.clone())
        .register::<Tidy>(lab.clone())
}

/// Runs one life without faults in a new world.
pub(crate) fn live<T>(lab: &Lab, drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>) -> Result<T, Trouble> {
    live_in(&World::new(), lab, drive)
}

/// Runs one life without faults in this world.
pub(crate) fn live_in<T>(
    world: &World,
    lab: &Lab,
    drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    world
        .run(FaultPlan::none(), |builder| kinds(lab, builder), drive)?
        .done()
}

/// Submits a plan with a key, and waits for its end, letting time pass where it must.
pub(crate) async fn end<P: Procedure>(
    run: &Run,
    procedure: P,
    key: &str,
) -> Result<Result<P::Output, ProcedureError>, Trouble> {
    let handle: Handle<P> = run
        .wait(run.executor.submit(procedure).key(key).into_future())
        .await??;
    run.wait(handle.outcome()).await
}

/// Returns the verdicts on what is stuck. What has failed and ended is not: `retention/failures.rs` is about that verdict.
pub(crate) async fn stuck(run: &Run) -> Result<Vec<Verdict>, Trouble> {
    let mut verdicts = run.executor.verdicts().await?;
    verdicts.retain(|verdict| verdict.rule != Rule::UnacknowledgedFailures);
    Ok(verdicts)
}

/// Returns the lengths of runs with which this test enumerates its crashes with pure stages as well: one test in three does,
/// by its name, every other of them with stages that run alone; all do, with both, if `PROCESSION_AHEAD` is `all`.
fn run_lengths() -> &'static [u32] {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let sum: u32 = name.bytes().map(u32::from).sum();
    match sum % 6 {
        _ if std::env::var("PROCESSION_AHEAD").is_ok_and(|how| how == "all") => &[1, 64],
        0 => &[64],
        3 => &[1],
        _ => &[],
    }
}

/// Enumerates the crashes of a scenario as the test kit does: as it is, and with stages of plans that run ahead of the
/// disk where they may, alone or in runs. Those share batches: nothing runs further ahead than the journal takes batches.
/// Returns what was found of it as it is.
pub(crate) fn enumerate<S>(
    state: impl Fn() -> S,
    set_up: impl Fn(&S, Builder) -> Builder,
    drive: impl AsyncFn(&S, &Run) -> Result<(), Trouble>,
    spaces: &[&str],
    check: impl Fn(&S, &S, usize) -> Result<(), Trouble>,
) -> Result<Enumeration, Trouble> {
    let done = testkit::enumerate(&state, &set_up, &drive, spaces, &check)?;
    for length in run_lengths() {
        let set_up = |state: &S, builder: Builder| set_up(state, builder.merge(8).run_length(*length));
        let enumerate = || testkit::enumerate(&state, set_up, &drive, spaces, &check);
        let ahead = if *length > 1 {
            in_runs(enumerate)
        } else {
            purely(enumerate)
        };
        ahead.map_err(|why| format!("with pure stages, in runs of {length} at most: {why}"))?;
    }
    Ok(done)
}

/// Enumerates the crashes of one plan that is submitted and awaited.
pub(crate) fn enumerate_plan(submit: &Plan) -> Result<(Enumeration, Lab), Trouble> {
    let labs: Mutex<Option<Lab>> = Mutex::new(None);
    let done = enumerate(
        Lab::default,
        kinds,
        async |_: &Lab, run: &Run| {
            // How it ends is compared by the final world.
            end(run, Planned(submit.clone()), "the plan").await?.ok();
            Ok(())
        },
        &["rows"],
        |plain, crashed, crashes| {
            labs.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert_with(|| plain.clone());
            plain.compare(crashed, crashes)
        },
    )?;
    let lab = labs
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .unwrap_or_default();
    Ok((done, lab))
}
