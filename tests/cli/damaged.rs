//! Lists of a journal in which a row is damaged.

use futures::executor::block_on;
use procession::provider::{Batch, JournalStore, Space};
use procession_actors::journal::{EmbeddedStore, SyncMode, keys};
use procession_kernel::ProcedureId;

use crate::Outcome;
use crate::golden::{Place, made};
use crate::journal::of_sets;
use crate::run::look;

/// Makes a row one that cannot be read.
fn damage(place: &Place, id: ProcedureId) -> Outcome {
    let store = EmbeddedStore::open(&place.journal, SyncMode::Data)?;
    let mut batch = Batch::new(block_on(store.acquire())?);
    batch.put(Space::Procedures, &keys::procedure(id), b"\x01no row");
    block_on(store.append(batch))?;
    Ok(())
}

#[test]
fn a_damaged_set_is_named_and_the_others_are_listed() -> Outcome {
    let place = made(of_sets)?;
    damage(&place, ProcedureId::new(1, 2))?;
    let said = look("flows", &place.journal)?;
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.err.contains("1.0 cannot be read"), "{}", said.err);
    assert!(
        said.out.contains("invoices:customer-17") && !said.out.contains("album"),
        "{}",
        said.out
    );
    Ok(())
}
