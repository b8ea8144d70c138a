//! Turns one event into one decision. It reads the kernel and changes nothing.
//!
//! Each group of events has a file of its own. All of them write into one [`Draft`]: the kernel, with the changes of
//! this decision laid over it.

mod bypass;
mod clock;
mod draft;
mod end;
mod gate;
mod health_check;
mod hold;
mod operate;
mod pause;
mod plan;
mod question;
mod rate;
mod recover;
mod repeat_limit;
mod retention;
mod rollback;
mod signal;
mod spawn;
mod speculation;
mod stage;
mod submit;
mod suspect;
mod undo;
mod user_data;
mod wake;
mod wave;

use crate::decision::Decision;
use crate::event::Event;
use crate::history::HistoryEntry;
use crate::id::{ProcedureId, Seq, Timestamp};
use crate::kernel::Kernel;
pub(crate) use draft::Draft;

impl Kernel {
    /// Decides what follows from an event at this time.
    pub fn decide(&self, now: Timestamp, event: Event) -> Decision {
        let mut draft = Draft::new(self, now);
        draft.take_room();
        match event {
            Event::Submitted(request, submissions) => draft.submitted(request, submissions),
            Event::StageEnded(report) => draft.stage_ended(report),
            Event::UndoEnded(report) => draft.undo_ended(*report),
            Event::StackLoaded(scope, entries) => draft.stack_loaded(scope, entries),
            Event::JoinRuled {
                parent,
                first,
                seen,
                ruling,
            } => draft.join_ruled(parent, first, seen, ruling),
            Event::GateRuled { id, seen, ruling } => draft.gate_ruled(id, seen, ruling),
            Event::TimerDue(id) => draft.timer_due(id),
            Event::Granted(id) => draft.granted(id),
            Event::Signalled(request, signals) => draft.signalled(request, signals),
            Event::Broadcast {
                request,
                name,
                payload,
                key,
            } => draft.broadcast(request, name, payload, key),
            Event::WaveDue(seq) => draft.wave_due(seq),
            Event::Written(request, writes) => draft.written(request, writes),
            Event::Requested(request, verb, by, stored) => draft.requested(request, *verb, &by, stored),
            Event::Acknowledged(request, row) => draft.acknowledged(request, *row),
            Event::EvictionDue(doomed) => draft.eviction_due(doomed),
            Event::CleanedUp(id) => draft.cleaned_up(id),
            Event::HealthCheckDue { granted, unknown } => draft.health_check_due(granted, unknown),
            Event::ClockSetBack => draft.clock_set_back(),
            Event::FamilyForgotten => draft.family_forgotten(),
            Event::DrainBegan => draft.drain_began(),
            Event::DrainEnded(request) => draft.drain_ended(request),
            Event::Recovered => draft.recovered(),
        }
        draft.finish()
    }

    /// Returns the commit that started the stage of a procedure that is out, if one is.
    #[must_use]
    pub fn stage_out(&self, id: ProcedureId) -> Option<Seq> {
        self.families.out(id)
    }

    /// Returns `true` if the running stage would be followed by the next one, as things stand.
    #[must_use]
    pub fn goes_on(&self, id: ProcedureId, run: Seq) -> bool {
        let draft = Draft::new(self, Timestamp::default());
        !self.draining
            && self.row(id).is_some_and(|row| {
                row.in_flight.is_some_and(|in_flight| in_flight.run == run)
                    && !draft.is_stopping(row)
                    && !draft.is_paused(row)
            })
    }

    /// Returns `true` if a procedure waits for a permit or a lock now, for its next stage or its undo. A procedure
    /// that has moved on meanwhile must not be asked for any more.
    #[must_use]
    pub fn waits_for_admission(&self, id: ProcedureId) -> bool {
        Draft::new(self, Timestamp::default()).waits_for_admission(id)
    }

    /// Returns the other lock holders in the failing part of a member's family. In such a part one undo runs at a time
    /// and nothing else does, so an undo may enter locks that they hold.
    #[must_use]
    pub fn rolled_back_with(&self, id: ProcedureId) -> Vec<ProcedureId> {
        let draft = Draft::new(self, Timestamp::default());
        let stopping = self.row(id).is_some_and(|row| draft.is_stopping(row));
        let scope = draft.scope_of(id).filter(|_| stopping);
        let Some((family, scope)) = self.families.get(&id.family).zip(scope) else {
            return Vec::new();
        };
        let holders = family.within(scope.member).filter(|row| !row.locked.is_empty());
        holders.map(|row| row.id).filter(|other| *other != id).collect()
    }

    /// Returns `true` if a rollback of this scope can go on with these entries, which are those of its members: as many stand
    /// as its rows count. With a hole in its history it parks instead.
    #[must_use]
    pub fn is_stack_complete(&self, scope: ProcedureId, entries: Vec<HistoryEntry>) -> bool {
        let draft = Draft::new(self, Timestamp::default());
        let standing = draft.standing_within(scope, entries);
        draft.is_complete(scope, &standing)
    }

    /// Returns `true` if a failure at or above a procedure stops it, so that it runs no more stages.
    #[must_use]
    pub fn is_stopped(&self, id: ProcedureId) -> bool {
        let draft = Draft::new(self, Timestamp::default());
        self.row(id).is_some_and(|row| draft.is_stopping(row))
    }
}
