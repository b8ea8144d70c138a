//! A wake that is lost is found by the health check, made up for, and counted; where
//! none is lost, it finds nothing.

use std::time::Duration;

use procession_kernel::{
    Admission, AdmissionEffect, Birth, Blob, ClaimId, Commit, Decision, Effect, Epoch, Event, JoinPolicy, Kernel, Kind,
    KindRules, Lacking, LifecycleEffect, LockNeed, NextStageNeeds, ProcedureId, ProcedureState, Receipt, Record,
    RequestId, Rules, StageEnded, StageOutcome, Timestamp, WaitReason,
};

type Tested = Result<(), String>;

const ROOT: ProcedureId = ProcedureId::new(1, 0);
const CHILD: ProcedureId = ProcedureId::new(1, 1);
const NOW: Timestamp = Timestamp(1_000_000);
const DUE: Timestamp = Timestamp(6_000_000);

fn birth() -> Birth {
    let (stage, payload) = (Blob::from(&b"1"[..]), Blob::from(&b"value"[..]));
    Birth::new(Kind::from("k"), 1, stage, payload)
}

/// A kernel whose records may get lost on their way into its state.
struct Shell {
    kernel: Kernel,
    now: Timestamp,
    /// What the newest decision tells the limiter.
    told: Vec<AdmissionEffect>,
}

impl Shell {
    /// Starts with one root, of which a stage is out unless it lacks something.
    fn new(birth: Birth) -> Self {
        let rules = Rules {
            kinds: [(Kind::from("k"), KindRules::new(1))].into(),
            ..Rules::default()
        };
        let kernel = Kernel::new(rules, Epoch(1), 0);
        let mut shell = Self {
            kernel,
            now: NOW,
            told: Vec::new(),
        };
        shell.feed(Event::Submitted(RequestId(1), vec![birth.into()]));
        shell
    }

    fn feed(&mut self, event: Event) -> Vec<Effect> {
        let decision = self.kernel.decide(self.now, event);
        self.apply(decision)
    }

    fn apply(&mut self, decision: Decision) -> Vec<Effect> {
        let mut commit = Commit::new();
        self.told = self.kernel.fold(decision, &mut commit).admission;
        let receipt = Receipt::new(Epoch(1), self.kernel.seq());
        commit.release(&receipt).unwrap_or_default()
    }

    fn report(&self, id: ProcedureId, outcome: StageOutcome) -> Result<Event, String> {
        let in_flight = self.kernel.row(id).and_then(|row| row.in_flight);
        let run = in_flight.ok_or_else(|| format!("{id} has no stage out"))?.run;
        let report = StageEnded::new(id, run, Epoch(1), self.now, outcome);
        Ok(Event::StageEnded(Box::new(report)))
    }

    fn stage(&mut self, id: ProcedureId, outcome: StageOutcome) -> Tested {
        let report = self.report(id, outcome)?;
        self.feed(report);
        Ok(())
    }

    fn check(&mut self) -> Vec<Effect> {
        self.tell_check(Vec::new(), Vec::new())
    }

    fn tell_check(&mut self, granted: Vec<ProcedureId>, unknown: Vec<ProcedureId>) -> Vec<Effect> {
        let effects = self.feed(Event::HealthCheckDue { granted, unknown });
        assert_eq!(self.kernel.validate(), Ok(()));
        effects
    }

    fn wait_of(&self, id: ProcedureId) -> Option<WaitReason> {
        self.kernel.row(id).and_then(|row| row.wait.clone())
    }

    fn is_going(&self, id: ProcedureId) -> bool {
        self.kernel.row(id).is_some_and(|row| row.in_flight.is_some())
    }
}

fn spawn(children: usize, width: u32) -> StageOutcome {
    StageOutcome::Spawn {
        births: vec![birth(); children],
        join: JoinPolicy::AllSucceeded,
        width,
        then: Blob::from(&b"2"[..]),
    }
}

fn done() -> StageOutcome {
    StageOutcome::Done(Blob::default())
}

#[test]
fn e_108_the_end_of_a_child_is_found() -> Tested {
    let mut shell = Shell::new(birth());
    shell.stage(ROOT, spawn(1, 0))?;
    let waiting = shell.kernel.row(ROOT).cloned().ok_or("there is no root")?;
    let ended = shell.report(CHILD, done())?;
    shell.feed(ended);
    // The parent's row of that commit is lost.
    shell.kernel.evolve(&Record::Row(Box::new(waiting)));
    assert_eq!(shell.wait_of(ROOT), Some(WaitReason::Children));

    shell.check();
    assert_eq!(shell.kernel.found(), 1);
    assert!(shell.is_going(ROOT), "it goes on as if it had been woken");
    shell.stage(ROOT, done())?;
    assert!(shell.kernel.families().is_empty(), "and ends");
    shell.check();
    assert_eq!(shell.kernel.found(), 1);
    Ok(())
}

