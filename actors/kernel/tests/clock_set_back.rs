//! A backoff that was armed while the clock was ahead lasts no longer than its policy allows once it is right.

#![expect(
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects, and fails on all else"
)]

use std::time::Duration;

use procession_kernel::{
    Birth, Blob, DispatchEffect, Effect, Epoch, Event, Kind, LifecycleEffect, ProcedureId, Seq, StageEnded,
    StageOutcome, Timestamp, UndoEnded, WaitReason, check_rows,
};

use crate::shell::{KIND, ROOT, Shell};

/// A day ahead, in microseconds.
const AHEAD: u64 = 86_400_000_000;
/// What the default policy waits after the first failed attempt.
const FIRST: Timestamp = Timestamp(1_000_000);

fn begun() -> Shell {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    Shell::new(Birth::new(Kind::from(KIND), 1, stage, payload))
}

fn ended(shell: &mut Shell, at: u64, outcome: StageOutcome) -> Vec<Effect> {
    let run = shell
        .kernel
        .row(ROOT)
        .and_then(|row| row.in_flight)
        .map_or(Seq(0), |in_flight| in_flight.run);
    let report = StageEnded::new(ROOT, run, Epoch(1), Timestamp(at), outcome);
    shell.feed(at, Event::StageEnded(Box::new(report)))
}

/// A procedure in the backoff of its first failed attempt, armed while the clock was a day ahead.
fn backs_off() -> Shell {
    let mut shell = begun();
    ended(&mut shell, AHEAD, StageOutcome::Retry("not yet".to_owned()));
    assert_eq!(
        shell.kernel.next_deadline(),
        Some(Timestamp(AHEAD).after(Duration::from_secs(1)))
    );
    shell
}

/// The same of an undo.
fn undo_backs_off() -> Shell {
    let mut shell = begun();
    let undo = ended(&mut shell, AHEAD, StageOutcome::Fail("boom".to_owned()));
    let number = undo.iter().find_map(|effect| match effect {
        Effect::Dispatch(DispatchEffect::Call(call)) => call.undone().map(|(_, number)| number),
        _ => None,
    });
    let number = number.expect("its stage is undone");
    let failed = UndoEnded::new(ROOT, number, Timestamp(AHEAD), Err("no".to_owned()));
    shell.feed(AHEAD, Event::UndoEnded(Box::new(failed)));
    shell
}

fn restarted(shell: &Shell, at: u64) -> Shell {
    let members = shell.kernel.families().get(&1).expect("it lives").members.clone();
    assert_eq!(check_rows(&members), Ok(()));
    let mut next = Shell::empty(Epoch(2));
    assert_eq!(next.kernel.take_in(1, members, &[]), Ok(()));
    next.feed(at, Event::Recovered);
    next
}

#[test]
fn a_backoff_is_brought_forward_while_the_engine_runs() {
    for mut shell in [backs_off(), undo_backs_off()] {
        let effects = shell.feed(0, Event::ClockSetBack);
        assert!(effects.contains(&Effect::Lifecycle(LifecycleEffect::ArmTimer)));
        assert_eq!(shell.kernel.next_deadline(), Some(FIRST));
        assert_eq!(shell.kernel.due(FIRST), Some(ROOT));
        // Once it is so, nothing is left to be done.
        assert_eq!(shell.feed(0, Event::ClockSetBack), []);
    }
}

#[test]
fn a_backoff_is_brought_forward_at_a_start() {
    for shell in [backs_off(), undo_backs_off()] {
        assert_eq!(restarted(&shell, 0).kernel.next_deadline(), Some(FIRST));
        // A clock that was right all the time changes nothing.
        let deadline = shell.kernel.next_deadline();
        assert_eq!(restarted(&shell, AHEAD).kernel.next_deadline(), deadline);
    }
}

#[test]
fn what_user_code_chose_stays() {
    let mut shell = begun();
    let until = Timestamp(AHEAD).after(Duration::from_secs(60));
    ended(&mut shell, AHEAD, StageOutcome::Sleep(until, Blob::default()));
    assert_eq!(shell.feed(0, Event::ClockSetBack), []);
    assert_eq!(shell.kernel.next_deadline(), Some(until));
    let row = shell.kernel.row(ProcedureId::root(1)).expect("it lives");
    assert_eq!(row.wait, Some(WaitReason::Timer(until)));
}
