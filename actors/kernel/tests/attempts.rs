//! Attempts: delays that code chose, and how often an attempt was cut off.

#![expect(
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects, and fails on all else"
)]

use std::time::Duration;

use procession_kernel::{
    AdmissionEffect, Birth, Blob, CauseKind, ClaimId, Effect, Epoch, Event, HistoryEntry, InFlight, Kernel, Kind,
    LockNeed, OperatorRequest, PauseScope, ProcedureId, ProcedureState, RETRY_AFTER_MAX, RequestId, RetryPolicy, Row,
    StageEnded, StageOutcome, StageTask, StoredTarget, Timestamp, UndoEnded, Verb, WaitReason, check_rows,
};

use crate::shell::{KIND, ROOT, Shell};

const SECOND: u64 = 1_000_000;
const HOUR: u64 = 3_600 * SECOND;

fn birth() -> Birth {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    Birth::new(Kind::from(KIND), 1, stage, payload)
}

fn begun() -> Shell {
    Shell::new(birth())
}

fn row(shell: &Shell, id: ProcedureId) -> &Row {
    shell.kernel.row(id).expect("it lives")
}

fn ended(shell: &mut Shell, id: ProcedureId, at: u64, outcome: StageOutcome) -> Vec<Effect> {
    let run = row(shell, id).in_flight.expect("its stage is out").run;
    let report = StageEnded::new(id, run, shell.kernel.epoch(), Timestamp(at), outcome);
    shell.feed(at, Event::StageEnded(Box::new(report)))
}

fn after(delay: Duration) -> StageOutcome {
    StageOutcome::RetryAfter(delay, "busy".to_owned())
}

fn waits(shell: &Shell) -> Option<WaitReason> {
    row(shell, ROOT).wait.clone()
}

fn backoff(attempt: u32, until: u64) -> Option<WaitReason> {
    Some(WaitReason::Backoff(attempt, Timestamp(until)))
}

/// What each call of a stage is told: the procedure, the attempt, and how often it was cut off.
fn told(effects: &[Effect]) -> Vec<(ProcedureId, u32, u32)> {
    let calls = effects.iter().filter_map(Effect::call);
    let stages = calls.filter_map(|call| match call.task {
        StageTask::Execute { repeated, .. } => Some((call.id, call.attempt, repeated)),
        _ => None,
    });
    stages.collect()
}

/// The next engine, after this many deaths in all.
fn restarted(before: &Shell, deaths: u32, at: u64) -> (Shell, Vec<Effect>) {
    let epoch = Epoch(before.kernel.epoch().0 + 1);
    let mut next = Shell {
        told: Vec::new(),
        early: Vec::new(),
        kernel: Kernel::new(before.kernel.rules().clone(), epoch, deaths),
        history: before.history.clone(),
    };
    for (number, family) in before.kernel.families() {
        let members = family.members.clone();
        assert_eq!(check_rows(&members), Ok(()));
        assert_eq!(next.kernel.take_in(number, members, &[]), Ok(()));
    }
    let effects = next.feed(at, Event::Recovered);
    (next, effects)
}

#[test]
fn a_delay_that_the_code_chose_replaces_the_policys() {
    let mut shell = begun();
    ended(&mut shell, ROOT, 0, after(Duration::from_secs(7)));
    assert_eq!(waits(&shell), backoff(1, 7 * SECOND));
    assert_eq!(row(&shell, ROOT).rare().retry_after, Some(Duration::from_secs(7)));
    let effects = shell.feed(7 * SECOND, Event::TimerDue(ROOT));
    assert_eq!(told(&effects), [(ROOT, 2, 0)]);
    assert_eq!(row(&shell, ROOT).rare().retry_after, None);
    // The next one is the policy's own again, and counts the one before.
    ended(&mut shell, ROOT, 7 * SECOND, StageOutcome::Retry("not yet".to_owned()));
    assert_eq!(waits(&shell), backoff(2, 9 * SECOND));
    assert_eq!(row(&shell, ROOT).rare().retry_after, None);
}

