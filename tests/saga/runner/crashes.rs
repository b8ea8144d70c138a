//! A case is lived once without faults, then once for every commit and every way to crash at it, and once more with a second
//! crash in each recovery. Every end is compared with the crash-free one.

use std::time::Duration;

use procession::Builder;
use procession::saga::Sagas;
use procession::testkit::{Ended, Fault, FaultPlan, Final, Trouble, World};

use procession_cli::saga::cases::{Called, Case, Compared, Double, Life, Lived, compare_calls};

use super::sagas;

/// Where definitions are stored.
const SPACE: &str = "saga.definitions";

/// How long ends are kept: longer than any case.
const KEPT: Duration = Duration::from_hours(24 * 30);

/// How much of a case is crashed. Longer ones are crashed at one commit in so many.
struct Thoroughness {
    /// Commits of a case that is crashed at every pair of them.
    pairs: u64,
    /// Commits of a case that is crashed at each of them, and at pairs.
    singles: u64,
    /// Torn commits: every cut of each of them, or one.
    every_cut: bool,
}

/// `all` asks for as much as a case bears: some seven minutes of a processor for all of them.
const CRASHES_VARIABLE: &str = "SAGA_CRASHES";

impl Thoroughness {
    const ALL: Self = Self {
        pairs: 16,
        singles: 64,
        every_cut: true,
    };
}

fn thoroughness() -> Thoroughness {
    match std::env::var(CRASHES_VARIABLE).as_deref() {
        Ok("all") => Thoroughness::ALL,
        Ok(_) | Err(_) => Thoroughness {
            pairs: 3,
            singles: 20,
            every_cut: false,
        },
    }
}

/// Lives after which a case is taken to crash for ever.
const LIVES_MAX: usize = 12;

/// What a case has left.
#[derive(Debug, PartialEq)]
struct Left {
    world: Final,
    end: serde_json::Value,
}

/// A fault at a commit of a life; both are numbered from zero.
type Crash = (usize, u64, Fault);

/// How many commits a life made.
#[derive(Clone, Copy, Default)]
struct Commits {
    /// In its start.
    start: u64,
    all: u64,
}

/// One way through a case.
struct Way {
    left: Left,
    log: Vec<Called>,
    commits: Vec<Commits>,
    crashes: usize,
    world: World,
}

/// What an enumeration did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enumerated {
    /// Commits of the run without a crash.
    pub(crate) commits: u64,
    /// Runs with one crash.
    pub(crate) runs: usize,
}

/// Runs a case plainly and then crashed in every way. Starts are not crashed: what they commit is the same in all cases.
pub(super) fn enumerate(case: &Case) -> Result<(), Trouble> {
    let double = Double::default();
    let sagas = sagas(case, &double)?;
    let ready = Ready::new(case, &sagas, &double)?;
    let plain = ready.go(&[], true)?;
    if case.not_crashed {
        return Ok(());
    }
    ready.crash_each(&plain, &thoroughness())?;
    // With a restart in the case each of those was a second crash.
    match (case.crashed_once, plain.commits.as_slice()) {
        (false, [commits]) => ready.crash_pairs(*commits, &plain),
        (true, _) | (false, _) => Ok(()),
    }
}

/// Runs a case plainly, and with one crash at each commit.
pub(super) fn enumerate_once(case: &Case) -> Result<Enumerated, Trouble> {
    let double = Double::default();
    let sagas = sagas(case, &double)?;
    let ready = Ready::new(case, &sagas, &double)?;
    let plain = ready.go(&[], true)?;
    let runs = ready.crash_each(&plain, &Thoroughness::ALL)?;
    let commits = plain.commits.iter().map(|commits| commits.all - commits.start).sum();
    Ok(Enumerated { commits, runs })
}

/// Says in what two ends differ: of a world, which has all bytes of user data, the first lines that do.
fn difference(expected: &Left, found: &Left) -> Option<String> {
    if expected.end != found.end {
        return Some(format!(
            "another end.\n expected {:#}\n    found {:#}",
            expected.end, found.end
        ));
    }
    if expected.world == found.world {
        return None;
    }
    let (expected, found) = (format!("{:#?}", expected.world), format!("{:#?}", found.world));
    let mut lines = expected.lines().zip(found.lines());
    Some(match lines.find(|(expected, found)| expected != found) {
        Some((expected, found)) => format!("another world: expected {expected}, found {found}"),
        None => "another world: one of them has more".to_owned(),
    })
}

/// Pairs of crashes grow with the square of the commits. Of a long case each commit is crashed, and of the pairs one in so
/// many, with another beginning after each first crash.
fn stride(commits: u64) -> u64 {
    commits / thoroughness().pairs + 1
}

/// Runs a case plainly.
pub(super) fn plain(case: &Case) -> Result<(), Trouble> {
    let double = Double::default();
    let sagas = sagas(case, &double)?;
    Ready::new(case, &sagas, &double)?.go(&[], true).map(drop)
}

/// A case with what it registers.
struct Ready<'a> {
    case: &'a Case,
    sagas: &'a Sagas,
    double: &'a Double,
    /// A world in which its engine has been started once: the store has its number, and the definitions.
    world: World,
}

