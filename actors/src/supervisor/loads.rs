//! What must be read before user code can be called: the value of a parked
//! procedure, its children's outcomes, a signal. In order,
//! and a bounded number at once.
//!
//! Reads that fall due together are done together: what the read itself takes is
//! far less than to have another thread do it.

mod children;
mod wanted;

use std::collections::VecDeque;

use actix::prelude::*;
use procession_kernel::{Advance, Blob, Effect, Kernel, Kind, ProcedureId, Round, Seq, Wake};
use rustc_hash::FxHashSet;

use self::wanted::{Found, Wanted};
use super::Supervisor;
use super::unread::{Subject, Unread};
use crate::context::Woken;
use crate::error::ReadError;
use crate::procedure_actor::{Call, Stored};

/// Groups of reads under way: half of the reader's places, so that who asks
/// something has his turn.
const GROUPS: usize = 4;
/// Reads of one group: enough that to hand it over costs each of them little,
/// few enough that the first does not wait long for the last.
const GROUP: usize = 128;

/// Calls for which room is kept when none waits.
const KEPT: usize = 4 * GROUPS * GROUP;

/// What a call is for.
pub(super) enum Purpose {
    Execute {
        stage: Blob,
        visit: u32,
        attempt: u32,
        run: Seq,
        out_of_time: bool,
    },
    CleanUp,
    Undo {
        scope: ProcedureId,
        number: u32,
        stage: Blob,
        visit: u32,
        attempt: u32,
    },
    Join(Round, Blob),
}

/// One call that needs something read first.
pub(super) struct Load {
    pub(super) id: ProcedureId,
    pub(super) kind: Kind,
    pub(super) version: u16,
    pub(super) payload: Option<Blob>,
    pub(super) wake: Option<Wake>,
    pub(super) purpose: Purpose,
}

impl Load {
    pub(super) fn of(advance: Advance) -> Self {
        Self {
            id: advance.id,
            kind: advance.kind,
            version: advance.version,
            payload: advance.payload,
            wake: advance.wake,
            purpose: Purpose::Execute {
                stage: advance.stage,
                visit: advance.visit,
                attempt: advance.attempt,
                run: advance.run,
                out_of_time: advance.out_of_time,
            },
        }
    }
}

/// A call that waits for its turn to be read for.
enum Queued {
    /// The stage that this commit set going; the rest is in its row, and taken from there when it is its turn. A
    /// start may queue a million of these.
    Stage(ProcedureId, Seq),
    /// Any other, or one that brings its value.
    Call(Box<Load>),
}

impl Queued {
    fn of(load: Load) -> Self {
        match load.purpose {
            Purpose::Execute { run, .. } if load.payload.is_none() => Self::Stage(load.id, run),
            Purpose::Execute { .. } | Purpose::CleanUp | Purpose::Undo { .. } | Purpose::Join(..) => {
                Self::Call(Box::new(load))
            }
        }
    }

    const fn id(&self) -> ProcedureId {
        match self {
            Self::Stage(id, _) => *id,
            Self::Call(load) => load.id,
        }
    }

    /// Gives the call, if it is still out: one that was stopped meanwhile needs nothing.
    fn load(self, kernel: &Kernel) -> Option<Load> {
        match self {
            Self::Stage(id, run) => kernel.calls_of(id).into_iter().find_map(|effect| {
                let Effect::Advance(advance) = effect else { return None };
                (advance.run == run).then(|| Load::of(advance))
            }),
            Self::Call(load) => Some(*load),
        }
    }
}

/// Loads that were read, and what was found for each.
type Group = Vec<(Load, Result<Found, ReadError>)>;

/// A group that has begun.
enum Begun {
    /// It is being read; whose calls these are.
    Reading(Vec<ProcedureId>),
    /// It has been read, and waits for an earlier one.
    Ready(Group),
}

#[derive(Default)]
pub(super) struct Loads {
    queue: VecDeque<Queued>,
    under_way: VecDeque<Begun>,
    /// How many groups have left the front of `under_way`.
    gone: u64,
    /// The next group is begun when what falls due now has been queued.
    called: bool,
}

/// Says that what fell due together has been queued.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct LoadTime;

impl Handler<LoadTime> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: LoadTime, ctx: &mut Self::Context) {
        self.turn(|supervisor| {
            supervisor.loads.called = false;
            supervisor.load_next(ctx);
        });
    }
}

impl Loads {
    pub(super) fn clear(&mut self) {
        self.queue = VecDeque::new();
    }

