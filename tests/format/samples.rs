//! One record of every shape that goes to disk in format 1.

use procession_kernel::{
    Blob, Cause, CauseKind, Ending, Epoch, EventName, EvictedFamily, HistoryEntry, InFlight, JoinPolicy, Key, KeyEntry,
    Kind, LimitKey, NotUndone, OnFailure, ProcedureId, ProcedureState, Rare, Record, Round, Row, Seq, SignalEntry,
    Timestamp, UserWrite, WaitReason, Wake,
};

/// A name in the golden file, and the record.
pub(crate) type Sample = (String, Record);

pub(crate) const ID: ProcedureId = ProcedureId::new(0x0102_0304_0506_0708, 0x0a0b_0c0d);

pub(crate) fn blob(text: &str) -> Blob {
    Blob::from(text.as_bytes())
}

/// A row with nothing that may be left out.
pub(crate) fn plain() -> Row {
    Row {
        revision: Seq(77),
        state: ProcedureState::Runnable,
        since: Timestamp(1_000_000),
        ..Row::new(ID, Kind::from("create_table"), 3, blob("\u{a7}"), Timestamp(900_000))
    }
}

/// A row with everything.
fn full() -> Row {
    let joins = [
        JoinPolicy::AllSucceeded,
        JoinPolicy::AllFinished,
        JoinPolicy::AtLeast(2),
        JoinPolicy::Named(vec![0, 2]),
        JoinPolicy::Custom,
    ];
    Row {
        parent: Some(4),
        on_failure: OnFailure::Compensate,
        state: ProcedureState::Failed,
        wait: Some(WaitReason::Backoff(2, Timestamp(5_000_000))),
        visit: 5,
        attempt: 2,
        in_flight: Some(InFlight {
            run: Seq(76),
            deaths: 1,
            counted_from: None,
            alone: true,
        }),
        history: 9,
        standing: 4,
        wake: Some(Wake::Children(6, 3)),
        rounds: (1..)
            .zip(joins)
            .map(|(first, join)| Round {
                first,
                count: 3,
                join,
                width: 2,
                keep_places: false,
            })
            .collect(),
        limits: vec![LimitKey::from("create_table"), LimitKey::from("server-1")].into(),
        holds: true,
        priority: -3,
        signals: 12,
        key: Some(Key::from("req-42")),
        deadline: Some(Timestamp(60_000_000)),
        ended: Some(Timestamp(7_000_000)),
        due: Some(Timestamp(907_000_000)),
        rare: Rare {
            attempts_kept: vec![7, 8].into(),
            cause: Some(Cause::new(CauseKind::Failed, "no space", ID).into()),
            undo_attempts: 1,
            not_undone: vec![NotUndone::new(2, blob("s"))].into(),
            ..Rare::new()
        }
        .boxed(),
        ..plain()
    }
}

pub(crate) fn row(name: String, row: Row) -> Sample {
    (name, Record::Row(Box::new(row)))
}

/// Rows: plain, full, and one for each state, reason, wake and cause.
pub(crate) fn rows() -> Vec<Sample> {
    let event = || EventName::from("go");
    let waits = [
        WaitReason::Width,
        WaitReason::Permit(LimitKey::from("move")),
        WaitReason::Children,
        WaitReason::Timer(Timestamp(2_000_000)),
        WaitReason::Event(event(), Some(Timestamp(3_000_000))),
        WaitReason::Event(event(), None),
        WaitReason::Backoff(1, Timestamp(4_000_000)),
        WaitReason::Queue,
        WaitReason::Suspect,
        WaitReason::Poison,
        WaitReason::RollbackFailed,
        WaitReason::Quarantined,
    ];
    let wakes = [Wake::Children(1, 2), Wake::Signal(event(), 3), Wake::Timeout(event())];
    let causes = [
        CauseKind::Failed,
        CauseKind::AttemptsExhausted,
        CauseKind::Panicked,
        CauseKind::Aborted,
        CauseKind::TimedOut,
        CauseKind::OverBound,
        CauseKind::JoinUnmet,
    ];
    let mut all = vec![row("plain".to_owned(), plain()), row("full".to_owned(), full())];
    for state in ProcedureState::ALL {
        all.push(row(format!("state-{state:?}"), Row { state, ..plain() }));
    }
    for (number, wait) in waits.into_iter().enumerate() {
        all.push(row(
            format!("wait-{number}"),
            Row {
                wait: Some(wait),
                ..plain()
            },
        ));
    }
    for (number, wake) in wakes.into_iter().enumerate() {
        all.push(row(
            format!("wake-{number}"),
            Row {
                wake: Some(wake),
                ..plain()
            },
        ));
    }
    for kind in causes {
        all.push(row(
            format!("cause-{kind:?}"),
            Row {
                rare: Rare {
                    cause: Some(Cause::new(kind, "why", ID).into()),
                    ..Rare::new()
                }
                .boxed(),
                ..plain()
            },
        ));
    }
    all
}

