//! Which outputs are kept, and for how long.

use procession_kernel::{
    Birth, Blob, Commit, Epoch, Event, JoinPolicy, Kernel, Kind, KindRules, ProcedureId, Record, RequestId, Rules, Seq,
    StageEnded, StageOutcome, Timestamp,
};

use super::{BOUND, EACH, OutputCache};

fn output(family: u64, member: u32, bytes: usize) -> Record {
    let fill = u8::try_from(member % 256).unwrap_or_default();
    Record::Output(ProcedureId::new(family, member), Blob::from(vec![fill; bytes]))
}

fn note(cache: &mut OutputCache, records: &[Record]) {
    for record in records {
        if let Record::Output(id, value) = record {
            cache.ended(*id, value);
        } else if let Record::FamilyEnded(family, _) = record {
            cache.forget(*family);
        }
    }
}

fn members(taken: &[(u32, Blob)]) -> Vec<u32> {
    taken.iter().map(|(member, _)| *member).collect()
}

#[test]
fn a_list_is_given_once_and_in_order_and_others_stay() {
    let mut cache = OutputCache::default();
    let ends = [3, 1, 5, 2].map(|member| output(1, member, 10));
    note(&mut cache, &ends);
    note(&mut cache, &[output(1, 0, 10), output(2, 1, 10)]);
    assert_eq!(cache.bytes, 5 * (EACH + 10), "a root's is nobody's to ask for");
    let taken = cache.take(1, 1, 3);
    assert_eq!(members(&taken), [1, 2, 3]);
    assert_eq!(
        taken.first().map(|(_, value)| value.as_slice().to_vec()),
        Some(vec![1; 10])
    );
    assert_eq!(cache.take(1, 1, 3), []);
    assert_eq!(members(&cache.take(1, 5, u32::MAX)), [5]);
    assert_eq!(cache.bytes, EACH + 10);
}

#[test]
fn what_a_family_leaves_goes_with_its_end() {
    let mut cache = OutputCache::default();
    note(&mut cache, &[output(1, 1, 10), output(2, 1, 10)]);
    note(&mut cache, &[Record::FamilyEnded(1, Timestamp(1))]);
    assert_eq!(cache.take(1, 1, 1), []);
    cache.forget(2);
    cache.forget(3);
    assert_eq!((cache.bytes, cache.families.len()), (0, 0));
}

#[test]
fn memory_is_bounded() {
    let mut cache = OutputCache::default();
    let half = BOUND / 2;
    note(&mut cache, &[output(1, 1, half), output(1, 2, half), output(1, 3, 10)]);
    assert_eq!(
        members(&cache.take(1, 1, 3)),
        [1, 3],
        "the second is read from the store"
    );
    assert_eq!(cache.bytes, 0);
}

const NOW: Timestamp = Timestamp(1);

/// Runs a parent with two children. The first child has ended with an output.
fn after_first_child() -> (OutputCache, Kernel) {
    let rules = Rules {
        kinds: [(Kind::from("k"), KindRules::new(1))].into(),
        ..Rules::default()
    };
    let birth = || Birth::new(Kind::from("k"), 1, Blob::from(&b"\xc0"[..]), Blob::default());
    let (mut kernel, mut cache) = (Kernel::new(rules, Epoch(1), 0), OutputCache::default());
    let mut run = |kernel: &mut Kernel, event: Event| {
        let decision = kernel.decide(NOW, event);
        for record in decision.records() {
            if let Record::Output(id, value) = record {
                cache.ended(*id, value);
            }
        }
        kernel.apply(decision, &mut Commit::new());
    };
    let ended = |kernel: &Kernel, member: u32, outcome: StageOutcome| {
        let id = ProcedureId::new(1, member);
        let in_flight = kernel.row(id).and_then(|row| row.in_flight).expect("its stage is out");
        Event::StageEnded(Box::new(StageEnded::new(id, in_flight.run, Epoch(1), NOW, outcome)))
    };
    run(&mut kernel, Event::Submitted(RequestId(1), vec![birth().into()]));
    let spawn = StageOutcome::Spawn {
        births: vec![birth(), birth()],
        join: JoinPolicy::default(),
        width: 0,
        then: Blob::default(),
    };
    let spawned = ended(&kernel, 0, spawn);
    run(&mut kernel, spawned);
    let done = ended(&kernel, 1, StageOutcome::Done(Blob::from(vec![7])));
    run(&mut kernel, done);
    (cache, kernel)
}

#[test]
fn children_come_from_memory_with_the_outputs_that_are_cached() {
    let (mut cache, kernel) = after_first_child();
    let children = cache
        .children(&kernel, kernel.seq(), 1, 1, 2)
        .expect("all rows are on disk");
    let seen: Vec<_> = children
        .into_iter()
        .map(|child| (child.id.member, child.ended, child.output))
        .collect();
    assert_eq!(seen, [(1, true, Some(Blob::from(vec![7]))), (2, false, None)]);
}

#[test]
fn children_are_read_from_the_store_while_memory_is_ahead_of_it_or_lacks_some() {
    let (mut cache, kernel) = after_first_child();
    let before = Seq(kernel.seq().0 - 1);
    assert!(
        cache.children(&kernel, before, 1, 1, 2).is_none(),
        "the first child's end is not on disk"
    );
    assert!(
        cache.children(&kernel, before, 1, 2, 1).is_some(),
        "the second child has not changed"
    );
    assert!(
        cache.children(&kernel, kernel.seq(), 1, 1, 3).is_none(),
        "there is no third child"
    );
    assert!(
        cache.children(&kernel, kernel.seq(), 2, 1, 1).is_none(),
        "the family is unknown"
    );
}