#[test]
fn attempts_are_used_up_by_it_as_by_any_failure() {
    let mut shell = begun();
    for _ in 0..2 {
        ended(&mut shell, ROOT, 0, after(Duration::ZERO));
    }
    let effects = ended(&mut shell, ROOT, 0, after(Duration::ZERO));
    assert_eq!(told(&effects), []);
    let row = row(&shell, ROOT);
    assert_eq!(row.state, ProcedureState::Failed);
    let cause = row.rare().cause.as_ref().expect("it has failed");
    assert_eq!(
        (cause.kind, cause.text.as_str()),
        (CauseKind::AttemptsExhausted, "busy")
    );
}

#[test]
fn without_a_delay_it_is_set_going_in_the_same_commit() {
    let mut shell = begun();
    let before = shell.kernel.seq();
    let effects = ended(&mut shell, ROOT, 5, after(Duration::ZERO));
    assert_eq!(
        effects.len(),
        1,
        "its actor is kept, and no timer is armed: {effects:?}"
    );
    assert_eq!(told(&effects), [(ROOT, 2, 0)]);
    let row = row(&shell, ROOT);
    assert_eq!(
        (row.state, row.wait.clone(), row.attempt),
        (ProcedureState::Runnable, None, 1)
    );
    assert_eq!(
        row.in_flight.map(|in_flight| in_flight.run),
        Some(before.next()),
        "a run of its own"
    );
    assert_eq!(shell.history.len(), 1);
}

#[test]
fn without_a_delay_locks_of_the_stage_go_to_others_first() {
    let mut needs = birth();
    let locks = vec![LockNeed::exclusive("t")];
    needs.next_needs.locks.clone_from(&locks);
    needs.admission.asked = Some(ClaimId(1));
    let mut shell = Shell::new(needs);
    assert_eq!(row(&shell, ROOT).locked, locks);
    let effects = ended(&mut shell, ROOT, 0, after(Duration::ZERO));
    let order = &shell.told;
    assert!(
        matches!(
            order[..],
            [AdmissionEffect::GiveBack(ROOT, _), AdmissionEffect::Ask(ROOT)]
        ),
        "{order:?}"
    );
    assert_eq!(told(&effects), []);
    assert_eq!(waits(&shell), Some(WaitReason::Lock("t".into())));
    assert_eq!(told(&shell.feed(0, Event::Granted(ROOT))), [(ROOT, 2, 0)]);
}

#[test]
fn without_a_delay_it_waits_where_it_may_not_run() {
    let mut drained = begun();
    drained.feed(0, Event::DrainBegan);
    assert_eq!(told(&ended(&mut drained, ROOT, 0, after(Duration::ZERO))), []);
    assert_eq!(waits(&drained), Some(WaitReason::Queue));

    let mut paused = begun();
    operate(&mut paused, Verb::Pause(PauseScope::One(ROOT)));
    assert_eq!(told(&ended(&mut paused, ROOT, 0, after(Duration::ZERO))), []);
    assert_eq!(waits(&paused), Some(WaitReason::Paused));
    let effects = operate(&mut paused, Verb::Resume(PauseScope::One(ROOT)));
    assert_eq!(told(&effects), [(ROOT, 2, 0)]);
}

fn operate(shell: &mut Shell, verb: Verb) -> Vec<Effect> {
    let by = OperatorRequest::new("somebody", "a test");
    let request = Event::Requested(RequestId(9), Box::new(verb), Box::new(by), StoredTarget::None);
    shell.feed(0, request)
}

#[test]
fn a_delay_is_at_most_a_day() {
    let mut shell = begun();
    ended(&mut shell, ROOT, 5, after(Duration::MAX));
    assert_eq!(waits(&shell), backoff(1, 5 + 24 * HOUR));
    assert_eq!(row(&shell, ROOT).rare().retry_after, Some(RETRY_AFTER_MAX));
}