/// History entries, one for each ending.
pub(crate) fn history() -> Vec<Sample> {
    let endings = [
        Ending::Next,
        Ending::Done,
        Ending::Spawn,
        Ending::Sleep,
        Ending::Wait,
        Ending::Retry,
        Ending::Fail,
        Ending::Panic,
        Ending::Undone,
        Ending::UndoFailed,
        Ending::UndoSkipped,
    ];
    let entry = |(number, ending): (u32, Ending)| {
        let entry = HistoryEntry {
            admitted: None,
            family: ID.family,
            number,
            member: 3,
            stage: blob("s"),
            visit: 2,
            attempt: 1,
            ending,
            error: (ending == Ending::Retry).then(|| "not yet".to_owned()),
            stands: number < 9,
            queued: Timestamp(1),
            begun: Timestamp(2),
            ended: Timestamp(3),
            locks: None,
            limits: Vec::new(),
            note: None,
            value: None,
            submitted: None,
        };
        (format!("{ending:?}"), Record::History(Box::new(entry)))
    };
    (1..).zip(endings).map(entry).collect()
}

/// Everything else, deletes included.
pub(crate) fn others() -> Vec<Sample> {
    let signal = |key: Option<&str>, consumed| {
        let entry = SignalEntry {
            name: EventName::from("go"),
            key: key.map(Key::from),
            consumed,
            digest: None,
            sent: None,
            last: false,
        };
        Record::Signal(ID, 4, entry, blob("payload"))
    };
    let doomed = EvictedFamily {
        key_until: None,
        raw: Vec::new(),
        family: 5,
        due: Timestamp(6),
        members: 1,
        history_from: 0,
        history: 1,
        signals: vec![(0, EventName::from("go"), 1)],
        labels: Vec::new(),
        labelled: Vec::new(),
        failed: None,
        submitted: false,
        key: Some(Key::from("req-42")),
    };
    let user = |value: Option<&[u8]>| {
        Record::User(UserWrite {
            space: Key::from("tables"),
            key: b"t1".to_vec(),
            value: value.map(<[u8]>::to_vec),
        })
    };
    let samples = [
        ("payload", Record::Payload(ID, blob("value"))),
        ("output", Record::Output(ID, blob("output"))),
        ("history-dropped", Record::HistoryDropped(ID.family, 9)),
        ("signal-plain", signal(None, false)),
        ("signal-consumed", signal(Some("k"), true)),
        ("signal-dropped", Record::SignalDropped(ID, 4, EventName::from("go"))),
        (
            "key",
            Record::Key(
                Key::from("req-42"),
                KeyEntry {
                    until: None,
                    id: ID,
                    digest: u128::MAX - 1,
                },
            ),
        ),
        ("family-began", Record::FamilyBegan(5)),
        ("family-ended", Record::FamilyEnded(5, Timestamp(6))),
        ("due-changed", Record::DueChanged(5, Timestamp(6), Timestamp(7))),
        ("evicted", Record::Evicted(Box::new(doomed))),
        ("limit-set", Record::Limit(LimitKey::from("move"), Some(100).into())),
        ("limit-unlimited", Record::Limit(LimitKey::from("move"), None.into())),
        ("families", Record::FamiliesReserved(1_025)),
        ("started", Record::Started(Epoch(7), 2)),
        ("stopped", Record::Stopped(Epoch(7))),
        ("user-put", user(Some(b"row"))),
        ("user-deleted", user(None)),
    ];
    samples.map(|(name, record)| (name.to_owned(), record)).into()
}
