//! A value that an undo leaves has the bound of any value.

#![expect(clippy::expect_used, reason = "a test names what it expects")]

use procession_kernel::{
    Birth, Blob, Bounds, Ending, Epoch, Event, Kernel, Kind, KindRules, RequestId, Rules, StageEnded, StageOutcome,
    Timestamp, UndoEnded, WaitReason,
};

use crate::shell::{KIND, ROOT, Shell};

const LIMIT: usize = 100;

/// A procedure whose first stage is about to be undone.
fn undoing() -> Shell {
    let bounds = Bounds {
        payload: LIMIT,
        ..Bounds::default()
    };
    let rules = Rules {
        kinds: [(Kind::from(KIND), KindRules::new(1))].into(),
        bounds,
        ..Rules::default()
    };
    let birth = Birth::new(Kind::from(KIND), 1, Blob::from(&b"first"[..]), Blob::default());
    let mut shell = Shell::new(birth.clone());
    shell.kernel = Kernel::new(rules, Epoch(1), 0);
    shell.feed(0, Event::Submitted(RequestId(2), vec![birth.into()]));
    end(&mut shell, StageOutcome::Next(Blob::from(&b"next"[..])));
    end(&mut shell, StageOutcome::GiveUp("boom".to_owned()));
    let stack = shell.history.clone();
    shell.feed(0, Event::StackLoaded(ROOT, stack));
    shell
}

fn end(shell: &mut Shell, outcome: StageOutcome) {
    let row = shell.kernel.row(ROOT).expect("it lives");
    let run = row.in_flight.expect("its stage is out").run;
    let report = StageEnded::new(ROOT, run, shell.kernel.epoch(), Timestamp(0), outcome);
    shell.feed(0, Event::StageEnded(Box::new(report)));
}

/// Ends the undo that is out with a value of this size.
fn undo(shell: &mut Shell, size: usize) {
    let undone = UndoEnded {
        payload: Some(Blob::from(vec![0; size])),
        ..UndoEnded::new(ROOT, 2, Timestamp(0), Ok(()))
    };
    shell.feed(0, Event::UndoEnded(Box::new(undone)));
}

#[test]
fn an_undo_with_too_large_a_value_fails_and_names_the_limit() {
    let mut shell = undoing();
    let stored = shell.history.len();
    undo(&mut shell, LIMIT + 1);
    let entry = shell.history.get(stored).expect("the undo has an entry");
    assert_eq!(entry.ending, Ending::UndoFailed);
    assert_eq!(
        entry.error.as_deref(),
        Some("a value of 101 bytes is over the limit of 100")
    );
    let row = shell.kernel.row(ROOT).expect("it lives");
    assert!(matches!(row.wait, Some(WaitReason::Backoff(1, _))), "{:?}", row.wait);
}

#[test]
fn an_undo_whose_value_is_at_the_limit_counts() {
    let mut shell = undoing();
    let stored = shell.history.len();
    undo(&mut shell, LIMIT);
    assert_eq!(
        shell.history.get(stored).map(|entry| entry.ending),
        Some(Ending::Undone)
    );
}
