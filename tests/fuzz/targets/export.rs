//! An exported family, from a file that anybody may have made: read, shown, and
//! put into a world of its own, where it goes on or says why not.

use procession::FamilyExport;
use procession::testkit::World;

use super::{Checked, recovery};

pub(crate) fn check(bytes: &[u8]) -> Checked {
    let Ok(export) = FamilyExport::from_bytes(bytes) else {
        return Ok(());
    };
    let written = export.to_bytes()?;
    assert_eq!(FamilyExport::from_bytes(&written)?, export);
    let shown = (export.statuses(), export.history());
    assert!(shown.0.len() + shown.1.len() <= export.entries.len());
    match World::of_export(&export) {
        Ok(world) => recovery::live(&world).map(drop),
        Err(_) => Ok(()),
    }
}
