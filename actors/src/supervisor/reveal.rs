//! For tests: the kernel as it is in memory, and as it would be read back from disk.

use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{Epoch, Kernel, Rules};

use super::dispatch::rollback_stacks::holes;
use super::lifecycle::recovery;
use crate::clock::Clock;
use crate::error::{StartError, StoreError};
use crate::journal::JournalStore;

/// Asks for a copy of the state in memory. It is ahead of the disk while a commit is under way.
#[derive(Message, Clone, Copy, Debug)]
#[rtype(result = "Box<Kernel>")]
pub struct Reveal;

/// Reads the store as the next start would, and returns the state that it would begin with. The store's owner keeps
/// it.
///
/// # Errors
///
/// [`StartError`] if the store cannot be read, would be refused, or has a hole in a history that a rollback needs.
pub async fn reload(store: Arc<dyn JournalStore>, rules: Rules, clock: Arc<dyn Clock>) -> Result<Kernel, StartError> {
    let head = store.head().await?;
    let epoch = Epoch(head.map_or(0, |head| head.epoch.0) + 1);
    let loaded = recovery::read(&*store, epoch, rules, recovery::Code::Registered, &*clock).await?;
    let mut holes = loaded
        .stacks
        .iter()
        .flat_map(|(family, stack)| holes::of_family(&loaded.kernel, *family, stack));
    match holes.next() {
        Some((scope, why)) => Err(StartError::Store(StoreError::Damaged {
            place: scope.to_string(),
            why,
        })),
        None => Ok(loaded.kernel),
    }
}
