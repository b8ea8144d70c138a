//! A sender's key stands for one signal. It is remembered behind its consumption, up to a bound of its own,
//! and takes no room from signals that wait.

#![expect(
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects, and fails on all else"
)]

use procession_kernel::{
    Answer, Birth, Blob, Bounds, Effect, Epoch, Event, EventName, Key, Kind, OperatorRequest, PauseScope, ProcedureId,
    Refusal, RequestEffect, RequestId, SIGNAL_KEYS, SentSignal, StageEnded, StageOutcome, StoredTarget, Timestamp,
    Verb, WaitReason,
};

use crate::shell::{KIND, ROOT, Shell};

fn begun() -> Shell {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    Shell::new(Birth::new(Kind::from(KIND), 1, stage, payload))
}

fn answer(effects: Vec<Effect>) -> Answer {
    let reply = effects.into_iter().find_map(|effect| match effect {
        Effect::Requests(RequestEffect::Reply(_, answer)) => Some(answer),
        _ => None,
    });
    reply.expect("it is answered")
}

fn send(shell: &mut Shell, name: &str, payload: &[u8], key: Option<&str>) -> Answer {
    let effects = shell.feed(
        1,
        Event::Signalled(
            RequestId(1),
            vec![SentSignal {
                to: ROOT,
                name: EventName::from(name),
                payload: Blob::from(payload),
                key: key.map(Key::from),
                last: false,
            }],
        ),
    );
    answer(effects)
}

fn send_by(shell: &mut Shell, name: &str, payload: &[u8], key: &str) -> Answer {
    let verb = Verb::Signal(ROOT, EventName::from(name), Blob::from(payload));
    let by = OperatorRequest::new("ann", "why").key(key);
    answer(shell.feed(
        1,
        Event::Requested(RequestId(1), Box::new(verb), Box::new(by), StoredTarget::None),
    ))
}

/// The stage that is out waits for `beat` next.
fn listens(shell: &mut Shell) {
    let in_flight = shell
        .kernel
        .row(ROOT)
        .and_then(|row| row.in_flight)
        .expect("its stage is out");
    let outcome = StageOutcome::Wait(EventName::from("beat"), None, Blob::from(&b"beat"[..]));
    let report = StageEnded::new(ROOT, in_flight.run, Epoch(1), Timestamp(1), outcome);
    shell.feed(1, Event::StageEnded(Box::new(report)));
}

fn waits(shell: &Shell) -> bool {
    let row = shell.kernel.row(ROOT).expect("it lives");
    matches!(row.wait, Some(WaitReason::Event(..)))
}

/// Sends so many keyed beats, each consumed before the next.
fn beats(shell: &mut Shell, numbers: std::ops::Range<u32>) {
    for number in numbers {
        assert!(waits(shell), "it listens before beat {number}");
        let key = number.to_string();
        assert_eq!(
            send(shell, "beat", b"", Some(&key)),
            Answer::Signalled(vec![number + 1]),
            "beat {number}"
        );
        listens(shell);
    }
}

#[test]
fn signals_that_were_consumed_take_no_room() {
    let mut shell = begun();
    listens(&mut shell);
    let most = u32::try_from(Bounds::default().signals).unwrap();
    beats(&mut shell, 0..most + 2_000);
    // Others wait, up to the bound, and one more does not.
    for _ in 0..most {
        assert!(matches!(send(&mut shell, "other", b"", None), Answer::Signalled(_)));
    }
    let refused = send(&mut shell, "other", b"", None);
    assert!(matches!(refused, Answer::Refused(Refusal::NotNow(..))), "{refused:?}");
}

#[test]
fn keys_are_remembered_up_to_a_bound_and_the_oldest_goes_first() {
    let mut shell = begun();
    listens(&mut shell);
    let most = u32::try_from(SIGNAL_KEYS).unwrap();
    beats(&mut shell, 0..most);
    assert_eq!(
        send(&mut shell, "beat", b"", Some("0")),
        Answer::Signalled(vec![1]),
        "it is remembered"
    );
    assert!(waits(&shell));
    beats(&mut shell, most..most + 1);
    assert_eq!(
        send(&mut shell, "beat", b"", Some("1")),
        Answer::Signalled(vec![2]),
        "it is remembered"
    );
    assert_eq!(
        send(&mut shell, "beat", b"", Some("0")),
        Answer::Signalled(vec![most + 2]),
        "it was forgotten, and is new"
    );
}

