//! A grant that comes when its procedure waits for something else by then, or for nothing.

use procession_kernel::{
    Admission, AdmissionEffect, Birth, Blob, ClaimId, Effect, Epoch, Event, Hold, JoinPolicy, Kind, Lacking, LimitKey,
    LockNeed, LockPath, Needs, NextStageNeeds, OperatorRequest, ProcedureId, RequestId, StageEnded, StageOutcome,
    StoredTarget, Timestamp, UndoEnded, Verb, WaitReason,
};

use crate::shell::{KIND, ROOT, Shell};

const NOW: u64 = 1_000_000;

#[test]
fn a_grant_for_the_stage_before_gives_an_undo_its_locks_and_no_permit() -> Result<(), String> {
    let limits = vec![LimitKey::from(KIND)];
    let next_needs = NextStageNeeds {
        locks: vec![LockNeed::exclusive("t")],
        ..NextStageNeeds::default()
    };
    let mut shell = Shell::new(Birth {
        hold: Hold::WhileActive,
        next_needs: next_needs.clone(),
        admission: Admission {
            limits: limits.clone(),
            asked: Some(ClaimId(1)),
            lacking: None,
        },
        ..Birth::new(Kind::from(KIND), 1, Blob::default(), Blob::default())
    });
    let run = shell
        .kernel
        .row(ROOT)
        .and_then(|row| row.in_flight)
        .ok_or("no stage is out")?
        .run;
    // Permit and lock were given up for those of the next stage, and it lacks one of them: somebody went before it.
    let report = StageEnded {
        next_needs,
        admission: Some(Admission {
            limits: limits.clone(),
            asked: Some(ClaimId(1)),
            lacking: Some(Lacking::Lock("t".into())),
        }),
        ..StageEnded::new(ROOT, run, Epoch(1), Timestamp(NOW), StageOutcome::Next(Blob::default()))
    };
    shell.feed(NOW, Event::StageEnded(Box::new(report)));
    let abort = Verb::Abort(ROOT);
    let by = Box::new(OperatorRequest::new("ann", "over"));
    shell.feed(
        NOW,
        Event::Requested(RequestId(3), Box::new(abort), by, StoredTarget::None),
    );
    let stack = shell.history.clone();
    shell.feed(NOW, Event::StackLoaded(ROOT, stack));
    let wait = shell.kernel.row(ROOT).and_then(|row| row.wait.clone());
    assert_eq!(wait, Some(WaitReason::Lock("t".into())), "its undo waits for the lock");

    // The limiter had granted permit and lock before it heard of the abort.
    let effects = shell.feed(NOW, Event::Granted(ROOT));
    assert!(
        effects
            .iter()
            .filter_map(Effect::call)
            .any(|call| call.undone().is_some())
    );
    let back = Needs {
        limits,
        locks: Vec::new(),
    };
    assert!(
        shell.told.contains(&AdmissionEffect::GiveBack(ROOT, back)),
        "{:?}",
        shell.told
    );
    Ok(())
}

#[test]
fn a_grant_that_comes_while_a_stage_is_out_cancels_nothing() {
    let limits = vec![LimitKey::from(KIND)];
    let mut shell = Shell::new(Birth {
        hold: Hold::WhileActive,
        admission: Admission {
            limits,
            asked: Some(ClaimId(1)),
            lacking: None,
        },
        ..Birth::new(Kind::from(KIND), 1, Blob::default(), Blob::default())
    });
    // The report of the stage may have queued a request for the next one, which only the limiter knows so far.
    shell.feed(NOW, Event::Granted(ROOT));
    assert_eq!(shell.told, []);
}

/// A stage under the lock `a` whose report the kernel refuses. The limiter has exchanged `a` for the `b` of the stage
/// that was to follow.
fn refused_with_the_next_lock(locks_for_life: bool, aborted: bool) -> Result<Shell, String> {
    let needs = |path: &str| NextStageNeeds {
        locks: vec![LockNeed::exclusive(LockPath::parse(path))],
        ..NextStageNeeds::default()
    };
    let granted = Admission {
        asked: Some(ClaimId(1)),
        ..Admission::default()
    };
    let mut shell = Shell::new(Birth {
        next_needs: needs("a"),
        admission: granted.clone(),
        locks_for_life,
        ..Birth::new(Kind::from(KIND), 1, Blob::default(), Blob::default())
    });
    let in_flight = shell.kernel.row(ROOT).and_then(|row| row.in_flight);
    let run = in_flight.ok_or("no stage is out")?.run;
    if aborted {
        let by = Box::new(OperatorRequest::new("ann", "over"));
        let abort = Box::new(Verb::Abort(ROOT));
        shell.feed(NOW, Event::Requested(RequestId(3), abort, by, StoredTarget::None));
    }
    let report = StageEnded {
        next_needs: needs("b"),
        admission: Some(granted),
        note: Some(Blob::from(vec![0; 1 << 20])),
        ..StageEnded::new(ROOT, run, Epoch(1), Timestamp(NOW), StageOutcome::Next(Blob::default()))
    };
    shell.feed(NOW, Event::StageEnded(Box::new(report)));
    Ok(shell)
}

