//! Crash enumeration beside the test kit's: of a later life, for scenarios that
//! stage a crash or a fault of their own; and of scenarios whose end depends on
//! where the crash comes, so that each run is judged by itself.

use procession::Builder;
use procession::testkit::{Ended, Enumeration, Fault, FaultPlan, Final, Run, Trouble, World, second_faults};

/// Lives that a scenario may take to its end, however it is crashed.
const LIVES: usize = 4;

/// Makes a world as the scenario's own crash or fault leaves it; then lives the
/// next life, crashed before, after and torn at each of its commits, the start's own
/// included, and on to the end. Every final world equals that of the life that was
/// not crashed. `drive` is run again after each crash; it is told how many came, as is `check`
/// at the end. Returns the commits of the life that was not crashed, the start's own counted.
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

/// What lives through some crashes left.
pub(crate) struct Lived {
    /// The world, at the end of the last life.
    pub(crate) world: World,
    /// Commits of the last life, the start's own counted.
    pub(crate) commits: u64,
    /// How many of the crashes came.
    pub(crate) crashes: usize,
}

/// Lives one life for each of these faults, and then one to the end. `fresh` makes what
/// survives a crash, and may keep the world to look at its disk between two lives. `drive` is run
/// again after each crash. `check` judges what was left, by the crashes that came.
pub(crate) fn live_through<S>(
    faults: &[(u64, Fault)],
    fresh: impl Fn(&World) -> S,
    set_up: impl Fn(&S, Builder) -> Builder,
    drive: impl AsyncFn(&S, &Run) -> Result<(), Trouble>,
    check: impl Fn(&S, &[(u64, Fault)]) -> Result<(), Trouble>,
) -> Result<Lived, Trouble> {
    let world = World::new();
    let state = fresh(&world);
    for crashes in 0..=faults.len() + LIVES {
        let fault = faults.get(crashes);
        let plan = fault.map_or_else(FaultPlan::none, |(commit, fault)| FaultPlan::at(*commit, *fault));
        let drive = async |run: &Run| {
            drive(&state, run).await?;
            run.settle().await;
            Ok(run.store.commits())
        };
        if let Ended::Done(commits) = world.run(plan, |builder| set_up(&state, builder), drive)? {
            check(&state, faults.get(..crashes).unwrap_or(faults))?;
            return Ok(Lived {
                world,
                commits,
                crashes,
            });
        }
    }
    Err("it does not come to an end".into())
}

/// Crashes a scenario at every commit, before, after and torn; and, where it is asked for, once
/// more before and after every commit of the next life, its start's own included. Where it is not,
/// the scenario is a longer one, and three cuts of each commit must do for those that tear it.
pub(crate) fn at_every_commit(
    twice: bool,
    lives: impl Fn(&[(u64, Fault)]) -> Result<Lived, Trouble>,
) -> Result<Enumeration, Trouble> {
    let named = |faults: &[(u64, Fault)]| lives(faults).map_err(|why| format!("crashed at {faults:?}: {why}"));
    let plain = named(&[])?;
    // The start's own commit is number 0, and not counted.
    let (commits, mut runs, mut second) = (plain.commits.saturating_sub(1), 0, 0);
    for commit in 1..=commits {
        let cuts = plain.world.disk.torn_points(commit);
        let step = if twice { 1 } else { (cuts.len() / 3).max(1) };
        for cut in cuts.into_iter().step_by(step) {
            named(&[(commit, Fault::Torn { cut })])?;
            runs += 1;
        }
        for first in [Fault::CrashBefore, Fault::CrashAfter] {
            // The commits of the next life: without them, one more run like this one would have to show where they end.
            let last = named(&[(commit, first)])?.world.disk.last_commit();
            runs += 1;
            for next in (0..).take_while(|next| twice && Some(*next) <= last) {
                for fault in second_faults((commit, first), next) {
                    let faults = [(commit, first), (next, fault)];
                    if named(&faults)?.crashes < 2 {
                        return Err(format!("{faults:?}: the next life has not come to this commit again").into());
                    }
                    second += 1;
                }
            }
        }
    }
    Ok(Enumeration { commits, runs, second })
}

/// Both in one, and twice.
pub(crate) fn each_crash<S>(
    fresh: impl Fn(&World) -> S,
    set_up: impl Fn(&S, Builder) -> Builder,
    drive: impl AsyncFn(&S, &Run) -> Result<(), Trouble>,
    check: impl Fn(&S, &[(u64, Fault)]) -> Result<(), Trouble>,
) -> Result<Enumeration, Trouble> {
    at_every_commit(true, |faults| live_through(faults, &fresh, &set_up, &drive, &check))
}
