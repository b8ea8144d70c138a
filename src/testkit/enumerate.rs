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

/// One scenario: how its engine is set up, what its client does, what it leaves.
struct Script<'a, S, D, C> {
    fresh: &'a dyn Fn() -> S,
    set_up: &'a dyn Fn(&S, Builder) -> Builder,
    drive: D,
    check: C,
}

/// Crashes a scenario at every commit, before, after and torn, and once more in
/// every recovery, and compares every final world with the crash-free one.
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
    let drive = async |state: &S, run: &Run| {
        drive(state, run).await?;
        // The start's own commit is number 0, and not counted.
        Ok((Final::of(run, spaces).await?, run.store.commits().saturating_sub(1)))
    };
    let script = Script {
        fresh: &fresh,
        set_up: &set_up,
        drive,
        check,
    };
    script.enumerate()
}

impl<S, D, C> Script<'_, S, D, C>
where
    D: AsyncFn(&S, &Run) -> Result<(Final, u64), Trouble>,
    C: Fn(&S, &S, usize) -> Result<(), Trouble>,
{
    fn live(&self, world: &World, state: &S, plan: FaultPlan) -> Result<Ended<(Final, u64)>, Trouble> {
        world.run(
            plan,
            |builder| (self.set_up)(state, builder),
            async |run: &Run| (self.drive)(state, run).await,
        )
    }

    fn enumerate(&self) -> Result<Enumeration, Trouble> {
        let (world, plain) = (World::new(), (self.fresh)());
        let (expected, commits) = self.live(&world, &plain, FaultPlan::none())?.done()?;
        let mut done = Enumeration {
            commits,
            runs: 0,
            second: 0,
        };
        for commit in 1..=commits {
            let torn = world
                .disk
                .torn_points(commit)
                .into_iter()
                .map(|cut| Fault::Torn { cut });
            for fault in [Fault::CrashBefore, Fault::CrashAfter].into_iter().chain(torn) {
                let name = format!("commit {commit} of {commits}, {fault:?}");
                self.crash(&[(commit, fault)], &plain, &expected)
                    .map_err(|why| format!("{name}: {why}"))?;
                done.runs += 1;
            }
            for first in [Fault::CrashBefore, Fault::CrashAfter] {
                done.second += self.crash_again((commit, first), &plain, &expected)?;
            }
        }
        Ok(done)
    }

    /// A second crash at every commit of the recovery, and of the run after it.
    fn crash_again(&self, first: (u64, Fault), plain: &S, expected: &Final) -> Result<usize, Trouble> {
        let mut runs = 0;
        for commit in 0.. {
            for second in [Fault::CrashBefore, Fault::CrashAfter] {
                let name = format!("{first:?}, then commit {commit} of the next life, {second:?}");
                let crashes = self
                    .crash(&[first, (commit, second)], plain, expected)
                    .map_err(|why| format!("{name}: {why}"))?;
                if crashes < 2 {
                    return Ok(runs);
                }
                runs += 1;
            }
        }
        Ok(runs)
    }

    /// Lives one life for each fault, then one without; gives how many crashed.
    fn crash(&self, faults: &[(u64, Fault)], plain: &S, expected: &Final) -> Result<usize, Trouble> {
        let (world, state) = (World::new(), (self.fresh)());
        let mut crashes = 0;
        for (commit, fault) in faults {
            match self.live(&world, &state, FaultPlan::at(*commit, *fault))? {
                Ended::Crashed => {
                    crashes += 1;
                    index_agrees(&world.disk.dump(&Space::Procedures), &world.disk.dump(&Space::Live))?;
                }
                Ended::Done((found, _)) => return self.compare(&found, expected, plain, &state, crashes),
            }
        }
        for _ in 0..RESTARTS_MAX {
            if let Ended::Done((found, _)) = self.live(&world, &state, FaultPlan::none())? {
                return self.compare(&found, expected, plain, &state, crashes);
            }
        }
        Err("it does not come to an end".into())
    }

    fn compare(&self, found: &Final, expected: &Final, plain: &S, state: &S, crashes: usize) -> Result<usize, Trouble> {
        if found != expected {
            return Err(format!("the final world differs.\n expected {expected:#?}\n    found {found:#?}").into());
        }
        (self.check)(plain, state, crashes)?;
        Ok(crashes)
    }
}
