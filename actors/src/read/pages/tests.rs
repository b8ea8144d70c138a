//! Pages are the same whatever lies between live families, and they read no more than they must.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::executor::block_on;
use procession_kernel::{Blob, KeyEntry, Kind, Label, Labels, ProcedureId, Row, RowLabels, Seq, Timestamp};

use super::*;
use crate::journal::memory::{FaultPlan, MemoryDisk, MemoryStore};
use crate::journal::{Batch, JournalStore, codec};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The number of families in the store. Most have ended. Of the live families some lie alone, some together, and one is
/// large.
const ALL: u64 = 4_000;

fn members(family: u64) -> u32 {
    if family == 2_000 {
        2_500
    } else {
        1 + u32::from(family.is_multiple_of(7))
    }
}

fn is_live(family: u64) -> bool {
    family.is_multiple_of(97) || (1_000..2_100).contains(&family)
}

struct Stored {
    store: Arc<dyn JournalStore>,
    memory: Arc<MemoryStore>,
    reader: Reader,
}

fn stored() -> Outcome<Stored> {
    let memory = Arc::new(MemoryStore::open(&MemoryDisk::new(), FaultPlan::none())?);
    let mut batch = Batch::new(block_on(memory.acquire())?);
    batch.advance_to(Seq(1));
    for family in 1..=ALL {
        if is_live(family) {
            batch.put(Space::Live, &keys::family(family), &[]);
        }
        for member in 0..members(family) {
            let id = ProcedureId::new(family, member);
            let row = Row::new(id, Kind::from("kind"), 1, Blob::default(), Timestamp(0));
            let mut bytes = Vec::new();
            codec::encode_into(&mut bytes, &row)?;
            batch.put(Space::Procedures, &keys::procedure(id), &bytes);
        }
    }
    block_on(memory.append(batch))?;
    let store: Arc<dyn JournalStore> = Arc::clone(&memory) as _;
    let reader = Reader::new(&store);
    Ok(Stored { store, memory, reader })
}

fn expected(is_in: impl Fn(u64) -> bool) -> Vec<ProcedureId> {
    let families = (1..=ALL).filter(|family| is_in(*family));
    families
        .flat_map(|family| (0..members(family)).map(move |member| ProcedureId::new(family, member)))
        .collect()
}

/// Reads page by page until there are no more. Also returns the number of rows read.
async fn walk(reader: &Reader, scope: &FamilyScope, limit: usize) -> Outcome<(Vec<ProcedureId>, usize)> {
    let (mut found, mut scanned, mut cursor) = (Vec::new(), 0, None);
    loop {
        let page = page(reader, scope, cursor, limit, |row| Some(Status::of(row))).await?;
        assert!(page.items.len() <= limit && !page.truncated && page.unreadable.is_empty());
        found.extend(page.items.iter().map(|status| status.id));
        scanned += page.scanned;
        cursor = page.next;
        if cursor.is_none() {
            return Ok((found, scanned));
        }
    }
}

