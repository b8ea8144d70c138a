//! Converts records to writes: the only place that knows which record is stored under which key.

use procession_kernel::{Blob, Epoch, EvictedFamily, PauseScope, ProcedureId, Record, Seq, SignalEntry};
use serde::{Deserialize, Serialize};

use super::batch::Batch;
use super::codec;
use super::keys::{self, OUTPUT, PAYLOAD, SUBMITTED, Space};
use crate::error::CodecError;

/// Family numbers below this value may have been assigned.
pub(crate) const META_FAMILIES: &[u8] = b"families";
/// The epoch of the engine that started last, and how often engines had died.
pub(crate) const META_STARTED: &[u8] = b"started";
/// The epoch of the engine that last stopped in order.
pub(crate) const META_STOPPED: &[u8] = b"stopped";
/// The store's own number.
pub(crate) const META_STORE: &[u8] = b"store";
/// The result of the last clock check.
pub(crate) const META_CLOCK: &[u8] = b"clock";
/// Prefix of what operators have paused.
pub(crate) const META_PAUSE: &[u8] = b"pause/";
/// Prefix of broadcasts that have not woken all of their waiters yet.
pub(crate) const META_BROADCAST: &[u8] = b"broadcast/";
/// Prefix of capacities that were set at run time.
pub(crate) const META_LIMIT: &[u8] = b"limit/";
/// Prefix of the keys of rates; the name of the limit follows.
pub(crate) const META_RATE: &[u8] = b"rate/";

/// Value of `META_STARTED`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Started {
    #[serde(rename = "e")]
    pub(crate) epoch: Epoch,
    #[serde(rename = "d")]
    pub(crate) deaths: u32,
}

/// Value of `META_CLOCK`: the readings of one clock check, and what follows from them. All times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastLook {
    /// Reading of the wall clock.
    #[serde(rename = "w")]
    pub(crate) wall: u64,
    /// The boot of the machine from which `since` counts.
    #[serde(rename = "b")]
    pub(crate) boot: u64,
    /// How long the machine had run.
    #[serde(rename = "s")]
    pub(crate) since: u64,
    /// How far the wall clock is ahead.
    #[serde(rename = "a", default, skip_serializing_if = "is_zero")]
    pub(crate) ahead: u64,
    /// For how much longer `ahead` counts.
    #[serde(rename = "l", default, skip_serializing_if = "is_zero")]
    pub(crate) left: u64,
    /// The longest time for which a key had to be kept.
    #[serde(rename = "k", default, skip_serializing_if = "is_zero")]
    pub(crate) key: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A signal with its payload.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredSignal {
    #[serde(rename = "e")]
    pub(crate) entry: SignalEntry,
    #[serde(rename = "p")]
    pub(crate) payload: Blob,
}

/// Number of records from which on room is reserved for all of them at once.
const MANY: usize = 64;
/// Bytes reserved for a record on disk in addition to a user's value: more than most records take.
const EACH: usize = 160;

/// Reserves room for this many records with this many bytes of values. Growing a large batch copies it, and touching
/// fresh memory costs more than writing to it.
pub(crate) fn make_room(batch: &mut Batch, records: usize, value_bytes: usize) {
    if records >= MANY {
        batch.reserve(records, records * EACH + value_bytes);
    }
}

