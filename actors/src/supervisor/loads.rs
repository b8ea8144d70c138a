//! What must be read before user code can be called: the value of a parked
//! procedure, its children's outcomes, a signal, a rollback stack. In order,
//! and a bounded number at once.

use std::collections::VecDeque;

use actix::prelude::*;
use procession_kernel::{Blob, Event, Kind, ProcedureId, Round, Seq, Wake};

use super::Supervisor;
use crate::context::{Signal, Woken};
use crate::error::{ReadError, StoreError};
use crate::journal::encode::StoredSignal;
use crate::journal::keys::{self, OUTPUT, PAYLOAD};
use crate::journal::{Reader, Space, codec};
use crate::procedure_actor::{Call, Stored};
use crate::step::ChildOutcome;

/// Reads under way for revivals: as many as keep the reader's places busy.
const AT_ONCE: usize = 32;

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

/// A load that was read, or could not be.
type Read = (Load, Result<Woken, ReadError>);

#[derive(Default)]
pub(super) struct Loads {
    queue: VecDeque<Load>,
    /// Those that are being read, and those that are ready and wait for an earlier one.
    under_way: VecDeque<(ProcedureId, Option<Read>)>,
    /// How many have left the front of `under_way`.
    gone: u64,
}

impl Loads {
    pub(super) fn clear(&mut self) {
        self.queue.clear();
    }

    fn ready(&mut self, number: u64, read: Read) {
        let place = usize::try_from(number - self.gone).ok();
        if let Some((_, place)) = place.and_then(|place| self.under_way.get_mut(place)) {
            *place = Some(read);
        }
    }

    /// Tells whether a call of this procedure waits to be read for.
    pub(super) fn holds(&self, id: ProcedureId) -> bool {
        self.queue.iter().any(|load| load.id == id) || self.under_way.iter().any(|(other, _)| *other == id)
    }

    /// Takes the oldest, if it is ready.
    fn next_ready(&mut self) -> Option<Read> {
        self.under_way.front()?.1.as_ref()?;
        self.gone += 1;
        self.under_way.pop_front()?.1
    }
}

impl Supervisor {
    pub(super) fn load(&mut self, load: Load, ctx: &mut Context<Self>) {
        self.loads.queue.push_back(load);
        self.load_next(ctx);
    }

    fn load_next(&mut self, ctx: &mut Context<Self>) {
        while self.loads.under_way.len() < AT_ONCE {
            let Some(mut load) = self.loads.queue.pop_front() else {
                return;
            };
            let number = self.loads.gone + self.loads.under_way.len() as u64;
            self.loads.under_way.push_back((load.id, None));
            let reader = self.reader.clone();
            let at_hand = self.actors.contains_key(&load.id);
            let work = async move {
                let woken = read(&reader, &mut load, at_hand).await;
                (load, woken)
            };
            ctx.spawn(work.into_actor(self).map(move |read, supervisor, ctx| {
                supervisor.loads.ready(number, read);
                supervisor.hand_over(ctx);
                supervisor.load_next(ctx);
            }));
        }
    }

    /// Reads end in any order; calls are made in the order in which they were decided.
    fn hand_over(&mut self, ctx: &mut Context<Self>) {
        while let Some((load, woken)) = self.loads.next_ready() {
            match woken {
                Ok(woken) => self.loaded(load, woken, ctx),
                Err(why) => self.put_aside(load.id.family, format!("{}: {why}", load.id), ctx),
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
        if self.quarantined.contains_key(&id.family) || self.poisoned.is_some() {
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
                Call::Execute(Box::new(facts), run, stage)
            }
            Purpose::Undo {
                scope,
                number,
                stage,
                visit,
                attempt,
            } => Call::Undo(
                Box::new(self.facts(id, visit, attempt, Woken::Plainly)),
                scope,
                number,
                stage,
            ),
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

    pub(super) fn load_stack(&mut self, scope: ProcedureId, ctx: &mut Context<Self>) {
        let reader = self.reader.clone();
        let work = async move { reader.history(scope.family).await };
        ctx.spawn(work.into_actor(self).map(move |entries, supervisor, ctx| {
            let entries = entries.unwrap_or_else(|error| {
                tracing::warn!(family = scope.family, %error, "its history cannot be read");
                Vec::new()
            });
            supervisor.decide(Event::StackLoaded(scope, entries), ctx);
        }));
    }
}

async fn read(reader: &Reader, load: &mut Load, at_hand: bool) -> Result<Woken, ReadError> {
    if load.payload.is_none() && !at_hand {
        let bytes = reader.payload(load.id, PAYLOAD).await?;
        let missing = || StoreError::Damaged {
            place: "the store".to_owned(),
            why: format!("the payload of {} is missing", load.id),
        };
        load.payload = Some(Blob::from(bytes.ok_or_else(missing)?));
    }
    if let Purpose::Join(round, _) = &load.purpose {
        return Ok(Woken::Children(
            outcomes(reader, load.id, round.first, round.count).await?,
        ));
    }
    Ok(match &load.wake {
        None => Woken::Plainly,
        Some(Wake::Timeout(_)) => Woken::Timeout,
        Some(Wake::Children(first, count)) => Woken::Children(outcomes(reader, load.id, *first, *count).await?),
        Some(Wake::Signal(name, number)) => {
            let key = keys::signal(load.id, *number, name.as_str());
            let bytes = reader.get(Space::Signals, key).await?;
            let payload = match bytes {
                Some(bytes) => codec::decode::<StoredSignal>(&bytes)?.payload,
                None => Blob::default(),
            };
            Woken::Signal(Signal {
                name: name.to_string(),
                number: *number,
                payload,
            })
        }
    })
}

async fn outcomes(
    reader: &Reader,
    parent: ProcedureId,
    first: u32,
    count: u32,
) -> Result<Vec<ChildOutcome>, ReadError> {
    let mut outcomes = Vec::with_capacity(count as usize);
    for member in first..first + count {
        let id = ProcedureId::new(parent.family, member);
        let Some(row) = reader.row(id).await? else { continue };
        let output = reader.payload(id, OUTPUT).await?.map(Blob::from);
        outcomes.push(ChildOutcome {
            id,
            ended: row.is_ended(),
            kind: row.kind,
            state: row.state,
            cause: row.cause,
            output,
        });
    }
    Ok(outcomes)
}
