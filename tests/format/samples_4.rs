//! One record of every shape that format 4 has besides those before it.

use std::time::Duration;

use procession_kernel::{
    AbortAnswer, Act, AuditEntry, Blob, Broadcast, BypassAs, BypassScope, Cause, CauseKind, EndSignal, Ending,
    EventName, EvictedFamily, FailureEntry, FailureStreak, Gate, GraphNode, HistoryEntry, InFlight, JoinPolicy, Key,
    Kind, Label, Labels, LeftValue, Limit, LimitKey, PauseScope, ProcedureId, ProcedureState, Question, Rare,
    RateWindow, Record, RevealScope, Round, Row, RowLabels, Seq, SignalEntry, Timestamp, Verb, WaitReason, Wake,
    fingerprint,
};

use crate::samples::{ID, Sample, blob, plain, row};
use crate::samples_2;

/// A row that began to wait while a broadcast for its event was waking others.
pub(crate) fn rows() -> Vec<Sample> {
    let waits = Row {
        wait: Some(WaitReason::Event(EventName::from("go"), None)),
        waits_after: Seq(300),
        ..plain()
    };
    vec![row("waits-after".to_owned(), waits)]
}

/// A row whose next stage is pure.
pub(crate) fn pure() -> Vec<Sample> {
    let pure = Row {
        is_pure: true,
        ..plain()
    };
    vec![row("pure".to_owned(), pure)]
}

/// The root of a family that sends a signal when it has ended.
pub(crate) fn end_signals() -> Vec<Sample> {
    let signal = |payload: &'static [u8]| {
        let (name, payload) = (EventName::from("ended"), Blob::from(payload));
        Some(Box::new(EndSignal { to: ID, name, payload }))
    };
    let said = Row {
        rare: Rare {
            end_signal: signal(b"\xa5ended"),
            ..Rare::new()
        }
        .boxed(),
        ..plain()
    };
    let silent = Row {
        rare: Rare {
            end_signal: signal(b""),
            ..Rare::new()
        }
        .boxed(),
        ..plain()
    };
    let samples = [("with-payload", said), ("without-payload", silent)];
    samples.map(|(name, sample)| row(name.to_owned(), sample)).into()
}

/// Rows that remember a delay that their code chose, and attempts that were cut off.
pub(crate) fn attempts() -> Vec<Sample> {
    let chosen = Row {
        state: ProcedureState::WaitingTimeout,
        wait: Some(WaitReason::Backoff(2, Timestamp(9_000_000))),
        attempt: 2,
        rare: Rare {
            retry_after: Some(Duration::from_millis(7_500)),
            ..Rare::new()
        }
        .boxed(),
        ..plain()
    };
    let suspect = Row {
        wait: Some(WaitReason::Suspect),
        repeated: 2,
        ..plain()
    };
    let drained = Row {
        in_flight: Some(InFlight {
            run: Seq(300),
            deaths: InFlight::UNCOUNTED,
            alone: false,
            counted_from: Some(3),
        }),
        repeated: 1,
        ..plain()
    };
    let samples = [
        ("delay-chosen", chosen),
        ("cut-off-and-parked", suspect),
        ("cut-off-by-a-drain", drained),
    ];
    samples.map(|(name, sample)| row(name.to_owned(), sample)).into()
}

/// Children with names and gates: closed, opened long ago, and ended at one.
pub(crate) fn graph() -> Vec<Sample> {
    let node = |name: Option<&str>, gate: Option<Gate>, vital| {
        Some(Box::new(GraphNode {
            name: name.map(str::to_owned),
            gate,
            vital,
        }))
    };
    let gate = |opens| {
        Some(Gate {
            after: vec![1, 300],
            opens,
            or_wait: false,
        })
    };
    let named = Row {
        rare: Rare {
            graph: node(Some("build"), None, true),
            ..Rare::new()
        }
        .boxed(),
        ..plain()
    };
    let closed = Row {
        state: ProcedureState::Initializing,
        wait: Some(WaitReason::Gate),
        rare: Rare {
            graph: node(Some("test"), gate(JoinPolicy::AllSucceeded), false),
            ..Rare::new()
        }
        .boxed(),
        ..plain()
    };
    let waits = Gate {
        after: vec![2],
        opens: JoinPolicy::AtLeast(1),
        or_wait: true,
    };
    let opened = Row {
        rare: Rare {
            graph: node(None, Some(waits), false),
            ..Rare::new()
        }
        .boxed(),
        ..plain()
    };
    let ended = Row {
        state: ProcedureState::RolledBack,
        ended: Some(Timestamp(9_000_000)),
        rare: Rare {
            graph: node(None, gate(JoinPolicy::Named(vec![1])), false),
            cause: Some(Cause::new(CauseKind::GateShut, "its gate can no longer open: boom", ID).into()),
            ..Rare::new()
        }
        .boxed(),
        ..plain()
    };
    let samples = [
        ("named-and-vital", named),
        ("at-a-gate", closed),
        ("behind-an-open-gate", opened),
        ("ended-at-a-gate", ended),
    ];
    samples.map(|(name, sample)| row(name.to_owned(), sample)).into()
}

