//! A rollback whose stack the failing commit has just written begins with that commit: nothing is read first.

#![expect(clippy::expect_used, reason = "a test names what it expects")]

use procession_kernel::{
    Admission, Birth, Blob, ClaimId, DispatchEffect, Effect, Event, JoinPolicy, Kind, LimitKey, LockNeed,
    OperatorRequest, PauseScope, ProcedureId, ProcedureState, RequestId, Row, StageEnded, StageOutcome, StoredTarget,
    Timestamp, UndoEnded, Verb, WaitReason,
};

use crate::shell::{KIND, ROOT, Shell};

fn birth() -> Birth {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    Birth::new(Kind::from(KIND), 1, stage, payload)
}

fn row(shell: &Shell, id: ProcedureId) -> &Row {
    shell.kernel.row(id).expect("it lives")
}

fn report(shell: &Shell, id: ProcedureId, outcome: StageOutcome) -> StageEnded {
    let run = row(shell, id).in_flight.expect("its stage is out").run;
    StageEnded::new(id, run, shell.kernel.epoch(), Timestamp(0), outcome)
}

fn end(shell: &mut Shell, id: ProcedureId, outcome: StageOutcome) -> Vec<Effect> {
    let report = report(shell, id, outcome);
    shell.feed(0, Event::StageEnded(Box::new(report)))
}

fn fail() -> StageOutcome {
    StageOutcome::Fail("boom".to_owned())
}

/// Returns the scope and the number of the entry that an effect undoes, if any does.
fn undone(effects: &[Effect]) -> Option<(ProcedureId, u32)> {
    effects.iter().find_map(|effect| effect.call()?.undone())
}

fn loads(effects: &[Effect]) -> bool {
    let loads = |effect: &Effect| matches!(effect, Effect::Dispatch(DispatchEffect::LoadStack(_)));
    effects.iter().any(loads)
}

fn stops(effects: &[Effect], id: ProcedureId) -> bool {
    let stops = |effect: &Effect| matches!(effect, Effect::Dispatch(DispatchEffect::Stop(of)) if *of == id);
    effects.iter().any(stops)
}

/// Runs an attempt that fails in this way until it was the last; returns the effects of the last commit.
fn exhausted(shell: &mut Shell, outcome: &StageOutcome) -> Vec<Effect> {
    loop {
        let effects = end(shell, ROOT, outcome.clone());
        let Some(WaitReason::Backoff(_, until)) = row(shell, ROOT).wait else {
            return effects;
        };
        shell.feed(until.0, Event::TimerDue(ROOT));
    }
}

#[test]
fn the_undo_of_a_first_stage_follows_its_failure_at_once_however_it_fails() {
    let text = || "boom".to_owned();
    for outcome in [
        StageOutcome::Fail(text()),
        StageOutcome::GiveUp(text()),
        StageOutcome::Retry(text()),
        StageOutcome::TimedOut(text()),
        StageOutcome::Panicked(text()),
    ] {
        let mut shell = Shell::new(birth());
        let effects = exhausted(&mut shell, &outcome);
        let newest = shell.history.last().expect("it was tried").number;
        assert_eq!(undone(&effects), Some((ROOT, newest)), "{outcome:?}");
        assert!(!loads(&effects), "{outcome:?}");
        assert!(!stops(&effects, ROOT), "its actor has the value: {outcome:?}");
        let standing = (row(&shell, ROOT).state, row(&shell, ROOT).standing);
        assert_eq!(standing, (ProcedureState::Failed, 1), "{outcome:?}");
        let report = UndoEnded::new(ROOT, newest, Timestamp(0), Ok(()));
        let effects = shell.feed(0, Event::UndoEnded(Box::new(report)));
        assert!(stops(&effects, ROOT), "{outcome:?}");
        assert!(shell.kernel.families().is_empty(), "it has ended: {outcome:?}");
    }
}

#[test]
fn a_child_that_fails_is_undone_at_once_and_its_siblings_go_on() {
    let mut shell = Shell::new(birth());
    let spawn = StageOutcome::Spawn {
        births: vec![birth(), birth()],
        join: JoinPolicy::AllFinished,
        width: 0,
        then: Blob::from(&b"then"[..]),
    };
    end(&mut shell, ROOT, spawn);
    let child = ProcedureId::new(1, 2);
    let effects = end(&mut shell, child, fail());
    assert_eq!((undone(&effects), loads(&effects)), (Some((child, 2)), false));
    let report = UndoEnded::new(child, 2, Timestamp(0), Ok(()));
    shell.feed(0, Event::UndoEnded(Box::new(report)));
    assert_eq!(row(&shell, child).state, ProcedureState::RolledBack);
    assert_eq!(row(&shell, ProcedureId::new(1, 1)).state, ProcedureState::Runnable);
}

