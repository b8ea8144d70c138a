//! The permits of a stage in the kernel's decisions: recorded with the grant, given back with the report, named for the
//! undo. A begin of a rate is recorded with the grant.

use std::time::Duration;

use procession_kernel::{
    Admission, AdmissionEffect, Birth, Blob, ClaimId, Effect, Epoch, Event, JoinPolicy, Kernel, Kind, Limit, LimitKey,
    Needs, NextStageNeeds, ProcedureId, Record, RequestId, StageEnded, StageOutcome, Timestamp, WaitReason,
};

use crate::shell::{KIND, ROOT, Shell};

type Tested = Result<(), String>;

const NOW: u64 = 1_000_000;

fn cards() -> Vec<LimitKey> {
    vec![LimitKey::from("cards")]
}

fn needs_cards() -> NextStageNeeds {
    NextStageNeeds {
        limits: cards(),
        ..NextStageNeeds::default()
    }
}

/// A root whose first stage needs a permit, which the limiter had.
fn calling() -> Birth {
    Birth {
        next_needs: needs_cards(),
        admission: Admission {
            asked: Some(ClaimId(1)),
            ..Admission::default()
        },
        ..Birth::new(Kind::from(KIND), 1, Blob::default(), Blob::default())
    }
}

fn report(shell: &Shell, outcome: StageOutcome) -> Result<Box<StageEnded>, String> {
    let in_flight = shell.kernel.row(ROOT).and_then(|row| row.in_flight);
    let run = in_flight.ok_or("no stage is out")?.run;
    Ok(Box::new(StageEnded::new(ROOT, run, Epoch(1), Timestamp(NOW), outcome)))
}

fn gives_back(shell: &Shell) -> bool {
    shell.told.iter().any(|told| {
        let back = |needs: &Needs| needs.limits == cards() && needs.locks.is_empty();
        matches!(told, AdmissionEffect::GiveBack(ROOT, needs) if back(needs))
    })
}

fn asks(shell: &Shell) -> bool {
    shell.told.contains(&AdmissionEffect::Ask(ROOT))
}

#[test]
fn whatever_ends_an_attempt_gives_its_permits_back() -> Tested {
    for outcome in [
        StageOutcome::Next(Blob::default()),
        StageOutcome::Sleep(Timestamp(NOW * 9), Blob::default()),
        StageOutcome::Retry("again".to_owned()),
        StageOutcome::RetryAfter(Duration::ZERO, "again".to_owned()),
        StageOutcome::Panicked("ouch".to_owned()),
        StageOutcome::Fail("boom".to_owned()),
    ] {
        let mut shell = Shell::new(calling());
        assert_eq!(shell.kernel.row(ROOT).map(|row| row.stage_permits), Some(true));
        let report = report(&shell, outcome.clone())?;
        let effects = shell.feed(NOW, Event::StageEnded(report));
        assert!(gives_back(&shell), "{outcome:?}: {effects:?}");
        assert_eq!(
            shell.kernel.row(ROOT).map(|row| row.stage_permits),
            Some(false),
            "{outcome:?}"
        );
        let again = matches!(outcome, StageOutcome::RetryAfter(..));
        assert_eq!(asks(&shell), again, "{outcome:?}");
    }
    Ok(())
}

#[test]
fn a_yield_keeps_them() -> Tested {
    let mut shell = Shell::new(calling());
    let report = report(&shell, StageOutcome::Yield)?;
    shell.feed(NOW, Event::StageEnded(report));
    assert!(!gives_back(&shell) && !asks(&shell));
    assert_eq!(shell.kernel.row(ROOT).map(|row| row.stage_permits), Some(true));
    Ok(())
}

#[test]
fn the_undo_of_a_stage_asks_for_its_permits_and_gives_them_back() -> Tested {
    let mut shell = Shell::new(calling());
    let next = report(&shell, StageOutcome::Next(Blob::default()))?;
    shell.feed(NOW, Event::StageEnded(next));
    assert_eq!(
        shell.kernel.row(ROOT).map(|row| row.stage_limits.len()),
        Some(0),
        "the second stage names none"
    );
    let fails = report(&shell, StageOutcome::Fail("boom".to_owned()))?;
    shell.feed(NOW, Event::StageEnded(fails));
    assert_eq!(
        shell
            .history
            .iter()
            .map(|entry| entry.limits.clone())
            .collect::<Vec<_>>(),
        [cards(), vec![]]
    );

    let stack = shell.history.clone();
    let effects = shell.feed(NOW, Event::StackLoaded(ROOT, stack));
    assert!(
        effects.iter().any(|effect| effect.call().is_some()),
        "the second stage's undo needs none"
    );
    let undone = |number| {
        let ended = procession_kernel::UndoEnded::new(ROOT, number, Timestamp(NOW), Ok(()));
        Event::UndoEnded(Box::new(ended))
    };
    let effects = shell.feed(NOW, undone(2));
    assert!(asks(&shell) && effects.iter().all(|effect| effect.call().is_none()));
    let wait = shell.kernel.row(ROOT).and_then(|row| row.wait.clone());
    assert_eq!(wait, Some(WaitReason::Permit("cards".into())));
    let effects = shell.feed(NOW, Event::Granted(ROOT));
    assert!(effects.iter().any(|effect| effect.call().is_some()), "{effects:?}");
    shell.feed(NOW, undone(1));
    let released = AdmissionEffect::Release(ROOT);
    assert!(gives_back(&shell) || shell.told.contains(&released), "{:?}", shell.told);
    Ok(())
}

fn windows(shell: &Shell, now: u64, event: Event) -> Vec<Record> {
    let decision = shell.kernel.decide(Timestamp(now), event);
    let windows = decision
        .records()
        .iter()
        .filter(|record| matches!(record, Record::RateWindow(..)));
    windows.cloned().collect()
}