impl<'a> Ready<'a> {
    fn new(case: &'a Case, sagas: &'a Sagas, double: &'a Double) -> Result<Self, Trouble> {
        let world = World::new();
        let set_up = |builder: Builder| builder.sagas(sagas.clone()).retention(KEPT, KEPT);
        world.run(FaultPlan::none(), set_up, async |_| Ok(()))?.done()?;
        Ok(Self {
            case,
            sagas,
            double,
            world,
        })
    }

    /// A crash at each commit of each life: before, after, torn. Returns how many there were.
    fn crash_each(&self, plain: &Way, asked: &Thoroughness) -> Result<usize, Trouble> {
        let (mut before, mut runs) = (self.world.disk.last_commit().map_or(0, |last| last + 1), 0);
        for (life, commits) in plain.commits.iter().enumerate() {
            let stride = commits.all / asked.singles + 1;
            for commit in (commits.start..commits.all).filter(|commit| commit % stride == 0) {
                let cuts = plain.world.disk.torn_points(before + commit);
                let cuts = cuts.into_iter().take(if asked.every_cut { usize::MAX } else { 1 });
                let torn = cuts.map(|cut| Fault::Torn { cut });
                for fault in [Fault::CrashBefore, Fault::CrashAfter].into_iter().chain(torn) {
                    let crash = (life, commit, fault);
                    self.compare(&[crash], plain)
                        .map_err(|why| format!("{crash:?}: {why}"))?;
                    runs += 1;
                }
            }
            before += commits.all;
        }
        Ok(runs)
    }

    /// A crash at the commits of the only life, and a second one in the life after it.
    fn crash_pairs(&self, commits: Commits, plain: &Way) -> Result<(), Trouble> {
        if commits.all > thoroughness().singles {
            return Ok(());
        }
        let stride = stride(commits.all);
        for commit in (commits.start..commits.all).filter(|commit| stride < 3 || commit % stride == 0) {
            for fault in [Fault::CrashBefore, Fault::CrashAfter] {
                self.crash_again((0, commit, fault), stride, plain)?;
            }
        }
        Ok(())
    }

    /// A second crash at the commits of the life after the first one.
    fn crash_again(&self, first: Crash, stride: u64, plain: &Way) -> Result<(), Trouble> {
        let mut commit = (first.1 / stride) % stride;
        loop {
            for fault in [Fault::CrashBefore, Fault::CrashAfter] {
                let second = (first.0 + 1, commit, fault);
                let crashes = self
                    .compare(&[first, second], plain)
                    .map_err(|why| format!("{first:?}, {second:?}: {why}"))?;
                if crashes < 2 {
                    return Ok(());
                }
            }
            commit += stride;
        }
    }

    /// Goes through a case with these crashes, and compares what is left. Returns how many of them happened.
    fn compare(&self, crashes: &[Crash], plain: &Way) -> Result<usize, Trouble> {
        let way = self.go(crashes, false)?;
        if let Some(difference) = difference(&plain.left, &way.left) {
            return Err(difference.into());
        }
        compare_calls(&plain.log, &way.log, way.crashes)?;
        Ok(way.crashes)
    }

    fn go(&self, faults: &[Crash], is_plain: bool) -> Result<Way, Trouble> {
        let world = self.world.fork();
        self.double.begin_anew(world.clock.clone());
        let (mut commits, mut crashes) = (Vec::new(), 0);
        for life in 0..LIVES_MAX {
            let fault = faults.iter().find(|(of, _, _)| *of == life);
            let plan = fault.map_or_else(FaultPlan::none, |(_, commit, fault)| FaultPlan::at(*commit, *fault));
            match self.live(&world, plan, is_plain)? {
                (Ended::Crashed, _) => crashes += 1,
                (Ended::Done(None), made) => commits.push(made),
                (Ended::Done(Some(left)), made) => {
                    commits.push(made);
                    let log = self.double.log();
                    return Ok(Way {
                        left,
                        log,
                        commits,
                        crashes,
                        world,
                    });
                }
            }
        }
        Err("it does not come to an end".into())
    }

    /// Lives one life; without an end it restarts. Returns the commits of its start and all of them too.
    fn live(&self, world: &World, plan: FaultPlan, is_plain: bool) -> Result<(Ended<Option<Left>>, Commits), Trouble> {
        let (mut commits, mut down) = (Commits::default(), Duration::ZERO);
        let ended = world.run(
            plan,
            |builder: Builder| builder.sagas(self.sagas.clone()).retention(KEPT, KEPT),
            async |run| {
                let life = Life {
                    case: self.case,
                    sagas: self.sagas,
                    double: self.double,
                    ground: run,
                    compared: match is_plain {
                        true => Compared::All,
                        false => Compared::Nothing,
                    },
                };
                commits.start = run.store.commits();
                let left = match life.live().await? {
                    Lived::Restarts(time) => {
                        down = time;
                        None
                    }
                    Lived::Over(found) => Some(Left {
                        world: Final::of(run, &[SPACE]).await?,
                        end: found.end(),
                    }),
                };
                commits.all = run.store.commits();
                Ok(left)
            },
        )?;
        // Nothing of that life is left that the time could wake.
        world.clock.advance(down);
        Ok((ended, commits))
    }
}