/// An entry with a note.
pub(crate) fn notes() -> Vec<Sample> {
    let noted = |(name, record): Sample| match record {
        Record::History(entry) => {
            let note = Some(blob("noted"));
            (name, Record::History(Box::new(HistoryEntry { note, ..*entry })))
        }
        other => (name, other),
    };
    samples_2::history().into_iter().map(noted).collect()
}

/// Entries of a kind that keeps values: one that changed its value, one whose value is larger than is kept, and one that
/// left it as it was.
pub(crate) fn left_values() -> Vec<Sample> {
    let left = [
        ("kept", LeftValue::within(&blob("value"), 100)),
        ("too-large", LeftValue::within(&blob("value"), 1)),
        ("unchanged", LeftValue::default()),
    ];
    let samples = left.into_iter().flat_map(|(what, left)| {
        let with = move |(name, record): Sample| match record {
            Record::History(entry) => {
                let value = Some(Box::new(left.clone()));
                let record = Record::History(Box::new(HistoryEntry { value, ..*entry }));
                (format!("{name}-{what}"), record)
            }
            other => (name, other),
        };
        samples_2::history().into_iter().map(with)
    });
    samples.collect()
}

/// Rows whose next stage names limits, without their permits and with them.
pub(crate) fn stage_limits() -> Vec<Sample> {
    let waits = Row {
        wait: Some(WaitReason::Permit(LimitKey::from("cards"))),
        stage_limits: vec![LimitKey::from("cards"), LimitKey::from("mails")].into(),
        ..plain()
    };
    let called = Row {
        stage_limits: vec![LimitKey::from("cards")].into(),
        stage_permits: true,
        ..plain()
    };
    let samples = [("waits-for-a-stages-permit", waits), ("holds-a-stages-permit", called)];
    samples.map(|(name, sample)| row(name.to_owned(), sample)).into()
}

/// An entry whose stage ran under a permit.
pub(crate) fn limited() -> Vec<Sample> {
    let limited = |(name, record): Sample| match record {
        Record::History(entry) => {
            let limits = vec![LimitKey::from("cards")];
            (name, Record::History(Box::new(HistoryEntry { limits, ..*entry })))
        }
        other => (name, other),
    };
    samples_2::history().into_iter().map(limited).collect()
}

/// Rates as set at run time, the act that sets one, and begins that count.
pub(crate) fn rates() -> Vec<Sample> {
    let cards = || LimitKey::from("cards");
    let rate = Limit::per(100, Duration::from_millis(1_500));
    let mut window = RateWindow::default();
    for at in [300, 310, 1_000_000] {
        window.begin(Timestamp(at), Duration::from_millis(1_500));
    }
    let act = Act::Operate(Verb::SetLimit(cards(), rate));
    let entry = AuditEntry {
        words: act.to_string(),
        changes: Vec::new(),
        act: Some(act),
        ..samples_2::audit()
    };
    let samples = [
        ("rate-set", Record::Limit(cards(), rate)),
        ("rate-with-a-capacity-set", Record::Limit(cards(), rate.and_at_once(4))),
        ("rate-begins", Record::RateWindow(cards(), Box::new(window))),
        ("rate-without-begins", Record::RateWindow(cards(), Box::default())),
        ("act-of-a-rate", Record::Audit(Box::new(entry))),
    ];
    samples.map(|(name, record)| (name.to_owned(), record)).into()
}

/// A row whose kind keeps only the newest entries of the history.
pub(crate) fn windows() -> Vec<Sample> {
    let windowed = Row {
        visit: 300,
        history: 304,
        history_from: 295,
        ..plain()
    };
    vec![row("windowed".to_owned(), windowed)]
}

/// A row that failed by its last time-out.
pub(crate) fn timed_out() -> Vec<Sample> {
    let failed = Row {
        state: ProcedureState::RolledBack,
        rare: Rare {
            cause: Some(Cause::new(CauseKind::StageTimedOut, "timed out after 3 s", ID).into()),
            ..Rare::new()
        }
        .boxed(),
        ..plain()
    };
    vec![row("timed-out".to_owned(), failed)]
}

