//! Sets of which a row is damaged, and lists that look at much: what can be told is told, and what cannot is named.

use futures::executor::block_on;
use procession::ProcedureId;
use procession::provider::{Batch, JournalStore, Space};
use procession::testkit::{FaultPlan, MemoryStore, World};
use serde_json::json;

use crate::flows::{album, drawing};
use crate::kit::{Job, Tested, everybody, ids, site_in};

/// Makes a row one that cannot be read, while no engine runs.
fn damage(world: &World, id: ProcedureId) -> Tested {
    let store = MemoryStore::open(&world.disk, FaultPlan::none())?;
    let mut batch = Batch::new(block_on(store.acquire())?);
    let key = [&id.family.to_be_bytes()[..], &id.member.to_be_bytes()].concat();
    batch.put(Space::Procedures, &key, b"\x01no row");
    block_on(store.append(batch))?;
    Ok(())
}

#[test]
fn one_damaged_set_is_named_and_the_others_are_listed() -> Tested {
    let (_, engine) = drawing(false);
    let world = World::new();
    let (damaged, whole) = site_in(&world, &engine, everybody, async |site| {
        Ok((album(site, "album 7").await?.id(), album(site, "album 8").await?.id()))
    })?;
    damage(&world, ProcedureId::new(damaged.family, 2))?;
    site_in(&world, &engine, everybody, async |site| {
        let page = site.body("flows?filter=state:ended").await?;
        assert_eq!(ids(&page), [whole.to_string()], "{page}");
        let unreadable = page["unreadable"].as_array().cloned().unwrap_or_default();
        assert!(unreadable.contains(&json!(damaged.to_string())), "{page}");
        Ok(())
    })
}

#[test]
fn a_list_of_those_that_have_ended_counts_each_row_that_it_looks_at() -> Tested {
    let (_, engine) = drawing(false);
    site_in(&World::new(), &engine, everybody, async |site| {
        for number in 0..5 {
            site.submit(Job::End, &format!("job {number}")).await?;
        }
        let set = album(site, "album 7").await?;
        let page = site.body("flows?filter=state:ended").await?;
        assert_eq!((ids(&page), &page["scanned"]), (vec![set.id().to_string()], &json!(10)));
        let none = site.body("flows?filter=state:ended%20name:other").await?;
        assert_eq!((ids(&none).len(), &none["scanned"]), (0, &json!(10)));
        Ok(())
    })
}
