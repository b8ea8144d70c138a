//! The kernel alone, under random histories: submissions, every outcome of a
//! stage and of an undo, timers, signals, permits and locks, every verb of an
//! operator, health checks, crashes.
//! After each decision the state is checked against itself, against the disk,
//! and against what rollback may do; with no message on its way, against the
//! limiter as well. In the calm at the end everything settles.
//!
//! A failing seed prints the command that replays it.

mod again;
mod calm;
mod check;
mod claims;
mod desk;
mod disk;
mod draw;
mod failure_streaks;
mod graph;
mod kept;
mod limiter;
mod lost;
mod operate;
mod owed;
mod play;
mod queues;
mod reports;
mod shell;

use std::collections::BTreeSet;
use std::time::Duration;

use draw::{SPECULATION_EVERY, SPECULATION_FROM, STAGE_LIMITS_EVERY, STAGE_LIMITS_FROM};
use play::Play;

/// Seeds of every plain run, from 1 on, again as many whose stages name limits, and as many whose stages run ahead of the
/// disk.
const FIXED: u64 = 200;
/// Seeds that have found a fault: a grant of the stage that one waited for before its undo needed other locks, a
/// bypass that left locks of a compensated child behind, one of a part whose undo was out, which the rollback above it
/// waited for in vain, a root that was born with its children and ended as rolled back without naming what was not
/// undone, a child past its point of no return that gave its place away for a question, a compensated child below a
/// kept success that did not end, a late grant that cancelled the next request, and a simulated disk that gave two
/// broadcasts one number, and an entry that was passed over and named the locks of an undo after a crash. The last two run
/// a stage too often in a row.
const FOUND: [u64; 15] = [
    417,
    16_683,
    23_333,
    394,
    1_361,
    8_997,
    10_081_222,
    10_216_154,
    10_419_699,
    1_795_599_638_290,
    1_618,
    1_937,
    27_077,
    602,
    898,
];
/// How long a plain run draws fresh seeds after them.
const FRESH: Duration = Duration::from_secs(8);
/// Things that happen before the calm.
const STEPS: usize = 400;
/// Events of a failing history that are shown.
const SHOWN: usize = 25;

#[expect(
    clippy::disallowed_methods,
    reason = "the test is told which seeds to run; the kernel is not"
)]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Every reason to wait but quarantine, which damage alone brings; broadcasts that woke in parts, and what operators
/// submitted.
const WAITS: [&str; 20] = [
    "Backoff",
    "Children",
    "Decision",
    "Event",
    "Gate",
    "Lock",
    "Paused",
    "Permit",
    "Poison",
    "Queue",
    "RepeatLimit",
    "RollbackFailed",
    "Suspect",
    "Timer",
    "Width",
    WAVE,
    AGAIN,
    RUN,
    AHEAD,
    SUBMITTED,
];
/// Said of a history in which a broadcast woke in parts.
pub(crate) const WAVE: &str = "a broadcast in parts";
/// Said of a history in which a root ran again that had failed.
pub(crate) const AGAIN: &str = "a failure that ran again";
/// Said of a history in which a stage was called before what it rests on was on disk.
pub(crate) const AHEAD: &str = "a stage ahead of the disk";
/// Said of a history in which several stages ran in one call.
pub(crate) const RUN: &str = "a run of stages";
/// Said of a history in which an operator submitted a root.
pub(crate) const SUBMITTED: &str = "a submission of an operator";

fn run(seed: u64) -> Result<BTreeSet<String>, String> {
    let mut play = Play::new(seed)?;
    let mut story = || {
        for _ in 0..STEPS {
            play.step()?;
        }
        play.settle()
    };
    let told = story();
    told.map(|()| std::mem::take(&mut play.shell.waits)).map_err(|why| {
        let log = &play.shell.log;
        let shown = log
            .get(log.len().saturating_sub(SHOWN)..)
            .unwrap_or_default()
            .join("\n  ");
        let replay = "cargo test -p procession-kernel --test kernel simulation";
        format!(
            "seed {seed} after {} events:\n  {shown}\n{why}\nreplay it with: SEED={seed} {replay}",
            log.len()
        )
    })
}

/// Lives the histories of these seeds; gives what they cover.
fn all(seeds: impl Iterator<Item = u64>) -> Result<BTreeSet<String>, String> {
    let mut waits = BTreeSet::new();
    for seed in seeds {
        waits.extend(run(seed)?);
    }
    Ok(waits)
}

#[test]
fn a_kernel_survives_random_histories() {
    let stood = match (number("SEED"), number("SEEDS")) {
        (Some(seed), _) => all(std::iter::once(seed)).map(drop),
        (None, Some(count)) => {
            let first = number("FIRST").unwrap_or(1);
            all(first..first.saturating_add(count)).map(drop)
        }
        (None, None) => fixed_and_fresh(),
    };
    if let Err(why) = stood {
        panic!("{why}");
    }
}

fn fixed_and_fresh() -> Result<(), String> {
    let with_stage_limits = (0..FIXED).map(|place| STAGE_LIMITS_FROM + place * STAGE_LIMITS_EVERY);
    let with_speculation = (0..FIXED).map(|place| SPECULATION_FROM + place * SPECULATION_EVERY);
    let waits = all((1..=FIXED)
        .chain(FOUND)
        .chain(with_stage_limits)
        .chain(with_speculation))?;
    if !waits.iter().map(String::as_str).eq(WAITS) {
        return Err(format!("the histories cover only {waits:?}"));
    }
    fresh()
}

/// Lives histories that nobody has seen before, for a while.
#[expect(
    clippy::disallowed_types,
    reason = "the machine's time bounds the run, and no history"
)]
#[expect(
    clippy::print_stderr,
    reason = "whoever looks for a fault wants to know which seeds were tried"
)]
fn fresh() -> Result<(), String> {
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    let first = now.unwrap_or_default().as_secs() * 1_000;
    let begun = std::time::Instant::now();
    let mut tried = 0;
    while begun.elapsed() < FRESH {
        all(std::iter::once(first + tried))?;
        tried += 1;
    }
    eprintln!("{FIXED} fixed seeds, and {tried} fresh ones from {first} on");
    Ok(())
}