#[test]
fn pages_of_every_size_give_each_row_once_and_no_others() -> Outcome {
    let Stored { reader, store, .. } = stored()?;
    let some = BTreeSet::from([1, 2, 3, 90, 2_000, ALL, ALL + 1]);
    let cases = [
        (FamilyScope::All, expected(|_| true)),
        (FamilyScope::Live, expected(is_live)),
        (
            FamilyScope::Families(some.clone()),
            expected(|family| some.contains(&family)),
        ),
        (FamilyScope::Families(BTreeSet::new()), Vec::new()),
    ];
    actix_rt::System::new().block_on(async {
        for (among, expected) in cases {
            for limit in [1, 7, 999, 1_000] {
                let limit = if limit == 1 && expected.len() > 3_000 { 3 } else { limit };
                assert_eq!(walk(&reader, &among, limit).await?.0, expected, "{among:?} by {limit}");
            }
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    drop(store);
    Ok(())
}

#[test]
fn who_asks_for_the_live_ones_reads_few_others() -> Outcome {
    let Stored { reader, memory, .. } = stored()?;
    actix_rt::System::new().block_on(async {
        let before = memory.reads();
        let (found, scanned) = walk(&reader, &FamilyScope::Live, 1_000).await?;
        // Finished families between live families that lie near each other are read as well.
        let over = (971..1_000).map(members).sum::<u32>() as usize;
        assert_eq!(scanned, found.len() + over);
        // A page reads as many families and rows as it may, and the next page begins in the middle of both.
        let pages = found.len() / PAGE_MAX + 1;
        let reads = memory.reads() - before;
        assert!(
            reads <= (found.len() + 2 * pages * PAGE_MAX) as u64,
            "{reads} for {} rows",
            found.len()
        );
        Ok(())
    })
}

#[test]
fn a_cursor_between_families_begins_at_the_next() -> Outcome {
    let Stored { reader, store, .. } = stored()?;
    let next = actix_rt::System::new().block_on(async {
        let cursor = Some(ProcedureId::new(98, 1));
        page(&reader, &FamilyScope::Live, cursor, 1, |row| Some(Status::of(row))).await
    })?;
    drop(store);
    let ids: Vec<_> = next.items.iter().map(|status| status.id).collect();
    assert_eq!(
        (ids, next.next),
        (vec![ProcedureId::root(194)], Some(ProcedureId::root(291)))
    );
    Ok(())
}

/// Families with these labels, each with one row; those that a digest shares are among the families of the label.
fn labelled(of: impl Fn(u64) -> Vec<Label>) -> Outcome<Stored> {
    let stored = stored()?;
    let mut batch = Batch::new(block_on(stored.memory.acquire())?);
    batch.advance_to(Seq(2));
    for family in 1..=ALL {
        for label in of(family) {
            batch.put(Space::Live, &keys::label(label.digest(), family), &[]);
        }
    }
    block_on(stored.memory.append(batch))?;
    Ok(stored)
}

fn label(name: &str, value: u64) -> Label {
    Label::new(name, value.to_string())
}

#[test]
fn families_of_labels_are_read_page_by_page_and_few_others() -> Outcome {
    let Stored { reader, memory, store } = labelled(|family| {
        let rare = (family % 1_000 == 77).then(|| label("rare", 1));
        [label("many", family % 2), label("some", family % 7)]
            .into_iter()
            .chain(rare)
            .collect()
    })?;
    let many = [label("many", 1)];
    let both = [label("many", 1), label("some", 0)];
    let rare = [label("many", 1), label("rare", 1)];
    actix_rt::System::new().block_on(async {
        let is_odd = |family: u64| family % 2 == 1;
        let cases = [
            (many.to_vec(), expected(is_odd)),
            (both.to_vec(), expected(|family| is_odd(family) && family % 7 == 0)),
            (rare.to_vec(), expected(|family| family % 1_000 == 77)),
            (vec![label("many", 2)], Vec::new()),
            (vec![label("many", 0), label("many", 1)], Vec::new()),
        ];
        for (labels, expected) in cases {
            let scope = FamilyScope::Labelled(labels);
            for limit in [7, 999] {
                assert_eq!(walk(&reader, &scope, limit).await?.0, expected, "{scope:?} by {limit}");
            }
        }
        // The frequent label is read around the rare one alone.
        let before = memory.reads();
        let (found, scanned) = walk(&reader, &FamilyScope::Labelled(rare.to_vec()), 100).await?;
        assert_eq!(scanned, found.len());
        assert!(memory.reads() - before < 2_000, "{}", memory.reads() - before);
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    drop(store);
    Ok(())
}

#[test]
fn families_of_old_and_new_entries_are_one_list() -> Outcome {
    let Stored { reader, memory, store } = stored()?;
    let (customer, region) = (label("customer", 1), label("region", 1));
    let mut batch = Batch::new(block_on(memory.acquire())?);
    batch.advance_to(Seq(2));
    for family in 1..=ALL {
        // Older families have old entries, save some that got a member since.
        let digest = if family < 3_000 {
            customer.long_digest()
        } else {
            customer.digest()
        };
        batch.put(Space::Live, &keys::label(digest, family), &[]);
        if family.is_multiple_of(5) {
            batch.put(Space::Live, &keys::label(customer.digest(), family), &[]);
        }
        // Of the other label all entries are new.
        if family.is_multiple_of(2) {
            batch.put(Space::Live, &keys::label(region.digest(), family), &[]);
        }
    }
    block_on(memory.append(batch))?;
    actix_rt::System::new().block_on(async {
        let cases = [
            (vec![customer.clone()], expected(|_| true)),
            (vec![customer, region], expected(|family| family.is_multiple_of(2))),
        ];
        for (labels, expected) in cases {
            let scope = FamilyScope::Labelled(labels);
            for limit in [97, 1_000] {
                assert_eq!(walk(&reader, &scope, limit).await?.0, expected, "{scope:?} by {limit}");
            }
        }
        // Nor are entries of the index taken for live families.
        assert_eq!(walk(&reader, &FamilyScope::Live, 1_000).await?.0, expected(is_live));
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    drop(store);
    Ok(())
}

#[test]
fn keys_lead_to_their_families_in_the_order_of_ids() -> Outcome {
    let Stored { reader, memory, store } = stored()?;
    let mut batch = Batch::new(block_on(memory.acquire())?);
    batch.advance_to(Seq(2));
    for family in 1..=ALL {
        let entry = KeyEntry {
            id: ProcedureId::root(family),
            digest: 0,
            until: None,
        };
        // The last digit first: keys are in another order than families.
        let key = format!("order-{}-{family}", family % 10);
        batch.put_with(Space::Keys, key.as_bytes(), |bytes| codec::encode_into(bytes, &entry))?;
    }
    batch.put(Space::Keys, b"order-7-spoilt", &[0xc1]);
    block_on(memory.append(batch))?;
    actix_rt::System::new().block_on(async {
        let prefix = |prefix: &str| FamilyScope::KeyPrefix {
            prefix: prefix.to_owned(),
            live: false,
        };
        let cases = [
            (prefix("order-7"), expected(|family| family % 10 == 7)),
            (prefix("order"), expected(|_| true)),
            (prefix("x"), Vec::new()),
            (
                FamilyScope::Key("order-7-97".to_owned()),
                expected(|family| family == 97),
            ),
            (FamilyScope::Key("order-7".to_owned()), Vec::new()),
        ];
        for (scope, expected) in cases {
            for limit in [150, 1_000] {
                assert_eq!(walk(&reader, &scope, limit).await?.0, expected, "{scope:?} by {limit}");
            }
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    drop(store);
    Ok(())
}

#[test]
fn a_search_for_labels_ends_when_it_has_read_as_much_as_it_may() -> Outcome {
    let Stored { reader, memory, store } = stored()?;
    let mut batch = Batch::new(block_on(memory.acquire())?);
    batch.advance_to(Seq(2));
    // No family has both, and each family of one lies between two of the other.
    for family in 0..120_000 {
        let side = label("side", family % 2);
        batch.put(Space::Live, &keys::label(side.digest(), 10_000 + family), &[]);
    }
    block_on(memory.append(batch))?;
    let scope = FamilyScope::Labelled(vec![label("side", 0), label("side", 1)]);
    let (first, second) = actix_rt::System::new().block_on(async {
        let first = page(&reader, &scope, None, 10, |row| Some(Status::of(row))).await?;
        let second = page(&reader, &scope, first.next, 10, |row| Some(Status::of(row))).await?;
        Ok::<_, ReadError>((first, second))
    })?;
    drop(store);
    assert!(first.truncated && first.items.is_empty() && first.next.is_some());
    assert_eq!(
        (second.truncated, second.next),
        (false, None),
        "it goes on where the first ended"
    );
    Ok(())
}

#[test]
fn rows_of_a_page_have_their_labels_wherever_a_read_of_the_store_ends() -> Outcome {
    // Two entries for most members, so that the 1,000 entries of one read end between a row and its labels, too.
    const MEMBERS: u32 = 1_701;
    let memory = Arc::new(MemoryStore::open(&MemoryDisk::new(), FaultPlan::none())?);
    let mut batch = Batch::new(block_on(memory.acquire())?);
    batch.advance_to(Seq(1));
    let holder = |member: u32| if member % 10 == 9 { 0 } else { member };
    let labels = |member: u32| -> Labels { [label("member", member.into())].into_iter().collect() };
    for member in 0..MEMBERS {
        let id = ProcedureId::new(3, member);
        let mut row = Row::new(id, Kind::from("kind"), 1, Blob::default(), Timestamp(0));
        row.labels = RowLabels::in_entry(holder(member), labels(holder(member)));
        batch.put_with(Space::Procedures, &keys::procedure(id), |bytes| {
            codec::encode_into(bytes, &row)
        })?;
        if holder(member) == member {
            batch.put_with(Space::Procedures, &keys::labels(id), |bytes| {
                codec::encode_into(bytes, &labels(member))
            })?;
        }
    }
    block_on(memory.append(batch))?;
    let store: Arc<dyn JournalStore> = memory;
    let reader = Reader::new(&store);
    for limit in [7, 500, PAGE_MAX] {
        let (mut cursor, mut found) = (None, Vec::new());
        loop {
            let show = |row: &Row| Some(Status::of(row));
            let page = block_on(page(&reader, &FamilyScope::All, cursor, limit, show))?;
            assert!(page.unreadable.is_empty() && page.items.len() <= limit);
            found.extend(page.items.into_iter().map(|status| (status.id.member, status.labels)));
            match page.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        let expected: Vec<_> = (0..MEMBERS).map(|member| (member, labels(holder(member)))).collect();
        assert_eq!(found, expected, "{limit}");
    }
    drop(store);
    Ok(())
}
