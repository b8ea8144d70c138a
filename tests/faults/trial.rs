//! A hostile trial of the store's whole road to the disk. A library of its own
//! stands between the engine and the system: it makes any one file operation
//! fail, and notes all of them. From the notes come the states of a disk after a
//! power cut at any instant. Each is opened, and compared with what was told.
//!
//! What the library does not see would look sound. So each record is followed to
//! its end and compared with the directory, and a control must find losses.

mod cuts;
mod damage;
#[expect(
    clippy::indexing_slicing,
    reason = "places in its own lists: a wrong one must end the trial"
)]
mod disk;
mod failing;
#[expect(
    clippy::indexing_slicing,
    reason = "ranges of its own bytes: a wrong one must end the trial"
)]
mod file;
mod ground;
mod judge;
mod library;
mod life;
mod operations;
mod pool;
mod power;
#[expect(clippy::indexing_slicing, reason = "ranges that were cut from the same bytes")]
mod record;
mod world;
