//! A process that is stopped for a while, and goes on or is killed.

use std::fs;
use std::time::Duration;

use crate::Outcome;
use crate::check::{acknowledged, refused_with, whole};
use crate::other::{Other, pass};
use crate::place::{ENDLESS, Ground};

/// How often the state of a process is looked at; 10 ms between looks.
const LOOKS: u32 = 3_000;

/// Stops it, and waits until all of it stands.
fn stop(other: &Other) -> Outcome {
    other.signal("STOP")?;
    for _ in 0..LOOKS {
        if stands(other.id()).unwrap_or(false) {
            return Ok(());
        }
        pass(Duration::from_millis(10));
    }
    Err("it does not stop".into())
}

/// Tells whether each of its threads is stopped; none may come or go while it is asked.
fn stands(process: u32) -> std::io::Result<bool> {
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(task?.path().join("stat"))?;
        let state = text.rsplit_once(") ").map(|(_, rest)| rest);
        if !state.is_some_and(|state| state.starts_with('T')) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[test]
fn stopped_it_keeps_others_out_and_then_goes_on() -> Outcome {
    let ground = Ground::new()?;
    let mut other = Other::plainly(&ground.task(0, ENDLESS, 100))?;
    other.until("acknowledged", 20)?;
    stop(&other)?;
    let before = acknowledged(&ground.ledger())?.len();
    let holder = format!("process {}", other.id());
    for _ in 0..3 {
        let (_, lines) = Other::plainly(&ground.task(ENDLESS, 1, 0))?.end()?;
        let said = ["in use by another engine", &holder, "stop it first"];
        refused_with(&lines, &said)?;
    }
    assert_eq!(acknowledged(&ground.ledger())?.len(), before);
    other.signal("CONT")?;
    // All that it had said until it was stopped, and some more.
    let read = other.count("acknowledged");
    other.until("acknowledged", before.saturating_sub(read) + 20)?;
    other.until("ended", 20)?;

    stop(&other)?;
    assert!(other.kill()?);
    assert!(whole(&ground)? >= before + 20);
    Ok(())
}
