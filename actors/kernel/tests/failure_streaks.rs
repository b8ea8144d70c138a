//! What a row says of failures in a row: of a stage, of the next one, of undos, and of a row that
//! was written before this was recorded.

use procession_kernel::{
    Birth, Blob, Epoch, Event, Kind, OperatorRequest, Record, RequestId, Seq, StageEnded, StageOutcome, StoredTarget,
    Timestamp, UndoEnded, Verb,
};

use crate::shell::{KIND, ROOT, Shell};

fn born() -> Shell {
    Shell::new(Birth::new(Kind::from(KIND), 1, Blob::default(), Blob::default()))
}

fn next() -> StageOutcome {
    StageOutcome::Next(Blob::from(vec![1]))
}

fn retry(text: &str) -> StageOutcome {
    StageOutcome::Retry(text.to_owned())
}

/// Longer than every backoff.
const HOUR: u64 = 3_600_000_000;

impl Shell {
    /// In this hour its backoff is over, and its stage ends so.
    fn ends_at(&mut self, hour: u64, outcome: StageOutcome) {
        let now = hour * HOUR;
        self.feed(now, Event::TimerDue(ROOT));
        let in_flight = self.kernel.row(ROOT).and_then(|row| row.in_flight);
        let run = in_flight.map_or(Seq(0), |in_flight| in_flight.run);
        let report = StageEnded::new(ROOT, run, Epoch(1), Timestamp(now), outcome);
        self.feed(now, Event::StageEnded(Box::new(report)));
    }

    /// In this hour the backoff of its undo is over, and the undo of this entry ends so.
    fn undone(&mut self, hour: u64, number: u32, outcome: Result<(), &str>) {
        let now = hour * HOUR;
        self.feed(now, Event::TimerDue(ROOT));
        let outcome = outcome.map_err(str::to_owned);
        let report = UndoEnded::new(ROOT, number, Timestamp(now), outcome);
        self.feed(now, Event::UndoEnded(Box::new(report)));
    }

    /// Returns how many failures in a row had the text of the newest, and that text.
    fn streak(&self) -> Option<(u32, &str)> {
        let streak = self.kernel.row(ROOT)?.rare().failure_streak.as_ref()?;
        Some((streak.times, &streak.text))
    }
}

#[test]
fn it_is_counted_anew_at_another_error_and_at_the_next_stage() {
    let mut shell = born();
    shell.ends_at(1, retry("timeout after 31 ms at rs-17"));
    assert_eq!(shell.streak(), Some((1, "timeout after 31 ms at rs-17")));
    shell.ends_at(2, retry("timeout after 29 ms at rs-4"));
    assert_eq!(shell.streak(), Some((2, "timeout after 29 ms at rs-4")));
    shell.ends_at(3, next());
    assert_eq!(shell.streak(), None);
    shell.ends_at(3, retry("timeout after 3 ms at rs-4"));
    assert_eq!(shell.streak().map(|(times, _)| times), Some(1));
    shell.ends_at(4, StageOutcome::Panicked("boom".to_owned()));
    assert_eq!(shell.streak(), Some((1, "boom")));
    shell.ends_at(5, StageOutcome::Done(Blob::default()));
    assert_eq!(shell.kernel.row(ROOT), None, "it has ended");
}

#[test]
fn undos_are_counted_by_themselves_each_of_them_and_each_retry_of_one() {
    let mut shell = born();
    shell.ends_at(1, next());
    shell.ends_at(1, retry("stuck"));
    shell.ends_at(2, retry("stuck"));
    assert_eq!(shell.streak(), Some((2, "stuck")));
    shell.ends_at(3, StageOutcome::Fail("stuck".to_owned()));
    assert_eq!(shell.streak(), None, "no undo has failed");
    let stack = shell.history.clone();
    shell.feed(3 * HOUR, Event::StackLoaded(ROOT, stack));
    let top = shell.history.last().map_or(0, |entry| entry.number);
    shell.undone(4, top, Err("stuck"));
    assert_eq!(shell.streak(), Some((1, "stuck")));
    shell.undone(5, top, Err("stuck"));
    shell.undone(6, top, Err("stuck"));
    assert_eq!(shell.streak(), Some((3, "stuck")), "it waits for an operator");
    let by = || Box::new(OperatorRequest::new("ann", "it is repaired"));
    shell.feed(
        7 * HOUR,
        Event::Requested(RequestId(3), Box::new(Verb::RetryNow(ROOT)), by(), StoredTarget::None),
    );
    shell.undone(7, top, Err("stuck"));
    assert_eq!(shell.streak(), Some((4, "stuck")), "what has failed stays counted");
    shell.feed(
        8 * HOUR,
        Event::Requested(RequestId(4), Box::new(Verb::RetryUndo(ROOT)), by(), StoredTarget::None),
    );
    assert_eq!(shell.streak(), None);
    shell.undone(8, top, Err("stuck"));
    assert_eq!(shell.streak(), Some((1, "stuck")));
    shell.undone(9, top, Ok(()));
    assert_eq!(shell.streak(), None, "the next undo has not failed");
    shell.undone(9, 1, Err("stuck"));
    assert_eq!(shell.streak(), Some((1, "stuck")));
}

#[test]
fn a_row_of_before_this_was_recorded_is_counted_from_the_next_failure_on() -> Result<(), String> {
    let mut shell = born();
    shell.ends_at(1, retry("timeout"));
    let mut older = shell.kernel.row(ROOT).cloned().ok_or("it is there")?;
    older.rare_mut().failure_streak = None;
    shell.kernel.evolve(&Record::Row(Box::new(older)));
    shell.ends_at(2, retry("timeout"));
    let attempts = shell.kernel.row(ROOT).map(|row| row.attempt);
    assert_eq!((shell.streak(), attempts), (Some((1, "timeout")), Some(2)));
    Ok(())
}
