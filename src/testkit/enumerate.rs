//! Crash enumeration: a scenario is run without faults, then once for every
//! commit and every way to crash at it, and every outcome is compared with the
//! crash-free one. Then again with a second crash inside each recovery.

use std::collections::BTreeMap;

use procession_actors::journal::memory::{Fault, FaultPlan};
use procession_actors::journal::store::Entries;
use procession_actors::journal::{Space, keys};
use procession_actors::testkit::labels::index_agrees;
use procession_actors::view::ListFilter;
use procession_kernel::{Key, Labels, ProcedureState};

use super::world::{Ended, Run, Trouble, World};
use crate::executor::Builder;

/// Restarts after which a scenario is taken to crash for ever.
const RESTARTS_MAX: usize = 8;

/// How a procedure ended, as the final world shows it.
type Fate = (String, ProcedureState, Option<String>, usize, Labels);

/// What must be the same after every crash: how each procedure ended, its output, what the
/// user's keyspaces hold, and that nothing is left. Family numbers are replaced
/// by their order, since a crash may skip some.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Final {
    procedures: BTreeMap<(usize, u32), Fate>,
    outputs: BTreeMap<(usize, u32), Vec<u8>>,
    user: BTreeMap<String, Entries>,
    unfinished: usize,
    permits: u32,
}