/// Adds the writes of a record.
pub(crate) fn write(batch: &mut Batch, record: &Record) -> Result<(), CodecError> {
    match record {
        Record::Row(row) | Record::FinishedRow(row) => {
            batch.put_with(Space::Procedures, &keys::procedure(row.id), |bytes| {
                codec::encode_into(bytes, row)
            })?;
        }
        Record::Payload(id, bytes) => batch.put(Space::Payloads, &keys::payload(*id, PAYLOAD), bytes.as_slice()),
        Record::Submitted(id, version, bytes) => {
            batch.put_with(Space::Payloads, &keys::payload(*id, SUBMITTED), |value| {
                value.extend_from_slice(&version.to_be_bytes());
                value.extend_from_slice(bytes.as_slice());
                Ok::<(), CodecError>(())
            })?;
        }
        Record::Output(id, bytes) => batch.put(Space::Payloads, &keys::payload(*id, OUTPUT), bytes.as_slice()),
        Record::History(entry) => {
            let key = keys::history(entry.family, entry.number);
            batch.put_with(Space::History, &key, |bytes| codec::encode_into(bytes, entry))?;
        }
        Record::HistoryDropped(family, number) => batch.delete(Space::History, &keys::history(*family, *number)),
        Record::Signal(id, number, entry, payload) => {
            let key = keys::signal(*id, *number, entry.name.as_str());
            let stored = StoredSignal {
                entry: entry.clone(),
                payload: payload.clone(),
            };
            batch.put_with(Space::Signals, &key, |bytes| codec::encode_into(bytes, &stored))?;
        }
        Record::SignalDropped(id, number, name) => {
            batch.delete(Space::Signals, &keys::signal(*id, *number, name.as_str()));
        }
        Record::Key(key, entry) => {
            batch.put_with(Space::Keys, key.as_str().as_bytes(), |bytes| {
                codec::encode_into(bytes, entry)
            })?;
        }
        Record::Labels(id, labels) => {
            batch.put_with(Space::Procedures, &keys::labels(*id), |bytes| {
                codec::encode_into(bytes, labels)
            })?;
        }
        Record::Labelled(family, labels) => {
            for label in labels {
                batch.put(Space::Live, &keys::label(label.digest(), *family), &[]);
            }
        }
        Record::FamilyBegan(family) => batch.put(Space::Live, &keys::family(*family), &[]),
        Record::FamilyEnded(family, due) => {
            batch.delete(Space::Live, &keys::family(*family));
            batch.put(Space::Finished, &keys::finished(*due, *family), &[]);
        }
        Record::FailureListed(entry) => {
            let key = keys::failure(entry.ended, entry.family);
            batch.put_with(Space::Finished, &key, |bytes| codec::encode_into(bytes, entry))?;
        }
        Record::FailureClosed(family, ended) => batch.delete(Space::Finished, &keys::failure(*ended, *family)),
        Record::DueChanged(family, old, new) => {
            batch.delete(Space::Finished, &keys::finished(*old, *family));
            batch.put(Space::Finished, &keys::finished(*new, *family), &[]);
        }
        Record::Evicted(doomed) => evict(batch, doomed),
        Record::KeyExpired(key, due, family) => {
            batch.delete(Space::Keys, key.as_str().as_bytes());
            batch.delete(Space::Finished, &keys::finished(*due, *family));
        }
        Record::Audit(entry) => {
            batch.put_with(Space::Audit, &entry.number.to_be_bytes(), |bytes| {
                codec::encode_into(bytes, entry)
            })?;
        }
        Record::AuditDropped(number) => batch.delete(Space::Audit, &number.to_be_bytes()),
        Record::Broadcast(seq, broadcast) => {
            batch.put_with(Space::Meta, &broadcast_key(*seq), |bytes| {
                codec::encode_into(bytes, broadcast)
            })?;
        }
        Record::BroadcastOver(seq) => batch.delete(Space::Meta, &broadcast_key(*seq)),
        Record::Pause(what, paused) => {
            let key = pause_key(what);
            if *paused {
                batch.put_with(Space::Meta, &key, |bytes| codec::encode_into(bytes, what))?;
            } else {
                batch.delete(Space::Meta, &key);
            }
        }
        Record::Archived(family, bytes) => batch.put(Space::Archive, &keys::family(*family), bytes.as_slice()),
        Record::Limit(key, value) => {
            let key = limit_key(key.as_str());
            batch.put_with(Space::Meta, &key, |bytes| codec::encode_into(bytes, value))?;
        }
        Record::RateWindow(key, window) => {
            let key = rate_key(key.as_str());
            if window.is_empty() {
                batch.delete(Space::Meta, &key);
            } else {
                batch.put_with(Space::Meta, &key, |bytes| codec::encode_into(bytes, window))?;
            }
        }
        Record::FamiliesReserved(below) => batch.put(Space::Meta, META_FAMILIES, &below.to_be_bytes()),
        Record::Started(epoch, deaths) => {
            let started = Started {
                epoch: *epoch,
                deaths: *deaths,
            };
            batch.put_with(Space::Meta, META_STARTED, |bytes| codec::encode_into(bytes, &started))?;
        }
        Record::Stopped(epoch) => batch.put(Space::Meta, META_STOPPED, &epoch.0.to_be_bytes()),
        Record::User(write) => {
            let space = Space::User(write.space.clone());
            match &write.value {
                Some(value) => batch.put(space, &write.key, value),
                None => batch.delete(space, &write.key),
            }
        }
        Record::StackAsked(_)
        | Record::StackHeld(..)
        | Record::StackPopped(_)
        | Record::UndoOut(..)
        | Record::GateUnmeetable(..)
        | Record::WakeFound(_)
        | Record::Late(_)
        | Record::Disarmed(_)
        | Record::Draining => {}
    }
    Ok(())
}