#[test]
fn a_begin_is_recorded_with_the_grant_and_only_if_the_limit_is_a_rate() {
    for (limit, begun) in [
        (Limit::at_once(4), None),
        (Limit::per(4, Duration::from_secs(1)), Some(2)),
    ] {
        let mut shell = Shell::empty(Epoch(1));
        shell.kernel.set_limits([(LimitKey::from("cards"), limit)]);
        let mut other = calling();
        other.admission.asked = Some(ClaimId(2));
        let both = vec![calling().into(), other.into()];
        let records = windows(&shell, NOW, Event::Submitted(RequestId(1), both));
        let counts: Vec<u32> = records
            .iter()
            .filter_map(|record| {
                let Record::RateWindow(key, window) = record else {
                    return None;
                };
                (key.as_str() == "cards").then(|| window.begun())
            })
            .collect();
        assert_eq!(counts, begun.into_iter().collect::<Vec<_>>(), "{limit}");
    }
}

#[test]
fn one_that_waits_begins_when_it_is_granted() {
    let mut shell = Shell::empty(Epoch(1));
    shell
        .kernel
        .set_limits([(LimitKey::from("cards"), Limit::per(1, Duration::from_secs(1)))]);
    let mut waits = calling();
    waits.admission.lacking = Some(procession_kernel::Lacking::Permit("cards".into()));
    shell.feed(NOW, Event::Submitted(RequestId(1), vec![waits.into()]));
    assert_eq!(shell.kernel.rates().windows().count(), 0);
    shell.feed(NOW, Event::Granted(ROOT));
    let begun: Vec<u32> = shell
        .kernel
        .rates()
        .windows()
        .map(|(_, window)| window.begun())
        .collect();
    assert_eq!(begun, [1]);
    assert_eq!(shell.kernel.row(ROOT).map(|row| row.stage_permits), Some(true));
}

/// A root that called a stage with a permit, and then spawned two children: the first needs such a permit, too, and
/// waits for it if it lacks one; the second needs none.
fn with_children(lacking: bool) -> Result<Shell, String> {
    let mut shell = Shell::new(calling());
    let mut first = calling();
    first.admission.asked = Some(ClaimId(2));
    first.admission.lacking = lacking.then(|| procession_kernel::Lacking::Permit("cards".into()));
    let second = Birth::new(Kind::from(KIND), 1, Blob::default(), Blob::default());
    let spawn = StageOutcome::Spawn {
        births: vec![first, second],
        join: JoinPolicy::AllSucceeded,
        width: 0,
        then: Blob::default(),
    };
    let spawned = report(&shell, spawn)?;
    shell.feed(NOW, Event::StageEnded(spawned));
    Ok(shell)
}

fn of(shell: &Shell, member: u32, outcome: StageOutcome) -> Result<Event, String> {
    let id = ProcedureId::new(1, member);
    let in_flight = shell.kernel.row(id).and_then(|row| row.in_flight);
    let run = in_flight.ok_or("no stage is out")?.run;
    let ended = StageEnded::new(id, run, Epoch(1), Timestamp(NOW), outcome);
    Ok(Event::StageEnded(Box::new(ended)))
}

/// The members that give a permit back.
fn givers(shell: &Shell) -> Vec<u32> {
    let giver = |told: &AdmissionEffect| {
        if let AdmissionEffect::GiveBack(id, needs) = told
            && needs.limits == cards()
        {
            return Some(id.member);
        }
        None
    };
    shell.told.iter().filter_map(giver).collect()
}

/// The rollback begins with the failed stage, which needs no permit.
fn rollback(shell: &mut Shell) -> Vec<Effect> {
    let stack = shell.history.clone();
    shell.feed(NOW, Event::StackLoaded(ROOT, stack))
}

/// The undo of the root's stage needs the permit that the child holds.
#[test]
fn a_call_that_yields_to_a_rollback_gives_its_permits_back() -> Tested {
    let mut shell = with_children(false)?;
    let fails = of(&shell, 2, StageOutcome::Fail("boom".to_owned()))?;
    shell.feed(NOW, fails);
    let yields = of(&shell, 1, StageOutcome::Yield)?;
    shell.feed(NOW, yields);
    let effects = rollback(&mut shell);
    assert_eq!(givers(&shell), [1], "{effects:?}");
    Ok(())
}

/// A grant that meets a drain leaves the child with its permits, and without a call.
#[test]
fn a_stage_that_a_drain_held_back_gives_its_permits_to_the_rollback() -> Tested {
    let mut shell = with_children(true)?;
    shell.feed(NOW, Event::DrainBegan);
    let child = ProcedureId::new(1, 1);
    shell.feed(NOW, Event::Granted(child));
    let row = shell.kernel.row(child).ok_or("no child")?;
    assert_eq!((row.wait.clone(), row.stage_permits), (Some(WaitReason::Queue), true));
    let fails = of(&shell, 2, StageOutcome::Fail("boom".to_owned()))?;
    shell.feed(NOW, fails);
    // The next engine rolls back.
    let mut next = Shell {
        told: Vec::new(),
        early: Vec::new(),
        kernel: Kernel::new(shell.kernel.rules().clone(), Epoch(2), 0),
        history: shell.history.clone(),
    };
    let family = shell.kernel.families().get(&1).ok_or("no family")?;
    assert_eq!(next.kernel.take_in(1, family.members.clone(), &[]), Ok(()));
    next.feed(NOW, Event::Recovered);
    let mut shell = next;
    let effects = rollback(&mut shell);
    assert_eq!(givers(&shell), [1], "{effects:?}");
    Ok(())
}
