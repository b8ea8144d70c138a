//! Labels are imported from exports of this format and of earlier ones, and those that belong to no row are refused.

use procession::errors::ImportError;
use procession::offline::{ExportedEntry, FamilyExport};
use procession::status::ListFilter;
use procession::submit::Label;
use procession::testkit::{Trouble, World};
use procession::{Handle, ProcedureId};
use procession_actors::journal::keys;
use procession_actors::testkit::format;
use procession_kernel::{Blob, Labels, Record, RowLabels};

use super::{import, labels_are_found, refusal};
use crate::support::{Act, Lab, Planned, Tested, live_in, plan, spawn};

/// A root with a label, and a child that inherits it.
fn exported() -> Result<FamilyExport, Trouble> {
    live_in(&World::new(), &Lab::default(), async |run| {
        let waits = plan("c", [Act::Wait("go".to_owned(), None), Act::Done(1)]);
        let parent = Planned(plan("p", [spawn([waits]), Act::Done(2)]));
        let submission = run.executor.submit(parent).label("customer", "4711");
        let handle: Handle<Planned> = submission.await?;
        run.settle().await;
        Ok(run.executor.export(handle.id()).await?)
    })
}

fn is_labels(entry: &ExportedEntry) -> bool {
    entry.space == "procedures" && keys::parse_labels(entry.key.as_slice()).is_some()
}

/// Makes an export look as earlier releases wrote it, with labels in the rows.
fn make_old(export: &mut FamilyExport) -> Tested {
    export.format = 1;
    let mut labels = Labels::default();
    for entry in export.entries.iter().filter(|entry| is_labels(entry)) {
        labels = format::labels(ProcedureId::root(export.family), entry.value.as_slice())?;
    }
    export.entries.retain(|entry| !is_labels(entry));
    for entry in export.entries.iter_mut().filter(|entry| entry.space == "procedures") {
        let id = keys::parse_row(entry.key.as_slice()).ok_or("only rows are left")?;
        let mut row = format::row(id, entry.value.as_slice())?;
        assert_eq!(row.labels.entry(), Some(0));
        row.labels = RowLabels::in_row(labels.clone());
        let batch = format::writes(&[Record::Row(Box::new(row))])?;
        let value = batch.writes().find_map(|write| Some(write.value?.to_vec()));
        entry.value = Blob::from(value.ok_or("a row has a value")?);
    }
    Ok(())
}

fn imports(export: &FamilyExport) -> Tested {
    let here = World::new();
    import(&here, export)?;
    labels_are_found(&here)?;
    live_in(&here, &Lab::default(), async |run| {
        let filter = ListFilter {
            labels: vec![Label::new("customer", "4711")],
            ..ListFilter::default()
        };
        let page = run.executor.list(filter, None, 10).await?;
        let ids: Vec<ProcedureId> = page.items.iter().map(|status| status.id).collect();
        assert_eq!(ids, [0, 1].map(|member| ProcedureId::new(export.family, member)));
        Ok(())
    })
}

#[test]
fn labels_of_both_formats_of_an_export_are_found_after_its_import() -> Tested {
    let mut export = exported()?;
    assert_eq!(export.format, 2);
    imports(&export)?;
    make_old(&mut export)?;
    imports(&export)
}

fn said(refused: &ImportError) -> String {
    refused.to_string()
}

#[test]
fn labels_that_are_missing_or_belong_to_no_row_are_refused() -> Tested {
    let mut missing = exported()?;
    missing.entries.retain(|entry| !is_labels(entry));
    let refused = refusal(&World::new(), &missing)?;
    assert!(said(&refused).contains("are missing"), "{refused}");

    // The child names the labels of the root, and there is no other member.
    for member in [1, 2] {
        let mut moved = exported()?;
        let id = ProcedureId::new(moved.family, member);
        let labels = moved.entries.iter().find(|entry| is_labels(entry));
        let mut more = labels.ok_or("it has labels")?.clone();
        more.key = Blob::from(keys::labels(id).to_vec());
        moved.entries.push(more);
        let refused = refusal(&World::new(), &moved)?;
        assert!(said(&refused).contains("does not name them"), "{refused}");
    }

    let mut damaged = exported()?;
    for entry in damaged.entries.iter_mut().filter(|entry| is_labels(entry)) {
        entry.value = Blob::from(vec![1, 0xc1]);
    }
    let refused = refusal(&World::new(), &damaged)?;
    assert!(said(&refused).contains("the labels of"), "{refused}");
    Ok(())
}
