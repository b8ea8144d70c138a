//! Stores and clocks of your own: every type that an implementation of [`JournalStore`] or [`Clock`] names is here.
//!
//! A store in memory, in full; `procession::testkit::conformance` checks what a store has to keep:
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::pin::Pin;
//! use std::sync::atomic::{AtomicBool, Ordering};
//! use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
//!
//! use procession::provider::{
//!     AppendError, Batch, Entries, Epoch, Head, JournalStore, Key, Receipt, Scan, Space, StoreBounds, StoreError,
//! };
//! use procession::procedure::Noop;
//! use procession::Executor;
//!
//! type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
//!
//! /// What lasts.
//! #[derive(Default)]
//! struct Disk {
//!     entries: BTreeMap<(Space, Vec<u8>), Vec<u8>>,
//!     head: Option<Head>,
//!     owner: Epoch,
//!     /// An append of this epoch has failed.
//!     failed: Option<Epoch>,
//! }
//!
//! #[derive(Default)]
//! struct Shelf {
//!     disk: Arc<Mutex<Disk>>,
//!     is_closed: AtomicBool,
//! }
//!
//! impl Shelf {
//!     fn open(&self) -> Result<MutexGuard<'_, Disk>, StoreError> {
//!         if self.is_closed.load(Ordering::Acquire) {
//!             return Err(StoreError::Closed { place: "memory".to_owned() });
//!         }
//!         Ok(self.disk.lock().unwrap_or_else(PoisonError::into_inner))
//!     }
//!
//!     fn owned(&self, epoch: Epoch) -> Result<MutexGuard<'_, Disk>, AppendError> {
//!         let disk = self.open().map_err(|error| AppendError::Failed(error.to_string()))?;
//!         match disk.owner {
//!             newer if newer > epoch => Err(AppendError::Fenced { newer }),
//!             _ => Ok(disk),
//!         }
//!     }
//!
//!     fn write(&self, batch: &Batch) -> Result<Receipt, AppendError> {
//!         let mut disk = self.owned(batch.epoch())?;
//!         let refusal = batch.writes().find_map(|write| self.bounds().refusal(&write));
//!         if disk.failed == Some(batch.epoch()) || refusal.is_some() {
//!             disk.failed = Some(batch.epoch());
//!             return Err(AppendError::Failed(refusal.unwrap_or_else(|| "an earlier batch failed".to_owned())));
//!         }
//!         for write in batch.writes() {
//!             let place = (write.space.clone(), write.key.to_vec());
//!             match write.value {
//!                 Some(value) => disk.entries.insert(place, value.to_vec()),
//!                 None => disk.entries.remove(&place),
//!             };
//!         }
//!         disk.head = Some(Head { epoch: batch.epoch(), seq: batch.seq() });
//!         Ok(Receipt::new(batch.epoch(), batch.seq()))
//!     }
//! }
//!
//! impl JournalStore for Shelf {
//!     fn acquire(&self) -> Answer<'_, Result<Epoch, StoreError>> {
//!         Box::pin(async move {
//!             let mut disk = self.open()?;
//!             disk.owner = Epoch(disk.owner.0 + 1);
//!             Ok(disk.owner)
//!         })
//!     }
//!
//!     fn renew(&self, epoch: Epoch) -> Answer<'_, Result<(), AppendError>> {
//!         Box::pin(async move { self.owned(epoch).map(drop) })
//!     }
//!
//!     fn release(&self, epoch: Epoch) -> Answer<'_, Result<(), AppendError>> {
//!         self.renew(epoch)
//!     }
//!
//!     fn close(&self) -> Answer<'_, ()> {
//!         Box::pin(async move { self.is_closed.store(true, Ordering::Release) })
//!     }
//!
//!     fn append(&self, batch: Batch) -> Answer<'_, Result<Receipt, AppendError>> {
//!         // Written here, and not when the answer is polled: the order of the calls is the order of the batches.
//!         let answer = self.write(&batch);
//!         Box::pin(async move { answer })
//!     }
//!
//!     fn head(&self) -> Answer<'_, Result<Option<Head>, StoreError>> {
//!         Box::pin(async move { Ok(self.open()?.head) })
//!     }
//!
//!     fn get(&self, space: Space, key: Vec<u8>) -> Answer<'_, Result<Option<Vec<u8>>, StoreError>> {
//!         Box::pin(async move { Ok(self.open()?.entries.get(&(space, key)).cloned()) })
//!     }
//!
//!     fn scan(&self, scan: Scan) -> Answer<'_, Result<Entries, StoreError>> {
//!         Box::pin(async move {
//!             let disk = self.open()?;
//!             let entries = disk.entries.iter().filter(|((space, key), _)| {
//!                 *space == scan.space && *key >= scan.from && scan.to.as_ref().is_none_or(|to| key < to)
//!             });
//!             let entries = entries.map(|((_, key), value)| (key.clone(), value.clone()));
//!             Ok(entries.take(scan.limit).collect())
//!         })
//!     }
//!
//!     fn user_spaces(&self) -> Answer<'_, Result<Vec<Key>, StoreError>> {
//!         Box::pin(async move {
//!             let disk = self.open()?;
//!             let mut names: Vec<Key> = disk.entries.keys().filter_map(|(space, _)| match space {
//!                 Space::User(name) => Some(name.clone()),
//!                 _ => None,
//!             }).collect();
//!             names.dedup();
//!             Ok(names)
//!         })
//!     }
//!
//!     fn bounds(&self) -> StoreBounds {
//!         StoreBounds { space_name: 200, key: 32 << 10, value: 64 << 20, batch: 256 << 20 }
//!     }
//!
//!     fn size_bytes(&self) -> Option<u64> {
//!         None
//!     }
//!
//!     fn reads_block(&self) -> bool {
//!         false
//!     }
//! }
//!
//! # #[actix_rt::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # #[cfg(feature = "testkit")]
//! procession::testkit::conformance::check(|| {
//!     let disk = Arc::default();
//!     move || Ok(Shelf { disk: Arc::clone(&disk), ..Shelf::default() })
//! })?;
//!
//! let builder = Executor::builder(Arc::new(Shelf::default()));
//! let executor = builder.register::<Noop>(()).start().await?;
//! executor.submit(Noop).await?.await?;
//! # Ok(())
//! # }
//! ```

pub use procession_actors::StoreError;
pub use procession_actors::clock::{Clock, MachineTime, SystemClock};
pub use procession_actors::journal::StoreBounds;
pub use procession_actors::journal::batch::Write;
pub use procession_actors::journal::store::{
    AppendError, DiskRoom, Entries, Head, JournalStore, RECENT_BYTES, RecentWrites, Scan, SyncTimes,
};
pub use procession_actors::journal::{Batch, Space};
pub use procession_kernel::{Epoch, Key, Receipt, Seq, Timestamp};
