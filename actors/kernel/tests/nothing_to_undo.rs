//! A rollback passes over stages that leave nothing to undo, and still undoes each other stage under its own locks.

#![expect(clippy::expect_used, reason = "a test names what it expects")]

use procession_kernel::{
    Birth, Blob, ClaimId, Epoch, Event, HistoryDetail, HistoryEntry, Kernel, Kind, KindRules, LockNeed, LockPath,
    RequestId, Row, Rules, StageEnded, StageOutcome, Timestamp, UndoEnded, WaitReason,
};

use crate::shell::{KIND, ROOT, Shell};

fn stage() -> Blob {
    Blob::from(&b"next"[..])
}

fn lock(path: &str) -> Vec<LockNeed> {
    vec![LockNeed::exclusive(LockPath::parse(path))]
}

fn row(shell: &Shell) -> &Row {
    shell.kernel.row(ROOT).expect("it lives")
}

/// A procedure whose first stage holds the lock `a`.
fn begun(history: HistoryDetail) -> Shell {
    let kind = KindRules {
        history,
        ..KindRules::new(1)
    };
    let rules = Rules {
        kinds: [(Kind::from(KIND), kind)].into(),
        ..Rules::default()
    };
    let mut birth = Birth::new(Kind::from(KIND), 1, stage(), Blob::default());
    birth.next_needs.locks = lock("a");
    birth.admission.asked = Some(ClaimId(1));
    let mut shell = Shell::new(birth.clone());
    shell.kernel = Kernel::new(rules, Epoch(1), 0);
    shell.feed(0, Event::Submitted(RequestId(2), vec![birth.into()]));
    shell
}

fn report(shell: &Shell, outcome: StageOutcome) -> StageEnded {
    let run = row(shell).in_flight.expect("its stage is out").run;
    StageEnded::new(ROOT, run, shell.kernel.epoch(), Timestamp(0), outcome)
}

fn next(shell: &mut Shell, locks: &str, nothing_to_undo: bool) {
    let mut report = report(shell, StageOutcome::Next(stage()));
    report.next_needs.locks = lock(locks);
    report.nothing_to_undo = nothing_to_undo;
    shell.feed(0, Event::StageEnded(Box::new(report)));
}

#[test]
fn g_069_a_stage_below_one_that_is_passed_over_is_undone_under_its_own_locks() {
    for history in [HistoryDetail::Full, HistoryDetail::Stack] {
        let mut shell = begun(history);
        next(&mut shell, "a", false);
        // Only this entry says that the first stage ran under `a`.
        next(&mut shell, "b", true);
        shell.feed(0, Event::Granted(ROOT));
        let failed = report(&shell, StageOutcome::Fail("boom".to_owned()));
        shell.feed(0, Event::StageEnded(Box::new(failed)));
        let stack: Vec<HistoryEntry> = shell.history.clone();
        assert_eq!(stack.len(), 3);
        shell.feed(0, Event::StackLoaded(ROOT, stack));
        shell.feed(
            0,
            Event::UndoEnded(Box::new(UndoEnded::new(ROOT, 3, Timestamp(0), Ok(())))),
        );
        assert_eq!(row(&shell).locks, lock("a"), "{history:?}");
        assert_eq!(row(&shell).wait, Some(WaitReason::Lock("a".into())), "{history:?}");
        assert_eq!(
            *row(&shell).rare().attempts_kept,
            [],
            "no entry is dropped that is still needed"
        );
    }
}

#[test]
fn g_069_under_a_stack_alone_the_entry_goes_with_the_next_commit() {
    let mut shell = begun(HistoryDetail::Stack);
    next(&mut shell, "a", true);
    assert_eq!(
        (row(&shell).standing, &*row(&shell).rare().attempts_kept),
        (0, &[1][..])
    );
    next(&mut shell, "a", false);
    assert_eq!((row(&shell).standing, &*row(&shell).rare().attempts_kept), (1, &[][..]));
}
