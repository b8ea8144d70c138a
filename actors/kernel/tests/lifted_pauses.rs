//! A pause that is lifted while a family is quarantined: the start that can read the family again lets it go on.

use procession_kernel::{
    Birth, Blob, Effect, Epoch, Event, Kernel, Kind, OperatorRequest, PauseScope, RequestId, StageEnded, StageOutcome,
    StageTask, StoredTarget, Timestamp, Verb, WaitReason,
};

use crate::shell::{KIND, ROOT, Shell};

type Tested = Result<(), String>;

/// A root whose first stage ends with this while everything is paused.
fn paused_after(outcome: StageOutcome) -> Result<Shell, String> {
    let mut shell = Shell::new(Birth::new(Kind::from(KIND), 1, Blob::default(), Blob::default()));
    let in_flight = shell.kernel.row(ROOT).and_then(|row| row.in_flight);
    let run = in_flight.ok_or("no stage is out")?.run;
    let pause = Box::new(Verb::Pause(PauseScope::All));
    let by = Box::new(OperatorRequest::new("ann", "a look"));
    shell.feed(0, Event::Requested(RequestId(3), pause, by, StoredTarget::None));
    let ended = StageEnded::new(ROOT, run, Epoch(1), Timestamp(0), outcome);
    shell.feed(0, Event::StageEnded(Box::new(ended)));
    Ok(shell)
}

/// The next engine, which knows of no pause: it was lifted by one that could not read this family.
fn resumed(before: &Shell) -> Result<(Shell, Vec<Effect>), String> {
    let mut next = Shell {
        told: Vec::new(),
        early: Vec::new(),
        kernel: Kernel::new(before.kernel.rules().clone(), Epoch(2), 0),
        history: before.history.clone(),
    };
    let family = before.kernel.families().get(&1).ok_or("no family")?;
    assert_eq!(next.kernel.take_in(1, family.members.clone(), &[]), Ok(()));
    let effects = next.feed(0, Event::Recovered);
    Ok((next, effects))
}

#[test]
fn the_next_stage_is_called() -> Tested {
    let before = paused_after(StageOutcome::Next(Blob::default()))?;
    let wait = before.kernel.row(ROOT).and_then(|row| row.wait.clone());
    assert_eq!(wait, Some(WaitReason::Paused));
    let (next, effects) = resumed(&before)?;
    assert!(effects.iter().any(|effect| effect.call().is_some()), "{effects:?}");
    assert_eq!(next.kernel.row(ROOT).and_then(|row| row.wait.clone()), None);
    Ok(())
}

#[test]
fn the_rollback_goes_on() -> Tested {
    let mut before = paused_after(StageOutcome::Fail("boom".to_owned()))?;
    let stack = before.history.clone();
    before.feed(0, Event::StackLoaded(ROOT, stack));
    let wait = before.kernel.row(ROOT).and_then(|row| row.wait.clone());
    assert_eq!(wait, Some(WaitReason::Paused));
    let (mut next, _) = resumed(&before)?;
    let stack = next.history.clone();
    let effects = next.feed(0, Event::StackLoaded(ROOT, stack));
    let undoes = |effect: &Effect| {
        effect
            .call()
            .is_some_and(|call| matches!(call.task, StageTask::Undo { .. }))
    };
    assert!(effects.iter().any(undoes), "{effects:?}");
    Ok(())
}