#[test]
fn a_key_that_waits_is_never_forgotten() {
    let mut shell = begun();
    listens(&mut shell);
    assert_eq!(
        send(&mut shell, "later", b"", Some("first")),
        Answer::Signalled(vec![1])
    );
    let most = u32::try_from(SIGNAL_KEYS).unwrap();
    for number in 0..most + 5 {
        send(&mut shell, "beat", b"", Some(&number.to_string()));
        listens(&mut shell);
    }
    assert_eq!(
        send(&mut shell, "later", b"", Some("first")),
        Answer::Signalled(vec![1])
    );
}

#[test]
fn a_key_stands_for_one_signal() {
    let mut shell = begun();
    let conflict = |number| Answer::Refused(Refusal::SignalConflict(Key::from("k"), ROOT, number));
    assert_eq!(send(&mut shell, "go", b"1", Some("k")), Answer::Signalled(vec![1]));
    assert_eq!(send(&mut shell, "go", b"1", Some("k")), Answer::Signalled(vec![1]));
    assert_eq!(send(&mut shell, "stop", b"1", Some("k")), conflict(1));
    assert_eq!(send(&mut shell, "go", b"2", Some("k")), conflict(1));
    assert_eq!(send(&mut shell, "go", b"", Some("k")), conflict(1));
    assert_eq!(send_by(&mut shell, "stop", b"1", "k"), conflict(1));
    assert_eq!(shell.kernel.row(ROOT).map(|row| row.signals), Some(1));
}

#[test]
fn an_operator_s_key_stands_for_one_signal_too() {
    let mut shell = begun();
    let first = send_by(&mut shell, "go", b"1", "k");
    assert!(matches!(first, Answer::Operated(_)), "{first:?}");
    let conflict = Answer::Refused(Refusal::SignalConflict(Key::from("k"), ROOT, 1));
    assert!(
        matches!(send_by(&mut shell, "go", b"1", "k"), Answer::Operated(_)),
        "a repeat is answered as the first"
    );
    // As long, and not the same.
    assert_eq!(send_by(&mut shell, "go", b"2", "k"), conflict);
    assert_eq!(send(&mut shell, "go", b"2", Some("k")), conflict);
    assert_eq!(send(&mut shell, "go", b"1", Some("k")), Answer::Signalled(vec![1]));
}

#[test]
fn a_broadcast_s_key_stands_for_one_payload() {
    let mut shell = begun();
    let mut broadcast = |payload: &[u8]| {
        let effects = shell.feed(
            1,
            Event::Broadcast {
                request: RequestId(1),
                name: EventName::from("go"),
                payload: Blob::from(payload),
                key: Some(Key::from("k")),
            },
        );
        answer(effects)
    };
    assert_eq!(broadcast(b"1"), Answer::Broadcast(0));
    assert_eq!(broadcast(b"1"), Answer::Broadcast(0));
    assert!(matches!(broadcast(b"2"), Answer::Refused(Refusal::NotNow(..))));
}

#[test]
fn an_empty_key_is_refused() {
    let mut shell = begun();
    let refused = Answer::Refused(Refusal::BadKey(0, Bounds::default().name));
    assert_eq!(send(&mut shell, "go", b"1", Some("")), refused);
    assert_eq!(send_by(&mut shell, "go", b"1", ""), refused);
    let pause = Verb::Pause(PauseScope::One(ProcedureId::root(1)));
    let by = OperatorRequest::new("ann", "why").key("");
    let paused = shell.feed(
        1,
        Event::Requested(RequestId(1), Box::new(pause), Box::new(by), StoredTarget::None),
    );
    assert_eq!(answer(paused), refused);
    let broadcast = shell.feed(
        1,
        Event::Broadcast {
            request: RequestId(1),
            name: EventName::from("go"),
            payload: Blob::default(),
            key: Some(Key::from("")),
        },
    );
    assert_eq!(answer(broadcast), refused);
}
