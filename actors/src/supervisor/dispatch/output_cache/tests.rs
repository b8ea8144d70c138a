//! Which outputs are kept, and for how long.

use procession_kernel::{Blob, ProcedureId, Record, Timestamp};

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
