//! Suspects run one at a time; when the family of the one that runs is put
//! aside, the next goes at once.

use procession_kernel::{
    Birth, Blob, Commit, Effect, Epoch, Event, Kernel, Kind, KindRules, ProcedureId, Receipt, Record, RequestId, Rules,
    Timestamp, WaitReason,
};

const NOW: Timestamp = Timestamp(1_000_000);
const FIRST: ProcedureId = ProcedureId::root(1);
const SECOND: ProcedureId = ProcedureId::root(2);
const THIRD: ProcedureId = ProcedureId::root(3);

fn rules() -> Rules {
    Rules {
        kinds: [(Kind::from("k"), KindRules::new(1))].into(),
        ..Rules::default()
    }
}

fn feed(kernel: &mut Kernel, event: Event) -> (Vec<Record>, Vec<Effect>) {
    feed_at(kernel, NOW, event)
}

fn feed_at(kernel: &mut Kernel, now: Timestamp, event: Event) -> (Vec<Record>, Vec<Effect>) {
    let decision = kernel.decide(now, event);
    let mut commit = Commit::new();
    let (records, _) = kernel.apply(decision, &mut commit);
    assert_eq!(kernel.validate(), Ok(()));
    let effects = commit.release(&Receipt::new(kernel.epoch(), kernel.seq()));
    (records, effects.unwrap_or_default())
}

/// Three roots whose stages were out at two deaths of the process, at the start after them.
fn suspects() -> Kernel {
    let mut before = Kernel::new(rules(), Epoch(1), 0);
    let birth = Birth::new(Kind::from("k"), 1, Blob::from(&b"1"[..]), Blob::default());
    let (records, _) = feed(&mut before, Event::Submitted(RequestId(1), vec![birth.into(); 3]));
    let mut kernel = Kernel::new(rules(), Epoch(3), 2);
    for record in &records {
        kernel.evolve(record);
    }
    feed(&mut kernel, Event::Recovered);
    assert_eq!(alone(&kernel), [FIRST]);
    kernel
}

/// Those that run alone.
fn alone(kernel: &Kernel) -> Vec<ProcedureId> {
    let rows = kernel.families().values().flat_map(|family| &family.members);
    let alone = rows.filter(|row| row.in_flight.is_some_and(|in_flight| in_flight.alone));
    alone.map(|row| row.id).collect()
}

#[test]
fn the_next_suspect_goes_when_the_family_of_the_one_alone_is_put_aside() {
    let mut kernel = suspects();
    kernel.forget(FIRST.family);
    let (_, effects) = feed(&mut kernel, Event::FamilyForgotten);
    assert_eq!(alone(&kernel), [SECOND]);
    assert!(effects.iter().filter_map(Effect::call).any(|call| call.id == SECOND));
    let third = kernel.row(THIRD).and_then(|row| row.wait.clone());
    assert_eq!(third, Some(WaitReason::Suspect), "one at a time");
}

/// Whoever judges by the time what the attempt may have done before the crashes must not be told a later one.
#[test]
fn a_suspect_is_told_since_when_its_attempt_could_have_begun() {
    let mut kernel = suspects();
    kernel.forget(FIRST.family);
    let (_, effects) = feed_at(&mut kernel, Timestamp(2_000_000), Event::FamilyForgotten);
    let second = effects.iter().filter_map(Effect::call).find(|call| call.id == SECOND);
    assert_eq!(second.map(|call| call.ready), Some(NOW));
}

#[test]
fn nobody_goes_when_the_family_of_another_is_put_aside() {
    let mut kernel = suspects();
    kernel.forget(SECOND.family);
    let (records, effects) = feed(&mut kernel, Event::FamilyForgotten);
    assert_eq!((records, effects), (Vec::new(), Vec::new()));
    assert_eq!(alone(&kernel), [FIRST]);
}

#[test]
fn nothing_is_set_going_by_it_in_a_drain() {
    let mut kernel = suspects();
    feed(&mut kernel, Event::DrainBegan);
    kernel.forget(FIRST.family);
    feed(&mut kernel, Event::FamilyForgotten);
    assert_eq!(alone(&kernel), []);
}
