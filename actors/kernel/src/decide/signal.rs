//! Signals: durable before their sender is answered, consumed once.

use super::draft::Draft;
use crate::audit::By;
use crate::effect::{Answer, Refusal};
use crate::id::{Blob, EventName, Key, ProcedureId, Ticket};
use crate::record::Record;
use crate::wait::{SignalEntry, WaitReason, Wake};

impl Draft<'_> {
    pub(super) fn signalled(
        &mut self,
        ticket: Ticket,
        id: ProcedureId,
        name: EventName,
        payload: Blob,
        key: Option<Key>,
    ) {
        let answer = match self.take_signal(id, name, payload, key) {
            Ok(number) => Answer::Signalled(number),
            Err(refusal) => Answer::Refused(refusal),
        };
        self.reply(ticket, answer);
    }

    /// Keeps a signal, and wakes whom it is for; gives its number. A repeat has that of the first.
    pub(super) fn take_signal(
        &mut self,
        id: ProcedureId,
        name: EventName,
        payload: Blob,
        key: Option<Key>,
    ) -> Result<u32, Refusal> {
        let longest = self.kernel.rules.bounds.name;
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
        let of_member = (id.member, 0)..=(id.member, u32::MAX);
        let repeat = key.as_ref().and_then(|key| {
            family
                .signals
                .range(of_member.clone())
                .find(|(_, entry)| entry.key.as_ref() == Some(key))
        });
        if let Some(((_, number), _)) = repeat {
            return Ok(*number);
        }
        let kept = family.signals.range(of_member).count();
        if kept >= self.kernel.rules.bounds.signals {
            let text =
                format!("{kept} signals are kept for {id}, which is the limit; send again when it has consumed some");
            return Err(Refusal::NotNow(text));
        }
        // A broadcast that is to wake it came first.
        self.wake_by_wave(id);
        Ok(self.deliver(id, name, payload, key))
    }

    /// Keeps a signal, and wakes whom it is for if that is what it waits for; gives its number.
    pub(super) fn deliver(&mut self, id: ProcedureId, name: EventName, payload: Blob, key: Option<Key>) -> u32 {
        let number = self.row(id).map_or(0, |row| row.signals) + 1;
        self.wake_with(id, number, name.clone());
        let entry = SignalEntry {
            name,
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

    /// Wakes all who wait for this event now, first waiter first. It is not kept.
    pub(super) fn broadcast(&mut self, ticket: Ticket, name: EventName, payload: Blob, key: Option<Key>) {
        let bounds = &self.kernel.rules.bounds;
        let sizes = [name.as_str().len(), key.as_ref().map_or(0, |key| key.as_str().len())];
        if let Some(size) = sizes.into_iter().find(|size| *size > bounds.name) {
            return self.refuse(ticket, Refusal::TooLarge(size, bounds.name));
        }
        if payload.len() > bounds.payload {
            return self.refuse(ticket, Refusal::TooLarge(payload.len(), bounds.payload));
        }
        let words = format!("broadcast {name}");
        if let Some(before) = key.as_ref().and_then(|key| self.kernel.requests.get(key)) {
            let answer = if before.verb == words {
                Answer::Broadcast(before.changed)
            } else {
                Answer::Refused(Refusal::NotNow(format!(
                    "the key was used for another request: {}",
                    before.verb
                )))
            };
            return self.reply(ticket, answer);
        }
        if key.is_some() && self.kernel.is_used_up() {
            return self.refuse(ticket, Refusal::UsedUp);
        }
        let woken = match self.wake_all(&name, &payload) {
            Ok(woken) => u32::try_from(woken).unwrap_or(u32::MAX),
            Err(refusal) => return self.refuse(ticket, refusal),
        };
        if key.is_some() {
            // The key is remembered as an operator's is, among the last ones.
            let by = By { key, ..By::default() };
            self.note_broadcast(words, woken, &by);
        }
        self.reply(ticket, Answer::Broadcast(woken));
    }
}
