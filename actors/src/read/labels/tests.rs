//! Index and rows compared, and families of both forms of entries merged.

use std::sync::Arc;

use futures::executor::block_on;
use procession_kernel::{Blob, Kind, ProcedureId, RowLabels, Seq, Timestamp};

use super::*;
use crate::journal::memory::{FaultPlan, MemoryDisk, MemoryStore};
use crate::journal::{Batch, JournalStore};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(name, value)| Label::new(*name, *value)).collect()
}

/// A row: its family, whether its entries have the old form, and its labels.
type Labelled = (u64, bool, &'static [(&'static str, &'static str)]);

/// The first family has members that were born before format 7 and since, the second old ones alone, the third a new one.
const ROWS: [Labelled; 6] = [
    (1, true, &[("customer", "4711"), ("line", "0")]),
    // It has inherited a label and has one of its own.
    (1, false, &[("customer", "4711"), ("line", "1")]),
    (1, false, &[("line", "1")]),
    (2, true, &[("customer", "4711")]),
    (2, true, &[("customer", "4711")]),
    (3, false, &[("customer", "4711")]),
];

fn of_rows() -> LabelTally {
    let mut tally = LabelTally::default();
    for (family, is_old, own) in ROWS {
        tally.begin(family);
        tally.add_digests(in_form(&labels(own), is_old));
    }
    tally
}

/// What the index has for these rows.
fn entries() -> BTreeSet<(LabelDigest, u64)> {
    let rows = ROWS.into_iter();
    let entries = rows.flat_map(|(family, is_old, own)| {
        let digests: Vec<LabelDigest> = in_form(&labels(own), is_old).collect();
        digests.into_iter().map(move |digest| (digest, family))
    });
    entries.collect()
}

fn difference(entries: &BTreeSet<(LabelDigest, u64)>) -> Option<String> {
    let mut tally = of_rows();
    entries
        .iter()
        .for_each(|(digest, family)| tally.add_entry(*digest, *family));
    tally.difference()
}

#[test]
fn the_index_has_each_label_in_the_form_of_the_birth_and_nothing_else() {
    let all = entries();
    // Of the first family the customer is there in both forms.
    assert_eq!((all.len(), difference(&all)), (6, None));
    for missing in &all {
        let mut less = all.clone();
        less.remove(missing);
        assert!(difference(&less).is_some(), "{missing:?}");
    }
    let customer = Label::new("customer", "4711");
    let superfluous = [
        (customer.long_digest(), 3),
        (customer.digest(), 2),
        (Label::new("line", "1").long_digest(), 1),
        (customer.digest(), 4),
    ];
    for superfluous in superfluous {
        let mut more = all.clone();
        more.insert(superfluous);
        assert!(difference(&more).is_some(), "{superfluous:?}");
        // In the place of another, so that the number is right.
        more.pop_first();
        assert!(difference(&more).is_some(), "{superfluous:?}");
    }
    // Each form has the entry of the other.
    let swapped = all.iter().map(|(digest, family)| match (*digest, family) {
        (_, 2) => (customer.digest(), 2),
        (_, 3) => (customer.long_digest(), 3),
        (digest, family) => (digest, *family),
    });
    assert!(difference(&swapped.collect()).is_some());
}

#[test]
fn rows_name_each_entry_once_and_in_its_form() {
    let row = |member, own| {
        let (id, kind) = (ProcedureId::new(1, member), Kind::from("kind"));
        let labels = RowLabels::in_entry(member, labels(own));
        let row = Row::new(id, kind, 1, Blob::default(), Timestamp(0));
        Row { labels, ..row }
    };
    let rows = [row(0, &[("a", "1")]), row(1, &[("a", "1"), ("b", "1")])];
    let expected: BTreeSet<LabelDigest> = ["a", "b"].map(|name| Label::new(name, "1").digest()).into();
    assert_eq!(digests_of(&rows), expected.into_iter().collect::<Vec<_>>());
    let both = labels(&[("a", "1")]);
    assert_eq!(
        in_form(&both, true).collect::<Vec<_>>(),
        [Label::new("a", "1").long_digest()]
    );
}

struct Stored {
    store: Arc<dyn JournalStore>,
    reader: Reader,
}

/// An index with these entries.
fn stored(entries: impl IntoIterator<Item = (LabelDigest, u64)>) -> Outcome<Stored> {
    let memory = Arc::new(MemoryStore::open(&MemoryDisk::new(), FaultPlan::none())?);
    let mut batch = Batch::new(block_on(memory.acquire())?);
    batch.advance_to(Seq(1));
    for (digest, family) in entries {
        batch.put(Space::Live, &keys::label(digest, family), &[]);
    }
    block_on(memory.append(batch))?;
    let store: Arc<dyn JournalStore> = memory;
    let reader = Reader::new(&store);
    Ok(Stored { store, reader })
}

/// Returns all families that have these labels, and how many entries were read.
fn walk(stored: &Stored, labels: &[Label]) -> Outcome<(Vec<u64>, usize)> {
    let walked = actix_rt::System::new().block_on(async {
        let mut index = LabelledFamilies::new(&stored.reader, labels);
        let (mut found, mut from) = (Vec::new(), 0);
        while let NextFamily::Found(family) = index.next(from).await? {
            found.push(family);
            from = family + 1;
        }
        Ok::<_, StoreError>((found, index.entries))
    })?;
    Ok(walked)
}

#[test]
fn families_of_both_forms_are_merged_in_order_and_given_once() -> Outcome {
    let one = Label::new("customer", "4711");
    // Old and new families alternate in stretches of all lengths; some have both entries.
    let is_old = |family: u64| family.is_multiple_of(3) || (200..400).contains(&family);
    let is_new = |family: u64| !is_old(family) || family.is_multiple_of(10);
    let families = || (1..1_000_u64).chain([1 << 20, 1 << 40, (1 << 62) - 1]);
    let old = families().filter(|family| is_old(*family));
    let new = families().filter(|family| is_new(*family));
    let (old, new): (Vec<u64>, Vec<u64>) = (old.collect(), new.collect());
    let long = old.iter().map(|family| (one.long_digest(), *family));
    let entries = long.chain(new.iter().map(|family| (one.digest(), *family)));
    let stored = stored(entries)?;
    let (found, read) = walk(&stored, std::slice::from_ref(&one))?;
    assert_eq!(found, families().collect::<Vec<_>>());
    assert!(
        read <= old.len() + new.len(),
        "{read} entries are read of {} and {}",
        old.len(),
        new.len()
    );
    drop(stored.store);
    Ok(())
}

#[test]
fn a_label_of_old_entries_alone_meets_one_of_new_entries_alone() -> Outcome {
    let (old, new) = (Label::new("old", "1"), Label::new("new", "1"));
    let every = |step: u64| (1..=300_u64).map(move |family| family * step);
    let long = every(2).map(|family| (old.long_digest(), family));
    let stored = stored(long.chain(every(3).map(|family| (new.digest(), family))))?;
    let expected: Vec<u64> = (1..=100).map(|family| family * 6).collect();
    for labels in [[old.clone(), new.clone()], [new, old]] {
        assert_eq!(walk(&stored, &labels)?.0, expected);
    }
    drop(stored.store);
    Ok(())
}

#[test]
fn entries_are_read_once_and_those_of_other_labels_are_not() -> Outcome {
    let one = Label::new("customer", "4711");
    let other = Label::new("customer", "4712");
    let families = 1..=5_000_u64;
    let of = |family: u64| if family.is_multiple_of(2) { &one } else { &other };
    let new = families.clone().map(|family| (of(family).digest(), family));
    // Old entries of another label are not read.
    let old = families.map(|family| (Label::new("other", "1").long_digest(), family));
    let stored = stored(new.chain(old))?;
    let (found, entries) = walk(&stored, std::slice::from_ref(&one))?;
    assert_eq!(
        (found.len(), entries),
        (2_500, 2_500),
        "each entry is read once, and no other"
    );
    assert_eq!(walk(&stored, &[one, other])?.0, []);
    drop(stored.store);
    Ok(())
}

#[test]
fn an_old_range_that_has_come_to_its_end_is_not_read_again() -> Outcome {
    let one = Label::new("customer", "4711");
    // New families lie between old ones, and behind them.
    let new = (1..=1_000_u64).map(|family| family * 10);
    let entries = new.map(|family| (one.digest(), family));
    let stored = stored(entries.chain([(one.long_digest(), 15)]))?;
    let found = actix_rt::System::new().block_on(async {
        let mut label = OneLabel {
            short: OneDigest::new(one.digest()),
            long: OneDigest::new(one.long_digest()),
        };
        let mut read = 0;
        assert_eq!(label.seek(&stored.reader, 0, &mut read).await?, Some(10));
        assert_eq!((read, label.long.is_all), (9, true));
        assert_eq!(label.seek(&stored.reader, 11, &mut read).await?, Some(15));
        assert_eq!(label.seek(&stored.reader, 16, &mut read).await?, Some(20));
        assert_eq!(read, 9, "all of these were read ahead");
        assert_eq!(label.seek(&stored.reader, 81, &mut read).await?, Some(90));
        assert_eq!((read, label.long.ahead.len()), (9 + AT_ONCE.0, 0));
        // What comes into that range now is not seen by this search.
        let mut batch = Batch::new(stored.store.acquire().await?);
        batch.advance_to(Seq(2));
        batch.put(Space::Live, &keys::label(one.long_digest(), 155), &[]);
        stored.store.append(batch).await.map_err(|_| "it is appended")?;
        assert_eq!(label.seek(&stored.reader, 151, &mut read).await?, Some(160));
        Ok::<_, Box<dyn std::error::Error>>(label.seek(&stored.reader, 10_001, &mut read).await?)
    })?;
    assert_eq!(found, None);
    drop(stored.store);
    Ok(())
}

#[test]
fn a_family_whose_rows_cannot_be_read_is_searched_in_both_ranges() -> Outcome {
    let (one, other) = (Label::new("a", "1"), Label::new("b", "1"));
    let mut expected = vec![one.digest(), other.long_digest()];
    let strangers = (100..2_000).flat_map(|family| [(one.digest(), family), (other.long_digest(), family)]);
    let own = expected.iter().map(|digest| (*digest, 7));
    let stored = stored(own.chain(strangers).collect::<Vec<_>>())?;
    let mut found = actix_rt::System::new().block_on(search(&stored.reader, 7))?;
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    drop(stored.store);
    Ok(())
}
