//! Histories of parts that roll back. A part needs the entries of its own members,
//! and the store has them by family: where they are is noted, and looked for only behind what is noted.

mod places;

use procession_kernel::{Event, HistoryEntry, ProcedureId, Record};
use rustc_hash::FxHashMap;

use actix::prelude::*;

use self::places::{Places, Wanted};
use super::Supervisor;
use super::unread::{Subject, Unread};
use crate::error::ReadError;

/// Parts of one family read for at once: handed over in one turn of the supervisor.
const GROUP: usize = 64;

/// Places noted in all, some 16 bytes each. A family with more is looked through for each group of its parts.
const NOTED: usize = 1 << 20;

/// What is known of the history of one family.
#[derive(Default)]
struct Family {
    places: Places,
    /// Parts that wait for their turn, in the order in which they asked.
    waiting: Vec<ProcedureId>,
    is_read: bool,
}

/// The families of which a part has asked, until they end.
#[derive(Default)]
pub(super) struct Stacks {
    families: FxHashMap<u64, Family>,
    noted: usize,
}

impl Stacks {
    /// Drops what is noted of families that end.
    pub(super) fn note(&mut self, records: &[Record]) {
        if self.families.is_empty() {
            return;
        }
        for record in records {
            if let Record::FamilyEnded(family, _) = record {
                self.forget(*family);
            }
        }
    }

    /// Drops what is noted of a family. A read that is under way finds nobody who waits for it.
    pub(super) fn forget(&mut self, family: u64) {
        if let Some(forgotten) = self.families.remove(&family) {
            self.noted -= forgotten.places.len();
        }
    }

    /// Forgets all of it: nothing is read any more.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn enter(&mut self, scope: ProcedureId) {
        self.families.entry(scope.family).or_default().waiting.push(scope);
    }

    /// Takes the next group of a family, unless one is being read for.
    fn begin(&mut self, family: u64) -> Option<(Places, Vec<ProcedureId>)> {
        let known = self.families.get_mut(&family)?;
        if known.is_read || known.waiting.is_empty() {
            return None;
        }
        known.is_read = true;
        let group = known.waiting.drain(..known.waiting.len().min(GROUP)).collect();
        let places = std::mem::take(&mut known.places);
        self.noted -= places.len();
        Some((places, group))
    }

    /// Notes what a read has found, within the bound.
    fn end(&mut self, family: u64, places: Places) {
        let Some(known) = self.families.get_mut(&family) else {
            return;
        };
        known.is_read = false;
        self.noted -= std::mem::take(&mut known.places).len();
        if self.noted + places.len() <= NOTED {
            self.noted += places.len();
            known.places = places;
        }
    }
}

impl Supervisor {
    /// Reads the entries that a rollback needs. Entries that can be read and are wrong are missed when
    /// the rollback needs them: the family parks there.
    pub(super) fn load_stack(&mut self, scope: ProcedureId, ctx: &mut Context<Self>) {
        self.stack_reads.enter(scope);
        self.load_stacks(scope.family, ctx);
    }

    fn load_stacks(&mut self, family: u64, ctx: &mut Context<Self>) {
        let Some((places, group)) = self.stack_reads.begin(family) else {
            return;
        };
        let wanted = group.into_iter().map(|scope| self.members_within(scope)).collect();
        let reader = self.reader.clone();
        let work = async move { places::read(&reader, family, places, wanted).await };
        ctx.spawn(work.into_actor(self).map(move |(places, found), supervisor, ctx| {
            supervisor.turn(|supervisor| {
                supervisor.stack_reads.end(family, places);
                for (scope, entries) in found {
                    supervisor.stack_read(scope, entries, ctx);
                }
                supervisor.load_stacks(family, ctx);
            });
        }));
    }

    fn members_within(&self, scope: ProcedureId) -> Wanted {
        let family = self.kernel.families().get(&scope.family);
        let members = family.into_iter().flat_map(|family| family.within(scope.member));
        Wanted {
            scope,
            members: members.map(|row| row.id.member).collect(),
        }
    }

    fn stack_read(
        &mut self,
        scope: ProcedureId,
        entries: Result<Vec<HistoryEntry>, ReadError>,
        ctx: &mut Context<Self>,
    ) {
        let entries = match entries {
            Ok(entries) => entries,
            Err(ReadError::Store(why)) if why.may_pass() => {
                self.read_again(Unread::Stack(scope), &why, ctx);
                return;
            }
            Err(error) => {
                tracing::warn!(family = scope.family, %error, "its history is damaged");
                Vec::new()
            }
        };
        self.unreadable.succeeded(Subject::Stack(scope));
        self.decide(Event::StackLoaded(scope, entries), ctx);
    }
}
