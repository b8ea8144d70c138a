//! Kinds that keep only the newest entries of their history.

#![expect(clippy::expect_used, reason = "a test names what it expects")]

use procession_kernel::{
    Birth, Blob, Epoch, Event, EventName, HistoryDetail, JoinPolicy, Kernel, Kind, KindRules, ProcedureId, Record,
    RequestId, RetryPolicy, Row, Rules, StageEnded, StageOutcome, Timestamp, UndoEnded, WaitReason, settle_standing,
};

use crate::shell::{KIND, ROOT, Shell};

fn stage() -> Blob {
    Blob::from(&b"turn"[..])
}

fn birth() -> Birth {
    Birth::new(Kind::from(KIND), 1, stage(), Blob::from(&b"value"[..]))
}

/// A procedure whose kind keeps this many entries, and whose stages may fail without end.
fn keeping(history: HistoryDetail) -> Shell {
    begun(history, false)
}

fn begun(history: HistoryDetail, rollback: bool) -> Shell {
    let kind = KindRules {
        rollback,
        history,
        retry: RetryPolicy::default().attempts(u32::MAX),
        ..KindRules::new(1)
    };
    let rules = Rules {
        kinds: [(Kind::from(KIND), kind)].into(),
        ..Rules::default()
    };
    let mut shell = Shell::new(birth());
    shell.kernel = Kernel::new(rules, Epoch(1), 0);
    shell.feed(0, Event::Submitted(RequestId(2), vec![birth().into()]));
    shell
}

/// Starts an engine whose code keeps this much of the history, on what another one left.
fn started_with(before: &Shell, history: HistoryDetail) -> Shell {
    let mut rules = before.kernel.rules().clone();
    let kind = rules.kinds.get_mut(&Kind::from(KIND));
    kind.expect("it is registered").history = history;
    let mut later = Shell {
        told: Vec::new(),
        early: Vec::new(),
        kernel: Kernel::new(rules, Epoch(2), 0),
        history: Vec::new(),
    };
    for (number, family) in before.kernel.families() {
        assert_eq!(later.kernel.take_in(number, family.members.clone(), &[]), Ok(()));
    }
    later.feed(5, Event::Recovered);
    later
}

fn row(shell: &Shell) -> &Row {
    shell.kernel.row(ROOT).expect("it lives")
}

/// Ends the stage of a member; returns the numbers of the entries that the commit drops.
fn end(shell: &mut Shell, id: ProcedureId, outcome: StageOutcome) -> Vec<u32> {
    let run = shell
        .kernel
        .row(id)
        .and_then(|row| row.in_flight)
        .expect("its stage is out")
        .run;
    let report = StageEnded::new(id, run, shell.kernel.epoch(), Timestamp(5), outcome);
    let event = Event::StageEnded(Box::new(report));
    let decision = shell.kernel.decide(Timestamp(5), event.clone());
    let dropped = decision.records().iter().filter_map(|record| {
        if let Record::HistoryDropped(1, number) = record {
            Some(*number)
        } else {
            None
        }
    });
    let dropped = dropped.collect();
    shell.feed(5, event);
    dropped
}

fn next(shell: &mut Shell) -> Vec<u32> {
    end(shell, ROOT, StageOutcome::Next(stage()))
}

#[test]
fn f_018_each_commit_drops_the_entry_that_falls_out() {
    let mut shell = keeping(HistoryDetail::Newest(10));
    for number in 1..=25 {
        let expected = Vec::from_iter((number > 10).then(|| number - 10));
        assert_eq!(next(&mut shell), expected, "entry {number}");
    }
    let row = row(&shell);
    assert_eq!((row.history, row.history_from, row.standing), (25, 16, 0));
    assert!(shell.history.iter().all(|entry| !entry.stands));
    assert_eq!(row.stages_kept(), 10);
}

#[test]
fn f_018_failed_attempts_are_entries_of_the_window_too() {
    let mut shell = keeping(HistoryDetail::Newest(3));
    for number in 1..=8 {
        let retry = StageOutcome::RetryAfter(std::time::Duration::ZERO, "busy".to_owned());
        let expected = Vec::from_iter((number > 3).then(|| number - 3));
        assert_eq!(end(&mut shell, ROOT, retry), expected, "attempt {number}");
    }
    assert_eq!(next(&mut shell), [6]);
    assert_eq!(*row(&shell).rare().attempts_kept, []);
}

#[test]
fn a_kind_that_keeps_less_than_before_catches_up_step_by_step() {
    let mut shell = keeping(HistoryDetail::Newest(100));
    for _ in 0..100 {
        assert_eq!(next(&mut shell), []);
    }
    let mut later = started_with(&shell, HistoryDetail::Newest(10));
    let mut dropped = Vec::new();
    for _ in 0..20 {
        let of_commit = next(&mut later);
        assert!(of_commit.len() <= 8, "{of_commit:?}");
        dropped.extend(of_commit);
    }
    let row = row(&later);
    assert_eq!((row.history, row.history_from), (120, 111));
    assert_eq!(dropped, Vec::from_iter(1..111), "each once, in order");
}