impl Final {
    /// Reads it off a world at rest.
    ///
    /// # Errors
    ///
    /// What the engine answers.
    pub async fn of(run: &Run, spaces: &[&str]) -> Result<Self, Trouble> {
        run.settle().await;
        let mut world = Self::default();
        let mut families: Vec<u64> = Vec::new();
        let mut cursor = None;
        loop {
            let page = run.executor.list(ListFilter::default(), cursor, 1_000).await?;
            for status in page.items {
                if families.last() != Some(&status.id.family) {
                    families.push(status.id.family);
                }
                let cause = status.cause.map(|cause| format!("{:?}: {}", cause.kind, cause.text));
                let fate = (
                    status.kind.to_string(),
                    status.state,
                    cause,
                    status.not_undone.len(),
                    status.labels,
                );
                world.procedures.insert((families.len(), status.id.member), fate);
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        for (key, output) in run.world.disk.dump(&Space::Payloads) {
            let id = keys::parse_procedure(&key).filter(|_| key.last() == Some(&keys::OUTPUT));
            let place = id.and_then(|id| Some((families.binary_search(&id.family).ok()? + 1, id.member)));
            if let Some(place) = place {
                world.outputs.insert(place, output);
            }
        }
        let disk = &run.world.disk;
        index_agrees(&disk.dump(&Space::Procedures), &disk.dump(&Space::Live))?;
        for space in spaces {
            world.user.insert(
                (*space).to_owned(),
                run.world.disk.dump(&Space::User(Key::from(*space))),
            );
        }
        world.unfinished = run.executor.snapshot().await?.live_families;
        world.permits = run.executor.limits().await?.iter().map(|limit| limit.used).sum();
        Ok(world)
    }
}

/// What an enumeration did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enumeration {
    /// Commits of the crash-free run, the start's own not counted.
    pub commits: u64,
    /// Runs with one crash.
    pub runs: usize,
    /// Runs with a second crash inside the recovery, or after it.
    pub second: usize,
}

/// Crashes a scenario at every commit, before, after and torn, and once more in every recovery, and compares every final
/// world with the crash-free one. How a recovery is crashed, [`second_faults`] says.
///
/// `fresh` makes what survives a crash beside disk and clock, for instance the
/// log of effects. `drive` is the client: it is run again after each crash, so
/// it submits with keys and asks before it acts. `spaces` names the user
/// keyspaces to compare. `check` looks at what survived: the crash-free one
/// first, then one of a crashed run and its number of crashes.
///
/// # Errors
///
/// The first run that differs, named by commit and fault.
pub fn enumerate<S>(
    fresh: impl Fn() -> S,
    set_up: impl Fn(&S, Builder) -> Builder,
    drive: impl AsyncFn(&S, &Run) -> Result<(), Trouble>,
    spaces: &[&str],
    check: impl Fn(&S, &S, usize) -> Result<(), Trouble>,
) -> Result<Enumeration, Trouble> {
    let live = |world: &World, state: &S, plan: FaultPlan| {
        let drive = async |run: &Run| {
            drive(state, run).await?;
            // The start's own commit is number 0, and not counted.
            Ok((Final::of(run, spaces).await?, run.store.commits().saturating_sub(1)))
        };
        world.run(plan, |builder| set_up(state, builder), drive)
    };
    let (world, plain) = (World::new(), fresh());
    let (expected, commits) = live(&world, &plain, FaultPlan::none())?.done()?;
    let crash = |faults: &[(u64, Fault)]| {
        let state = fresh();
        let (found, recovered) = live_through(faults, &|world, plan| live(world, &state, plan))?;
        if found != expected {
            return Err(format!("the final world differs.\n expected {expected:#?}\n    found {found:#?}").into());
        }
        check(&plain, &state, recovered.crashes)?;
        Ok(recovered)
    };
    crash_everywhere(&world, commits, &crash)
}

/// One life: in this world, with these faults.
type Life<'a> = &'a dyn Fn(&World, FaultPlan) -> Result<Ended<(Final, u64)>, Trouble>;

/// How a run through some faults came to its end.
struct Recovered {
    /// How many of the faults came.
    crashes: usize,
    /// The newest commit of the last life; the start's own commit is number 0.
    last_commit: Option<u64>,
}

impl Recovered {
    fn new(crashes: usize, world: &World) -> Self {
        let last_commit = world.disk.last_commit();
        Self { crashes, last_commit }
    }
}

/// Lives one life for each fault, then one without. Returns what they left.
fn live_through(faults: &[(u64, Fault)], life: Life<'_>) -> Result<(Final, Recovered), Trouble> {
    let (world, mut crashes) = (World::new(), 0);
    for (commit, fault) in faults {
        match life(&world, FaultPlan::at(*commit, *fault))? {
            Ended::Crashed => {
                crashes += 1;
                index_agrees(&world.disk.dump(&Space::Procedures), &world.disk.dump(&Space::Live))?;
            }
            Ended::Done((found, _)) => return Ok((found, Recovered::new(crashes, &world))),
        }
    }
    for _ in 0..RESTARTS_MAX {
        if let Ended::Done((found, _)) = life(&world, FaultPlan::none())? {
            return Ok((found, Recovered::new(crashes, &world)));
        }
    }
    Err("it does not come to an end".into())
}

/// A run through these faults, compared with the crash-free one.
type Crash<'a> = &'a dyn Fn(&[(u64, Fault)]) -> Result<Recovered, Trouble>;

/// `world` is that of the crash-free run.
fn crash_everywhere(world: &World, commits: u64, crash: Crash<'_>) -> Result<Enumeration, Trouble> {
    let (mut runs, mut second) = (0, 0);
    for commit in 1..=commits {
        let once = |fault| {
            let name = format!("commit {commit} of {commits}, {fault:?}");
            crash(&[(commit, fault)]).map_err(|why| format!("{name}: {why}"))
        };
        for cut in world.disk.torn_points(commit) {
            once(Fault::Torn { cut })?;
            runs += 1;
        }
        for first in [Fault::CrashBefore, Fault::CrashAfter] {
            let next_life = once(first)?;
            runs += 1;
            second += crash_again((commit, first), next_life.last_commit, crash)?;
        }
    }
    Ok(Enumeration { commits, runs, second })
}

/// A second crash at every commit of the recovery, and of the run after it. `last` is the last commit of these: without
/// it, one more run through the first crash would have to show where they end.
fn crash_again(first: (u64, Fault), last: Option<u64>, crash: Crash<'_>) -> Result<usize, Trouble> {
    let mut runs = 0;
    for commit in (0..).take_while(|commit| Some(*commit) <= last) {
        for second in second_faults(first, commit) {
            let name = format!("{first:?}, then commit {commit} of the next life, {second:?}");
            let recovered = crash(&[first, (commit, second)]).map_err(|why| format!("{name}: {why}"))?;
            // Work on other threads may take another course: then this life has ended before.
            if recovered.crashes < 2 {
                return Ok(runs);
            }
            runs += 1;
        }
    }
    Ok(runs)
}

/// The environment variable that asks for all second crashes: `all`.
const CRASHES_VARIABLE: &str = "PROCESSION_CRASHES";

/// Returns how to crash a second time, at this commit of the next life: before it and after it by turns, so that each
/// pair of commits is crashed in two of four ways. All four double the time of most enumerations;
/// `PROCESSION_CRASHES=all` in the environment asks for them. [`enumerate`] uses it; your own enumeration may too.
pub fn second_faults((commit, first): (u64, Fault), next: u64) -> impl Iterator<Item = Fault> {
    let wants_all = std::env::var_os(CRASHES_VARIABLE).is_some_and(|asked| asked == "all");
    let is_before = (commit + next).is_multiple_of(2) == matches!(first, Fault::CrashBefore);
    [(Fault::CrashBefore, is_before), (Fault::CrashAfter, !is_before)]
        .into_iter()
        .filter(move |(_, is_next)| wants_all || *is_next)
        .map(|(fault, _)| fault)
}
