//! What an import would put into a journal, or has put, for people and for programs.

use procession::offline::Imported;
use serde::Serialize;

use super::super::print;
use procession::views::{ProcedureView, time};

/// Procedures that have a line each; of more a plan says how many.
const LINES: usize = 20;

/// An import for programs. Fields are added, never changed.
#[derive(Serialize)]
pub(super) struct ImportView {
    /// The family's number.
    family: String,
    /// Nothing was done.
    dry_run: bool,
    /// Its entry in the audit, once it is done.
    number: Option<String>,
    /// It has not ended, and is paused at its root.
    live: bool,
    /// When the result of one that has ended goes.
    due: Option<String>,
    /// Its procedures, as they stand then.
    procedures: Vec<ProcedureView>,
    /// Entries of its history.
    history: usize,
    /// Signals that it has.
    signals: usize,
    /// What to mind.
    warnings: Vec<String>,
}

impl From<&Imported> for ImportView {
    fn from(imported: &Imported) -> Self {
        Self {
            family: imported.family.to_string(),
            dry_run: imported.number.is_none(),
            number: imported.number.map(|number| number.to_string()),
            live: imported.live,
            due: imported.due.map(time),
            procedures: imported.procedures.iter().map(ProcedureView::from).collect(),
            history: imported.history,
            signals: imported.signals,
            warnings: imported.warnings.clone(),
        }
    }
}

/// Prints the plan.
pub(super) fn show(planned: &Imported) {
    let rows = planned.procedures.iter().take(LINES).map(ProcedureView::from);
    print::table(
        ["ID", "KIND", "STATE", "REASON", "STAGE", "LOCKS", "KEY"],
        rows.map(|row| {
            let locks = row
                .locks
                .iter()
                .map(|lock| print::plain(&format!("{} {}", lock.mode, lock.path)));
            let standing = print::standing(&row);
            [
                row.id,
                print::plain(&format!("{} v{}", row.kind, row.version)),
                standing,
                print::or_dash(row.waits.as_deref()),
                print::plain(&row.stage),
                print::named(locks.collect()),
                print::or_dash(row.key.as_deref()),
            ]
        }),
    );
    if planned.procedures.len() > LINES {
        print::notice("there are more than are named here; --json says more");
    }
    for warning in &planned.warnings {
        print::line(&print::plain(&format!("Warning: {warning}")));
    }
    print::notice(&format!(
        "{}, {}, {}; {}",
        print::counted(planned.procedures.len(), "procedure", "procedures"),
        print::counted(planned.history, "entry of history", "entries of history"),
        print::counted(planned.signals, "signal", "signals"),
        stands(planned)
    ));
}

fn stands(imported: &Imported) -> String {
    match imported.due {
        None => format!("paused at {}.0", imported.family),
        Some(due) => format!("ended, and kept until {}", time(due)),
    }
}

/// Says what was done.
pub(super) fn sentence(imported: &Imported) -> String {
    let entry = imported.number.map(|number| format!("; entry {number} of the audit"));
    let then = match imported.live {
        true => format!("; start the engine, look at it, and resume {}.0", imported.family),
        false => String::new(),
    };
    format!(
        "the family {} is imported, {}{}{then}",
        imported.family,
        stands(imported),
        entry.unwrap_or_default()
    )
}
