//! The simulated disk: bytes that outlive every store on them. Clones share the same disk. Only whole or torn frames
//! are ever written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use procession_kernel::{Epoch, Seq};

use super::frame::{self, DecodedFrame, DecodedRecord};
use crate::error::StoreError;
use crate::journal::batch::Batch;
use crate::journal::keys::Space;
use crate::journal::layout::{EPOCH_KEY, FORMAT, FORMAT_KEY, SEQ_KEY};
use crate::journal::store::{Entries, Head};

/// Name of the disk in errors.
pub(super) const PLACE: &str = "memory";

/// Contents of the keyspaces after some frames.
pub(super) type World = BTreeMap<Space, BTreeMap<Vec<u8>, Vec<u8>>>;

/// The bytes of a memory store; they survive its crashes.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

/// Whether an opening keeps other openings out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Like the embedded store.
    Exclusive,
    /// Like a store that several machines reach.
    Shared,
}

#[derive(Debug, Default)]
pub(super) struct State {
    bytes: Vec<u8>,
    /// The epoch of the newest batch on the disk.
    pub(super) epoch: Epoch,
    pub(super) seq: Seq,
    /// The newest epoch granted since the process began; it fences all older epochs.
    granted: Epoch,
    /// The opening whose view is up to date; `None` if the disk was written outside any opening since.
    writer: Option<u64>,
    /// The opening that may write; `None` after a crash and before the first opening.
    pub(super) holder: Option<u64>,
    openings: u64,
    /// For each frame since the last opening: the offsets within the frame at which records end.
    frames: Vec<Vec<usize>>,
}

