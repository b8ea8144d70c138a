//! Requests of operators: verbs, who sends them and why, their plans, the audit, one verb for many procedures.

pub use crate::bulk::{Bulk, BulkEngine, BulkOutcome, BulkReport, BulkStage, BulkVerb};
pub use procession_kernel::{
    AbortAnswer, Act, AuditEntry, BypassAs, BypassScope, Changed, Operated, OperatorRequest, PauseScope, Plan, Reach,
    RevealScope, StateSnapshot, Verb, VerbName,
};
