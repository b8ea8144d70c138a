//! One event in, one decision out. Reads the kernel, changes nothing.
//!
//! Each group of events has a file of its own; all of them write into one
//! [`Draft`], which is the kernel with the changes of this decision laid over it.

mod draft;
mod end;
mod operate;
mod recover;
mod rollback;
mod signal;
mod spawn;
mod stage;
mod submit;
mod wake;

use crate::decision::Decision;
use crate::event::Event;
use crate::id::Timestamp;
use crate::kernel::Kernel;
use draft::Draft;

impl Kernel {
    /// Decides what an event leads to, at this time.
    pub fn decide(&self, now: Timestamp, event: Event) -> Decision {
        let mut draft = Draft::new(self, now);
        match event {
            Event::Submitted(ticket, submissions) => draft.submitted(ticket, submissions),
            Event::StageEnded(report) => draft.stage_ended(*report),
            Event::UndoEnded(report) => draft.undo_ended(*report),
            Event::StackLoaded(scope, entries) => draft.stack_loaded(scope, entries),
            Event::JoinRuled {
                parent,
                first,
                seen,
                ruling,
            } => draft.join_ruled(parent, first, seen, ruling),
            Event::TimerDue(id) => draft.timer_due(id),
            Event::Granted(id) => draft.granted(id),
            Event::Signalled {
                ticket,
                id,
                name,
                payload,
                key,
            } => draft.signalled(ticket, id, name, payload, key),
            Event::AbortRequested(ticket, id, operator) => draft.abort_requested(ticket, id, operator),
            Event::LimitSet(ticket, key, value) => draft.limit_set(ticket, key, value),
            Event::Acknowledged(ticket, row) => draft.acknowledged(ticket, *row),
            Event::UndoRetryRequested(ticket, id, operator) => draft.undo_retry_requested(ticket, id, operator),
            Event::UndoSkipRequested(ticket, id, operator) => draft.undo_skip_requested(ticket, id, operator),
            Event::ResumeRequested(ticket, id, operator) => draft.resume_requested(ticket, id, operator),
            Event::EvictionDue(doomed) => draft.eviction_due(doomed),
            Event::DrainBegan => draft.drain_began(),
            Event::DrainEnded(ticket) => draft.drain_ended(ticket),
            Event::Recovered => draft.recovered(),
        }
        draft.finish()
    }
}
