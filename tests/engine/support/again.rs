//! Crash enumeration of a later life: for scenarios that stage a crash or a
//! fault of their own, a second crash comes at every commit of the life after it.

use procession::Builder;
use procession::testkit::{Ended, Fault, FaultPlan, Final, Run, Trouble, World};

/// Lives that a scenario may take to its end, however it is crashed.
const LIVES: usize = 4;

/// Makes a world as the scenario's own crash or fault leaves it; then lives the
/// next life, crashed before, after and torn at each of its commits, the start's own
/// included, and on to the end. Every final world equals that of the life that was
/// not crashed. `drive` is run again after each crash; it is told how many came, as is `check`
/// at the end. Gives the commits of the life that was not crashed, the start's own counted.
pub(crate) fn enumerate_later<S>(
    prepare: impl Fn() -> Result<(World, S), Trouble>,
    set_up: impl Fn(&S, Builder) -> Builder,
    drive: impl AsyncFn(&S, &Run, usize) -> Result<(), Trouble>,
    check: impl Fn(&S, usize) -> Result<(), Trouble>,
) -> Result<u64, Trouble> {
    let live = |world: &World, state: &S, plan: FaultPlan, crashes: usize| {
        let drive = async |run: &Run| {
            drive(state, run, crashes).await?;
            Ok((Final::of(run, &["rows"]).await?, run.store.commits()))
        };
        world.run(plan, |builder| set_up(state, builder), drive)
    };
    let (world, state) = prepare()?;
    let (expected, commits) = live(&world, &state, FaultPlan::none(), 0)?.done()?;
    check(&state, 0)?;
    for commit in 0..commits {
        let torn = world.disk.torn_points(commit);
        let torn = torn.into_iter().map(|cut| Fault::Torn { cut });
        for fault in [Fault::CrashBefore, Fault::CrashAfter].into_iter().chain(torn) {
            let crashed = || -> Result<(), Trouble> {
                let (world, state) = prepare()?;
                let (mut crashes, mut plan) = (0, FaultPlan::at(commit, fault));
                let found = loop {
                    match live(&world, &state, std::mem::take(&mut plan), crashes)? {
                        Ended::Done((found, _)) => break found,
                        Ended::Crashed if crashes < LIVES => crashes += 1,
                        Ended::Crashed => return Err("it does not come to an end".into()),
                    }
                };
                if found != expected {
                    return Err(format!("expected {expected:#?}, found {found:#?}").into());
                }
                check(&state, crashes)
            };
            crashed().map_err(|why| format!("commit {commit} of {commits} of the later life, {fault:?}: {why}"))?;
        }
    }
    Ok(commits)
}
