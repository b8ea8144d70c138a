//! Since when a row says that its locks are held: of stages, for life, and of undos.

use procession_kernel::{
    Admission, Birth, Blob, ClaimId, Effect, Epoch, Event, Kind, Lacking, LockNeed, LockPath, NextStageNeeds,
    OperatorRequest, RequestId, Seq, StageEnded, StageOutcome, StoredTarget, Timestamp, Verb, WaitReason,
};

use crate::shell::{KIND, ROOT, Shell};

fn lock(path: &str) -> LockNeed {
    LockNeed::exclusive(LockPath::parse(path))
}

fn admission(lacking: Option<&str>) -> Admission {
    Admission {
        limits: Vec::new(),
        asked: Some(ClaimId(1)),
        lacking: lacking.map(|path| Lacking::Lock(LockPath::parse(path))),
    }
}

/// One that is born at 0, and holds these for its first stage.
fn born(locks: &[&str], for_life: bool) -> Shell {
    Shell::new(Birth {
        next_needs: next_needs(locks),
        locks_for_life: for_life,
        admission: admission(None),
        ..Birth::new(Kind::from(KIND), 1, Blob::default(), Blob::default())
    })
}

fn next_needs(locks: &[&str]) -> NextStageNeeds {
    NextStageNeeds {
        locks: locks.iter().copied().map(lock).collect(),
        ..NextStageNeeds::default()
    }
}

impl Shell {
    /// Its stage ends with this; the next one needs these, and the limiter was asked or not.
    fn ends(&mut self, now: u64, outcome: StageOutcome, locks: &[&str], admission: Option<Admission>) {
        let in_flight = self.kernel.row(ROOT).and_then(|row| row.in_flight);
        let report = StageEnded {
            next_needs: next_needs(locks),
            admission,
            ..StageEnded::new(
                ROOT,
                in_flight.map_or(Seq(0), |in_flight| in_flight.run),
                Epoch(1),
                Timestamp(now),
                outcome,
            )
        };
        self.feed(now, Event::StageEnded(Box::new(report)));
    }

    /// Since when it holds these, if it does.
    fn since<const N: usize>(&self, paths: [&str; N]) -> [Option<u64>; N] {
        let row = self.kernel.row(ROOT);
        paths.map(|path| Some(row?.locked_since(&lock(path))?.0))
    }
}

fn next() -> StageOutcome {
    StageOutcome::Next(Blob::default())
}

#[test]
fn a_lock_of_stages_is_held_on_where_it_is_had_again_at_once() {
    let mut shell = born(&["a", "b"], false);
    assert_eq!(shell.since(["a", "b"]), [Some(0), Some(0)]);
    shell.ends(5, next(), &["b", "c"], Some(admission(None)));
    assert_eq!(shell.since(["a", "b", "c"]), [None, Some(0), Some(5)]);
    // Somebody else goes first: it holds nothing until it is granted, and begins anew.
    shell.ends(7, next(), &["b"], Some(admission(Some("b"))));
    assert_eq!(shell.since(["b", "c"]), [None, None]);
    shell.feed(9, Event::Granted(ROOT));
    assert_eq!(shell.since(["b"]), [Some(9)]);
    // Parked, it gives it back.
    shell.ends(11, StageOutcome::Wait("go".into(), None, Blob::default()), &[], None);
    assert_eq!(shell.since(["b"]), [None]);
    assert_eq!(shell.kernel.row(ROOT).map(|row| row.locked_at.len()), Some(0));
}

#[test]
fn a_holder_for_life_keeps_the_time_of_each() {
    let mut shell = born(&["a"], true);
    shell.ends(5, next(), &["a", "b"], Some(admission(None)));
    assert_eq!(shell.since(["a", "b"]), [Some(0), Some(5)]);
    shell.ends(7, next(), &["c"], Some(admission(Some("c"))));
    assert_eq!(shell.since(["a", "b", "c"]), [Some(0), Some(5), None]);
    shell.feed(9, Event::Granted(ROOT));
    assert_eq!(shell.since(["a", "b", "c"]), [Some(0), Some(5), Some(9)]);
    shell.ends(11, StageOutcome::Done(Blob::default()), &[], None);
    assert_eq!(shell.since(["a", "b", "c"]), [None; 3]);
}

#[test]
fn an_undo_holds_its_locks_since_it_was_granted_them() -> Result<(), String> {
    let mut shell = born(&["t"], false);
    // Somebody else goes first, and it is aborted while it waits.
    shell.ends(5, next(), &["t"], Some(admission(Some("t"))));
    let abort = Box::new(Verb::Abort(ROOT));
    shell.feed(
        6,
        Event::Requested(
            RequestId(3),
            abort,
            Box::new(OperatorRequest::new("ann", "over")),
            StoredTarget::None,
        ),
    );
    let stack = shell.history.clone();
    shell.feed(7, Event::StackLoaded(ROOT, stack));
    let wait = shell.kernel.row(ROOT).and_then(|row| row.wait.clone());
    assert_eq!(wait, Some(WaitReason::Lock("t".into())), "its undo waits for the lock");
    assert_eq!(shell.since(["t"]), [None]);
    let effects = shell.feed(9, Event::Granted(ROOT));
    assert!(
        effects
            .iter()
            .filter_map(Effect::call)
            .any(|call| call.undone().is_some())
    );
    assert_eq!(shell.since(["t"]), [Some(9)]);
    Ok(())
}