#[test]
fn when_the_clock_was_ahead_the_chosen_delay_is_what_bounds_the_wait() {
    // Longer and shorter than the policy's second.
    for delay in [Duration::from_mins(1), Duration::from_millis(1)] {
        let micros = delay.as_secs_f64() * 1e6;
        let mut shell = begun();
        ended(&mut shell, ROOT, 24 * HOUR, after(delay));
        let until = |from: u64| Some(WaitReason::Backoff(1, Timestamp(from).after(delay)));
        for now in [HOUR, 0] {
            let (next, _) = restarted(&shell, 0, now);
            assert_eq!(waits(&next), until(now), "at a start, {micros} us");
            shell.feed(now, Event::ClockSetBack);
            assert_eq!(waits(&shell), until(now), "while it runs, {micros} us");
        }
        assert_eq!(
            shell.feed(0, Event::ClockSetBack),
            [],
            "once it is so, nothing is left to be done"
        );
    }
}

#[test]
fn past_its_point_of_no_return_it_does_not_commit_without_pause() {
    let mut birth = birth();
    birth.next_needs.next_is_no_return = Some("first".to_owned());
    let mut shell = Shell::new(birth);
    for _ in 0..2 {
        let effects = ended(&mut shell, ROOT, 0, after(Duration::ZERO));
        assert_eq!(told(&effects).len(), 1);
    }
    let longest = RetryPolicy::default().max;
    for (chosen, waited) in [
        (Duration::ZERO, longest),
        (Duration::from_secs(1), longest),
        (longest + Duration::from_secs(1), longest + Duration::from_secs(1)),
    ] {
        ended(&mut shell, ROOT, 0, after(chosen));
        assert_eq!(
            shell.kernel.next_deadline(),
            Some(Timestamp(0).after(waited)),
            "{chosen:?}"
        );
        shell.feed(0, Event::ClockSetBack);
        assert_eq!(
            shell.kernel.next_deadline(),
            Some(Timestamp(0).after(waited)),
            "{chosen:?}"
        );
        shell.feed(24 * HOUR, Event::TimerDue(ROOT));
    }
}

/// The root whose only stage has failed, and the undo of that is out.
fn undoing() -> Shell {
    let mut shell = begun();
    ended(&mut shell, ROOT, 0, StageOutcome::Fail("boom".to_owned()));
    let entries: Vec<HistoryEntry> = shell.history.clone();
    shell.feed(0, Event::StackLoaded(ROOT, entries));
    shell
}

fn undo_fails(shell: &mut Shell, at: u64, delay: Option<Duration>) -> Vec<u32> {
    let report = UndoEnded {
        retry_after: delay,
        ..UndoEnded::new(ROOT, 1, Timestamp(at), Err("busy".to_owned()))
    };
    let effects = shell.feed(at, Event::UndoEnded(Box::new(report)));
    let calls = effects.iter().filter_map(Effect::call);
    calls
        .filter(|call| call.undone().is_some())
        .map(|call| call.attempt)
        .collect()
}

#[test]
fn an_undo_may_choose_its_delay_too() {
    let mut shell = undoing();
    assert_eq!(undo_fails(&mut shell, 24 * HOUR, Some(Duration::from_secs(7))), []);
    assert_eq!(waits(&shell), backoff(1, 24 * HOUR + 7 * SECOND));
    shell.feed(0, Event::ClockSetBack);
    assert_eq!(waits(&shell), backoff(1, 7 * SECOND));
    shell.feed(7 * SECOND, Event::TimerDue(ROOT));
    assert_eq!(
        undo_fails(&mut shell, 7 * SECOND, Some(Duration::ZERO)),
        [3],
        "in the same commit"
    );
    assert_eq!((waits(&shell), row(&shell, ROOT).rare().retry_after), (None, None));
    assert_eq!(undo_fails(&mut shell, 7 * SECOND, Some(Duration::ZERO)), []);
    assert_eq!(
        waits(&shell),
        Some(WaitReason::RollbackFailed),
        "its attempts are used up"
    );
    let undone = UndoEnded::new(ROOT, 1, Timestamp(0), Ok(()));
    operate(&mut shell, Verb::RetryUndo(ROOT));
    shell.feed(0, Event::UndoEnded(Box::new(undone)));
    assert!(shell.kernel.families().is_empty());
}

