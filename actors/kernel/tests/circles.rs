//! A stage that runs too often in a row beyond its point of no return: what it
//! asked for last is done first, and only then an operator is waited for.

use std::time::Duration;

use procession_kernel::{
    Birth, Blob, Commit, Effect, Epoch, Event, EventName, JoinPolicy, Kernel, Kind, KindRules, NextStageNeeds,
    OperatorRequest, PauseScope, ProcedureId, ProcedureState, Receipt, RequestId, Rules, SentSignal, StageEffects,
    StageEnded, StageOutcome, StoredTarget, Timestamp, Verb, WaitReason,
};

type Tested = Result<(), String>;

const NOW: Timestamp = Timestamp(1_000_000);
const DUE: Timestamp = Timestamp(6_000_000);
const ROOT: ProcedureId = ProcedureId::root(1);

fn stage() -> Blob {
    Blob::from(&b"1"[..])
}

fn birth() -> Birth {
    Birth::new(Kind::from("k"), 1, stage(), Blob::default())
}

/// A root beyond its point of no return, whose one stage may run twice in a row and has run once so.
fn circling() -> Result<Kernel, String> {
    let rules = KindRules {
        repeat_limit: Some(2),
        ..KindRules::new(1)
    };
    let rules = Rules {
        kinds: [(Kind::from("k"), rules)].into(),
        ..Rules::default()
    };
    let mut kernel = Kernel::new(rules, Epoch(1), 0);
    let mut root = birth();
    root.next_needs.next_is_no_return = Some("1".to_owned());
    feed(&mut kernel, NOW, Event::Submitted(RequestId(1), vec![root.into()]));
    report(&mut kernel, ROOT, StageOutcome::Next(stage()), 0)?;
    assert!(is_going(&kernel, ROOT));
    Ok(kernel)
}

fn feed(kernel: &mut Kernel, now: Timestamp, event: Event) -> Vec<Effect> {
    let decision = kernel.decide(now, event);
    let mut commit = Commit::new();
    kernel.apply(decision, &mut commit);
    assert_eq!(kernel.validate(), Ok(()));
    commit
        .release(&Receipt::new(kernel.epoch(), kernel.seq()))
        .unwrap_or_default()
}

/// Reports the stage that is out, with so many children added.
fn report(kernel: &mut Kernel, id: ProcedureId, outcome: StageOutcome, children: usize) -> Tested {
    let in_flight = kernel.row(id).and_then(|row| row.in_flight);
    let run = in_flight.ok_or_else(|| format!("{id} has no stage out"))?.run;
    let mut report = StageEnded::new(id, run, Epoch(1), NOW, outcome);
    report.effects = StageEffects {
        children: vec![birth(); children],
        ..StageEffects::default()
    }
    .boxed();
    report.next_needs = NextStageNeeds {
        next_is_no_return: Some("1".to_owned()),
        ..NextStageNeeds::default()
    };
    feed(kernel, NOW, Event::StageEnded(Box::new(report)));
    Ok(())
}

fn is_going(kernel: &Kernel, id: ProcedureId) -> bool {
    kernel.row(id).is_some_and(|row| row.in_flight.is_some())
}

fn wait_of(kernel: &Kernel) -> Option<WaitReason> {
    kernel.row(ROOT).and_then(|row| row.wait.clone())
}

/// It waits for an operator, and goes on when that one says so.
fn is_resumed(kernel: &mut Kernel) {
    assert_eq!(wait_of(kernel), Some(WaitReason::RepeatLimit));
    assert_eq!(kernel.row(ROOT).map(|row| row.state), Some(ProcedureState::Runnable));
    let by = OperatorRequest::new("ann", "the fault is gone");
    let resume = Event::Requested(
        RequestId(2),
        Box::new(Verb::Resume(PauseScope::One(ROOT))),
        Box::new(by),
        StoredTarget::None,
    );
    feed(kernel, DUE, resume);
    assert!(is_going(kernel, ROOT));
    assert_eq!(kernel.row(ROOT).map(|row| row.same_stage), Some(0));
}

#[test]
fn it_waits_at_once_where_it_asks_for_nothing() -> Tested {
    let mut kernel = circling()?;
    report(&mut kernel, ROOT, StageOutcome::Next(stage()), 0)?;
    is_resumed(&mut kernel);
    Ok(())
}

#[test]
fn its_children_are_born_and_end_first() -> Tested {
    let spawn = StageOutcome::Spawn {
        births: vec![birth()],
        join: JoinPolicy::AllSucceeded,
        width: 0,
        then: stage(),
    };
    for (outcome, added) in [(spawn, 0), (StageOutcome::Next(stage()), 1)] {
        let mut kernel = circling()?;
        report(&mut kernel, ROOT, outcome, added)?;
        assert_eq!(wait_of(&kernel), Some(WaitReason::Children));
        let child = ProcedureId::new(ROOT.family, 1);
        report(&mut kernel, child, StageOutcome::Done(Blob::default()), 0)?;
        is_resumed(&mut kernel);
    }
    Ok(())
}

#[test]
fn it_sleeps_first() -> Tested {
    let mut kernel = circling()?;
    report(&mut kernel, ROOT, StageOutcome::Sleep(DUE, stage()), 0)?;
    assert_eq!(wait_of(&kernel), Some(WaitReason::Timer(DUE)));
    feed(&mut kernel, DUE, Event::TimerDue(ROOT));
    is_resumed(&mut kernel);
    Ok(())
}

/// A signal is progress: the runs are counted from there, and nobody has to resume it.
#[test]
fn a_signal_lets_it_go_on_and_the_count_begins_anew() -> Tested {
    let mut kernel = circling()?;
    let go = EventName::from("go");
    let wait = StageOutcome::Wait(go.clone(), Some(Duration::from_hours(1)), stage());
    report(&mut kernel, ROOT, wait, 0)?;
    assert!(matches!(wait_of(&kernel), Some(WaitReason::Event(..))));
    let signal = SentSignal {
        to: ROOT,
        name: go,
        payload: Blob::default(),
        key: None,
        last: false,
    };
    feed(&mut kernel, NOW, Event::Signalled(RequestId(3), vec![signal]));
    let row = kernel.row(ROOT).ok_or("it lives")?;
    assert!(row.in_flight.is_some() && row.wake.is_some(), "it is told what woke it");
    assert_eq!(row.same_stage, 0);
    Ok(())
}

#[test]
fn it_waits_for_its_event_first_and_a_timeout_is_no_progress() -> Tested {
    let mut kernel = circling()?;
    let wait = StageOutcome::Wait(EventName::from("go"), Some(Duration::from_hours(1)), stage());
    report(&mut kernel, ROOT, wait, 0)?;
    let due = NOW.after(Duration::from_hours(1));
    feed(&mut kernel, due, Event::TimerDue(ROOT));
    is_resumed(&mut kernel);
    assert!(
        kernel.row(ROOT).is_some_and(|row| row.wake.is_some()),
        "it is told what woke it"
    );
    Ok(())
}