/// Questions to a person: asked, ended with and without an answer, asked below a list that keeps places.
pub(crate) fn questions() -> Vec<Sample> {
    let asks = |until, keeps_place| Row {
        wait: Some(WaitReason::Decision(Box::new(Question {
            text: "drop t?".to_owned(),
            until,
            keeps_place,
        }))),
        ..plain()
    };
    let woken = |answer| Row {
        wake: Some(Wake::Decision(answer)),
        ..plain()
    };
    let parent = Row {
        rounds: vec![Round {
            first: 4,
            count: 2,
            join: JoinPolicy::AllSucceeded,
            width: 1,
            keep_places: true,
        }]
        .into(),
        ..plain()
    };
    let rows = [
        ("asks", asks(None, false)),
        ("asks-until", asks(Some(Timestamp(9_000_000)), true)),
        ("answered", woken(Some(blob("yes")))),
        ("not-answered-in-time", woken(None)),
        ("keeps-places", parent),
    ];
    rows.map(|(name, sample)| row(name.to_owned(), sample)).into()
}

/// The entry of a stage that asked, and the act that answers.
pub(crate) fn asked() -> Vec<Sample> {
    let entry = |(_, record): Sample| match record {
        Record::History(entry) => {
            let (ending, error) = (Ending::Asked, Some("drop t?".to_owned()));
            let entry = HistoryEntry {
                ending,
                error,
                ..*entry
            };
            ("asked".to_owned(), Record::History(Box::new(entry)))
        }
        other => ("other".to_owned(), other),
    };
    let act = Act::Operate(Verb::Decide(ID, Blob::default()));
    let act = AuditEntry {
        words: act.to_string(),
        changes: Vec::new(),
        act: Some(act),
        ..samples_2::audit()
    };
    let act = ("decide".to_owned(), Record::Audit(Box::new(act)));
    samples_2::history().into_iter().map(entry).chain([act]).collect()
}

/// A row that takes no further signal of an event.
pub(crate) fn closed() -> Vec<Sample> {
    let closed = Row {
        signals: 4,
        rare: Rare {
            closed: vec![EventName::from("go")].into(),
            ..Rare::new()
        }
        .boxed(),
        ..plain()
    };
    vec![row("closed".to_owned(), closed)]
}

pub(crate) fn labels() -> Labels {
    [Label::new("region", "eu"), Label::new("customer", "4711")]
        .into_iter()
        .collect()
}

/// A row with labels.
pub(crate) fn labelled() -> Vec<Sample> {
    let labelled = Row {
        labels: RowLabels::in_row(labels()),
        ..plain()
    };
    vec![row("labelled".to_owned(), labelled)]
}

/// A family that leaves the index of labels, with the entries that it was given then.
pub(crate) fn label_index() -> Vec<Sample> {
    let doomed = EvictedFamily {
        due: Timestamp(6),
        labels: labels().iter().map(Label::long_digest).collect(),
        ..doomed(42)
    };
    vec![("evicted".to_owned(), Record::Evicted(Box::new(doomed)))]
}

/// A row that says since when it has failed with the same text.
pub(crate) fn streaks() -> Vec<Sample> {
    let streak = FailureStreak {
        print: fingerprint("rpc timeout rs-17"),
        times: 5,
        text: "rpc timeout rs-17".to_owned(),
        first: Some(Timestamp(1_000_000)),
    };
    let failing = Row {
        rare: Rare {
            failure_streak: Some(Box::new(streak)),
            ..Rare::new()
        }
        .boxed(),
        ..plain()
    };
    vec![row("failing-since".to_owned(), failing)]
}

/// A finished family without members, so that its eviction deletes nothing but what the sample says.
pub(crate) fn doomed(family: u64) -> EvictedFamily {
    EvictedFamily {
        family,
        due: Timestamp(600),
        members: 0,
        history_from: 0,
        history: 0,
        signals: Vec::new(),
        labels: Vec::new(),
        labelled: Vec::new(),
        failed: None,
        submitted: false,
        key: None,
        key_until: None,
        raw: Vec::new(),
    }
}

/// A failure that is listed, acknowledged, and evicted.
pub(crate) fn failures() -> Vec<Sample> {
    let root = Row {
        state: ProcedureState::RolledBack,
        ended: Some(Timestamp(9)),
        key: Some(Key::from("req-42")),
        rare: Rare {
            cause: Some(Cause::new(CauseKind::Failed, "timeout after 31 ms", ProcedureId::new(42, 3)).into()),
            ..Rare::new()
        }
        .boxed(),
        ..plain()
    };
    let listed = FailureEntry::of(&root, Some(&Kind::from("load"))).map(Box::new);
    let doomed = EvictedFamily {
        failed: root.ended,
        ..doomed(root.id.family)
    };
    let closed = [
        ("closed", Record::FailureClosed(root.id.family, Timestamp(9))),
        ("evicted", Record::Evicted(Box::new(doomed))),
    ];
    let listed = listed.map(|listed| ("listed", Record::FailureListed(listed)));
    listed
        .into_iter()
        .chain(closed)
        .map(|(name, record)| (name.to_owned(), record))
        .collect()
}