#[test]
fn an_attempt_is_told_how_many_processes_ended_while_it_was_out() {
    let first = begun();
    let (mut second, effects) = restarted(&first, 1, 0);
    assert_eq!(told(&effects), [(ROOT, 1, 1)]);
    // What was taken back before it began is told the same.
    let again = second.kernel.calls_of(ROOT);
    assert!(
        again
            .iter()
            .all(|call| matches!(call.task, StageTask::Execute { repeated: 1, .. })),
        "{again:?}"
    );
    // Nothing is committed by a yield.
    assert_eq!(told(&ended(&mut second, ROOT, 0, StageOutcome::Yield)), [(ROOT, 1, 1)]);
    // The third runs it as a suspect, who keeps its count.
    let (mut third, effects) = restarted(&second, 2, 0);
    assert_eq!(told(&effects), [(ROOT, 1, 2)]);
    // An attempt that failed is over, and so is a stage.
    assert_eq!(told(&ended(&mut third, ROOT, 0, after(Duration::ZERO))), [(ROOT, 2, 0)]);
    let next = StageOutcome::Next(Blob::from(&b"second"[..]));
    assert_eq!(told(&ended(&mut third, ROOT, 0, next)), [(ROOT, 1, 0)]);
}

#[test]
fn drains_that_gave_up_count_and_so_do_deaths_after_them() {
    let mut shell = begun();
    for drains in 1..=3 {
        shell.feed(0, Event::DrainBegan);
        shell.feed(0, Event::DrainEnded(RequestId(3)));
        let (next, effects) = restarted(&shell, 0, 0);
        assert_eq!(told(&effects), [(ROOT, 1, drains)], "and it is no suspect");
        shell = next;
    }
    let (mut dead, effects) = restarted(&shell, 1, 0);
    assert_eq!(told(&effects), [(ROOT, 1, 4)]);
    dead.feed(0, Event::DrainBegan);
    dead.feed(0, Event::DrainEnded(RequestId(3)));
    let (mut last, effects) = restarted(&dead, 1, 0);
    assert_eq!(told(&effects), [(ROOT, 1, 5)]);
    assert_eq!(told(&ended(&mut last, ROOT, 0, after(Duration::ZERO))), [(ROOT, 2, 0)]);
}

#[test]
fn a_stage_that_a_drain_gave_up_can_still_become_poison() {
    let mut shell = begun();
    shell.feed(0, Event::DrainBegan);
    shell.feed(0, Event::DrainEnded(RequestId(3)));
    for deaths in 1..=2 {
        let (next, effects) = restarted(&shell, deaths, 0);
        assert_eq!(told(&effects), [(ROOT, 1, deaths + 1)]);
        shell = next;
    }
    let alone = row(&shell, ROOT).in_flight.map(|in_flight| in_flight.alone);
    assert_eq!(alone, Some(true), "it was out at two deaths");
    let (shell, effects) = restarted(&shell, 3, 0);
    assert_eq!(told(&effects), []);
    assert_eq!(waits(&shell), Some(WaitReason::Poison));
}

#[test]
fn a_deadly_stage_of_a_failing_family_is_not_run_for_ever() {
    for aborted_at in 0..=3 {
        let (mut shell, mut effects) = (begun(), Vec::new());
        for deaths in 0..=3 {
            if deaths == aborted_at {
                operate(&mut shell, Verb::Abort(ROOT));
                assert_eq!(row(&shell, ROOT).state, ProcedureState::Failed);
            }
            (shell, effects) = restarted(&shell, deaths, 0);
            let runs = (deaths < 3).then_some((ROOT, 1, deaths));
            assert_eq!(told(&effects), Vec::from_iter(runs), "aborted at {aborted_at}");
        }
        // It may have done its work before it died alone, so it is undone.
        let mut calls = effects.iter().filter_map(Effect::call);
        assert!(
            calls.any(|call| matches!(call.task, StageTask::Undo { .. })),
            "{effects:?}"
        );
    }
}

