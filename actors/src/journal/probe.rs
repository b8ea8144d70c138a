//! Measures the store alone, for comparison with the engine's rate.
//!
//! A loop on its own thread appends batches, one sync each, and waits for each receipt. Filling the batch and the
//! append are timed; opening the store is not. The keys are those of chains of stages that advance side by side: rows
//! and payloads are overwritten in place, history entries are new.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use procession_kernel::{Epoch, ProcedureId, Seq};
use tokio::sync::oneshot;

use super::batch::Batch;
use super::fjall::{FjallStore, SyncMode};
use super::keys::{self, Space};
use super::store::{AppendError, JournalStore};
use crate::error::StoreError;

/// Stages of each synthetic procedure, as in the usual chain.
const STAGES: u64 = 10;
/// Untimed batches at the beginning, since the store's first writes create its files.
const WARM_UP: u32 = 16;

/// What one measurement appends.
#[derive(Clone, Debug)]
pub struct RawLoad {
    /// Writes of each batch.
    pub writes_per_batch: usize,
    /// Bytes of key and value of each write.
    pub bytes_per_write: usize,
    /// How many procedures advance side by side, with each batch or over several.
    pub side_by_side: u64,
    /// Longest duration of the measurement.
    pub longest: Duration,
    /// Most batches of the measurement.
    pub batches: u32,
    /// How each batch is synced.
    pub sync: SyncMode,
}

impl Default for RawLoad {
    /// One put per batch, synced as the engine does.
    fn default() -> Self {
        Self {
            writes_per_batch: 1,
            bytes_per_write: 128,
            side_by_side: 1,
            longest: Duration::from_secs(1),
            batches: 1_000,
            sync: SyncMode::default(),
        }
    }
}

/// The rate that the store reached.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RawRate {
    /// Batches appended, timed.
    pub batches: u32,
    /// Batches in a second.
    pub batches_per_second: f64,
    /// Writes in a second.
    pub writes_per_second: f64,
    /// Time of one batch in microseconds, the median.
    pub commit_us_p50: f64,
    /// How each batch was synced: `fdatasync`, `fsync` or `none`.
    pub sync: &'static str,
}

/// Why a store could not be measured.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A batch was not written.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The measuring thread could not be started, or ended at once.
    #[error("the measuring thread ended: {0}")]
    Thread(String),
}

/// Appends synthetic batches to a new store in `directory`, and returns how fast it was.
///
/// The caller removes the directory.
///
/// # Errors
///
/// [`ProbeError`] if the store cannot be opened or written to.
pub async fn raw_store_rate(directory: impl Into<PathBuf>, load: RawLoad) -> Result<RawRate, ProbeError> {
    let directory = directory.into();
    let (answer, answered) = oneshot::channel();
    std::thread::Builder::new()
        .name("procession-probe".to_owned())
        .spawn(move || {
            // The caller may have dropped its receiver; then the answer is not needed.
            drop(answer.send(measure(&directory, &load)));
        })
        .map_err(|error| ProbeError::Thread(error.to_string()))?;
    answered
        .await
        .map_err(|_| ProbeError::Thread("it gave no answer".to_owned()))?
}

fn measure(directory: &std::path::Path, load: &RawLoad) -> Result<RawRate, ProbeError> {
    let store = FjallStore::open_plain(directory, load.sync)?;
    let epoch = block_on(store.acquire())?;
    let mut writer = Writer::new(epoch, load);
    for _ in 0..WARM_UP {
        block_on(store.append(writer.next_batch()))?;
    }
    let mut times = Vec::with_capacity(usize::try_from(load.batches).unwrap_or_default());
    let begun = now();
    while times.len() < usize::try_from(load.batches.max(1)).unwrap_or(usize::MAX) && begun.elapsed() < load.longest {
        let before = now();
        block_on(store.append(writer.next_batch()))?;
        times.push(before.elapsed());
    }
    let elapsed = begun.elapsed();
    block_on(store.release(epoch))?;
    Ok(rate(&mut times, elapsed, load))
}