    /// Gives how many calls wait to be read for, or are being read for, about.
    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.under_way.len() * GROUP
    }

    /// Makes room for as many as a start may ask for: to grow a long queue copies it.
    pub(super) fn expect(&mut self, number: usize) {
        self.queue.reserve(number);
    }

    fn enter(&mut self, load: Load) {
        self.queue.push_back(Queued::of(load));
    }

    /// Takes the next group, and gives its number.
    fn begin(&mut self, kernel: &Kernel) -> Option<(u64, Vec<Load>)> {
        if self.queue.is_empty() || self.under_way.len() >= GROUPS {
            return None;
        }
        let group = self.queue.drain(..self.queue.len().min(GROUP));
        let group: Vec<Load> = group.filter_map(|queued| queued.load(kernel)).collect();
        if self.queue.is_empty() {
            // What a start or a broadcast filled it with may never come again.
            self.queue.shrink_to(KEPT);
        }
        let number = self.gone + self.under_way.len() as u64;
        self.under_way
            .push_back(Begun::Reading(group.iter().map(|load| load.id).collect()));
        Some((number, group))
    }

    fn ready(&mut self, number: u64, group: Group) {
        let place = usize::try_from(number - self.gone).ok();
        if let Some(place) = place.and_then(|place| self.under_way.get_mut(place)) {
            *place = Begun::Ready(group);
        }
    }

    /// Gives whose calls wait to be read for, in one go through all of them: who asks for one asks for many.
    pub(super) fn waiting(&self) -> FxHashSet<ProcedureId> {
        let mut waiting: FxHashSet<ProcedureId> = self.queue.iter().map(Queued::id).collect();
        for begun in &self.under_way {
            match begun {
                Begun::Reading(ids) => waiting.extend(ids),
                Begun::Ready(group) => waiting.extend(group.iter().map(|(load, _)| load.id)),
            }
        }
        waiting
    }

    /// Takes the oldest, if it is ready.
    fn next_ready(&mut self) -> Option<Group> {
        match self.under_way.pop_front()? {
            Begun::Ready(group) => {
                self.gone += 1;
                Some(group)
            }
            reading @ Begun::Reading(_) => {
                self.under_way.push_front(reading);
                None
            }
        }
    }
}

impl Supervisor {
    pub(super) fn load(&mut self, load: Load, ctx: &mut Context<Self>) {
        self.loads.enter(load);
        if !self.loads.called {
            self.loads.called = true;
            ctx.notify(LoadTime);
        }
    }

    fn load_next(&mut self, ctx: &mut Context<Self>) {
        while let Some((number, group)) = self.loads.begin(&self.kernel) {
            let wanted = group.iter().map(|load| self.wanted(load)).collect();
            let reader = self.reader.clone();
            let work = async move {
                let found = wanted::read(&reader, wanted).await;
                group.into_iter().zip(found).collect()
            };
            ctx.spawn(work.into_actor(self).map(move |group, supervisor, ctx| {
                supervisor.turn(|supervisor| {
                    supervisor.loads.ready(number, group);
                    supervisor.hand_over(ctx);
                    supervisor.load_next(ctx);
                    supervisor.wake_more(ctx);
                });
            }));
        }
    }

    fn wanted(&mut self, load: &Load) -> Wanted {
        let round = match &load.purpose {
            Purpose::Join(round, _) => Some(Wake::Children(round.first, round.count)),
            Purpose::Execute { .. } | Purpose::CleanUp | Purpose::Undo { .. } => None,
        };
        // A join rule asks again with each end: to go through all children is for the reader's thread then.
        let children = match load.wake {
            Some(Wake::Children(first, count)) => self.children_at_hand(load.id.family, first, count),
            Some(Wake::Signal(..) | Wake::Timeout(_)) | None => None,
        };
        Wanted {
            id: load.id,
            payload: load.payload.is_none() && !self.actors.contains_key(&load.id),
            wake: round.or_else(|| load.wake.clone()),
            children,
        }
    }

    /// Reads end in any order; calls are made in the order in which they were decided.
    fn hand_over(&mut self, ctx: &mut Context<Self>) {
        while let Some(group) = self.loads.next_ready() {
            for (mut load, found) in group {
                match found {
                    Ok(found) => {
                        self.unreadable.succeeded(Subject::Call(load.id));
                        load.payload = load.payload.or(found.payload);
                        self.loaded(load, found.woken, ctx);
                    }
                    Err(ReadError::Store(why)) if why.may_pass() => self.read_again(Unread::Call(load), &why, ctx),
                    Err(why) => self.quarantine_family(load.id.family, format!("{}: {why}", load.id), ctx),
                }
            }
        }
    }

    pub(super) fn loaded(&mut self, load: Load, woken: Woken, ctx: &mut Context<Self>) {
        if load.payload.is_none() && !self.actors.contains_key(&load.id) {
            // Its actor was there when the read began, and has gone since: read the value, too.
            self.load(load, ctx);
            return;
        }
        let Load {
            id,
            kind,
            version,
            payload,
            purpose,
            ..
        } = load;
        if self.quarantine.contains(id.family) || self.status.has_failed() {
            return;
        }
        let stored = payload.map(|payload| Stored {
            id,
            kind,
            version,
            payload,
        });
        let call = match purpose {
            Purpose::Execute {
                stage,
                visit,
                attempt,
                run,
                out_of_time,
            } => {
                // It may have been stopped while it was read.
                let current = self.kernel.row(id).and_then(|row| row.going).map(|going| going.run);
                if current != Some(run) {
                    return;
                }
                let mut facts = self.facts(id, visit, attempt, woken);
                facts.out_of_time = out_of_time;
                Call::Execute(facts, run, stage)
            }
            Purpose::Undo {
                scope,
                number,
                stage,
                visit,
                attempt,
            } => Call::Undo(self.facts(id, visit, attempt, Woken::Plainly), scope, number, stage),
            Purpose::CleanUp => Call::CleanUp,
            Purpose::Join(round, stage) => {
                let outcomes = match woken {
                    Woken::Children(outcomes) => outcomes,
                    Woken::Plainly | Woken::Signal(_) | Woken::Timeout => Vec::new(),
                };
                Call::Join(round.first, stage, outcomes)
            }
        };
        self.call(id, stored, call, ctx);
    }
}

#[cfg(test)]
mod tests;
