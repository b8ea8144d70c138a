//! Signals: durable before their sender is answered, and consumed once.

use super::draft::Draft;
use crate::audit::OperatorRequest;
use crate::effect::{Answer, Refusal};
use crate::id::{Blob, EventName, Key, ProcedureId, RequestId};
use crate::record::Record;
use crate::verb::Act;
use crate::wait::{SignalEntry, WaitReason, Wake};

impl Draft<'_> {
    pub(super) fn signalled(
        &mut self,
        request: RequestId,
        id: ProcedureId,
        name: EventName,
        payload: Blob,
        key: Option<Key>,
    ) {
        let answer = match self.take_signal(id, name, payload, key) {
            Ok(number) => Answer::Signalled(number),
            Err(refusal) => Answer::Refused(refusal),
        };
        self.reply(request, answer);
    }

    /// Stores a signal, wakes its receiver, and returns the signal's number. A repeat gets the number of the first.
    pub(super) fn take_signal(
        &mut self,
        id: ProcedureId,
        name: EventName,
        payload: Blob,
        key: Option<Key>,
    ) -> Result<u32, Refusal> {
        let longest = self.kernel.rules.bounds.name;
        self.check_key(key.as_ref())?;
        let names = [Some(name.as_str().len()), key.as_ref().map(|key| key.as_str().len())];
        if let Some(size) = names.into_iter().flatten().find(|size| *size > longest) {
            return Err(Refusal::TooLarge(size, longest));
        }
        let limit = self.kernel.rules.bounds.payload;
        if payload.len() > limit {
            return Err(Refusal::TooLarge(payload.len(), limit));
        }
        let live = self.row(id).filter(|row| !row.is_ended());
        let Some((family, _)) = self.family(id.family).zip(live) else {
            return Err(Refusal::NotLive(id));
        };
        if let Some(number) = self.repeats(id, &name, &payload, key.as_ref())? {
            return Ok(number);
        }
        let waiting = family.signals.waiting(id.member);
        if waiting >= self.kernel.rules.bounds.signals {
            let text =
                format!("{waiting} signals wait for {id}, which is the limit; send again when it has consumed some");
            return Err(Refusal::NotNow(text));
        }
        // A broadcast under way was sent earlier, so the receiver gets it first.
        self.wake_by_wave(id);
        Ok(self.deliver(id, name, payload, key))
    }

    /// Returns the number of the signal that this one repeats. Refuses a different signal with the same key.
    pub(super) fn repeats(
        &self,
        id: ProcedureId,
        name: &EventName,
        payload: &Blob,
        key: Option<&Key>,
    ) -> Result<Option<u32>, Refusal> {
        let family = self.family(id.family);
        let known = family
            .zip(key)
            .and_then(|(family, key)| family.signals.with_key(id.member, key));
        match (known, key) {
            (Some((number, entry)), _) if entry.is_repeated_by(name, payload) => Ok(Some(number)),
            (Some((number, _)), Some(key)) => Err(Refusal::SignalConflict(key.clone(), id, number)),
            _ => Ok(None),
        }
    }

    /// Refuses an empty key: all senders that forgot theirs would share it.
    pub(super) fn check_key(&self, key: Option<&Key>) -> Result<(), Refusal> {
        match key {
            Some(key) if key.as_str().is_empty() => Err(Refusal::BadKey(0, self.kernel.rules.bounds.name)),
            Some(_) | None => Ok(()),
        }
    }

    /// Makes room for one more consumed signal that is kept for its key: the oldest ones are dropped.
    pub(super) fn key_remembered(&mut self, id: ProcedureId) {
        let Some(family) = self.family(id.family) else { return };
        let (kept, most) = (family.signals.consumed(id.member), self.kernel.rules.bounds.signal_keys);
        let over = (kept + 1).saturating_sub(most);
        for (number, entry) in family.signals.oldest_consumed(id.member).take(over) {
            self.record(Record::SignalDropped(id, number, entry.name.clone()));
        }
    }

    /// Stores a signal, wakes its receiver if it waits for that event, and returns the signal's number.
    pub(super) fn deliver(&mut self, id: ProcedureId, name: EventName, payload: Blob, key: Option<Key>) -> u32 {
        let number = self.row(id).map_or(0, |row| row.signals) + 1;
        self.wake_with(id, number, name.clone());
        let entry = SignalEntry {
            name,
            digest: key.as_ref().map(|_| payload.digest()),
            key,
            consumed: false,
        };
        self.record(Record::Signal(id, number, entry, payload));
        number
    }

    fn wake_with(&mut self, id: ProcedureId, number: u32, name: EventName) {
        let Some(mut row) = self.take(id) else { return };
        let stopping = self.is_stopping(&row);
        row.signals = number;
        let waits = matches!(&row.wait, Some(WaitReason::Event(event, _)) if *event == name);
        if waits && !stopping {
            row.wake = Some(Wake::Signal(name, number));
            self.set_going(&mut row, None);
        }
        self.put(row);
    }

    /// Wakes all current waiters of an event, first waiter first. The signal is not kept for later ones.
    pub(super) fn broadcast(&mut self, request: RequestId, name: EventName, payload: Blob, key: Option<Key>) {
        if let Err(refusal) = self.check_key(key.as_ref()) {
            return self.refuse(request, refusal);
        }
        let bounds = &self.kernel.rules.bounds;
        let sizes = [name.as_str().len(), key.as_ref().map_or(0, |key| key.as_str().len())];
        if let Some(size) = sizes.into_iter().find(|size| *size > bounds.name) {
            return self.refuse(request, Refusal::TooLarge(size, bounds.name));
        }
        if payload.len() > bounds.payload {
            return self.refuse(request, Refusal::TooLarge(payload.len(), bounds.payload));
        }
        let act = Act::Broadcast(name.clone());
        let digest = key.as_ref().map(|_| payload.digest());
        if let Some(before) = key.as_ref().and_then(|key| self.kernel.requests.get(key)) {
            let answer = if before.is_repeated_by(&act, &act.to_string(), digest) {
                Answer::Broadcast(before.changed)
            } else {
                Answer::Refused(Refusal::NotNow(format!(
                    "the key was used for another request: {}",
                    before.words
                )))
            };
            return self.reply(request, answer);
        }
        if key.is_some() && self.kernel.has_exhausted_numbers() {
            return self.refuse(request, Refusal::NumbersExhausted);
        }
        let woken = match self.wake_all(&name, &payload) {
            Ok(woken) => u32::try_from(woken).unwrap_or(u32::MAX),
            Err(refusal) => return self.refuse(request, refusal),
        };
        if key.is_some() {
            // The key is remembered with those of operators' requests, and dropped with the oldest of them.
            let by = OperatorRequest {
                key,
                ..OperatorRequest::default()
            };
            self.note_broadcast(act, digest, woken, &by);
        }
        self.reply(request, Answer::Broadcast(woken));
    }
}
