//! What all workloads share: their common options, and a directory of their own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use procession::provider::{Clock, SystemClock};
use procession::status::Snapshot;
use procession::{Builder, Executor, Procedure};

use super::BenchError;
use super::taken::now;

/// How often a condition is looked at that nobody tells of.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Submissions under way at once, where a workload is not about them.
pub(super) const SUBMITTERS: u32 = 1_024;
/// An engine that has changed nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Options of every workload.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Common {
    /// How many rounds; the median one is shown, and the rate of all together.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(super) rounds: u32,
    /// Where to write; a directory of its own is made there, and removed at the end.
    #[arg(long, default_value = "data")]
    pub(super) data: PathBuf,
    /// Seed of the payloads' bytes.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Prints one line of JSON and nothing else.
    #[arg(long)]
    pub(super) json: bool,
}

impl Common {
    /// Does the work in a directory of its own, and removes that, however it ended.
    pub(super) async fn within<T>(
        &self,
        work: impl AsyncFnOnce(&Path) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        let directory = self.data.join(format!("bench-{}", std::process::id()));
        make(&directory)?;
        let done = work(&directory).await;
        // What went wrong first is what the user must hear of.
        let removed = remove(&directory);
        let done = done?;
        removed?;
        Ok(done)
    }
}

fn make(directory: &Path) -> Result<(), BenchError> {
    std::fs::create_dir_all(directory).map_err(|why| unusable(directory, why))
}

/// Removes a directory with all that is in it.
pub(super) fn remove(directory: &Path) -> Result<(), BenchError> {
    std::fs::remove_dir_all(directory).map_err(|why| unusable(directory, why))
}

/// Says that a directory cannot be used, and why.
pub(super) fn unusable(directory: &Path, why: std::io::Error) -> BenchError {
    BenchError::Directory {
        place: directory.to_path_buf(),
        why,
    }
}

/// Does one thing for each number below `number`, so many of them at once; gives the results as they come.
pub(super) fn at_once<F: Future>(number: u32, limit: u32, one: impl FnMut(u32) -> F) -> impl Stream<Item = F::Output> {
    stream::iter(0..number)
        .map(one)
        .buffer_unordered(usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Submits so many of the same, and comes back when all are durable.
pub(super) async fn submit_all<P: Procedure + Clone>(
    executor: &Executor,
    number: u32,
    procedure: &P,
) -> Result<(), BenchError> {
    let mut sent = at_once(number, SUBMITTERS, |_| async {
        executor.submit(procedure.clone()).await.map(drop)
    });
    while sent.try_next().await?.is_some() {}
    Ok(())
}

/// Looks at the engine until this holds, a thousand times a second at most.
pub(super) async fn until(executor: &Executor, holds: impl Fn(&Snapshot) -> bool) -> Result<(), BenchError> {
    let mut seen = (0, 0, 0);
    let mut changed = now();
    loop {
        let snapshot = executor.snapshot().await?;
        if holds(&snapshot) {
            return Ok(());
        }
        if let Some(why) = snapshot.poisoned {
            return Err(BenchError::Poisoned(why));
        }
        let sees = (snapshot.commits, snapshot.going, snapshot.actors);
        if sees != seen {
            (seen, changed) = (sees, now());
        } else if changed.elapsed() > PATIENCE {
            let live = snapshot.live_families;
            return Err(BenchError::Hangs { live });
        }
        SystemClock.sleep_until(SystemClock.now().after(LOOK_EVERY)).await;
    }
}

/// Submissions that may wait for their commit: all that run at once, and some to spare.
pub(super) fn queue(limit: u32) -> usize {
    usize::try_from(limit)
        .unwrap_or(usize::MAX)
        .saturating_mul(2)
        .max(4_096)
}

/// Starts an engine for so many procedures at once; none of them must wait for a place.
pub(super) fn builder(directory: &Path, concurrency: u32) -> Builder {
    Executor::builder(directory)
        .max_queued(queue(concurrency))
        .max_awake(usize::MAX)
}

/// Makes text of this length from a seed.
pub(super) fn payload(seed: u64, length: u32) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + u8::try_from(state % 26).unwrap_or_default())
    };
    std::iter::repeat_with(letter)
        .take(usize::try_from(length).unwrap_or_default())
        .collect()
}
