//! The shared-memory primitives of the modules whose protocols are model-checked. Here they are the standard
//! library's; `tests/loom` builds the same modules on loom's.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
