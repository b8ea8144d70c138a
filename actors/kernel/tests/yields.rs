//! A stage that yields is called again at once, unless it is paused meanwhile; and it is told that its time is up.

#![expect(clippy::expect_used, reason = "a test names what it expects")]

use std::time::Duration;

use procession_kernel::{
    Admission, AdmissionEffect, Birth, Blob, ClaimId, Effect, Event, Kind, LockNeed, OnTimeout, OperatorRequest,
    PauseScope, RequestId, Row, StageCall, StageEnded, StageOutcome, StageTask, StoredTarget, Timestamp, Verb,
    WaitReason,
};

use crate::shell::{KIND, ROOT, Shell};

const SECOND: u64 = 1_000_000;

fn birth() -> Birth {
    Birth::new(Kind::from(KIND), 1, Blob::default(), Blob::default())
}

/// A root that may take a second, and is told when it is over.
fn limited() -> Shell {
    Shell::new(Birth {
        timeout: Some(Duration::from_secs(1)),
        on_timeout: OnTimeout::Execute,
        ..birth()
    })
}

fn row(shell: &Shell) -> &Row {
    shell.kernel.row(ROOT).expect("it lives")
}

/// Lets the stage yield; returns the calls that follow.
fn yields(shell: &mut Shell) -> Vec<StageCall> {
    let run = row(shell).in_flight.expect("its stage is out").run;
    let report = StageEnded::new(ROOT, run, shell.kernel.epoch(), Timestamp(SECOND), StageOutcome::Yield);
    let effects = shell.feed(SECOND, Event::StageEnded(Box::new(report)));
    calls(&effects)
}

fn calls(effects: &[Effect]) -> Vec<StageCall> {
    effects.iter().filter_map(Effect::call).cloned().collect()
}

fn operate(shell: &mut Shell, verb: Verb) -> Vec<StageCall> {
    let by = Box::new(OperatorRequest::new("ann", "a look"));
    let effects = shell.feed(
        SECOND,
        Event::Requested(RequestId(3), Box::new(verb), by, StoredTarget::None),
    );
    calls(&effects)
}

/// For each call, whether it is told that the time is up.
fn told(calls: &[StageCall]) -> Vec<bool> {
    let tasks = calls.iter().map(|call| &call.task);
    tasks
        .map(|task| matches!(task, StageTask::Execute { out_of_time: true, .. }))
        .collect()
}

#[test]
fn e_057_a_stage_that_yields_is_not_called_while_it_is_paused() {
    for scope in [
        PauseScope::One(ROOT),
        PauseScope::Kind(Kind::from(KIND)),
        PauseScope::All,
    ] {
        let mut shell = Shell::new(birth());
        assert_eq!(yields(&mut shell).len(), 1);
        operate(&mut shell, Verb::Pause(scope.clone()));
        assert_eq!(yields(&mut shell), [], "{scope}");
        let paused = row(&shell);
        assert_eq!(
            (paused.wait.clone(), paused.in_flight),
            (Some(WaitReason::Paused), None)
        );
        assert_eq!((paused.visit, paused.standing, paused.history), (0, 0, 0));
        assert_eq!(operate(&mut shell, Verb::Resume(scope)).len(), 1);
    }
}

#[test]
fn while_it_is_paused_others_have_its_locks() {
    let locks = vec![LockNeed::exclusive("t")];
    let mut birth = birth();
    birth.next_needs.locks.clone_from(&locks);
    birth.admission = Admission {
        asked: Some(ClaimId(1)),
        ..Admission::default()
    };
    let mut shell = Shell::new(birth);
    yields(&mut shell);
    assert_eq!(*row(&shell).locked, locks, "a yield keeps them");
    operate(&mut shell, Verb::Pause(PauseScope::One(ROOT)));
    yields(&mut shell);
    assert!(row(&shell).locked.is_empty());
    let gives_back =
        |told: &AdmissionEffect| matches!(told, AdmissionEffect::GiveBack(ROOT, needs) if needs.locks == locks);
    assert!(shell.told.iter().any(gives_back), "{:?}", shell.told);
    operate(&mut shell, Verb::Resume(PauseScope::One(ROOT)));
    assert_eq!(shell.told, [AdmissionEffect::Ask(ROOT)]);
}

#[test]
fn it_is_told_that_its_time_is_up_with_one_commit() {
    let mut shell = limited();
    assert_eq!(told(&yields(&mut shell)), [false]);
    let run = row(&shell).in_flight.expect("its stage is out").run;
    shell.feed(SECOND, Event::TimerDue(ROOT));
    let before = shell.kernel.seq();
    let calls = yields(&mut shell);
    assert_eq!(told(&calls), [true]);
    assert_eq!(calls.iter().filter_map(StageCall::run).collect::<Vec<_>>(), [run]);
    assert_eq!((shell.kernel.seq(), row(&shell).deadline), (before.next(), None));
    assert_eq!(shell.kernel.calls_of(ROOT), calls);
    assert_eq!(told(&yields(&mut shell)), [true]);
    assert_eq!(shell.kernel.seq(), before.next(), "the next one is no commit");
}

#[test]
fn one_whose_time_is_up_while_it_is_paused_is_told_once_it_is_resumed() {
    let mut shell = limited();
    operate(&mut shell, Verb::Pause(PauseScope::All));
    shell.feed(SECOND, Event::TimerDue(ROOT));
    assert_eq!(yields(&mut shell), []);
    assert_eq!(told(&operate(&mut shell, Verb::Resume(PauseScope::All))), [true]);
}
