//! Neither the families among the live ones, nor the number of pages that they span, change the result.

use std::collections::BTreeMap;

use futures::executor::block_on;
use procession_kernel::{NUMBER_MAX, ProcedureId, Seq};

use super::*;
use crate::journal::Batch;
use crate::journal::memory::{FaultPlan, MemoryDisk, MemoryStore};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A family, with the numbers of its members and signals.
type Counted = (u64, (usize, usize));

/// The numbers of members and signals, by family.
type Families = BTreeMap<u64, (usize, usize)>;

fn store(live: &Families, finished: impl Iterator<Item = u64>) -> Result<MemoryStore, Box<dyn std::error::Error>> {
    let store = MemoryStore::open(&MemoryDisk::new(), FaultPlan::none())?;
    let mut batch = Batch::new(block_on(store.acquire())?);
    batch.advance_to(Seq(1));
    let mut row = |family, member| {
        batch.put(
            Space::Procedures,
            &keys::procedure(ProcedureId::new(family, member)),
            &[1],
        );
    };
    finished.for_each(|family| row(family, 0));
    for (family, (members, _)) in live {
        (0..).take(*members).for_each(|member| row(*family, member));
    }
    for (family, (_, signals)) in live {
        batch.put(Space::Live, &keys::family(*family), &[]);
        for number in (1..).take(*signals) {
            batch.put(
                Space::Signals,
                &keys::signal(ProcedureId::root(*family), number, "go"),
                &[2],
            );
        }
    }
    block_on(store.append(batch))?;
    Ok(store)
}

fn read(store: &MemoryStore) -> Result<Vec<Counted>, Box<dyn std::error::Error>> {
    let mut found = Vec::new();
    let give = |some: Vec<Stored>| {
        for stored in some {
            let prefix = keys::family(stored.family);
            let entries = stored.rows.iter().chain(&stored.signals);
            assert!(entries.clone().all(|(key, _)| key.starts_with(&prefix)));
            assert!(stored.rows.is_sorted() && stored.signals.is_sorted());
            let counts = (stored.rows.len(), stored.signals.len());
            found.push((stored.family, counts));
        }
        true
    };
    block_on(read_live(store, give))?;
    Ok(found)
}

#[test]
fn each_family_is_read_once_with_all_that_is_its_own() -> Outcome {
    let mut live = Families::from([
        (1, (1, 0)),
        (2, (3, 2)),
        (2 + READ_OVER, (1, 1)),
        (3 + 2 * READ_OVER, (2 * PAGE + 1, 0)),
        (4 + 2 * READ_OVER, (1, PAGE)),
        (1_000_000, (PAGE - 1, 0)),
        (NUMBER_MAX - 1, (1, 1)),
    ]);
    live.extend((2_000_000..2_000_000 + 2 * PAGE as u64).map(|family| (family, (1, 0))));
    let gaps = (3..2 + READ_OVER).chain(500..520).chain(1_000_001..1_000_010);
    let found = read(&store(&live, gaps)?)?;
    assert_eq!(found, live.into_iter().collect::<Vec<_>>());
    Ok(())
}

#[test]
fn a_live_family_without_rows_is_given_empty() -> Outcome {
    let live = Families::from([(1, (1, 0)), (2, (0, 0)), (3, (1, 0))]);
    let found = read(&store(&live, std::iter::empty())?)?;
    assert_eq!(found, live.into_iter().collect::<Vec<_>>());
    Ok(())
}

#[test]
fn nothing_more_is_read_than_is_taken() -> Outcome {
    let live = (1..=4 * PAGE as u64).map(|family| (family, (1, 0))).collect();
    let store = store(&live, std::iter::empty())?;
    let before = store.reads();
    let mut given = 0;
    let give = |_| {
        given += 1;
        false
    };
    block_on(read_live(&store, give))?;
    assert_eq!(given, 1);
    assert!(store.reads() - before <= 3 * PAGE as u64, "a page of each keyspace");
    Ok(())
}
