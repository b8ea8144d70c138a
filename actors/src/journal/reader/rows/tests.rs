//! Rows come with their labels, wherever a read begins and ends.

use std::sync::Arc;

use futures::executor::block_on;
use procession_kernel::{Blob, Kind, Label, Seq, Timestamp};

use super::*;
use crate::journal::memory::{FaultPlan, MemoryDisk, MemoryStore};
use crate::journal::{Batch, JournalStore};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const FAMILY: u64 = 5;
const MEMBERS: u32 = 9_000;

/// The member whose entry has the labels of this one: every tenth has its own, others inherit those of the root, have
/// them in the row, or have none.
fn holder(member: u32) -> Option<u32> {
    match member % 10 {
        0 => Some(member),
        1..7 => Some(0),
        _ => None,
    }
}

fn labels(member: u32) -> Labels {
    [Label::new("member", member.to_string())].into_iter().collect()
}

fn expected(member: u32) -> RowLabels {
    match holder(member) {
        Some(holder) => RowLabels::in_entry(holder, labels(holder)),
        None if member % 10 == 7 => RowLabels::in_row(labels(member)),
        None => RowLabels::default(),
    }
}

struct Stored {
    store: Arc<dyn JournalStore>,
    reader: Reader,
}

fn stored(is_written: impl Fn(u32) -> bool) -> Outcome<Stored> {
    let memory = MemoryStore::open(&MemoryDisk::new(), FaultPlan::none())?;
    let mut batch = Batch::new(block_on(memory.acquire())?);
    batch.advance_to(Seq(1));
    for member in 0..MEMBERS {
        let id = ProcedureId::new(FAMILY, member);
        let mut row = Row::new(id, Kind::from("kind"), 1, Blob::default(), Timestamp(0));
        row.labels = expected(member);
        batch.put_with(Space::Procedures, &keys::procedure(id), |bytes| {
            codec::encode_into(bytes, &row)
        })?;
        if holder(member) == Some(member) && is_written(member) {
            batch.put_with(Space::Procedures, &keys::labels(id), |bytes| {
                codec::encode_into(bytes, &labels(member))
            })?;
        }
    }
    block_on(memory.append(batch))?;
    let store: Arc<dyn JournalStore> = Arc::new(memory);
    let reader = Reader::new(&store);
    Ok(Stored { store, reader })
}

fn members_and_labels(rows: Vec<Row>) -> Vec<(u32, RowLabels)> {
    rows.into_iter().map(|row| (row.id.member, row.labels)).collect()
}

#[test]
fn a_read_of_many_rows_has_as_many_as_asked_for_and_all_their_labels() -> Outcome {
    let Stored { store, reader } = stored(|_| true)?;
    for (from, limit) in [
        (0, usize::MAX),
        (0, 1),
        (1, 1),
        (9, 3),
        (10, 1),
        (3_000, 1_000),
        (3_001, 5_000),
        (8_990, 100),
    ] {
        let rows = block_on(reader.rows_from(ProcedureId::new(FAMILY, from), limit))?;
        let members = (from..MEMBERS).take(limit);
        let expected: Vec<_> = members.map(|member| (member, expected(member))).collect();
        assert_eq!(members_and_labels(rows), expected, "{limit} from {from}");
    }
    drop(store);
    Ok(())
}

#[test]
fn a_single_row_has_its_labels() -> Outcome {
    let Stored { store, reader } = stored(|_| true)?;
    for member in [0, 3, 7, 9, 10, 11] {
        let id = ProcedureId::new(FAMILY, member);
        let row = block_on(reader.row(id))?.ok_or("it is there")?;
        assert_eq!(row.labels, expected(member));
        let (row, value) = block_on(reader.row_with(id, keys::PAYLOAD))?.ok_or("it is there")?;
        assert_eq!((row.labels, value), (expected(member), None));
    }
    assert!(block_on(reader.row(ProcedureId::new(FAMILY, MEMBERS)))?.is_none());
    drop(store);
    Ok(())
}

#[test]
fn labels_that_are_missing_are_damage_and_never_none() -> Outcome {
    let Stored { store, reader } = stored(|member| member != 0)?;
    let said = |found: Result<(), ReadError>| found.err().map(|why| why.to_string()).unwrap_or_default();
    let missing = format!("the labels of {} are missing", ProcedureId::root(FAMILY));
    let row = block_on(reader.row(ProcedureId::new(FAMILY, 3)));
    let rows = block_on(reader.rows(FAMILY));
    for said in [said(row.map(drop)), said(rows.map(drop))] {
        assert!(said.contains(&missing), "{said}");
    }
    // Those that do not name them are as they were.
    let ten = block_on(reader.row(ProcedureId::new(FAMILY, 10)))?.ok_or("it is there")?;
    assert_eq!(ten.labels, expected(10));
    drop(store);
    Ok(())
}

#[test]
fn a_row_whose_family_is_evicted_while_it_is_read_is_gone_and_not_damaged() -> Outcome {
    let Stored { store, reader } = stored(|member| member != 0)?;
    let read = |id: ProcedureId, of: ProcedureId| -> Outcome<_> {
        let bytes = block_on(store.get(Space::Procedures, keys::procedure(of).to_vec()))?;
        let row = decode_row(id, &bytes.ok_or("it is there")?)?;
        Ok(block_on(LabelEntries::default().complete_or_read(&reader, row))?)
    };
    let inherits = ProcedureId::new(FAMILY, 3);
    // Of the first the row is still there, of the second neither row nor labels.
    assert!(matches!(read(inherits, inherits)?, Some(Err(_))));
    assert!(read(ProcedureId::new(FAMILY + 1, 3), inherits)?.is_none());
    drop(store);
    Ok(())
}
