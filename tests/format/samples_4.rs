//! One record of every shape that format 4 has besides those before it.

use procession_kernel::{Broadcast, EventName, Record, Row, Seq, WaitReason};

use crate::samples::{Sample, blob, plain, row};

/// A row that began to wait while a broadcast for its event was waking others.
pub(crate) fn rows() -> Vec<Sample> {
    let waits = Row {
        wait: Some(WaitReason::Event(EventName::from("go"), None)),
        waits_after: Seq(300),
        ..plain()
    };
    vec![row("waits-after".to_owned(), waits)]
}

/// A broadcast under way, and its end.
pub(crate) fn others() -> Vec<Sample> {
    let broadcast = Broadcast {
        name: EventName::from("go"),
        payload: blob("said"),
    };
    let samples = [
        ("broadcast", Record::Broadcast(Seq(300), Box::new(broadcast))),
        ("broadcast-over", Record::BroadcastOver(Seq(300))),
    ];
    samples.map(|(name, record)| (name.to_owned(), record)).into()
}
