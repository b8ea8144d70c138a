//! Where the journal is, how it syncs, and how fast it is. For stores of your own, see [`provider`](crate::provider).

pub use crate::executor::JournalPlace;
pub use procession_actors::journal::SyncMode;
pub use procession_actors::journal::probe::{RawLoad, RawRate, raw_store_rate};
