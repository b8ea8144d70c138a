//! The kernel alone, under random histories: submissions, every outcome of a
//! stage and of an undo, timers, signals, permits and locks, every verb of an
//! operator, audits, crashes.
//! After each decision the state is checked against itself, against the disk,
//! and against what rollback may do; with no message on its way, against the
//! limiter as well. In the calm at the end everything settles.
//!
//! A failing seed prints the command that replays it.

#[path = "simulation/calm.rs"]
mod calm;
#[path = "simulation/check.rs"]
mod check;
#[path = "simulation/claims.rs"]
mod claims;
#[path = "simulation/desk.rs"]
mod desk;
#[path = "simulation/disk.rs"]
mod disk;
#[path = "simulation/draw.rs"]
mod draw;
#[path = "simulation/kept.rs"]
mod kept;
#[path = "simulation/limiter.rs"]
mod limiter;
#[path = "simulation/lost.rs"]
mod lost;
#[path = "simulation/operate.rs"]
mod operate;
#[path = "simulation/play.rs"]
mod play;
#[path = "simulation/queues.rs"]
mod queues;
#[path = "simulation/reports.rs"]
mod reports;
#[path = "simulation/shell.rs"]
mod shell;

use std::collections::BTreeSet;

use play::Play;

/// Seeds of a plain run.
const SEEDS: u64 = 300;
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

/// Every reason to wait but quarantine, which damage alone brings.
const WAITS: [&str; 13] = [
    "Backoff",
    "Children",
    "Circling",
    "Event",
    "Lock",
    "Paused",
    "Permit",
    "Poison",
    "Queue",
    "RollbackFailed",
    "Suspect",
    "Timer",
    "Width",
];

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
        let replay = "cargo test -p procession-kernel --test simulation";
        format!(
            "seed {seed} after {} events:\n  {shown}\n{why}\nreplay it with: SEED={seed} {replay}",
            log.len()
        )
    })
}

#[test]
fn a_kernel_survives_random_histories() {
    let seeds = match number("SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("SEEDS").unwrap_or(SEEDS),
    };
    let many = seeds.clone().count() >= 100;
    let mut waits = BTreeSet::new();
    for seed in seeds {
        match run(seed) {
            Ok(seen) => waits.extend(seen),
            Err(why) => panic!("{why}"),
        }
    }
    assert!(
        !many || waits.iter().map(String::as_str).eq(WAITS),
        "the histories cover only {waits:?}"
    );
}
