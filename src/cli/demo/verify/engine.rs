//! Has the engine nothing left to do, and does nobody hold anything?

use std::time::Duration;

use super::{Rule, Verdict};
use crate::demo::error::DemoError;
use crate::demo::pace::{self, Stopwatch};
use procession::Executor;

/// How long the sweepers that the last operations left behind may take: far
/// longer than the removal of a few files does.
const SETTLE_MAX: Duration = Duration::from_secs(60);
/// How long between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits until no family is unfinished, up to a minute; verification names those that are.
///
/// # Errors
///
/// [`DemoError::Ask`] if the engine does not answer.
pub async fn settle(executor: &Executor) -> Result<(), DemoError> {
    let watch = Stopwatch::start();
    while executor.snapshot().await?.live_families > 0 && watch.elapsed() < SETTLE_MAX {
        pace::pause(LOOK_EVERY).await;
    }
    Ok(())
}

pub(super) async fn idle(executor: &Executor, verdict: &mut Verdict) -> Result<(), DemoError> {
    let live = executor.snapshot().await?.live_families;
    if live > 0 {
        verdict.find(
            Rule::Unfinished,
            format!("{live} procedures with their families are unfinished"),
        );
    }
    for limit in executor.limits().await? {
        if limit.used > 0 || limit.waiting > 0 {
            let (used, waiting) = (limit.used, limit.waiting);
            verdict.find(
                Rule::Unfinished,
                format!(
                    "{used} permits of {} are held, and {waiting} procedures wait for one",
                    limit.key
                ),
            );
        }
    }
    for lock in executor.locks().await? {
        for (holder, mode) in &lock.holders {
            let path = &lock.path;
            verdict.find(
                Rule::Unfinished,
                format!("procedure {holder} still holds {path}, {mode}"),
            );
        }
        for waiter in &lock.waiting {
            let path = &lock.path;
            verdict.find(Rule::Unfinished, format!("procedure {waiter} still waits for {path}"));
        }
    }
    Ok(())
}
