//! What may not be left when all has ended, and when all that is kept has gone.

use procession_actors::journal::Space;

use crate::testkit::world::{Run, Trouble};

/// Deadlines in a row after which timers are taken to be armed for ever.
const DEADLINES_MAX: usize = 10_000;

/// Keyspaces in which nothing may be left when results and keys have gone.
const EMPTIED: [Space; 7] = [
    Space::Procedures,
    Space::Payloads,
    Space::History,
    Space::Signals,
    Space::Keys,
    Space::Live,
    Space::Finished,
];

/// No lock, permit, actor or live family is left.
pub(super) async fn nothing_is_held(run: &Run) -> Result<(), Trouble> {
    run.settle().await;
    let mut found = Vec::new();
    for limit in run.executor.limits().await? {
        if limit.used > 0 || limit.waiting > 0 {
            let (used, waiting) = (limit.used, limit.waiting);
            found.push(format!(
                "{used} permits of {} are held, and {waiting} wait for one",
                limit.key
            ));
        }
    }
    for lock in run.executor.locks().await? {
        let holders: Vec<String> = lock.holders.iter().map(|(id, _)| id.to_string()).collect();
        let (path, waiting) = (lock.path, lock.waiting.len());
        found.push(format!(
            "the lock {path} is held by {}, and {waiting} wait",
            holders.join(", ")
        ));
    }
    let snapshot = run.executor.snapshot().await?;
    if snapshot.live_families > 0 {
        found.push(format!("{} families are live", snapshot.live_families));
    }
    if snapshot.actors > 0 {
        found.push(format!("{} procedures have an actor still", snapshot.actors));
    }
    for (family, why) in snapshot.quarantined {
        found.push(format!("family {family} is quarantined: {why}"));
    }
    result(found)
}

/// Lets retention pass. No row, key, signal or timer is left then.
pub(super) async fn nothing_is_left(run: &Run) -> Result<(), Trouble> {
    let mut found = Vec::new();
    let mut deadlines = 0;
    loop {
        run.settle().await;
        if !run.world.clock.jump() {
            break;
        }
        deadlines += 1;
        if deadlines > DEADLINES_MAX {
            found.push("a timer is armed again and again, though all has ended".to_owned());
            break;
        }
    }
    for space in EMPTIED {
        let entries = run.world.disk.dump(&space).len();
        if entries > 0 {
            found.push(format!(
                "{entries} entries of {} are left when all that is kept has gone",
                space.name()
            ));
        }
    }
    result(found)
}

fn result(found: Vec<String>) -> Result<(), Trouble> {
    if found.is_empty() {
        Ok(())
    } else {
        Err(found.join("; ").into())
    }
}

/// Waits until something was committed since the last look. Looking is reading, and as long as anything is read the kit lets
/// no time pass; so nobody looks while nothing has changed.
#[cfg(any(feature = "flow", feature = "saga"))]
pub(super) async fn after_a_commit(run: &Run, seen: &mut Option<u64>) {
    while *seen == Some(run.store.commits()) {
        tokio::task::yield_now().await;
    }
    *seen = Some(run.store.commits());
}
