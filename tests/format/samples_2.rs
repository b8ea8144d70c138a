//! One record of every shape that format 2 has besides those of format 1.

use std::time::Duration;

use procession_kernel::{
    AuditEntry, Blob, Changed, Ending, EventName, EvictedFamily, FailureStreak, HistoryEntry, Hold, Key, KeyEntry,
    Kind, LimitKey, LockNeed, Mark, OnTimeout, PauseScope, PayloadSizeNote, ProcedureId, ProcedureState, Rare, Record,
    Row, SignalEntry, StateSnapshot, Timestamp, WaitReason, fingerprint,
};

use crate::samples::{ID, Sample, blob, plain, row};

fn locks() -> Vec<LockNeed> {
    vec![LockNeed::exclusive("ns/table"), LockNeed::shared("ns/other")]
}

/// A row with everything that came with format 2.
fn full() -> Row {
    Row {
        hold: Hold::WhileActive,
        locks: locks().into(),
        locked: locks().into(),
        locks_for_life: true,
        ready: Some(Timestamp(950_000)),
        next_is_no_return: Some("Enable".into()),
        same_stage: 3,
        expected: Some(Duration::from_millis(1_500)),
        out_of_time: true,
        rare: Rare {
            past_no_return: Some("WriteMeta".into()),
            on_timeout: OnTimeout::Execute,
            paused: true,
            mark: Some(Mark::Bypassed),
            output: Some(blob("output")),
            cleaning: true,
            ..Rare::new()
        }
        .boxed(),
        ..plain()
    }
}

/// Rows: full, and one for each new reason and mark.
pub(crate) fn rows() -> Vec<Sample> {
    let waits = [
        WaitReason::Lock("ns/table/region".into()),
        WaitReason::Paused,
        WaitReason::RepeatLimit,
    ];
    let mut all = vec![row("full".to_owned(), full())];
    for (number, wait) in waits.into_iter().enumerate() {
        let wait = Some(wait);
        all.push(row(format!("wait-{number}"), Row { wait, ..plain() }));
    }
    for mark in [Mark::Bypassed, Mark::Overridden] {
        let name = format!("mark-{mark:?}");
        let mark = Some(mark);
        all.push(row(
            name,
            Row {
                rare: Rare { mark, ..Rare::new() }.boxed(),
                ..plain()
            },
        ));
    }
    all
}

/// A row whose submitter said in which trace it was; the field came after the others.
pub(crate) fn traces() -> Vec<Sample> {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse();
    let trace = parent.ok().map(Box::new);
    assert!(trace.is_some(), "the text is a traceparent");
    vec![row(
        "trace".to_owned(),
        Row {
            rare: Rare { trace, ..Rare::new() }.boxed(),
            ..plain()
        },
    )]
}

/// Rows that say since when they hold their locks; the field came after the others.
pub(crate) fn held() -> Vec<Sample> {
    let locked = vec![LockNeed::exclusive("ns/table"), LockNeed::shared("ns/other")];
    let times = [
        ("held", vec![Some(Timestamp(7)), Some(Timestamp(9))]),
        ("held-one-from-before", vec![None, Some(Timestamp(9))]),
    ];
    let held = |(name, locked_at): (&str, Vec<Option<Timestamp>>)| {
        let locked = locked.clone();
        row(
            name.to_owned(),
            Row {
                locked: locked.into(),
                locked_at: locked_at.into(),
                ..plain()
            },
        )
    };
    times.map(held).into()
}

/// Rows that say how large their values are; the field came after the others.
pub(crate) fn large() -> Vec<Sample> {
    let stages = [("large", None), ("large-grown", Some(blob("s")))];
    let large = |(name, stage): (&str, Option<Blob>)| {
        let payload_size = Some(Box::new(PayloadSizeNote { bytes: 700_000, stage }));
        row(
            name.to_owned(),
            Row {
                rare: Rare {
                    payload_size,
                    ..Rare::new()
                }
                .boxed(),
                ..plain()
            },
        )
    };
    stages.map(large).into()
}

/// Rows that say what failed last, and how often in a row; the field came after the others.
pub(crate) fn said() -> Vec<Sample> {
    let texts = [("said", "rpc timeout rs-17"), ("said-nothing", "")];
    let said = |(name, text): (&str, &str)| {
        let said = FailureStreak {
            print: fingerprint(text),
            times: 5,
            text: text.to_owned(),
            first: None,
        };
        let failure_streak = Some(Box::new(said));
        row(
            name.to_owned(),
            Row {
                rare: Rare {
                    failure_streak,
                    ..Rare::new()
                }
                .boxed(),
                ..plain()
            },
        )
    };
    texts.map(said).into()
}

