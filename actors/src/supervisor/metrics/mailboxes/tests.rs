//! How often the recorder is updated, and what callers read.

use std::sync::Arc;

use procession_kernel::Timestamp;

use super::{Depths, MailboxGauges, Mailboxes};
use crate::heartbeats::Heartbeats;
use crate::journal::memory::{FaultPlan, MemoryDisk, MemoryStore};
use crate::journal::{JournalStore, Reader};
use crate::queues::Stamp;
use crate::telemetry::Telemetry;

#[test]
fn the_recorder_is_told_ten_times_a_second_and_who_asks_at_once() {
    let store = MemoryStore::open(&MemoryDisk::new(), FaultPlan::none()).expect("it opens");
    let store = Arc::new(store) as Arc<dyn JournalStore>;
    let (telemetry, depths) = (
        Telemetry::new([]),
        Depths::new(Heartbeats::default(), Reader::new(&store)),
    );
    let mut gauges = MailboxGauges::new(depths.clone());
    let waits: Vec<Stamp> = (0..3).map(|_| Stamp::new(&depths.supervisor)).collect();
    depths.limiter.sent();
    let expected = |supervisor| Mailboxes {
        supervisor,
        limiter: 1,
        ..Mailboxes::default()
    };
    assert_eq!(depths.read(), expected(3));
    gauges.show_soon(&telemetry, Timestamp(1_000_000));
    assert_eq!(gauges.shown, Timestamp(1_000_000));
    drop(waits);
    assert_eq!(depths.read(), expected(0));
    for (now, shown) in [(1_099_999, 1_000_000), (1_100_000, 1_100_000), (5, 5)] {
        gauges.show_soon(&telemetry, Timestamp(now));
        assert_eq!(gauges.shown, Timestamp(shown), "at {now}");
    }
}