/// A root with the value that it was submitted with, another value in its place, its eviction, and who ran it again.
pub(crate) fn run_again() -> Vec<Sample> {
    let root = Row {
        as_submitted: true,
        ..plain()
    };
    let doomed = EvictedFamily {
        submitted: true,
        ..doomed(root.id.family)
    };
    let verb = Verb::RunAgain(root.id);
    let act = AuditEntry {
        words: verb.to_string(),
        act: Some(Act::Operate(verb)),
        changes: Vec::new(),
        submitted: Some(ProcedureId::root(57)),
        ..samples_2::audit()
    };
    let submitted = Record::Submitted(ProcedureId::root(root.id.family), 3, blob("value"));
    vec![
        row("as-submitted".to_owned(), root),
        ("submitted".to_owned(), submitted),
        ("evicted".to_owned(), Record::Evicted(Box::new(doomed))),
        ("run-again".to_owned(), Record::Audit(Box::new(act))),
    ]
}

/// A submission of an operator.
pub(crate) fn submitted_by() -> Vec<Sample> {
    let verb = Verb::Submit("order".into());
    let act = AuditEntry {
        words: verb.to_string(),
        act: Some(Act::Operate(verb)),
        target: None,
        changes: Vec::new(),
        submitted: Some(ProcedureId::root(57)),
        ..samples_2::audit()
    };
    vec![("submit".to_owned(), Record::Audit(Box::new(act)))]
}

/// A signal with the time at which it was sent, and the last of its name.
pub(crate) fn signals() -> Vec<Sample> {
    let entry = SignalEntry {
        name: EventName::from("go"),
        key: None,
        consumed: false,
        digest: None,
        sent: Some(Timestamp(1_000_000)),
        last: false,
    };
    let last = SignalEntry {
        last: true,
        ..entry.clone()
    };
    let samples = [("signal-sent", entry), ("signal-last", last)];
    samples
        .map(|(name, entry)| (name.to_owned(), Record::Signal(ID, 4, entry, blob("payload"))))
        .into()
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

/// An entry of the audit log for every act, and for each answer to an abort; the fields came after the others.
pub(crate) fn acts() -> Vec<Sample> {
    let id = ProcedureId::new(42, 3);
    let bypass = |scope, outcome| Verb::Bypass(id, scope, outcome);
    let verbs = [
        Verb::Pause(PauseScope::One(id)),
        Verb::Pause(PauseScope::Kind(Kind::from("copy"))),
        Verb::Pause(PauseScope::All),
        Verb::Resume(PauseScope::All),
        Verb::RetryNow(id),
        bypass(BypassScope::Alone, BypassAs::Success),
        bypass(BypassScope::Descendants, BypassAs::Output(Blob::default())),
        bypass(BypassScope::Ancestors, BypassAs::Failed),
        bypass(BypassScope::Family, BypassAs::Success),
        Verb::RetryUndo(id),
        Verb::SkipUndo(id),
        Verb::OverrideResult(id, Blob::default()),
        Verb::SetPriority(id, -3),
        Verb::SetLimit(LimitKey::from("gpu"), Some(2).into()),
        Verb::SetLimit(LimitKey::from("gpu"), None.into()),
        Verb::Discharge(42),
        Verb::AuditReveal(id, RevealScope::Values),
        Verb::AuditReveal(id, RevealScope::Family),
        Verb::Signal(id, EventName::from("go"), Blob::default()),
        Verb::Acknowledge(id),
        Verb::Drain(Duration::from_millis(1_500)),
    ];
    let answers = [
        AbortAnswer::WillRollBack,
        AbortAnswer::AlreadyRollingBack,
        AbortAnswer::TooLate("it is late".to_owned()),
    ];
    let aborts = answers.map(|met| (Act::Operate(Verb::Abort(id)), Some(met)));
    let acts = verbs.map(|verb| (Act::Operate(verb), None)).into_iter().chain(aborts);
    let others = [Act::Broadcast(EventName::from("go")), Act::Import(42)].map(|act| (act, None));
    let samples = acts.chain(others).map(|(act, abort)| {
        let entry = AuditEntry {
            words: act.to_string(),
            changes: Vec::new(),
            act: Some(act.clone()),
            abort,
            ..samples_2::audit()
        };
        (act.name().to_owned(), Record::Audit(Box::new(entry)))
    });
    samples.collect()
}
