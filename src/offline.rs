//! Journals of engines that do not run: reading, verifying, exporting and importing.

pub use procession_actors::offline::{Imported, Importer, Offline, OfflineState, Verified};
pub use procession_actors::{ExportedEntry, ExportedProcedure, ExportedStage, FamilyExport};
