//! Results that are due go: a few families at a time, each as a whole.

use actix::prelude::*;
use procession_kernel::{Blob, Doomed, Event, EventName, Key, KeyEntry, ProcedureId, Row, Timestamp};

use super::Supervisor;
use super::dispatch::failed_reads::{FailedRead, ReadSubject};
use crate::error::{CodecError, ReadError};
use crate::journal::store::Scan;
use crate::journal::{Reader, Space, codec, keys};

/// Families that one commit evicts at most.
const FAMILIES_AT_ONCE: usize = 64;
/// Keys that one commit deletes, unless a single family has more.
const KEYS_AT_ONCE: u64 = 10_000;

/// What one look at the results that are due has found.
#[derive(Default)]
struct Found {
    doomed: Vec<Doomed>,
    /// When to look again.
    next: Option<Timestamp>,
    /// Keys that go with them.
    size: u64,
    /// Families that cannot be read: how many, and the first of them. They stay as they are, and hold up no other.
    unreadable: u64,
    first: Option<(u64, CodecError)>,
}

impl Supervisor {
    /// Begins an eviction if a result is due and none is under way.
    pub(super) fn evict(&mut self, ctx: &mut Context<Self>) {
        let now = self.clock.now();
        let idle = !self.evicting && self.status.decides();
        let is_due = self.next_due.is_some_and(|due| due <= now);
        if !idle || (!is_due && self.wall.ahead().is_none()) {
            return;
        }
        let until = self.wall.look(&*self.clock);
        if self.next_due.is_none_or(|due| due > until) {
            return;
        }
        self.evicting = true;
        // What is noted from here on, the look may have missed.
        self.next_due = None;
        let (settled, reader) = (self.settled(), self.reader.clone());
        let work = async move {
            settled.await.ok()?;
            Some(find(&reader, until).await)
        };
        ctx.spawn(work.into_actor(self).map(move |found, supervisor, ctx| {
            supervisor.evicting = false;
            let Found { doomed, next, .. } = match found {
                Some(Ok(found)) => found,
                Some(Err(ReadError::Store(why))) if why.may_pass() => {
                    return supervisor.read_again(FailedRead::Due, &why, ctx);
                }
                // What is damaged is looked at again with the next result, or at the next start.
                Some(Err(_)) | None => return,
            };
            supervisor.dispatch.read_succeeded(ReadSubject::Due);
            supervisor.next_due = next.into_iter().chain(supervisor.next_due).min();
            if !doomed.is_empty() {
                doomed
                    .iter()
                    .for_each(|doomed| supervisor.requests.overtake(doomed.family));
                supervisor.decide_evictions(doomed, until, ctx);
            }
            supervisor.arm();
        }));
    }

    /// Decided as of the time up to which results go: by it a key of theirs stays or goes, too.
    fn decide_evictions(&mut self, doomed: Vec<Doomed>, until: Timestamp, ctx: &mut Context<Self>) {
        if self.status.decides() {
            let decision = self.kernel.decide(until, Event::EvictionDue(doomed));
            self.commit(decision, ctx);
        }
    }

    /// Looks once more at the results that are due: the store could not be read.
    pub(super) fn evict_again(&mut self, ctx: &mut Context<Self>) {
        let now = self.clock.now();
        self.next_due = self.next_due.into_iter().chain([now]).min();
        self.evict(ctx);
    }
}

/// Looks at the results in the order in which they are due, until enough are found for one commit.
async fn find(reader: &Reader, now: Timestamp) -> Result<Found, ReadError> {
    let (mut found, mut from) = (Found::default(), Vec::new());
    loop {
        let scan = Scan {
            space: Space::Finished,
            from,
            to: None,
            limit: FAMILIES_AT_ONCE + 1,
        };
        let entries = reader.scan(scan).await?;
        let is_all = entries.len() <= FAMILIES_AT_ONCE;
        let last = entries.last().map(|(key, _)| key.clone());
        for (key, kept_key) in entries {
            found.look_at(reader, now, &key, &kept_key).await?;
            if found.next.is_some() {
                break;
            }
        }
        match last.filter(|_| !is_all && found.next.is_none()) {
            Some(last) => from = [last.as_slice(), &[0]].concat(),
            None => break,
        }
    }
    if let Some((family, why)) = &found.first {
        let count = found.unreadable;
        tracing::warn!(count, family, %why, "finished families cannot be read, and stay");
    }
    Ok(found)
}