impl MemoryDisk {
    /// Creates an empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a disk with these bytes, whatever they are.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let disk = Self::new();
        disk.lock().bytes = bytes;
        disk
    }

    /// Returns the bytes on the disk.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    /// Copies the contents to another disk.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = self.lock();
        let copy = State {
            bytes: state.bytes.clone(),
            epoch: state.epoch,
            seq: state.seq,
            ..State::default()
        };
        drop(state);
        Self {
            state: Arc::new(Mutex::new(copy)),
        }
    }

    /// Returns the number of bytes written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().bytes.len()
    }

    /// Returns `true` if nothing was ever written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of the newest commit since the last opening, counted from 0 for the start's own. Returns
    /// `None` if there was none.
    #[must_use]
    pub fn last_commit(&self) -> Option<u64> {
        self.lock().frames.len().checked_sub(1).map(|last| last as u64)
    }

    /// Returns the offsets at which commit `commit` since the last opening may be torn, for
    /// [`Fault::Torn`](super::Fault::Torn). The list is empty if there was no such commit.
    #[must_use]
    pub fn torn_points(&self, commit: u64) -> Vec<usize> {
        let state = self.lock();
        let ends = usize::try_from(commit).ok().and_then(|commit| state.frames.get(commit));
        ends.map_or_else(Vec::new, |ends| frame::torn_points(ends))
    }

    /// Returns a keyspace as the next opening would find it, up to the first damage.
    #[must_use]
    pub fn dump(&self, space: &Space) -> Entries {
        let mut rows = BTreeMap::new();
        self.lock().replay(|record| {
            if record.0 == *space {
                apply_one(&mut rows, record.1, record.2);
            }
        });
        rows.into_iter().collect()
    }

    /// Flips the lowest bit of a byte; an offset beyond the end has no effect.
    pub fn flip_byte(&self, offset: usize) {
        if let Some(byte) = self.lock().bytes.get_mut(offset) {
            *byte ^= 1;
        }
    }

    /// Truncates the disk to this many bytes.
    pub fn truncate(&self, length: usize) {
        self.lock().bytes.truncate(length);
    }

    /// Takes the next epoch as another machine would, without the owner's knowledge. The owner's next commit is
    /// fenced.
    pub fn take_epoch(&self) -> Epoch {
        let mut state = self.lock();
        let epoch = Epoch(state.granted().0 + 1);
        let (bytes, _) = frame::encode(&Batch::new(epoch));
        state.write(&bytes);
        state.epoch = epoch;
        state.seq = Seq::default();
        (state.granted, state.writer) = (epoch, None);
        epoch
    }

    /// Writes entries as the owner of the next epoch would, in one batch. Its number is `seq`, or the newest on the
    /// disk if that is higher. Use it on a disk that no store has open, since a live owner is fenced by it.
    pub fn import<'a>(&self, seq: Seq, entries: impl IntoIterator<Item = (Space, &'a [u8], &'a [u8])>) {
        let mut state = self.lock();
        let mut batch = Batch::new(Epoch(state.epoch.0 + 1));
        let seq = seq.max(state.seq);
        batch.advance_to(seq);
        for (space, key, value) in entries {
            batch.put(space, key, value);
        }
        let (bytes, _) = frame::encode(&batch);
        state.write(&bytes);
        (state.epoch, state.seq) = (batch.epoch(), seq);
        state.writer = None;
    }

    /// Returns the keyspaces that are not empty, as the next opening would find them.
    #[must_use]
    pub fn spaces(&self) -> Vec<Space> {
        let mut world = World::new();
        self.lock()
            .replay(|(space, key, value)| apply_one(world.entry(space).or_default(), key, value));
        let filled = world.into_iter().filter(|(_, rows)| !rows.is_empty());
        filled.map(|(space, _)| space).collect()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the disk for a new opening: reads all of it, and drops a torn tail. Openings that share it do not
    /// exclude each other; the last to acquire it fences the others.
    pub(super) fn open(&mut self, sharing: Sharing) -> Result<(u64, World), StoreError> {
        if self.holder.is_some() && sharing == Sharing::Exclusive {
            return Err(StoreError::Held {
                place: PLACE.to_owned(),
                holder: " in this process".to_owned(),
            });
        }
        let mut world = World::new();
        let replay = self.replay(|(space, key, value)| apply_one(world.entry(space).or_default(), key, value));
        if replay.is_damaged {
            return Err(StoreError::Damaged {
                place: PLACE.to_owned(),
                why: format!("byte {} or one behind it was changed", replay.end),
            });
        }
        self.bytes.truncate(replay.end);
        (self.epoch, self.seq) = (replay.epoch, replay.seq);
        self.openings += 1;
        if self.holder.is_none() {
            // No writer is left that could use an epoch granted earlier.
            self.granted = Epoch::default();
            self.frames.clear();
        }
        self.holder = Some(self.openings);
        self.writer = Some(self.openings);
        apply_marks(&mut world, self.epoch, self.seq);
        Ok((self.openings, world))
    }

    /// Returns the newest epoch, whether its owner has written or not.
    pub(super) fn granted(&self) -> Epoch {
        self.granted.max(self.epoch)
    }

    /// Grants the next epoch; from now on all older epochs are fenced.
    pub(super) fn grant(&mut self) -> Epoch {
        self.granted = Epoch(self.granted().0 + 1);
        self.granted
    }

    pub(super) fn head(&self) -> Option<Head> {
        let (epoch, seq) = (self.epoch, self.seq);
        (epoch > Epoch::default()).then_some(Head { epoch, seq })
    }

    /// Returns the contents of the disk if another opening wrote last, so that the view of this one may be outdated.
    pub(super) fn written_by_others(&mut self, opening: u64) -> Option<World> {
        if self.writer == Some(opening) {
            return None;
        }
        self.writer = Some(opening);
        let mut world = World::new();
        self.replay(|(space, key, value)| apply_one(world.entry(space).or_default(), key, value));
        apply_marks(&mut world, self.epoch, self.seq);
        Some(world)
    }

    /// Writes a frame as it is, whole or torn.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Records that a whole frame of this opening was written.
    pub(super) fn note(&mut self, opening: u64, (epoch, seq): (Epoch, Seq), ends: Vec<usize>) {
        (self.epoch, self.seq) = (epoch, seq);
        self.writer = Some(opening);
        self.frames.push(ends);
    }

    fn replay(&self, mut apply: impl FnMut(DecodedRecord)) -> Replay {
        let mut replay = Replay {
            end: 0,
            epoch: Epoch::default(),
            seq: Seq::default(),
            is_damaged: false,
        };
        while let Some(rest) = self.bytes.get(replay.end..).filter(|rest| !rest.is_empty()) {
            match frame::decode(rest) {
                DecodedFrame::Whole(frame) => {
                    replay.end += frame.length;
                    (replay.epoch, replay.seq) = (frame.epoch, frame.seq);
                    frame.records.into_iter().for_each(&mut apply);
                }
                DecodedFrame::Torn => return replay,
                DecodedFrame::Damaged => {
                    return Replay {
                        is_damaged: true,
                        ..replay
                    };
                }
            }
        }
        replay
    }
}

struct Replay {
    end: usize,
    epoch: Epoch,
    seq: Seq,
    is_damaged: bool,
}

pub(super) fn apply_one(rows: &mut BTreeMap<Vec<u8>, Vec<u8>>, key: Vec<u8>, value: Option<Vec<u8>>) {
    match value {
        Some(value) => rows.insert(key, value),
        None => rows.remove(&key),
    };
}

/// Adds the rows that the embedded store keeps in `meta`, so that readers see no difference.
pub(super) fn apply_marks(world: &mut World, epoch: Epoch, seq: Seq) {
    let meta = world.entry(Space::Meta).or_default();
    meta.insert(FORMAT_KEY.to_vec(), FORMAT.to_be_bytes().to_vec());
    if epoch > Epoch::default() {
        meta.insert(EPOCH_KEY.to_vec(), epoch.0.to_be_bytes().to_vec());
        meta.insert(SEQ_KEY.to_vec(), [epoch.0.to_be_bytes(), seq.0.to_be_bytes()].concat());
    }
}
