//! Room on the disk of the journal. It is measured beside the audits, not in them: a disk that
//! does not answer is one of the things that they are to tell of.

use actix::prelude::*;
use futures::FutureExt;

use super::super::Supervisor;
use super::rules::verdict;
use crate::journal::store::DiskRoom;
use crate::view::{Rule, Verdict};

/// What was measured last.
pub(super) struct Disk {
    room: Option<DiskRoom>,
    /// A measurement is under way.
    asked: bool,
}

impl Disk {
    pub(super) const fn new() -> Self {
        Self {
            room: None,
            asked: false,
        }
    }

    /// Gives what was free when it was measured last.
    pub(super) const fn room(&self) -> Option<DiskRoom> {
        self.room
    }
}

impl Supervisor {
    /// Measures anew, unless the disk has not answered yet.
    pub(super) fn measure_disk(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.watch.disk.asked, true) {
            return;
        }
        let reader = self.reader.clone();
        let measured = async move { reader.run(|store| async { Ok(store.disk_room()) }.boxed()).await };
        ctx.spawn(measured.into_actor(self).map(|room, supervisor, _| {
            let disk = &mut supervisor.watch.disk;
            disk.asked = false;
            disk.room = room.ok().flatten();
            if let Some(room) = disk.room {
                supervisor.metrics.telemetry().disk_free.set(room.free as f64);
            }
        }));
    }

    pub(super) fn disk_nearly_full(&self) -> Option<Verdict> {
        let room = self.watch.disk_room()?;
        let least = self.watch.thresholds.engine().disk_free.min(room.whole / 10);
        if self.poisoned.is_some() || room.free >= least {
            return None;
        }
        let facts = vec![
            ("free", room.free.to_string()),
            ("least", least.to_string()),
            ("whole", room.whole.to_string()),
        ];
        let text = format!(
            "the disk of the journal has {} bytes left, of {}: make room before the engine has to stop",
            room.free, room.whole
        );
        Some(verdict(Rule::DiskNearlyFull, None, self.clock.now(), facts, text))
    }
}
