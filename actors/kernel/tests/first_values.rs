//! Where the value that a root was submitted with is kept, once a stage has replaced it.

#![expect(clippy::expect_used, reason = "a test names what it expects")]

use procession_kernel::{
    Birth, Blob, Epoch, Event, HistoryDetail, Kernel, Kind, KindRules, Record, RequestId, Row, Rules,
    SUBMITTED_ENTRY_LAST, SUBMITTED_IN_ENTRY_MAX, StageEnded, StageOutcome, SubmittedValue, Timestamp, UndoEnded,
};

use crate::shell::{KIND, ROOT, Shell};

/// Where a decision keeps it.
#[derive(Debug, PartialEq, Eq)]
enum Kept {
    InEntry(SubmittedValue),
    UnderKey(SubmittedValue),
    Nowhere,
}

fn stage() -> Blob {
    Blob::from(&b"next"[..])
}

fn first(bytes: usize) -> Blob {
    Blob::from(vec![1; bytes])
}

fn rules(history: HistoryDetail) -> Rules {
    let kind = KindRules {
        history,
        rollback: !matches!(history, HistoryDetail::Newest(_)),
        ..KindRules::new(1)
    };
    Rules {
        kinds: [(Kind::from(KIND), kind)].into(),
        ..Rules::default()
    }
}

/// A root with a value of this size, of a kind that keeps this much of the history.
fn submitted(bytes: usize, history: HistoryDetail) -> Shell {
    let birth = Birth::new(Kind::from(KIND), 1, stage(), first(bytes));
    let mut shell = Shell::new(birth.clone());
    shell.kernel = Kernel::new(rules(history), Epoch(1), 0);
    shell.feed(0, Event::Submitted(RequestId(2), vec![birth.into()]));
    shell
}

fn row(shell: &Shell) -> &Row {
    shell.kernel.row(ROOT).expect("it lives")
}

/// The report of a stage that replaces the first value.
fn replaces(shell: &Shell, bytes: usize, outcome: StageOutcome) -> Event {
    let run = row(shell).in_flight.expect("its stage is out").run;
    let mut report = StageEnded::new(ROOT, run, shell.kernel.epoch(), Timestamp(5), outcome);
    report.payload = Some(Blob::from(&b"other"[..]));
    report.replaced = Some(first(bytes));
    Event::StageEnded(Box::new(report))
}

/// Feeds an event. Returns where its decision keeps the first value.
fn kept(shell: &mut Shell, event: Event) -> Kept {
    let decision = shell.kernel.decide(Timestamp(5), event.clone());
    let mut found = decision.records().iter().filter_map(|record| {
        if let Record::Submitted(ROOT, version, value) = record {
            let (version, value) = (*version, value.clone());
            Some(Kept::UnderKey(SubmittedValue { version, value }))
        } else if let Record::History(entry) = record {
            entry.submitted.as_deref().cloned().map(Kept::InEntry)
        } else {
            None
        }
    });
    let (kept, second) = (found.next(), found.next());
    assert_eq!(second, None, "it is kept once");
    let kept = kept.unwrap_or(Kept::Nowhere);
    shell.feed(5, event);
    kept
}

fn value(bytes: usize) -> SubmittedValue {
    SubmittedValue {
        version: 1,
        value: first(bytes),
    }
}

fn next() -> StageOutcome {
    StageOutcome::Next(stage())
}

#[test]
fn a_small_one_is_in_the_entry_of_the_stage_that_replaced_it() {
    for outcome in [next(), StageOutcome::GiveUp("boom".to_owned())] {
        let bytes = SUBMITTED_IN_ENTRY_MAX;
        let mut shell = submitted(bytes, HistoryDetail::Full);
        let event = replaces(&shell, bytes, outcome);
        assert_eq!(kept(&mut shell, event), Kept::InEntry(value(bytes)));
        assert!(!row(&shell).as_submitted);
    }
}

#[test]
fn only_the_first_stage_that_changes_the_value_keeps_it() {
    let mut shell = submitted(5, HistoryDetail::Full);
    for expected in [Kept::InEntry(value(5)), Kept::Nowhere] {
        let event = replaces(&shell, 5, next());
        assert_eq!(kept(&mut shell, event), expected);
    }
}

