//! Keys of the label index: their order, their bytes, and what is no such key.

use procession_kernel::{Label, LabelDigest, NUMBER_MAX};
use proptest::prelude::*;

use super::*;

/// Numbers around which a family takes a byte more, and the ends.
const BOUNDARIES: [u64; 10] = [
    0,
    1 << 8,
    1 << 16,
    1 << 24,
    1 << 32,
    1 << 40,
    1 << 48,
    1 << 56,
    1 << 61,
    NUMBER_MAX - 1,
];

/// Families at and around the boundaries, in order.
fn families() -> Vec<u64> {
    let around = |boundary: u64| boundary.saturating_sub(2)..=(boundary + 2).min(NUMBER_MAX - 1);
    let mut all: Vec<u64> = BOUNDARIES.into_iter().flat_map(around).collect();
    all.dedup();
    assert!(all.is_sorted());
    all
}

fn digests() -> [LabelDigest; 6] {
    let label = Label::new("customer", "4711");
    [
        LabelDigest::Short(0),
        LabelDigest::Short((1 << 27) - 1),
        label.digest(),
        LabelDigest::Long(1 << 63),
        LabelDigest::Long(u64::MAX),
        label.long_digest(),
    ]
}

#[test]
fn keys_of_a_label_are_in_the_order_of_families_and_say_what_they_are() {
    for digest in digests() {
        let keys: Vec<LabelKey> = families().into_iter().map(|family| label(digest, family)).collect();
        assert!(keys.windows(2).all(|two| *two[0] < *two[1]), "{digest:?}");
        let parsed: Vec<_> = keys.iter().map(|key| parse_label(key)).collect();
        let expected: Vec<_> = families().into_iter().map(|family| Some((digest, family))).collect();
        assert_eq!(parsed, expected);
        let end = after_label(digest);
        assert!(keys.iter().all(|key| end.as_deref().is_none_or(|end| **key < *end)));
    }
}

#[test]
fn a_digest_ends_where_the_next_one_begins() {
    assert!(after_label(LabelDigest::Short(7)).is_some_and(|end| *end <= *label(LabelDigest::Short(8), 0)));
    let last_short = after_label(LabelDigest::Short((1 << 27) - 1));
    assert_eq!(last_short, Some(vec![0x80, 0, 0, 0]));
    assert!(
        after_label(LabelDigest::Long(1 << 63)).is_some_and(|end| *end <= *label(LabelDigest::Long(1 << 63 | 1), 0))
    );
    assert_eq!(after_label(LabelDigest::Long(u64::MAX)), None);
}

#[test]
fn families_short_digests_and_long_digests_are_three_ranges() {
    for family in families() {
        assert!(super::family(family)[..] < first_label()[..]);
        assert_eq!(super::family(family)[0] & 0xc0, 0);
        for digest in digests() {
            let key = label(digest, family);
            assert!(first_label()[..] < *key);
            let (first, last) = match digest {
                LabelDigest::Short(_) => (0x40, 0x7f),
                LabelDigest::Long(_) => (0x80, 0xff),
            };
            assert!((first..=last).contains(&key[0]), "{key:?}");
            // Eight bytes of a label are no family.
            assert_eq!(parse_family(&key), None);
        }
        assert_eq!(parse_label(&super::family(family)), None);
        assert_eq!(parse_family(&super::family(family)), Some(family));
    }
    assert_eq!(parse_family(&first_label()), None);
    assert_eq!(
        label(LabelDigest::Short(7), 0x0100_0000).len(),
        8,
        "as long as the key of a family"
    );
}

/// They are on disk.
#[test]
fn the_bytes_of_a_key_never_change() {
    let own = Label::new("customer", "4711");
    assert_eq!(*label(own.digest(), 0), [0x6d, 0x4f, 0x11, 0x40, 0]);
    assert_eq!(*label(own.digest(), 42), [0x6d, 0x4f, 0x11, 0x40, 42]);
    assert_eq!(*label(own.digest(), 0x1_02_03), [0x6d, 0x4f, 0x11, 0x42, 1, 2, 3]);
    assert_eq!(
        *label(own.long_digest(), 42),
        [0xda, 0x9e, 0x22, 0x8b, 0x51, 0x47, 0x7a, 0x01, 0, 0, 0, 0, 0, 0, 0, 42]
    );
}

#[test]
fn a_key_that_is_longer_or_shorter_than_it_need_be_is_none() {
    let short = [0x6d, 0x4f, 0x11];
    let wrong: [&[u8]; 9] = [
        // Without a number.
        &[],
        &[0x40],
        // Zeros in front.
        &[0x41, 0, 42],
        &[0x47, 0, 0, 0, 0, 0, 0, 0, 42],
        &[0x41, 0, 0],
        // More or fewer bytes than are announced.
        &[0x40, 42, 0],
        &[0x41, 42],
        &[0x47, 1, 0, 0, 0, 0, 0, 0, 0, 42],
        &[0x47, 0, 0, 0, 0, 0, 0, 0, 0, 42],
    ];
    for number in wrong {
        assert_eq!(parse_label(&[&short, number].concat()), None, "{number:?}");
    }
    let long = label(LabelDigest::Long(u64::MAX), 42);
    assert_eq!(parse_label(&long[..15]), None);
    assert_eq!(parse_label(&[&*long, &[0]].concat()), None);
    assert_eq!(parse_label(&[0xff; 17]), None);
}

#[test]
fn labels_stand_behind_their_row_and_those_of_a_root_behind_all_rows() {
    for family in families() {
        let member = |member| ProcedureId::new(family, member);
        for id in [0, 1, 255, 256, u32::MAX >> 1].map(member) {
            let key = labels(id);
            assert_eq!(parse_labels(&key), Some(id));
            assert_eq!((parse_row(&key), parse_row(&procedure(id))), (None, Some(id)));
            assert_eq!(parse_labels(&procedure(id)), None);
            assert!(key.starts_with(&super::family(family)) && procedure(id)[..] < *key);
            let next = member(id.member + 1);
            assert_eq!(*key < procedure(next)[..], !id.is_root());
        }
        let root = labels(member(0));
        assert!(procedure(member(u32::MAX >> 1))[..] < *root && root.len() == 9);
        // A root has one key.
        assert_eq!(parse_labels(&payload(member(0), LABELS)), None);
    }
}

proptest! {
    #[test]
    fn any_two_families_are_in_their_order(one in 0..NUMBER_MAX, other in 0..NUMBER_MAX, less in 0..62_u32, digest in 0..1_u32 << 27) {
        // Small numbers are as likely as large ones.
        let (one, other) = (one >> less, other >> (61 - less));
        let key = |family| label(LabelDigest::Short(digest), family);
        prop_assert_eq!(one.cmp(&other), key(one).cmp(&*key(other)));
        prop_assert_eq!(parse_label(&key(one)), Some((LabelDigest::Short(digest), one)));
    }

    #[test]
    fn whatever_is_read_as_a_key_is_one(bytes in proptest::collection::vec(any::<u8>(), 0..18), begin in 0x40..0x80_u8) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = begin;
        }
        if let Some((digest, family)) = parse_label(&bytes) {
            prop_assert_eq!(&*label(digest, family), bytes.as_slice());
        }
    }
}
