//! What values cost as bytes: a row, a history entry, a user's value.
//!
//! Timed: encoding into a buffer that is there, and decoding from it. Not timed:
//! making the value.

#![expect(
    clippy::expect_used,
    reason = "a measurement that cannot be made ends here, and says why"
)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use procession_actors::journal::codec;
use procession_kernel::{
    Birth, Blob, Commit, Epoch, Event, HistoryEntry, Kernel, Kind, KindRules, ProcedureId, Receipt, Record, RequestId,
    Row, Rules, StageEnded, StageOutcome, Timestamp,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const NOW: Timestamp = Timestamp(1_700_000_000_000_000);

/// As a chain carries it.
#[derive(Serialize, Deserialize)]
struct Value {
    slot: u32,
    ran: u32,
    stages: u32,
    payload: String,
}

/// The row and the entry of a stage as the engine writes them.
fn written() -> Option<(Row, HistoryEntry)> {
    let kind = Kind::from("bench_chain");
    let rules = Rules {
        kinds: [(kind.clone(), KindRules::new(1))].into(),
        ..Rules::default()
    };
    let mut kernel = Kernel::new(rules, Epoch(1), 0);
    let birth = Birth::new(kind, 1, Blob::from(&b"\xc0"[..]), Blob::from(&b"value"[..]));
    let apply = |kernel: &mut Kernel, event| {
        let mut commit = Commit::new();
        let decision = kernel.decide(NOW, event);
        let (records, _) = kernel.apply(decision, &mut commit);
        drop(commit.release(&Receipt::new(Epoch(1), kernel.seq())));
        records
    };
    apply(&mut kernel, Event::Submitted(RequestId(1), vec![birth.into()]));
    let id = ProcedureId::root(1);
    let run = kernel.row(id)?.in_flight?.run;
    let next = StageOutcome::Next(Blob::from(&b"\xc0"[..]));
    let ended = StageEnded::new(id, run, Epoch(1), NOW, next);
    let records = apply(&mut kernel, Event::StageEnded(Box::new(ended)));
    let entry = records.into_iter().find_map(|record| {
        if let Record::History(entry) = record {
            Some(*entry)
        } else {
            None
        }
    })?;
    Some((kernel.row(id)?.clone(), entry))
}

fn measure<T: Serialize + DeserializeOwned>(criterion: &mut Criterion, name: &str, value: &T) {
    let mut bytes = Vec::new();
    codec::encode_into(&mut bytes, value).expect("an engine value can be encoded");
    let mut group = criterion.benchmark_group(format!("codec/{name}"));
    group.throughput(Throughput::Bytes(bytes.len() as u64)).sample_size(50);
    group.bench_function("encode", |bencher| {
        let mut buffer = Vec::with_capacity(4_096);
        bencher.iter(|| {
            buffer.clear();
            codec::encode_into(&mut buffer, black_box(value))
        });
    });
    group.bench_function("decode", |bencher| {
        bencher.iter_batched(|| (), |()| codec::decode::<T>(black_box(&bytes)), BatchSize::SmallInput);
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let (row, entry) = written().expect("a chain has a row and an entry");
    measure(&mut criterion, "row", &row);
    measure(&mut criterion, "history entry", &entry);
    let value = Value {
        slot: 7,
        ran: 3,
        stages: 10,
        payload: "x".repeat(64),
    };
    measure(&mut criterion, "value of 64 bytes and three counters", &value);
    criterion.final_summary();
}