#[expect(
    clippy::disallowed_methods,
    reason = "measures durations, and decides nothing from them"
)]
fn now() -> Instant {
    Instant::now()
}

fn rate(times: &mut [Duration], elapsed: Duration, load: &RawLoad) -> RawRate {
    times.sort_unstable();
    let batches = u32::try_from(times.len()).unwrap_or(u32::MAX);
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let batches_per_second = f64::from(batches) / elapsed.as_secs_f64().max(f64::EPSILON);
    let writes = f64::from(u32::try_from(load.writes_per_batch).unwrap_or(u32::MAX));
    RawRate {
        batches,
        batches_per_second,
        writes_per_second: batches_per_second * writes,
        commit_us_p50: median.as_secs_f64() * 1e6,
        sync: match load.sync {
            SyncMode::Data => "fdatasync",
            SyncMode::All => "fsync",
            SyncMode::None => "none",
        },
    }
}

/// Fills batches as a chain of stages would.
struct Writer {
    epoch: Epoch,
    seq: Seq,
    written: u64,
    writes: usize,
    bytes: usize,
    width: u64,
    value: Vec<u8>,
}

impl Writer {
    fn new(epoch: Epoch, load: &RawLoad) -> Self {
        Self {
            epoch,
            seq: Seq::default(),
            written: 0,
            writes: load.writes_per_batch.max(1),
            bytes: load.bytes_per_write,
            width: load.side_by_side.max(1),
            value: noise(load.bytes_per_write),
        }
    }

    fn next_batch(&mut self) -> Batch {
        let mut batch = Batch::new(self.epoch);
        for _ in 0..self.writes {
            self.write(&mut batch);
        }
        self.seq = self.seq.next();
        batch.advance_to(self.seq);
        batch
    }

    /// Writes a row, a payload or a history entry, in turn.
    fn write(&mut self, batch: &mut Batch) {
        let stage = self.written / 3;
        let (step, place) = (stage / self.width, stage % self.width);
        let id = ProcedureId::root(step / STAGES * self.width + place + 1);
        match self.written % 3 {
            0 => self.put(batch, Space::Procedures, &keys::procedure(id)),
            1 => self.put(batch, Space::Payloads, &keys::payload(id, keys::PAYLOAD)),
            _ => {
                let number = u32::try_from(step % STAGES).unwrap_or_default() + 1;
                self.put(batch, Space::History, &keys::history(id.family, number));
            }
        }
        self.written += 1;
    }

    fn put(&self, batch: &mut Batch, space: Space, key: &[u8]) {
        let length = self.bytes.saturating_sub(key.len()).max(1).min(self.value.len());
        batch.put(space, key, self.value.get(..length).unwrap_or_default());
    }
}

/// Returns incompressible bytes, the same on every run.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes().first().copied().unwrap_or_default()
    };
    std::iter::repeat_with(next).take(length.max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_rt::test]
    async fn a_probe_appends_what_it_was_told() -> Result<(), Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        let longest = Duration::from_secs(60);
        let load = RawLoad {
            writes_per_batch: 30,
            batches: 20,
            longest,
            ..RawLoad::default()
        };
        let rate = raw_store_rate(directory.path(), load).await?;
        assert_eq!(rate.batches, 20);
        assert!(rate.commit_us_p50 > 0.0);
        assert!((rate.writes_per_second / rate.batches_per_second - 30.0).abs() < 1e-6);
        Ok(())
    }

    #[test]
    fn a_batch_has_the_mean_size_asked_for() {
        let load = RawLoad {
            writes_per_batch: 300,
            bytes_per_write: 120,
            ..RawLoad::default()
        };
        let batch = Writer::new(Epoch(1), &load).next_batch();
        assert_eq!(batch.len(), 300);
        assert_eq!(batch.size_bytes(), 300 * 120);
        assert_eq!(batch.seq(), Seq(1));
    }
}
