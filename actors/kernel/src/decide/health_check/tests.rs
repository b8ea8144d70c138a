//! Wakes that the test takes away: each is found once, made up for and counted.

use crate::admission::Lacking;
use crate::decision::{Commit, Receipt};
use crate::effect::{AdmissionEffect, Effect, LifecycleEffect};
use crate::event::{Admission, Birth, Event, StageEnded, StageOutcome};
use crate::id::{Blob, ClaimId, Epoch, Kind, ProcedureId, RequestId, Seq, Timestamp};
use crate::kernel::{Kernel, KindRules, Rules};
use crate::row::JoinPolicy;
use crate::wait::WaitReason;

const NOW: Timestamp = Timestamp(1_000_000);
const LATER: Timestamp = Timestamp(9_000_000);

fn birth() -> Birth {
    Birth::new(Kind::from("k"), 1, Blob::default(), Blob::default())
}

fn kernel_with(birth: Birth) -> Kernel {
    let rules = Rules {
        kinds: [(Kind::from("k"), KindRules::new(1))].into(),
        ..Rules::default()
    };
    let mut kernel = Kernel::new(rules, Epoch(1), 0);
    decide(&mut kernel, Event::Submitted(RequestId(1), vec![birth.into()]));
    kernel
}

fn decide(kernel: &mut Kernel, event: Event) -> Vec<Effect> {
    let decision = kernel.decide(NOW, event);
    let mut commit = Commit::new();
    kernel.apply(decision, &mut commit);
    commit
        .release(&Receipt::new(Epoch(1), kernel.seq()))
        .unwrap_or_default()
}

fn stage_ends(kernel: &mut Kernel, id: ProcedureId, outcome: StageOutcome) {
    let run = kernel
        .row(id)
        .and_then(|row| row.in_flight)
        .map_or(Seq(0), |in_flight| in_flight.run);
    decide(
        kernel,
        Event::StageEnded(Box::new(StageEnded::new(id, run, Epoch(1), NOW, outcome))),
    );
}

fn check(kernel: &mut Kernel, unknown: &[ProcedureId], granted: &[ProcedureId]) -> Vec<Effect> {
    let (unknown, granted) = (unknown.to_vec(), granted.to_vec());
    decide(kernel, Event::HealthCheckDue { granted, unknown })
}

/// One who asks for the permit of `limit`, and did not get it.
fn queued() -> Birth {
    let mut birth = birth();
    birth.admission = Admission {
        limits: vec!["limit".into()],
        asked: Some(ClaimId(9)),
        lacking: Some(Lacking::Permit("limit".into())),
    };
    birth
}

#[test]
fn e_108_without_a_fault_nothing_is_found() {
    let mut kernel = kernel_with(birth());
    stage_ends(
        &mut kernel,
        ProcedureId::root(1),
        StageOutcome::Sleep(LATER, Blob::default()),
    );
    let before = kernel.clone();
    assert!(check(&mut kernel, &[], &[]).is_empty());
    assert_eq!(kernel, before);
}

#[test]
fn e_108_a_lost_timer_is_found() {
    let (mut kernel, root) = (kernel_with(birth()), ProcedureId::root(1));
    stage_ends(&mut kernel, root, StageOutcome::Sleep(LATER, Blob::default()));
    kernel.timers.clear();
    assert!(check(&mut kernel, &[], &[]).contains(&Effect::Lifecycle(LifecycleEffect::ArmTimer)));
    assert_eq!((kernel.found(), kernel.due(LATER)), (1, Some(root)));
    assert!(check(&mut kernel, &[], &[]).is_empty());
    assert_eq!(kernel.found(), 1);
}

#[test]
fn e_108_a_lost_end_of_a_child_is_found() {
    let (mut kernel, root) = (kernel_with(birth()), ProcedureId::root(1));
    let spawn = StageOutcome::Spawn {
        births: vec![birth()],
        join: JoinPolicy::AllSucceeded,
        width: 0,
        then: Blob::default(),
    };
    stage_ends(&mut kernel, root, spawn);
    let waiting = kernel
        .families
        .get(&1)
        .and_then(|family| family.members.first().cloned())
        .expect("the parent");
    stage_ends(&mut kernel, ProcedureId::new(1, 1), StageOutcome::Done(Blob::default()));
    // What the child's end did to its parent is taken back.
    let family = kernel.families.get_mut(1).expect("it lives");
    *family.members.first_mut().expect("the parent") = waiting;
    family.in_flight = 0;
    kernel.in_flight = 0;
    let effects = check(&mut kernel, &[], &[]);
    assert!(effects.iter().filter_map(Effect::call).any(|call| call.id == root));
    assert_eq!((kernel.found(), kernel.in_flight()), (1, 1));
    assert!(check(&mut kernel, &[], &[]).is_empty());
}

#[test]
fn e_108_a_lost_grant_is_found() {
    let (mut kernel, root) = (kernel_with(queued()), ProcedureId::root(1));
    assert_eq!(
        kernel.row(root).and_then(|row| row.wait.clone()),
        Some(WaitReason::Permit("limit".into()))
    );
    let effects = check(&mut kernel, &[], &[root]);
    assert!(effects.iter().filter_map(Effect::call).any(|call| call.id == root));
    assert_eq!((kernel.found(), kernel.row(root).map(|row| row.holds)), (1, Some(true)));
    assert!(check(&mut kernel, &[], &[root]).is_empty(), "it waits no more");
    assert_eq!(kernel.found(), 1);
}

#[test]
fn e_108_one_that_is_in_no_queue_asks_again() {
    let (mut kernel, root) = (kernel_with(queued()), ProcedureId::root(1));
    let decision = kernel.decide(
        NOW,
        Event::HealthCheckDue {
            granted: Vec::new(),
            unknown: vec![root],
        },
    );
    assert_eq!(
        kernel.fold(decision, &mut Commit::new()).admission,
        [AdmissionEffect::Ask(root)]
    );
    assert_eq!(kernel.found(), 1);
}
