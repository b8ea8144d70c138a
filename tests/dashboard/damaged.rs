//! Sets of which a row is damaged, and lists that look at much: what can be told is told, and what cannot is named.

use std::time::Duration;

use futures::executor::block_on;
use procession::dashboard::Dashboard;
use procession::provider::{Batch, JournalStore, Space};
use procession::testkit::{FaultPlan, MemoryStore, ReadFault, Trouble, World};
use procession::{Builder, ProcedureId};
use serde_json::{Value, json};

use crate::flows::{album, drawing};
use crate::kit::{Job, Site, Tested, at, everybody, ids, site_in};

/// Reads of rows that fill a model with few of them.
const READS: u64 = 1;

/// Makes a row one that cannot be read, while no engine runs.
fn damage(world: &World, id: ProcedureId) -> Tested {
    let store = MemoryStore::open(&world.disk, FaultPlan::none())?;
    let mut batch = Batch::new(block_on(store.acquire())?);
    let key = [&id.family.to_be_bytes()[..], &id.member.to_be_bytes()].concat();
    batch.put(Space::Procedures, &key, b"\x01no row");
    block_on(store.append(batch))?;
    Ok(())
}

/// Leaves two sets in a world, and damages a node of the first.
fn one_damaged(world: &World, engine: impl Fn(Builder) -> Builder) -> Result<(ProcedureId, ProcedureId), Trouble> {
    let sets = site_in(world, engine, everybody, async |site| {
        Ok((album(site, "album 7").await?.id(), album(site, "album 8").await?.id()))
    })?;
    damage(world, ProcedureId::new(sets.0.family, 2))?;
    Ok(sets)
}

#[test]
fn one_damaged_set_is_named_and_the_others_are_listed() -> Tested {
    let (_, engine) = drawing(false);
    let world = World::new();
    let (damaged, whole) = one_damaged(&world, &engine)?;
    site_in(&world, &engine, everybody, async |site| {
        let page = site.body("flows?filter=state:ended").await?;
        assert_eq!(ids(&page), [whole.to_string()], "{page}");
        let unreadable = page["unreadable"].as_array().cloned().unwrap_or_default();
        assert!(unreadable.contains(&json!(damaged.to_string())), "{page}");
        Ok(())
    })
}

/// Lets time pass until the second set is counted. The first was read before.
async fn counted(site: &Site<'_>) -> Tested {
    while at(&site.body("flows").await?, "/items/1/counts").is_null() {
        site.pass(Duration::from_secs(1)).await?;
    }
    Ok(())
}

#[test]
fn a_live_set_that_cannot_be_counted_is_named_and_one_whose_read_failed_once_is_counted_later() -> Tested {
    let (_, engine) = drawing(true);
    let world = World::new();
    let (damaged, whole) = one_damaged(&world, &engine)?;
    site_in(&world, &engine, everybody, async |site| {
        // The dashboard that is there has read all that it will.
        counted(site).await?;
        // The rows are listed, and then the nodes of a set are read.
        let fault = ReadFault::once().after(READS).of(Space::Procedures);
        site.run.store.fail_reads(fault);
        let dashboard = everybody(Dashboard::builder(&site.run.executor)).start().await?;
        let site = Site {
            run: site.run,
            dashboard,
        };
        site.shown().await?;
        // By the thread of the model, beside this one.
        while site.run.store.failed_reads() == 0 {
            site.run.settle().await;
        }
        let page = site.body("flows").await?;
        assert_eq!(
            (&page["items"][0]["counts"], &page["items"][1]["counts"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(page["unreadable"], json!([]), "both are counted later");
        counted(&site).await?;
        for path in ["flows", "flows?filter=state:live,ended"] {
            let page = site.body(path).await?;
            assert_eq!(ids(&page), [damaged.to_string(), whole.to_string()], "{page}");
            assert_eq!(
                (&page["items"][0]["counts"], &page["items"][1]["counts"]["pending"]),
                (&Value::Null, &json!(2))
            );
            let unreadable = page["unreadable"].as_array().cloned().unwrap_or_default();
            assert!(unreadable.contains(&json!(damaged.to_string())), "{page}");
        }
        Ok(())
    })
}

#[test]
fn nodes_of_a_set_that_is_set_aside_say_so() -> Tested {
    let (_, engine) = drawing(true);
    let world = World::new();
    let set = site_in(&world, &engine, everybody, async |site| {
        Ok(album(site, "album 7").await?.id())
    })?;
    // No processor is registered.
    site_in(
        &world,
        |builder| builder,
        everybody,
        async |site| {
            let graph = site.body(&format!("procedures/{set}/graph")).await?;
            assert_eq!(graph["counts"], json!({ "SUCCESS": 2, "quarantined": 2 }));
            assert_eq!(
                (&graph["items"][1]["node"], &graph["items"][1]["set_aside"]),
                (&Value::Null, &json!(true))
            );
            Ok(())
        },
    )
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
