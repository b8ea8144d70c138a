//! An engine is killed while first nodes of sets or streams run and all others wait: how long until first nodes run again.
//!
//! The first nodes park themselves then, so that the round is over once all of them have begun.

use std::path::{Path, PathBuf};
use std::time::Duration;

use procession::Executor;

use super::BenchError;
use super::common::{Common, remove, until};
use super::figure::Figure;
use super::killed::{self, copy};
use super::machine;
use super::node::Site;
use super::rounds::{Rounds, Summary};
use super::taken::{Taken, now};

/// The command of a process that builds a state, and its numbers.
pub(super) type State<'a> = (&'a str, &'a [(&'a str, u64)]);

/// What is killed and started again.
pub(super) struct Restart<'a> {
    /// The commands of the processes that build the state one after the other, and their numbers.
    pub(super) states: &'a [State<'a>],
    /// Sets or streams: each has a first node.
    pub(super) firsts: u32,
    /// Procedures that the start must find.
    pub(super) live: u32,
}

impl Restart<'_> {
    /// Builds the state, and starts engines on copies of it. `start` starts one whose nodes park themselves.
    pub(super) async fn measure(
        &self,
        common: &Common,
        directory: &Path,
        start: impl AsyncFn(PathBuf) -> Result<(Executor, Site), BenchError>,
    ) -> Result<Summary<Vec<Figure>>, BenchError> {
        let killed = directory.join("killed");
        for (command, numbers) in self.states {
            killed::build(command, &killed, numbers).await?;
        }
        let mut rounds = Rounds::new(directory);
        for _ in 0..common.rounds {
            let engine = directory.join("engine");
            copy(&killed, &engine)?;
            let (taken, figures) = self.round(start(engine.clone())).await?;
            remove(&engine)?;
            rounds.add(taken, figures).await?;
        }
        rounds.summarize().await
    }

    async fn round(
        &self,
        engine: impl Future<Output = Result<(Executor, Site), BenchError>>,
    ) -> Result<(Taken, Vec<Figure>), BenchError> {
        let processor = machine::processor_time();
        let start = now();
        let (executor, site) = engine.await?;
        let queued = start.elapsed();
        let parked = u64::from(self.firsts);
        until(&executor, |snapshot| snapshot.commits >= parked && snapshot.going == 0).await?;
        let snapshot = executor.snapshot().await?;
        let taken = Taken::since_start(&snapshot, start, processor, f64::from(self.firsts));
        executor.drain(Duration::ZERO).await?;
        let (expected, found) = (self.live, snapshot.recovered.procedures);
        if u32::try_from(found) != Ok(expected) {
            return Err(BenchError::Lost { expected, found });
        }
        let first = site.until_first(start).ok_or(BenchError::NoRound)?;
        let figures = vec![
            Figure::time(
                "first_node_ms",
                first,
                "until the first node runs",
                "from before the start",
            ),
            Figure::time("queued_ms", queued, "until the start is done", ""),
            Figure::time("read_ms", snapshot.recovered.took, "of that, reading what is live", ""),
        ];
        Ok((taken, figures))
    }
}
