//! Signals: durable before their sender is answered, consumed once.

use super::draft::Draft;
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
        let longest = self.kernel.rules.bounds.name;
        let names = [Some(name.as_str().len()), key.as_ref().map(|key| key.as_str().len())];
        if let Some(size) = names.into_iter().flatten().find(|size| *size > longest) {
            self.refuse(ticket, Refusal::TooLarge(size, longest));
            return;
        }
        let limit = self.kernel.rules.bounds.payload;
        if payload.len() > limit {
            self.refuse(ticket, Refusal::TooLarge(payload.len(), limit));
            return;
        }
        let live = self.row(id).filter(|row| !row.is_ended());
        let Some((family, row)) = self.family(id.family).zip(live) else {
            self.refuse(ticket, Refusal::NotLive(id));
            return;
        };
        let of_member = (id.member, 0)..=(id.member, u32::MAX);
        let repeat = key.as_ref().and_then(|key| {
            family
                .signals
                .range(of_member.clone())
                .find(|(_, entry)| entry.key.as_ref() == Some(key))
        });
        if let Some(((_, number), _)) = repeat {
            self.reply(ticket, Answer::Signalled(*number));
            return;
        }
        let kept = family.signals.range(of_member).count();
        if kept >= self.kernel.rules.bounds.signals {
            let text =
                format!("{kept} signals are kept for {id}, which is the limit; send again when it has consumed some");
            self.refuse(ticket, Refusal::NotNow(text));
            return;
        }
        let number = row.signals + 1;
        self.deliver(id, number, name.clone());
        self.record(Record::Signal(
            id,
            number,
            SignalEntry {
                name,
                key,
                consumed: false,
            },
            payload,
        ));
        self.reply(ticket, Answer::Signalled(number));
    }

    fn deliver(&mut self, id: ProcedureId, number: u32, name: EventName) {
        let stopping = self.scope_of(id).is_some();
        let Some(mut row) = self.take(id) else { return };
        row.signals = number;
        let waits = matches!(&row.wait, Some(WaitReason::Event(event, _)) if *event == name);
        if waits && !stopping {
            row.wake = Some(Wake::Signal(name, number));
            self.set_going(&mut row, None);
        }
        self.put(row);
    }
}