#[test]
fn a_refused_stage_does_not_keep_the_next_locks_while_its_undo_waits_for_its_own() -> Result<(), String> {
    for aborted in [false, true] {
        let mut shell = refused_with_the_next_lock(false, aborted)?;
        let keeps_nothing = AdmissionEffect::Keep(ROOT, Needs::default());
        assert!(shell.told.contains(&keeps_nothing), "{:?}", shell.told);
        let stack = shell.history.clone();
        shell.feed(NOW, Event::StackLoaded(ROOT, stack));
        let row = shell.kernel.row(ROOT).ok_or("it lives")?;
        assert_eq!(row.wait, Some(WaitReason::Lock("a".into())));
        assert_eq!((row.locked.len(), row.locked_at.len()), (0, 0));
        let effects = shell.feed(NOW, Event::Granted(ROOT));
        let calls = effects.iter().filter_map(Effect::call);
        assert_eq!(calls.filter(|call| call.undone().is_some()).count(), 1);
    }
    let shell = refused_with_the_next_lock(true, false)?;
    let locked = shell.kernel.row(ROOT).map(|row| row.locked.len());
    assert_eq!(locked, Some(2), "one that holds its locks for life keeps them");
    Ok(())
}

/// Ends the stage that is out.
fn ended(shell: &mut Shell, id: ProcedureId, outcome: StageOutcome) -> Result<(), String> {
    let in_flight = shell.kernel.row(id).and_then(|row| row.in_flight);
    let run = in_flight.ok_or("no stage is out")?.run;
    let report = StageEnded::new(id, run, Epoch(1), Timestamp(NOW), outcome);
    shell.feed(NOW, Event::StageEnded(Box::new(report)));
    Ok(())
}

/// Health checks ask for the request of everybody who waits. That of a part which a larger one took over has been
/// withdrawn, so its row must not pass for one whose wake was lost.
#[test]
fn a_part_that_a_larger_one_took_over_asks_for_nothing() -> Result<(), String> {
    let birth = |path: &str, claim: u64| Birth {
        next_needs: NextStageNeeds {
            locks: vec![LockNeed::exclusive(LockPath::parse(path))],
            ..NextStageNeeds::default()
        },
        admission: Admission {
            asked: Some(ClaimId(claim)),
            ..Admission::default()
        },
        ..Birth::new(Kind::from(KIND), 1, Blob::default(), Blob::default())
    };
    let child = ProcedureId::new(ROOT.family, 1);
    let mut shell = Shell::new(birth("r", 1));
    let spawn = StageOutcome::Spawn {
        births: vec![birth("t", 2)],
        join: JoinPolicy::AllFinished,
        width: 0,
        then: Blob::default(),
    };
    ended(&mut shell, ROOT, spawn)?;
    ended(&mut shell, child, StageOutcome::Next(Blob::default()))?;
    ended(&mut shell, child, StageOutcome::Fail("no".to_owned()))?;
    let of_child = shell.history.iter().filter(|entry| entry.member == 1);
    let stack = of_child.cloned().collect();
    shell.feed(NOW, Event::StackLoaded(child, stack));
    // The undo of the stage that failed is out, and needs no lock.
    let undone = UndoEnded::new(child, 3, Timestamp(NOW), Ok(()));
    shell.feed(NOW, Event::UndoEnded(Box::new(undone)));
    let wait = |shell: &Shell, id| shell.kernel.row(id).and_then(|row| row.wait.clone());
    assert_eq!(wait(&shell, child), Some(WaitReason::Lock("t".into())));
    assert_eq!(shell.kernel.asks_as(child), Some(child));

    let by = Box::new(OperatorRequest::new("ann", "over"));
    let abort = Box::new(Verb::Abort(ROOT));
    shell.feed(NOW, Event::Requested(RequestId(3), abort, by, StoredTarget::None));
    assert!(shell.told.contains(&AdmissionEffect::Cancel(child)), "{:?}", shell.told);
    let stack = shell.history.clone();
    shell.feed(NOW, Event::StackLoaded(ROOT, stack));
    assert_eq!(wait(&shell, ROOT), Some(WaitReason::Lock("t".into())));
    assert_eq!(shell.kernel.asks_as(ROOT), Some(child), "it undoes the child's stage");
    assert_eq!(shell.kernel.asks_as(child), None);
    Ok(())
}