#[test]
fn once_it_has_children_its_family_keeps_all_further_entries() {
    let mut shell = keeping(HistoryDetail::Newest(2));
    for _ in 0..5 {
        next(&mut shell);
    }
    let spawn = StageOutcome::Spawn {
        births: vec![birth()],
        join: JoinPolicy::AllSucceeded,
        width: 0,
        then: stage(),
    };
    assert_eq!(end(&mut shell, ROOT, spawn), [4]);
    assert_eq!(end(&mut shell, ProcedureId::new(1, 1), StageOutcome::Done(stage())), []);
    for _ in 0..5 {
        assert_eq!(next(&mut shell), []);
    }
    assert_eq!((row(&shell).history_from, row(&shell).standing), (5, 5));
}

#[test]
fn one_with_stages_on_the_stack_keeps_them() {
    let mut before = keeping(HistoryDetail::Full);
    next(&mut before);
    let mut later = started_with(&before, HistoryDetail::Newest(1));
    assert_eq!(next(&mut later), []);
    assert_eq!((row(&later).history_from, row(&later).standing), (0, 2));
}

#[test]
fn a_visit_stands_once_when_its_kind_keeps_all_between_its_attempts() {
    let busy = || StageOutcome::RetryAfter(std::time::Duration::ZERO, "busy".to_owned());
    for more_attempts in 0..3 {
        let mut before = keeping(HistoryDetail::Newest(3));
        next(&mut before);
        end(&mut before, ROOT, busy());
        let mut later = started_with(&before, HistoryDetail::Full);
        for _ in 0..more_attempts {
            end(&mut later, ROOT, busy());
        }
        next(&mut later);
        assert_eq!(row(&later).standing, 1, "{more_attempts} attempts fail");
        settle_standing(&mut later.history);
        let standing = later.history.iter().filter(|entry| entry.stands).count();
        assert_eq!(standing, 1, "as the history says");
        next(&mut later);
        assert_eq!(row(&later).standing, 2);
    }
}

/// What a start reads after the procedure's newest commit.
fn restarted_with(before: &Shell, history: HistoryDetail) -> Shell {
    let mut later = started_with(before, history);
    later.history.clone_from(&before.history);
    later
}

#[test]
fn an_older_attempt_does_not_stand_again_when_its_kind_keeps_only_the_stack_by_now() {
    let busy = || StageOutcome::RetryAfter(std::time::Duration::ZERO, "busy".to_owned());
    let mut before = begun(HistoryDetail::Full, true);
    next(&mut before);
    for _ in 0..2 {
        end(&mut before, ROOT, busy());
    }
    next(&mut before);
    let mut later = restarted_with(&before, HistoryDetail::Stack);
    end(&mut later, ROOT, StageOutcome::Fail("boom".to_owned()));
    let undone = |number| Event::UndoEnded(Box::new(UndoEnded::new(ROOT, number, Timestamp(5), Ok(()))));
    // The process ends behind each undo.
    for standing in (0..3).rev() {
        let mut stack = later.history.clone();
        settle_standing(&mut stack);
        let top = stack.iter().rev().find(|entry| entry.stands).map(|entry| entry.number);
        later.feed(5, Event::StackLoaded(ROOT, later.history.clone()));
        assert_ne!(
            row(&later).wait,
            Some(WaitReason::Quarantined),
            "{} undos are left",
            standing + 1
        );
        later.feed(5, undone(top.expect("a stage stands")));
        if standing > 0 {
            assert_eq!(row(&later).standing, standing);
            later = restarted_with(&later, HistoryDetail::Stack);
        }
    }
    assert_eq!(later.kernel.row(ROOT), None, "it has ended");
}

#[test]
fn f_019_one_that_waits_is_frozen_however_many_stages_it_ran() {
    let wait = || StageOutcome::Wait(EventName::from("go"), None, stage());
    for (history, is_frozen) in [(HistoryDetail::Newest(10), true), (HistoryDetail::Full, false)] {
        let mut shell = keeping(history);
        for number in 0..3_000_u32 {
            // Not one stage in a row: that would be told.
            let other = Blob::from(number.to_be_bytes().to_vec());
            end(&mut shell, ROOT, StageOutcome::Next(other));
        }
        end(&mut shell, ROOT, wait());
        assert_eq!(shell.kernel.families().frozen() == 1, is_frozen, "{history:?}");
        assert_eq!(row(&shell).visit, 3_001, "thawed, it is what it was");
    }
}