impl Found {
    async fn look_at(&mut self, reader: &Reader, now: Timestamp, key: &[u8], kept_key: &[u8]) -> Result<(), ReadError> {
        let Some((due, family)) = keys::parse_finished(key) else {
            return Ok(());
        };
        if due > now || self.doomed.len() == FAMILIES_AT_ONCE || self.size > KEYS_AT_ONCE {
            self.next = Some(due);
            return Ok(());
        }
        let doomed = if kept_key.is_empty() {
            match describe(reader, family, due).await {
                Ok(doomed) => doomed,
                Err(ReadError::Codec(why)) => {
                    self.unreadable += 1;
                    self.first.get_or_insert((family, why));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        } else {
            key_alone(family, due, kept_key)
        };
        self.size += u64::from(doomed.members) * 3 + u64::from(doomed.history);
        self.doomed.push(doomed);
        Ok(())
    }
}

/// A family of which nothing is left but its key, which was to be kept longer.
fn key_alone(family: u64, due: Timestamp, key: &[u8]) -> Doomed {
    Doomed {
        family,
        due,
        members: 0,
        history: 0,
        signals: Vec::new(),
        key: Some(Key::from(String::from_utf8_lossy(key).into_owned())),
        key_until: None,
        raw: Vec::new(),
    }
}

/// Lists every key of a finished family. Where the index of results names one that has
/// not ended, or whose time is later, that entry alone goes: it is wrong.
async fn describe(reader: &Reader, family: u64, due: Timestamp) -> Result<Doomed, ReadError> {
    let rows: Vec<Row> = reader.rows(family).await?;
    if rows
        .iter()
        .any(|row| !row.is_over() || row.due.is_some_and(|own| own > due))
    {
        tracing::warn!(family, %due, "a family stands among the results whose time is not up, and is left alone");
        let entry = key_alone(family, due, &[]);
        return Ok(Doomed { key: None, ..entry });
    }
    let history = rows.iter().map(|row| row.history).max().unwrap_or_default();
    // Its rows may say more than there is: what is more than one commit deletes is looked up.
    let raw = if u64::from(history) > KEYS_AT_ONCE {
        every_key(reader, family).await?
    } else {
        Vec::new()
    };
    let signals = reader.scan_prefix(Space::Signals, &keys::family(family)).await?;
    let root = rows.iter().find(|row| row.id == ProcedureId::root(family));
    let key = root.and_then(|row| row.key.clone());
    let mut key_until = None;
    if let Some(key) = &key {
        let entry = reader.get(Space::Keys, key.as_str().as_bytes().to_vec()).await?;
        let entry: Option<KeyEntry> = entry.map(|bytes| codec::decode(&bytes)).transpose()?;
        key_until = entry.and_then(|entry| entry.until);
    }
    Ok(Doomed {
        family,
        due,
        members: u32::try_from(rows.len()).unwrap_or(u32::MAX),
        history: if raw.is_empty() { history } else { 0 },
        signals: signals
            .iter()
            .filter_map(|(key, _)| keys::parse_signal(key))
            .map(|(id, number, name)| (id.member, EventName::from(name), number))
            .collect(),
        key,
        key_until,
        raw,
    })
}

/// Lists the keys of a family's rows, values and history as they are.
async fn every_key(reader: &Reader, family: u64) -> Result<Vec<(String, Blob)>, ReadError> {
    let mut all = Vec::new();
    for space in [Space::Procedures, Space::Payloads, Space::History] {
        let entries = reader.scan_prefix(space.clone(), &keys::family(family)).await?;
        let named = entries.into_iter().map(|(key, _)| (space.name(), Blob::from(key)));
        all.extend(named);
    }
    Ok(all)
}