/// An entry of one that waited for its admission.
pub(crate) fn history() -> Vec<Sample> {
    let entry = HistoryEntry {
        family: ID.family,
        number: 1,
        member: 3,
        stage: blob("s"),
        visit: 2,
        attempt: 9,
        ending: Ending::Next,
        error: None,
        stands: true,
        queued: Timestamp(1),
        admitted: Some(Timestamp(2)),
        begun: Timestamp(3),
        ended: Timestamp(4),
        locks: None,
        limits: Vec::new(),
        note: None,
        value: None,
        submitted: None,
    };
    vec![("admitted".to_owned(), Record::History(Box::new(entry)))]
}

/// An entry of a stage under locks that the next one does not need; the field came after the others.
pub(crate) fn stage_locks() -> Vec<Sample> {
    let locks = vec![LockNeed::exclusive("t/1"), LockNeed::shared("u")];
    let of_stage = |(name, record): Sample| match record {
        Record::History(entry) => {
            let locks = Some(locks.clone());
            (name, Record::History(Box::new(HistoryEntry { locks, ..*entry })))
        }
        other => (name, other),
    };
    history().into_iter().map(of_stage).collect()
}

/// An act of an operator with everything.
pub(crate) fn audit() -> AuditEntry {
    AuditEntry {
        number: 12,
        at: Timestamp(1_000_000),
        who: "ann".to_owned(),
        why: "it hangs".to_owned(),
        words: "bypass 42.3 as success".to_owned(),
        target: Some(ID),
        changes: vec![Changed::new(
            ID,
            StateSnapshot {
                state: ProcedureState::Runnable,
                wait: None,
                in_flight: true,
                ended: false,
            },
            StateSnapshot {
                state: ProcedureState::Success,
                wait: Some(WaitReason::Paused),
                in_flight: false,
                ended: false,
            },
        )],
        changed: 1,
        key: Some(Key::from("act-1")),
        digest: None,
        act: None,
        abort: None,
        submitted: None,
        reach: None,
    }
}

/// A keyed signal and a keyed request with the digest of what they brought; the fields came after the others.
pub(crate) fn digests() -> Vec<Sample> {
    let entry = SignalEntry {
        name: EventName::from("go"),
        key: Some(Key::from("beat-17")),
        consumed: true,
        digest: Some(blob("payload").digest()),
        sent: None,
        last: false,
    };
    let act = AuditEntry {
        digest: Some(u64::MAX),
        ..audit()
    };
    vec![
        (
            "signal-digest".to_owned(),
            Record::Signal(ID, 4, entry, blob("payload")),
        ),
        ("audit-digest".to_owned(), Record::Audit(Box::new(act))),
    ]
}

fn small_act() -> AuditEntry {
    AuditEntry {
        number: 13,
        target: None,
        changes: Vec::new(),
        changed: 0,
        key: None,
        ..audit()
    }
}

fn doomed() -> EvictedFamily {
    EvictedFamily {
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
        key_until: None,
        raw: Vec::new(),
    }
}

/// Everything else, deletes included.
pub(crate) fn others() -> Vec<Sample> {
    let key = Key::from("req-42");
    let kept = EvictedFamily {
        key_until: Some(Timestamp(9)),
        ..doomed()
    };
    let discharged = EvictedFamily {
        members: 0,
        history: 0,
        signals: Vec::new(),
        raw: vec![
            ("procedures".to_owned(), blob("a key")),
            ("keys".to_owned(), blob("req-42")),
        ],
        ..doomed()
    };
    let samples = [
        (
            "key-kept",
            Record::Key(
                key.clone(),
                KeyEntry {
                    id: ID,
                    digest: 7,
                    until: Some(Timestamp(9)),
                },
            ),
        ),
        ("evicted-but-its-key", Record::Evicted(Box::new(kept))),
        ("key-expired", Record::KeyExpired(key, Timestamp(9), 5)),
        ("audit", Record::Audit(Box::new(audit()))),
        ("audit-small", Record::Audit(Box::new(small_act()))),
        ("audit-dropped", Record::AuditDropped(12)),
        ("paused-all", Record::Pause(PauseScope::All, true)),
        ("paused-kind", Record::Pause(PauseScope::Kind(Kind::from("move")), true)),
        (
            "paused-one",
            Record::Pause(PauseScope::One(ProcedureId::new(4, 2)), true),
        ),
        (
            "resumed-kind",
            Record::Pause(PauseScope::Kind(Kind::from("move")), false),
        ),
        ("archived", Record::Archived(5, blob("an export"))),
        ("discharged", Record::Evicted(Box::new(discharged))),
        ("limit-of-all", Record::Limit(LimitKey::from("*"), Some(0).into())),
    ];
    samples.map(|(name, record)| (name.to_owned(), record)).into()
}
