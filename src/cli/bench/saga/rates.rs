//! Sagas that run from their start to their end: how fast states follow each other.

use std::path::Path;

use super::host::Host;
use super::plain::Plain;
use super::turns::{Found, Measured, Ratios, Turns};
use super::{Shape, Sizes, machines};
use crate::bench::recovery::Life;
use crate::bench::rounds::single_commits;
use crate::bench::taken::Taken;
use crate::bench::{BenchError, STOP_TIME};

/// Runs the rounds.
pub(super) async fn measure(rounds: u32, sizes: &Sizes, directory: &Path) -> Result<Measured, BenchError> {
    let host = Host::start(&directory.join("engine"), sizes, Life::Before).await?;
    let plain = Plain::start(&directory.join("plain"), sizes).await?;
    let files = machines::files(sizes);
    let names: Vec<&str> = files.iter().map(|file| file.machine.as_str()).collect();
    let name = names.first().copied().ok_or(BenchError::NoRound)?;
    let without_choices = names.get(1).copied().filter(|_| sizes.shape == Shape::Choice);
    let warm_up = sizes.warm_up();
    for name in [Some(name), without_choices].into_iter().flatten() {
        host.round(name, &warm_up).await?;
    }
    plain.round(&warm_up).await?;
    let mut turns = Turns::new(directory, sizes);
    for _ in 0..rounds {
        let (taken, times) = host.round(name, sizes).await?;
        let beside = plain.round(sizes).await?;
        let mut ratios = Ratios::default();
        if let Some(other) = without_choices {
            let (other, _) = host.round(other, sizes).await?;
            ratios.without_choices = Some(taken.rate() / other.rate().max(f64::EPSILON));
        }
        if sizes.shape == Shape::Chain && sizes.concurrency == 1 {
            ratios.seata = Some(against_single_commits(&taken, sizes, directory).await?);
        }
        let found = Found {
            times: sizes.shape.is_timed().then_some(times),
            plain: beside,
            figures: Vec::new(),
        };
        turns.add(taken, found, ratios).await?;
    }
    let measured = turns.summarize().await?;
    host.executor.drain(STOP_TIME).await?;
    plain.executor().drain(STOP_TIME).await?;
    Ok(measured)
}

/// Seata makes 2 n + 2 transactions of its database, one after another, for a saga of n tasks: the machine's begin and
/// end, and those of each state. A loop makes as many commits of the store, of one write each.
async fn against_single_commits(taken: &Taken, sizes: &Sizes, directory: &Path) -> Result<f64, BenchError> {
    let loops = single_commits(directory, taken).await?;
    let commits = 2.0 * f64::from(sizes.tasks) + 2.0;
    let sagas = taken.rate() / f64::from(sizes.tasks);
    Ok(sagas * commits / loops.batches_per_second.max(f64::EPSILON))
}