#[test]
fn a_stack_with_an_older_entry_is_read() {
    let mut shell = Shell::new(birth());
    end(&mut shell, ROOT, StageOutcome::Next(Blob::from(&b"second"[..])));
    let effects = end(&mut shell, ROOT, fail());
    assert!(loads(&effects));
    assert!(
        !stops(&effects, ROOT),
        "its undo is the first, and its actor has the value"
    );
    assert_eq!(undone(&effects), None);
    let entries = shell.history.clone();
    let effects = shell.feed(0, Event::StackLoaded(ROOT, entries));
    assert_eq!((undone(&effects), stops(&effects, ROOT)), (Some((ROOT, 2)), false));
}

#[test]
fn an_actor_that_waits_for_a_stack_with_a_hole_is_stopped() {
    let mut shell = Shell::new(birth());
    end(&mut shell, ROOT, StageOutcome::Next(Blob::from(&b"second"[..])));
    assert!(!stops(&end(&mut shell, ROOT, fail()), ROOT));
    let effects = shell.feed(0, Event::StackLoaded(ROOT, Vec::new()));
    assert_eq!(row(&shell, ROOT).wait, Some(WaitReason::Quarantined));
    assert!(stops(&effects, ROOT));
}

#[test]
fn a_child_that_has_succeeded_leaves_its_actor_though_its_undo_is_the_first() {
    let mut shell = Shell::new(birth());
    let spawn = StageOutcome::Spawn {
        births: vec![birth(), birth()],
        join: JoinPolicy::AllSucceeded,
        width: 0,
        then: Blob::from(&b"then"[..]),
    };
    end(&mut shell, ROOT, spawn);
    let (first, second) = (ProcedureId::new(1, 1), ProcedureId::new(1, 2));
    assert!(!loads(&end(&mut shell, first, fail())));
    let effects = end(&mut shell, second, StageOutcome::Done(Blob::default()));
    assert!(loads(&effects), "{effects:?}");
    assert!(row(&shell, second).is_ended());
    assert!(stops(&effects, second));
}

#[test]
fn a_value_that_was_refused_is_revived_from_the_store() {
    let mut shell = Shell::new(birth());
    let mut report = report(&shell, ROOT, StageOutcome::Next(Blob::from(&b"second"[..])));
    report.payload = Some(Blob::from(vec![0; shell.kernel.rules().bounds.payload + 1].as_slice()));
    let effects = shell.feed(0, Event::StageEnded(Box::new(report)));
    assert_eq!(undone(&effects), Some((ROOT, 1)));
    assert!(stops(&effects, ROOT), "the actor has the value that was refused");
}

#[test]
fn an_undo_that_needs_a_permit_asks_for_it_once_the_stage_has_given_it_back() {
    let mut born = birth();
    born.next_needs.limits = vec![LimitKey::from("calls")];
    let mut shell = Shell::new(born);
    shell.feed(0, Event::Granted(ROOT));
    let effects = end(&mut shell, ROOT, fail());
    assert!(loads(&effects));
    assert_eq!(undone(&effects), None);
    let entries = shell.history.clone();
    shell.feed(0, Event::StackLoaded(ROOT, entries));
    assert_eq!(row(&shell, ROOT).wait, Some(WaitReason::Permit("calls".into())));
}

#[test]
fn an_undo_goes_on_under_the_locks_of_its_stage() {
    let mut born = birth();
    born.next_needs.locks = vec![LockNeed::exclusive("t")];
    born.admission = Admission {
        asked: Some(ClaimId(1)),
        ..Admission::default()
    };
    let mut shell = Shell::new(born);
    let effects = end(&mut shell, ROOT, fail());
    assert_eq!((undone(&effects), loads(&effects)), (Some((ROOT, 1)), false));
    assert_eq!(*row(&shell, ROOT).locked, [LockNeed::exclusive("t")]);
}

#[test]
fn an_undo_that_is_paused_waits_for_the_resume() {
    let mut shell = Shell::new(birth());
    let by = Box::new(OperatorRequest::new("ann", "so it is"));
    let pause = Box::new(Verb::Pause(PauseScope::All));
    shell.feed(0, Event::Requested(RequestId(9), pause, by, StoredTarget::None));
    let effects = end(&mut shell, ROOT, fail());
    assert!(loads(&effects));
    assert_eq!(undone(&effects), None);
}

#[test]
fn a_drain_leaves_the_undo_to_the_next_start() {
    let mut shell = Shell::new(birth());
    shell.feed(0, Event::DrainBegan);
    let effects = end(&mut shell, ROOT, fail());
    assert_eq!((undone(&effects), loads(&effects)), (None, false));
    assert!(stops(&effects, ROOT));
}
