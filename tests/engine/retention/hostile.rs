//! Results that are damaged: they hold up no eviction, and cost no more than there is of them.

use procession::procedure::Timestamp;
use procession::provider::Space;
use procession::status::ListFilter;
use procession::testkit::{Run, World};
use procession_actors::testkit::format;
use procession_kernel::{ProcedureId, Record};

use super::fill::{Template, copy};
use super::world::{key, write};
use crate::support::{Lab, Planned, Tested, chain, live_in};

const DUE: Timestamp = Timestamp(15 * 60_000_000);
/// More than one look at the results takes.
const DAMAGED: u64 = 200;

/// A world with one finished family, and so many more like it.
fn finished(world: &World, lab: &Lab, more: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let family = live_in(world, lab, async |run: &Run| {
        let handle = run.executor.submit(Planned(chain("f", 2))).await?;
        run.wait(handle.outcome()).await??;
        Ok(handle.id().family)
    })?;
    Template::of(world, family)?.fill(world, family + 1..family + 1 + more)?;
    Ok(family)
}

#[test]
fn any_number_of_unreadable_results_holds_up_no_other() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let first = finished(&world, &lab, DAMAGED)?;
    write(&world, |batch| {
        for family in first..first + DAMAGED {
            batch.put(Space::Procedures, &key(family, 0), b"\x01no row");
        }
    })?;
    world.clock.advance_to(DUE);
    live_in(&world, &lab, async |run| {
        run.settle().await;
        let page = run.executor.list(ListFilter::default(), None, 1_000).await?;
        assert!(
            page.items.is_empty(),
            "the one that can be read has gone: {:?}",
            page.items
        );
        assert_eq!(page.unreadable.len() as u64, DAMAGED, "the others stay for an operator");
        Ok(())
    })
}

#[test]
fn a_row_that_tells_of_a_history_without_end_goes_like_any_other() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let family = finished(&world, &lab, 1)?;
    let root = key(family, 0);
    let rows = world.disk.dump(&Space::Procedures);
    let (_, stored) = rows.iter().find(|(key, _)| *key == root).ok_or("it has a row")?;
    let mut row = format::row(ProcedureId::root(family), stored)?;
    row.history = u32::MAX;
    let mut copied = Ok(());
    write(&world, |batch| copied = copy(batch, &Record::Row(Box::new(row))))?;
    copied?;
    world.clock.advance_to(DUE);
    live_in(&world, &lab, async |run| {
        run.settle().await;
        let snapshot = run.executor.snapshot().await?;
        assert!(snapshot.appended_writes < 100, "{} writes", snapshot.appended_writes);
        let page = run.executor.list(ListFilter::default(), None, 10).await?;
        assert!(page.items.is_empty() && page.unreadable.is_empty());
        Ok(())
    })?;
    assert!(world.disk.dump(&Space::History).is_empty());
    Ok(())
}