#[test]
fn a_row_of_an_engine_that_kept_no_count_was_cut_off_at_least_once() {
    let mut row = row(&begun(), ROOT).clone();
    row.in_flight = row.in_flight.map(|in_flight| InFlight {
        deaths: InFlight::UNCOUNTED,
        ..in_flight
    });
    assert_eq!(row.repeated_at(0), 1);
    assert_eq!(row.repeated_at(7), 1);
}

#[test]
fn suspects_keep_their_count_until_they_are_poison() {
    let mut first = Shell::empty(Epoch(1));
    first.feed(0, Event::Submitted(RequestId(1), vec![birth().into(); 2]));
    let other = ProcedureId::root(2);
    let (mut third, effects) = restarted(&first, 2, 0);
    assert_eq!(told(&effects), [(ROOT, 1, 2)]);
    assert_eq!(row(&third, other).wait, Some(WaitReason::Suspect));
    // Its turn comes at once, or at the next start, where it is set going anew; it dies alone here.
    let effects = ended(&mut third, ROOT, 0, StageOutcome::Done(Blob::default()));
    assert_eq!(told(&effects), [(other, 1, 2)]);
    let (mut fourth, effects) = restarted(&third, 3, 0);
    assert_eq!(
        (told(&effects), row(&fourth, other).wait.clone()),
        (vec![], Some(WaitReason::Poison))
    );
    // An operator has looked.
    let effects = operate(&mut fourth, Verb::RetryNow(other));
    assert_eq!(told(&effects), [(other, 1, 0)]);

    // A suspect that waits for its turn is not out.
    let (third, _) = restarted(&first, 2, 0);
    let (_, effects) = restarted(&third, 3, 0);
    assert_eq!(told(&effects), [(other, 1, 2)], "the first is poison");
}

#[test]
fn what_yields_into_a_drain_keeps_its_count() {
    let (mut shell, _) = restarted(&begun(), 1, 0);
    shell.feed(0, Event::DrainBegan);
    ended(&mut shell, ROOT, 0, StageOutcome::Yield);
    shell.feed(0, Event::DrainEnded(RequestId(3)));
    let (_, effects) = restarted(&shell, 1, 0);
    assert_eq!(told(&effects), [(ROOT, 1, 1)]);
}

#[test]
fn a_row_that_needs_none_of_it_has_none_of_it() {
    let mut shell = begun();
    ended(&mut shell, ROOT, 0, StageOutcome::Retry("not yet".to_owned()));
    shell.feed(SECOND, Event::TimerDue(ROOT));
    let row = row(&shell, ROOT);
    let counted_from = row.in_flight.and_then(|in_flight| in_flight.counted_from);
    assert_eq!((row.rare().retry_after, row.repeated, counted_from), (None, 0, None));
}

#[test]
fn a_row_that_is_plain_again_has_no_box() {
    let mut shell = begun();
    let next = || StageOutcome::Next(Blob::from(&b"second"[..]));
    assert_eq!(row(&shell, ROOT).rare, None);
    ended(&mut shell, ROOT, 0, next());
    assert_eq!(row(&shell, ROOT).rare, None);
    ended(&mut shell, ROOT, 0, after(Duration::from_secs(7)));
    assert_ne!(
        row(&shell, ROOT).rare,
        None,
        "it says what failed, and for how long it backs off"
    );
    shell.feed(7 * SECOND, Event::TimerDue(ROOT));
    ended(&mut shell, ROOT, 7 * SECOND, next());
    assert_eq!(row(&shell, ROOT).rare, None);
}
