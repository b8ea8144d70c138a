//! An exported family, from a file that anybody may have made: read, shown, put
//! into a world of its own, where it goes on or says why not, and imported into an
//! empty journal, which takes nothing that a start would set aside.

use std::sync::Arc;

use futures::executor::block_on;
use procession::Executor;
use procession::errors::ImportError;
use procession::offline::FamilyExport;
use procession::operate::OperatorRequest;
use procession::testkit::{FaultPlan, MemoryStore, Run, Trouble, World};

use super::{Checked, kinds, recovery};

pub(crate) fn check(bytes: &[u8]) -> Checked {
    let Ok(export) = FamilyExport::from_bytes(bytes) else {
        return Ok(());
    };
    let written = export.to_bytes()?;
    assert_eq!(FamilyExport::from_bytes(&written)?, export);
    let shown = (export.statuses(), export.history());
    assert!(shown.0.len() + shown.1.len() <= export.entries.len());
    // A day there takes this number for that of a family which nothing may happen to.
    let sound = recovery::SOUND.to_be_bytes();
    if export
        .entries
        .iter()
        .any(|entry| entry.key.as_slice().starts_with(&sound))
    {
        return Ok(());
    }
    if let Ok(world) = World::of_export(&export) {
        recovery::live(&world)?;
    }
    check_import(&export)
}

/// Imports a family into an empty journal: what it takes, a start takes, and goes on with.
pub(crate) fn check_import(export: &FamilyExport) -> Checked {
    let world = World::new();
    if import(&world, export)? {
        takes(&world)?;
        recovery::live(&world)?;
    }
    Ok(())
}

/// Imports into a world, if that is not refused.
fn import(world: &World, export: &FamilyExport) -> Result<bool, Trouble> {
    let store = Arc::new(MemoryStore::open(&world.disk, FaultPlan::none())?);
    let builder = Executor::builder(store.clone());
    let builder = builder.clock(Arc::new(world.clock.clone()));
    let imported = block_on(async {
        let importer = builder.importer().await?;
        Ok::<_, Trouble>(importer.import(export, &OperatorRequest::new("ann", "fuzz")).await)
    });
    store.crash();
    match imported? {
        Ok(_) => Ok(true),
        Err(ImportError::Unusable { why, .. }) => {
            assert!(!why.is_empty() && world.disk.is_empty());
            Ok(false)
        }
        Err(error) => Err(format!("nothing is in its way: {error}").into()),
    }
}

/// A start takes what was imported, unless it has no code for it, or for its values.
fn takes(world: &World) -> Checked {
    let started = world.run(FaultPlan::none(), kinds::register, async |run: &Run| {
        run.settle().await;
        Ok(run.executor.snapshot().await?.quarantined)
    });
    let quarantined = match started {
        // A row that waits for what has come: found, told, and made up for.
        Err(error) if error.to_string().contains("which a health check has found") => return Ok(()),
        started => started?.done()?,
    };
    let of_code = ["no procedure of kind", "version ", "the stored value"];
    let is_damage = |why: &str| !of_code.iter().any(|known| why.contains(known));
    match quarantined.iter().find(|(_, why)| is_damage(why)) {
        Some((family, why)) => Err(format!("family {family} was imported, and is set aside: {why}").into()),
        None => Ok(()),
    }
}