/// Adds the result of a clock check.
pub(crate) fn write_look(batch: &mut Batch, look: &LastLook) -> Result<(), CodecError> {
    batch.put_with(Space::Meta, META_CLOCK, |bytes| codec::encode_into(bytes, look))
}

fn limit_key(name: &str) -> Vec<u8> {
    let mut key = META_LIMIT.to_vec();
    key.extend_from_slice(name.as_bytes());
    key
}

fn rate_key(name: &str) -> Vec<u8> {
    let mut key = META_RATE.to_vec();
    key.extend_from_slice(name.as_bytes());
    key
}

fn broadcast_key(seq: Seq) -> Vec<u8> {
    let mut key = META_BROADCAST.to_vec();
    key.extend_from_slice(&seq.0.to_be_bytes());
    key
}

fn pause_key(what: &PauseScope) -> Vec<u8> {
    let mut key = META_PAUSE.to_vec();
    match what {
        PauseScope::All => key.push(b'*'),
        PauseScope::Kind(kind) => {
            key.extend_from_slice(b"kind/");
            key.extend_from_slice(kind.as_str().as_bytes());
        }
        PauseScope::One(id) => key.extend_from_slice(&keys::procedure(*id)),
    }
    key
}

fn evict(batch: &mut Batch, doomed: &EvictedFamily) {
    // A family may be unreadable, so every key is deleted under its raw name.
    let members = if doomed.raw.is_empty() { doomed.members } else { 0 };
    for member in 0..members {
        let id = ProcedureId::new(doomed.family, member);
        batch.delete(Space::Procedures, &keys::procedure(id));
        batch.delete(Space::Payloads, &keys::payload(id, PAYLOAD));
        batch.delete(Space::Payloads, &keys::payload(id, OUTPUT));
    }
    if doomed.submitted {
        let root = ProcedureId::root(doomed.family);
        batch.delete(Space::Payloads, &keys::payload(root, SUBMITTED));
    }
    for number in doomed.history_from.max(1)..=doomed.history {
        batch.delete(Space::History, &keys::history(doomed.family, number));
    }
    for (member, name, number) in &doomed.signals {
        let id = ProcedureId::new(doomed.family, *member);
        batch.delete(Space::Signals, &keys::signal(id, *number, name.as_str()));
    }
    if let Some(ended) = doomed.failed {
        batch.delete(Space::Finished, &keys::failure(ended, doomed.family));
    }
    for member in &doomed.labelled {
        let id = ProcedureId::new(doomed.family, *member);
        batch.delete(Space::Procedures, &keys::labels(id));
    }
    for digest in &doomed.labels {
        batch.delete(Space::Live, &keys::label(*digest, doomed.family));
    }
    for (space, key) in &doomed.raw {
        if let Some(space) = Space::ENGINE.into_iter().find(|known| known.name() == *space) {
            batch.delete(space, key.as_slice());
        }
    }
    match (&doomed.key, doomed.key_until) {
        // The idempotency key outlives the family: the entry is evicted when the key expires.
        (Some(key), Some(until)) => {
            let place = keys::finished(until, doomed.family);
            batch.put(Space::Finished, &place, key.as_str().as_bytes());
        }
        (Some(key), None) => batch.delete(Space::Keys, key.as_str().as_bytes()),
        (None, _) => {}
    }
    batch.delete(Space::Finished, &keys::finished(doomed.due, doomed.family));
}
