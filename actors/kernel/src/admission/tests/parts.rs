//! The small data structures inside the value, each compared with a plain structure.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::hash_index::{self, HashIndex};
use super::super::inline_list::InlineList;
use super::super::slab::Slab;
use super::super::sorted_deque::SortedDeque;
use super::*;

#[derive(Clone, Copy, Debug)]
enum Move {
    Insert(u32),
    Remove(u32),
    PushBack,
    PopFront,
}

/// Generates long runs at both ends and changes in between, so that pieces are cut and joined.
fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        (0_u32..2_000).prop_map(|item| vec![Move::Insert(item)]),
        (0_u32..2_000).prop_map(|item| vec![Move::Remove(item)]),
        (1_usize..300).prop_map(|times| vec![Move::PushBack; times]),
        (1_usize..300).prop_map(|times| vec![Move::PopFront; times]),
        (0_u32..2_000, 1_u32..300).prop_map(|(from, many)| (from..from + many).map(Move::Remove).collect()),
        (0_u32..2_000, 1_u32..300).prop_map(|(from, many)| (from..from + many).rev().map(Move::Insert).collect()),
    ];
    prop::collection::vec(one, 1..30).prop_map(|runs| runs.concat())
}

fn make(change: Move, sorted: &mut SortedDeque<u32>, plain: &mut BTreeSet<u32>) {
    match change {
        Move::Insert(item) => {
            sorted.insert(item);
            plain.insert(item);
        }
        Move::Remove(item) => assert_eq!(sorted.remove(item), plain.remove(&item)),
        Move::PushBack => {
            let next = plain.last().map_or(0, |last| last + 1);
            sorted.insert(next);
            plain.insert(next);
        }
        Move::PopFront => {
            if let Some(first) = plain.pop_first() {
                assert!(sorted.remove(first));
            }
        }
    }
}

proptest! {
    #[test]
    fn a_sorted_set_is_as_a_plain_one(moves in moves(), probes in prop::collection::vec(0_u32..2_400, 1..20)) {
        let (mut sorted, mut plain) = (SortedDeque::default(), BTreeSet::new());
        for change in moves {
            make(change, &mut sorted, &mut plain);
            prop_assert_eq!((sorted.first(), sorted.last()), (plain.first().copied(), plain.last().copied()));
        }
        prop_assert!(sorted.iter().eq(plain.iter().copied()));
        prop_assert_eq!(sorted.is_empty(), plain.is_empty());
        for probe in probes {
            prop_assert_eq!(sorted.before(probe), plain.range(..probe).next_back().copied());
            prop_assert_eq!(sorted.after(probe), plain.range(probe + 1..).next().copied());
            prop_assert!(sorted.from(probe).eq(plain.range(probe..).copied()));
        }
    }

    /// There are few hashes for many names, so that most entries are away from their own place.
    #[test]
    fn an_index_finds_what_is_in_it_and_nothing_else(moves in prop::collection::vec((any::<bool>(), 0_u32..200), 1..400)) {
        let (mut index, mut plain) = (HashIndex::default(), BTreeMap::new());
        let hash = |number: u32| number % 23;
        for (is_insert, number) in moves {
            if !is_insert {
                index.remove(hash(number), number);
                plain.remove(&number);
            } else if plain.insert(number, ()).is_none() {
                index.insert(hash(number), number);
            }
            for number in 0..200 {
                let found = index.find(hash(number), |other| other == number);
                prop_assert_eq!(found.is_some(), plain.contains_key(&number));
            }
        }
    }

    #[test]
    fn an_inline_list_is_as_a_plain_one(moves in prop::collection::vec((0_u8..3, 0_u32..9), 0..60)) {
        let (mut list, mut plain) = (InlineList::<u32, 3>::default(), Vec::new());
        for (what, item) in moves {
            match what {
                0 => {
                    list.retain(|other| other % 3 != item % 3);
                    plain.retain(|other| other % 3 != item % 3);
                }
                _ if plain.contains(&item) => {
                    assert!(list.remove(item));
                    let place = plain.iter().position(|other| *other == item).expect("it is in");
                    plain.swap_remove(place);
                }
                _ => {
                    list.push(item);
                    plain.push(item);
                }
            }
            prop_assert_eq!(list.as_slice(), &plain[..]);
        }
    }
}

#[test]
fn a_number_is_given_out_again_once_its_thing_is_gone() {
    let mut slab = Slab::default();
    let numbers = ["a", "b", "c"].map(|thing| slab.add(thing));
    assert_eq!(slab.remove(numbers[1]), Some("b"));
    assert_eq!((slab.remove(numbers[1]), slab.get(numbers[1])), (None, None));
    assert_eq!(slab.add("d"), numbers[1]);
    assert_eq!(
        slab.iter().map(|(_, thing)| *thing).collect::<Vec<_>>(),
        ["a", "d", "c"]
    );
}

#[test]
fn texts_that_differ_anywhere_differ_in_their_hash() {
    let texts = [
        "",
        "a",
        "b",
        "ab",
        "ba",
        "a/b",
        "namespace/table",
        "namespace/tablf",
        "oamespace/table",
        "ns/t/r\0",
    ];
    let hashes: BTreeSet<u32> = texts.iter().map(|text| hash_index::of_text(text)).collect();
    assert_eq!(hashes.len(), texts.len());
}

#[test]
fn paths_that_nobody_uses_are_dropped_in_the_end() {
    let mut admissions = Admissions::default();
    admissions.ask(20_000, &["x t0/r"]);
    for number in 0..20_000 {
        assert!(admissions.ask(number, &[&format!("x t{}/r{number}", number % 100)]));
        assert_eq!(admissions.end(number), []);
    }
    assert!(admissions.tree.len() <= 1_200, "{} paths", admissions.tree.len());
    assert!(admissions.tree.is_sound());
    assert_eq!(admissions.end(20_000), []);
    assert!(admissions.is_empty());
}
