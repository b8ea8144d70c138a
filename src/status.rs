//! How procedures and the engine stand: lists, outcomes, histories, snapshots, feeds of changes.

pub use crate::history::{DecodeStage, left_value, note};
pub use procession_actors::view::{
    ArchivedFamily, BatchUse, Change, ChangeFeed, DrainReport, FailureCursor, FailurePage, FamilyScope, HistoryPage,
    KeyedProcedure, KindRate, KindUse, LatestFeed, LatestRows, ListFilter, Mailbox, Mailboxes, MemberPage, Outcome,
    Page, Recovered, ShutdownReport, Sizes, Snapshot, StagePass, StageUse, Status, ValueBehind, Values, WorkerStatus,
};
pub use procession_kernel::{
    Cause, CauseKind, Ending, Epoch, FailureEntry, HistoryEntry, Key, LEFT_VALUE_MAX, LeftValue, Mark, NotUndone,
    ProcedureState, Seq, SubmittedValue, WaitReason, fingerprint,
};
