//! What is said of a procedure or a signal before it is sent.

pub use crate::executor::{OutgoingSignal, Submission};
pub use procession_kernel::{LABEL_NAME_MAX, LABEL_VALUE_MAX, LABELS_MAX, Label, LabelError, Labels, TraceParent};
