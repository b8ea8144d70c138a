//! An export of format 1: it can be read for ever, and holds what the store held.

use procession::ProcedureId;
use procession::offline::FamilyExport;
use procession::testkit::FaultPlan;

use crate::store::stored;
use crate::{Line, Tested, golden};

/// The family of the golden store that had children. No kind is registered: it is
/// exported as it was written.
fn export() -> Result<FamilyExport, Box<dyn std::error::Error>> {
    let world = stored()?;
    world
        .run(
            FaultPlan::none(),
            |builder| builder,
            async |run| Ok(run.executor.export(ProcedureId::root(4)).await?),
        )?
        .done()
}

#[test]
fn an_export_of_format_1_is_read_for_ever() -> Tested {
    let make = || -> Result<Vec<Line>, Box<dyn std::error::Error>> {
        Ok(vec![Line {
            name: "export".to_owned(),
            space: "-".to_owned(),
            key: Vec::new(),
            value: Some(export()?.to_bytes()?),
        }])
    };
    let lines = golden("v1/export.hex", make)?;
    let line = lines.first().ok_or("the file is empty")?;
    let read = FamilyExport::from_bytes(line.value.as_deref().unwrap_or_default())?;
    assert_eq!((read.format, read.family, read.whole), (1, 4, true));
    assert_eq!(read.procedures.len(), 3, "a parent and its children");
    assert_eq!(read.stages.len(), 2, "the parent's, and that of the first child");
    assert!(read.unreadable.is_empty());
    assert!(read.quarantined.is_some_and(|why| why.contains("frozen")));
    assert_eq!(
        read.entries,
        export()?.entries,
        "the raw part is that of today's export"
    );
    Ok(())
}
