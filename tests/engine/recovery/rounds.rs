//! Rounds of start and drain in one directory, while others keep the processors busy: an answered drain means that
//! the directory is free, whatever of the engine before is still held.

use std::future::IntoFuture;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use procession::{Builder, Executor};
use tempfile::TempDir;

use super::helper::work;
use crate::support::{Lab, Tested, kinds};

/// Rounds, unless the variable says otherwise: before drains closed the journal, one round in eight was refused.
const ROUNDS: u64 = 60;
const ROUNDS_VARIABLE: &str = "PROCESSION_ROUNDS";
/// Reads that are under way, or wait for their turn, when a drain begins.
const READS: usize = 50;

fn rounds() -> u64 {
    let given = std::env::var(ROUNDS_VARIABLE).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(ROUNDS)
}

fn builder(place: &TempDir) -> Builder {
    kinds(&Lab::default(), Executor::builder(place.path()))
}

#[test]
fn a_start_right_after_a_drain_is_not_refused() -> Tested {
    let place = TempDir::new()?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let ran = actix_rt::System::new().block_on(run(&place));
        is_over.store(true, Ordering::Relaxed);
        ran
    })
}

async fn run(place: &TempDir) -> Tested {
    // The one before is held until the next has started.
    let mut before: Option<Executor> = None;
    for round in 0..rounds() {
        let started = builder(place).start().await;
        let executor = started.map_err(|error| format!("round {round}: {error}"))?;
        drop(before.replace(executor.clone()));
        if round % 2 == 0 {
            let handle = executor.submit(work(round)).into_future().await?;
            handle.outcome().await?;
            for _ in 0..READS {
                let executor = executor.clone();
                let id = handle.id();
                // Nobody waits for them; some find the journal closed.
                actix_rt::spawn(async move { executor.history(id).await.is_ok() });
            }
        }
        executor.drain(Duration::from_secs(30)).await?;
    }
    Ok(())
}
