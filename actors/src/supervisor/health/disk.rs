//! Room on the journal's disk. It is measured beside the checks, not in them, because a disk that does not answer is
//! one of the things that a check reports.

use super::rules::verdict;
use super::{EngineState, Health};
use crate::journal::store::DiskRoom;
use crate::view::{Rule, Verdict};

/// The last measurement.
pub(super) struct Disk {
    room: Option<DiskRoom>,
    /// A measurement is under way.
    is_asked: bool,
}

impl Disk {
    pub(super) const fn new() -> Self {
        Self {
            room: None,
            is_asked: false,
        }
    }

    /// Returns the free space at the last measurement.
    pub(super) const fn room(&self) -> Option<DiskRoom> {
        self.room
    }

    /// Records that a measurement begins. Returns `false` if one is already under way.
    pub(super) const fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.is_asked, true)
    }

    pub(super) const fn measured(&mut self, room: Option<DiskRoom>) {
        self.is_asked = false;
        self.room = room;
    }
}

impl Health {
    pub(super) fn disk_nearly_full(&self, state: &EngineState<'_>) -> Option<Verdict> {
        let room = self.disk_room()?;
        let least = self.thresholds.engine().disk_free.min(room.whole / 10);
        if state.failed.is_some() || room.free >= least {
            return None;
        }
        let facts = vec![
            ("free", room.free.to_string()),
            ("least", least.to_string()),
            ("whole", room.whole.to_string()),
        ];
        let text = format!(
            "the journal's disk has {} of {} bytes left; make room before the engine has to stop",
            room.free, room.whole
        );
        Some(verdict(Rule::DiskNearlyFull, None, state.now, facts, text))
    }
}
