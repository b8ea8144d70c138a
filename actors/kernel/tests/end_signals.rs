//! Submissions of stages that carry a key, and the signal that a family sends when it ends.

#![expect(clippy::expect_used, reason = "a test names what it expects")]

use procession_kernel::{
    Birth, Blob, END_SIGNAL_MAX, EndSignal, Event, EventName, Key, KeyAsked, Kind, OperatorRequest, ProcedureId,
    ProcedureState, Record, RequestId, Row, SentSignal, StageEffects, StageEnded, StageOutcome, StoredTarget,
    Submission, Timestamp, Verb, WaitReason,
};

use crate::shell::{KIND, ROOT, Shell};

/// The family that the root submits.
const RUN: ProcedureId = ProcedureId::new(2, 0);
const EVENT: &str = "ended";

fn birth() -> Birth {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    Birth::new(Kind::from(KIND), 1, stage, payload)
}

fn keyed(digest: u128) -> Submission {
    let key = Key::from("run 1");
    let key = Some(KeyAsked {
        key,
        digest,
        keep: None,
    });
    let birth = Birth {
        end_signal: Some(Box::new(EndSignal {
            to: ROOT,
            name: EventName::from(EVENT),
            payload: Blob::from(&b"x"[..]),
        })),
        ..birth()
    };
    Submission {
        birth,
        key,
        known: None,
    }
}

fn row(shell: &Shell, id: ProcedureId) -> &Row {
    shell.kernel.row(id).expect("it lives")
}

fn report(shell: &Shell, id: ProcedureId, outcome: StageOutcome) -> StageEnded {
    let run = row(shell, id).in_flight.expect("its stage is out").run;
    StageEnded::new(id, run, shell.kernel.epoch(), Timestamp(5), outcome)
}

fn waits() -> StageOutcome {
    StageOutcome::Wait(EventName::from(EVENT), None, Blob::from(&b"first"[..]))
}

/// The root submits, and goes on as `outcome` says.
fn submit(shell: &mut Shell, submissions: Vec<Submission>, outcome: StageOutcome) {
    let mut submits = report(shell, ROOT, outcome);
    submits.effects = StageEffects {
        submitted: submissions,
        ..StageEffects::default()
    }
    .boxed();
    shell.feed(5, Event::StageEnded(Box::new(submits)));
}

fn ends(shell: &mut Shell) -> Vec<Record> {
    let ended = report(shell, RUN, StageOutcome::Done(Blob::default()));
    let event = Event::StageEnded(Box::new(ended));
    let records = shell.kernel.decide(Timestamp(6), event.clone()).records().to_vec();
    shell.feed(6, event);
    records
}

fn signals(records: &[Record]) -> usize {
    let sent = |record: &&Record| matches!(record, Record::Signal(ROOT, ..));
    records.iter().filter(sent).count()
}

fn operate(shell: &mut Shell, verb: Verb) {
    let by = Box::new(OperatorRequest::new("ann", "a test"));
    shell.feed(
        6,
        Event::Requested(RequestId(9), Box::new(verb), by, StoredTarget::None),
    );
}

#[test]
fn the_end_and_its_signal_are_one_commit_that_wakes_the_receiver() {
    let mut shell = Shell::new(birth());
    submit(&mut shell, vec![keyed(1)], waits());
    assert!(matches!(row(&shell, ROOT).wait, Some(WaitReason::Event(..))));
    let records = ends(&mut shell);
    assert_eq!(signals(&records), 1);
    assert!(records.iter().any(|record| matches!(record, Record::FamilyEnded(2, _))));
    assert_eq!(row(&shell, ROOT).state, ProcedureState::Runnable);
}

#[test]
fn an_abort_ends_with_the_signal_as_well() {
    let mut shell = Shell::new(birth());
    submit(&mut shell, vec![keyed(1)], waits());
    operate(&mut shell, Verb::Abort(RUN));
    assert!(
        row(&shell, ROOT).wait.is_some(),
        "its stage is out, so it has not ended"
    );
    let fails = report(&shell, RUN, StageOutcome::Retry("cut off".to_owned()));
    let effects = shell.feed(6, Event::StageEnded(Box::new(fails)));
    assert!(!effects.is_empty());
    let stack: Vec<_> = shell
        .history
        .iter()
        .filter(|entry| entry.family == 2)
        .cloned()
        .collect();
    shell.feed(6, Event::StackLoaded(RUN, stack.clone()));
    if let Some(entry) = stack.last() {
        let undone = procession_kernel::UndoEnded::new(RUN, entry.number, Timestamp(7), Ok(()));
        shell.feed(7, Event::UndoEnded(Box::new(undone)));
    }
    assert_eq!(row(&shell, ROOT).state, ProcedureState::Runnable);
}

#[test]
fn a_receiver_that_has_ended_is_not_told() {
    let mut shell = Shell::new(birth());
    submit(&mut shell, vec![keyed(1)], StageOutcome::Done(Blob::default()));
    let records = ends(&mut shell);
    assert_eq!(signals(&records), 0);
    assert!(records.iter().any(|record| matches!(record, Record::FamilyEnded(2, _))));
}

#[test]
fn a_full_mailbox_takes_no_notice_of_an_end() {
    let mut shell = Shell::new(birth());
    submit(
        &mut shell,
        vec![keyed(1)],
        StageOutcome::Sleep(Timestamp(1_000), Blob::default()),
    );
    let other = |number: usize| SentSignal {
        to: ROOT,
        name: EventName::from(format!("other {number}")),
        payload: Blob::default(),
        key: None,
        last: false,
    };
    let most = shell.kernel.rules().bounds.signals;
    shell.feed(6, Event::Signalled(RequestId(3), (0..most).map(other).collect()));
    assert_eq!(signals(&ends(&mut shell)), 0);
}

#[test]
fn a_key_that_is_known_submits_nothing() {
    let mut shell = Shell::new(birth());
    submit(
        &mut shell,
        vec![keyed(1), keyed(1)],
        StageOutcome::Next(Blob::default()),
    );
    assert_eq!(row(&shell, RUN).key, Some(Key::from("run 1")));
    submit(&mut shell, vec![keyed(1)], waits());
    assert!(shell.kernel.row(ProcedureId::root(3)).is_none());
    assert_eq!(row(&shell, ROOT).attempt, 0);
}

#[test]
fn a_key_that_stands_for_another_procedure_fails_the_attempt_and_keeps_nothing() {
    let mut shell = Shell::new(birth());
    submit(&mut shell, vec![keyed(1)], StageOutcome::Next(Blob::default()));
    submit(&mut shell, vec![keyed(2)], waits());
    assert_eq!(row(&shell, ROOT).attempt, 1);
    let failed = shell.history.last().and_then(|entry| entry.error.clone());
    let failed = failed.expect("the attempt has failed");
    assert!(failed.contains("was used for another submission, 2.0"), "{failed}");
    assert!(shell.kernel.row(ProcedureId::root(3)).is_none());
}

#[test]
fn a_signal_over_its_bound_fails_the_stage_and_names_the_bound() {
    let mut shell = Shell::new(birth());
    let mut large = keyed(1);
    if let Some(signal) = &mut large.birth.end_signal {
        signal.payload = Blob::from(vec![0; END_SIGNAL_MAX]);
    }
    submit(&mut shell, vec![large], waits());
    let failed = shell.history.last().and_then(|entry| entry.error.clone());
    let failed = failed.expect("the stage has failed");
    assert!(failed.contains("over the limit of 256"), "{failed}");
    assert!(shell.kernel.row(RUN).is_none());
}