#[test]
fn a_larger_one_has_a_key_of_its_own() {
    let bytes = SUBMITTED_IN_ENTRY_MAX + 1;
    let mut shell = submitted(bytes, HistoryDetail::Full);
    let event = replaces(&shell, bytes, next());
    assert_eq!(kept(&mut shell, event), Kept::UnderKey(value(bytes)));
}

#[test]
fn one_that_is_replaced_late_has_a_key_of_its_own() {
    for (number, is_early) in [(SUBMITTED_ENTRY_LAST, true), (SUBMITTED_ENTRY_LAST + 1, false)] {
        let mut shell = submitted(5, HistoryDetail::Full);
        for stage in 1..number {
            let next = StageOutcome::Next(Blob::from(stage.to_be_bytes().to_vec()));
            let run = row(&shell).in_flight.expect("its stage is out").run;
            let report = StageEnded::new(ROOT, run, shell.kernel.epoch(), Timestamp(5), next);
            shell.feed(5, Event::StageEnded(Box::new(report)));
        }
        let event = replaces(&shell, 5, next());
        let expected = if is_early { Kept::InEntry } else { Kept::UnderKey };
        assert_eq!(kept(&mut shell, event), expected(value(5)), "entry {number}");
    }
}

#[test]
fn one_whose_entry_does_not_stand_has_a_key_of_its_own() {
    let mut shell = submitted(5, HistoryDetail::Full);
    let Event::StageEnded(mut report) = replaces(&shell, 5, next()) else {
        unreachable!("it is a report");
    };
    // Its entry would leave a window, if its kind kept one later.
    report.nothing_to_undo = true;
    assert_eq!(kept(&mut shell, Event::StageEnded(report)), Kept::UnderKey(value(5)));
}

#[test]
fn a_kind_that_drops_entries_keeps_it_under_a_key() {
    for history in [HistoryDetail::Stack, HistoryDetail::Newest(3)] {
        let mut shell = submitted(5, history);
        let event = replaces(&shell, 5, next());
        assert_eq!(kept(&mut shell, event), Kept::UnderKey(value(5)), "{history:?}");
    }
}

#[test]
fn a_root_that_succeeds_keeps_none() {
    let mut shell = submitted(5, HistoryDetail::Full);
    let event = replaces(&shell, 5, StageOutcome::Done(Blob::default()));
    assert_eq!(kept(&mut shell, event), Kept::Nowhere);
}

#[test]
fn the_entry_stays_behind_its_undo_although_its_kind_keeps_only_the_stack_by_now() {
    let mut before = submitted(5, HistoryDetail::Full);
    let event = replaces(&before, 5, next());
    assert_eq!(kept(&mut before, event), Kept::InEntry(value(5)));
    let mut shell = Shell::empty(Epoch(2));
    shell.kernel = Kernel::new(rules(HistoryDetail::Stack), Epoch(2), 0);
    shell.history.clone_from(&before.history);
    for (number, family) in before.kernel.families() {
        assert_eq!(shell.kernel.take_in(number, family.members.clone(), &[]), Ok(()));
    }
    shell.feed(5, Event::Recovered);
    let run = row(&shell).in_flight.expect("its stage is out").run;
    let failed = StageOutcome::Fail("boom".to_owned());
    let report = StageEnded::new(ROOT, run, shell.kernel.epoch(), Timestamp(5), failed);
    shell.feed(5, Event::StageEnded(Box::new(report)));
    shell.feed(5, Event::StackLoaded(ROOT, shell.history.clone()));
    for number in [2, 1] {
        let undone = UndoEnded::new(ROOT, number, Timestamp(5), Ok(()));
        shell.feed(5, Event::UndoEnded(Box::new(undone)));
    }
    assert_eq!(shell.kernel.row(ROOT), None, "it has ended");
    let newest = shell.history.last().expect("an entry is left");
    assert_eq!((newest.number, newest.stands), (1, false));
    assert_eq!(newest.submitted.as_deref(), Some(&value(5)));
}
