//! What an append costs: batches of 1 to 1,024 writes of 128 bytes, in memory and
//! in the embedded store, synced and not.
//!
//! Timed: filling a batch, the append, and its receipt, one after another. Not
//! timed: opening the store. Each sample has a store of its own.

#![expect(
    clippy::expect_used,
    reason = "a measurement that cannot be made ends here, and says why"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use futures::executor::block_on;
use procession_actors::journal::memory::{FaultPlan, MemoryDisk, MemoryStore};
use procession_actors::journal::{Batch, EmbeddedStore, JournalStore, Space, SyncMode};
use procession_kernel::Seq;

const WRITES: [usize; 3] = [1, 64, 1_024];
const BYTES: usize = 128;
/// Rows that are overwritten again and again.
const ROWS: usize = 4_096;

#[expect(clippy::disallowed_methods, reason = "measures durations")]
fn now() -> Instant {
    Instant::now()
}

/// Appends so many batches; gives how long that took.
fn append(store: &dyn JournalStore, writes: usize, batches: u64) -> Duration {
    let epoch = block_on(store.acquire()).expect("a new store has no other owner");
    let mut seq = Seq::default();
    let mut row = 0;
    let begun = now();
    for _ in 0..batches {
        let mut batch = Batch::new(epoch);
        for _ in 0..writes {
            row = (row + 1) % ROWS;
            batch.put(Space::Procedures, &row.to_be_bytes(), &[7; BYTES]);
        }
        seq = seq.next();
        batch.advance_to(seq);
        block_on(store.append(batch)).expect("nothing disturbs the store");
    }
    let took = begun.elapsed();
    block_on(store.release(epoch)).expect("it is ours to give up");
    took
}

fn embedded(directory: &Path, sync: SyncMode) -> EmbeddedStore {
    EmbeddedStore::open(directory, sync).expect("an empty directory can be opened")
}

fn appends(criterion: &mut Criterion, name: &str, open_and_append: impl Fn(usize, u64) -> Duration) {
    let mut group = criterion.benchmark_group(format!("journal/{name}"));
    // Stores of their own are dear: few samples, and no long warm-up.
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(2));
    for writes in WRITES {
        group.throughput(Throughput::Elements(writes as u64));
        group.bench_with_input(
            BenchmarkId::new("writes a batch", writes),
            &writes,
            |bencher, writes| {
                bencher.iter_custom(|batches| open_and_append(*writes, batches));
            },
        );
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    appends(&mut criterion, "memory", |writes, batches| {
        let store = MemoryStore::open(&MemoryDisk::new(), FaultPlan::none()).expect("an empty disk can be opened");
        append(&store, writes, batches)
    });
    for (name, sync) in [
        ("embedded, fdatasync", SyncMode::Data),
        ("embedded, no sync", SyncMode::None),
    ] {
        appends(&mut criterion, name, |writes, batches| {
            let directory = tempfile::tempdir().expect("a directory for the store");
            append(&embedded(directory.path(), sync), writes, batches)
        });
    }
    criterion.final_summary();
}
