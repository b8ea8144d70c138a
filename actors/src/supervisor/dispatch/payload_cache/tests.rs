//! Which values are kept, and for how long.

use procession_kernel::{
    Birth, Blob, Commit, Epoch, Event, JoinPolicy, Kernel, Kind, KindRules, ProcedureId, Record, RequestId, Row, Rules,
    Seq, StageEnded, StageOutcome, Timestamp, WaitReason,
};

use super::{BOUND, EACH, PayloadCache};

const NOW: Timestamp = Timestamp(1);

fn birth(bytes: usize) -> Birth {
    let stage = Blob::from(&b"\xc0"[..]);
    Birth::new(Kind::from("k"), 1, stage, Blob::from(vec![7; bytes]))
}

fn note(cache: &mut PayloadCache, records: &[Record]) {
    let mut born = cache.begin(records);
    for record in records {
        if let Record::Row(row) = record {
            born.take(row);
        }
    }
}

/// Has a parent spawn children with values of this size, one at a time. Returns the cache.
fn after_spawn(children: u32, bytes: usize) -> (PayloadCache, Kernel) {
    let rules = Rules {
        kinds: [(Kind::from("k"), KindRules::new(1))].into(),
        ..Rules::default()
    };
    let mut kernel = Kernel::new(rules, Epoch(1), 0);
    let mut cache = PayloadCache::default();
    let mut run = |kernel: &mut Kernel, event: Event| {
        let decision = kernel.decide(NOW, event);
        note(&mut cache, decision.records());
        kernel.apply(decision, &mut Commit::new());
    };
    run(&mut kernel, Event::Submitted(RequestId(1), vec![birth(bytes).into()]));
    let root = ProcedureId::root(1);
    let in_flight = kernel.row(root).and_then(|row| row.in_flight);
    let outcome = StageOutcome::Spawn {
        births: (0..children).map(|_| birth(bytes)).collect(),
        join: JoinPolicy::default(),
        width: 1,
        then: Blob::default(),
    };
    let run_of = in_flight.map_or(Seq(0), |in_flight| in_flight.run);
    let mut ended = StageEnded::new(root, run_of, Epoch(1), NOW, outcome);
    ended.payload = Some(Blob::from(vec![8; bytes]));
    run(&mut kernel, Event::StageEnded(Box::new(ended)));
    (cache, kernel)
}

#[test]
fn values_of_waiting_procedures_are_kept_and_values_of_running_ones_are_not() {
    let (mut cache, kernel) = after_spawn(3, 10);
    let of = |member| ProcedureId::new(1, member);
    assert!(kernel.row(of(1)).is_some_and(|row| row.in_flight.is_some()));
    assert_eq!(cache.take(of(0)), None, "the parent has begun");
    assert_eq!(cache.take(of(1)), None, "the first child is on its way");
    assert_eq!(cache.take(of(2)), Some(Blob::from(vec![7; 10])));
    assert_eq!(cache.take(of(2)), None, "it is given once");
    assert_eq!(cache.bytes, EACH + 10);
    cache.forget(2);
    assert_eq!(cache.values.len(), 1);
    cache.forget(1);
    assert_eq!((cache.bytes, cache.values.len()), (0, 0));
}

/// A row that waits for its first stage, and its value.
fn waiting(family: u64, member: u32) -> (Record, Record) {
    let (id, kind) = (ProcedureId::new(family, member), Kind::from("k"));
    let mut row = Row::new(id, kind, 1, Blob::default(), NOW);
    row.wait = Some(WaitReason::Queue);
    let value = Blob::from(member.to_be_bytes().to_vec());
    (Record::Row(Box::new(row)), Record::Payload(id, value))
}

#[test]
fn values_are_found_whatever_list_of_births_comes_first() {
    // Detached families are recorded before children, and their rows after the children's rows.
    let born = [(2, 0), (3, 0), (1, 1), (1, 2), (1, 3)].map(|(family, member)| waiting(family, member));
    let (mut rows, mut records): (Vec<Record>, Vec<Record>) = born.into_iter().unzip();
    rows.rotate_left(2);
    records.append(&mut rows);
    let mut cache = PayloadCache::default();
    note(&mut cache, &records);
    for (family, member) in [(1, 1_u32), (1, 2), (1, 3), (2, 0), (3, 0)] {
        let value = Some(Blob::from(member.to_be_bytes().to_vec()));
        assert_eq!(cache.take(ProcedureId::new(family, member)), value);
    }
}

#[test]
fn rows_without_a_value_are_not_searched_for_without_end() {
    let rows: Vec<Record> = (1..=1_000).map(|family| waiting(family, 0).0).collect();
    let mut cache = PayloadCache::default();
    let mut born = cache.begin(&rows);
    for record in &rows {
        if let Record::Row(row) = record {
            born.take(row);
        }
    }
    assert_eq!(born.budget, 0, "the search was given up");
    assert!(cache.values.is_empty());
}

#[test]
fn beyond_the_bound_values_are_left_in_the_store() {
    let bytes = BOUND / 32;
    let (cache, _) = after_spawn(40, bytes);
    assert_eq!(cache.values.len(), 31);
    assert!(cache.bytes <= BOUND);
}
