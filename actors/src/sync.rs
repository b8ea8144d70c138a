//! What threads share values by, in the modules whose protocols are explored: here
//! it is the standard library's, and `tests/loom` builds the same modules on loom's.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
