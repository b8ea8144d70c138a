//! Every error, one type for each moment: start, submit, ask, read, import.

pub use crate::handle::ProcedureError;
pub use procession_actors::journal::probe::ProbeError;
pub use procession_actors::{
    AskError, CodecError, ImportError, ReadError, StartError, StoreError, SubmitBound, SubmitError, UpgradeError,
};
pub use procession_kernel::{NotNow, ParseTraceParentError, UnknownVerb};