#[test]
fn e_108_the_failure_of_a_child_is_found() -> Tested {
    let mut shell = Shell::new(birth());
    shell.stage(ROOT, spawn(1, 0))?;
    let waiting = shell.kernel.row(ROOT).cloned().ok_or("there is no root")?;
    shell.stage(CHILD, StageOutcome::Fail("boom".to_owned()))?;
    shell.kernel.evolve(&Record::Row(Box::new(waiting)));

    shell.check();
    assert_eq!(shell.kernel.found(), 1);
    let root = shell.kernel.row(ROOT).ok_or("there is no root")?;
    assert_eq!(root.state, ProcedureState::Failed);
    assert_eq!(
        root.rare().cause.as_ref().map(|cause| cause.text.as_str()),
        Some("boom")
    );
    Ok(())
}

#[test]
fn e_108_the_turn_of_one_held_back_by_the_width_is_found() -> Tested {
    let second = ProcedureId::new(1, 2);
    let mut shell = Shell::new(birth());
    shell.stage(ROOT, spawn(2, 1))?;
    let held = shell.kernel.row(second).cloned().ok_or("there is no second child")?;
    shell.stage(CHILD, done())?;
    assert!(shell.is_going(second));
    shell.kernel.evolve(&Record::Row(Box::new(held)));

    shell.check();
    assert_eq!(shell.kernel.found(), 1);
    assert!(shell.is_going(second));
    Ok(())
}

#[test]
fn e_108_a_timer_is_found() -> Tested {
    let mut shell = Shell::new(birth());
    shell.stage(ROOT, StageOutcome::Sleep(DUE, Blob::from(&b"2"[..])))?;
    shell.kernel.evolve(&Record::Disarmed(ROOT));
    assert_eq!(shell.kernel.next_deadline(), None);

    let effects = shell.check();
    assert_eq!(shell.kernel.found(), 1);
    assert_eq!(shell.kernel.next_deadline(), Some(DUE));
    assert!(effects.contains(&Effect::Lifecycle(LifecycleEffect::ArmTimer)));
    shell.now = DUE;
    shell.feed(Event::TimerDue(ROOT));
    assert!(shell.is_going(ROOT));
    Ok(())
}

#[test]
fn e_108_the_time_of_a_whole_procedure_is_found() {
    let mut shell = Shell::new(Birth {
        timeout: Some(Duration::from_secs(5)),
        ..birth()
    });
    shell.kernel.evolve(&Record::Disarmed(ROOT));
    shell.check();
    assert_eq!(shell.kernel.found(), 1);
    assert_eq!(shell.kernel.next_deadline(), Some(DUE));
}

/// A root that was born while another held the lock that it needs.
fn waits_for_a_lock() -> Shell {
    let shell = Shell::new(Birth {
        next_needs: NextStageNeeds {
            locks: vec![LockNeed::exclusive("t")],
            ..NextStageNeeds::default()
        },
        admission: Admission {
            limits: Vec::new(),
            asked: Some(ClaimId(7)),
            lacking: Some(Lacking::Lock("t".into())),
        },
        ..birth()
    });
    assert_eq!(shell.wait_of(ROOT), Some(WaitReason::Lock("t".into())));
    shell
}

#[test]
fn e_108_a_grant_is_found() {
    let mut shell = waits_for_a_lock();
    // The limiter has granted it, and nobody heard.
    shell.tell_check(vec![ROOT], Vec::new());
    assert_eq!(shell.kernel.found(), 1);
    assert!(shell.is_going(ROOT));
    let locked = shell.kernel.row(ROOT).map(|row| row.locked.len());
    assert_eq!(locked, Some(1));
    // The grant that comes late after all changes nothing.
    let late = shell.kernel.late();
    shell.feed(Event::Granted(ROOT));
    assert_eq!(shell.kernel.late(), late + 1);
}

#[test]
fn e_108_one_in_no_queue_is_found() {
    let mut shell = waits_for_a_lock();
    let effects = shell.tell_check(Vec::new(), vec![ROOT]);
    assert_eq!(shell.kernel.found(), 1);
    assert_eq!(effects, []);
    assert_eq!(shell.told, [AdmissionEffect::Ask(ROOT)], "it asks again");
    assert_eq!(shell.wait_of(ROOT), Some(WaitReason::Lock("t".into())));
}

#[test]
fn e_108_without_a_fault_nothing_is_found() -> Tested {
    let mut shell = Shell::new(birth());
    let before = shell.kernel.clone();
    shell.check();
    assert_eq!(shell.kernel, before, "a stage is out");

    shell.stage(ROOT, spawn(2, 1))?;
    shell.check();
    shell.stage(CHILD, StageOutcome::Sleep(DUE, Blob::default()))?;
    shell.check();
    shell.now = DUE;
    shell.feed(Event::TimerDue(CHILD));
    shell.check();
    shell.stage(CHILD, StageOutcome::Fail("boom".to_owned()))?;
    let before = shell.kernel.clone();
    assert_eq!(shell.check(), [], "the family rolls back");
    assert_eq!(shell.kernel, before);
    assert_eq!(
        shell.kernel.row(ROOT).map(|row| row.state),
        Some(ProcedureState::Failed)
    );

    let mut shell = waits_for_a_lock();
    shell.check();
    assert_eq!(shell.kernel.found(), 0);
    // Who is told of has got on already.
    shell.feed(Event::Granted(ROOT));
    shell.tell_check(vec![ROOT], vec![ROOT]);
    assert_eq!(shell.kernel.found(), 0);
    Ok(())
}
