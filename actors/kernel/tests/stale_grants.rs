//! A grant that comes when its procedure waits for something else by then.

use procession_kernel::{
    Admission, AdmissionEffect, Birth, Blob, ClaimId, Effect, Epoch, Event, Hold, Kind, Lacking, LimitKey, LockNeed,
    Needs, NextStageNeeds, OperatorRequest, RequestId, StageEnded, StageOutcome, StoredTarget, Timestamp, Verb,
    WaitReason,
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
