//! Signals: durable before their sender is answered, and consumed once.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::Draft;
use crate::audit::OperatorRequest;
use crate::effect::{Answer, NotNow, Refusal};
use crate::id::{Blob, EventName, Key, ProcedureId, RequestId};
use crate::kernel::SIGNAL_KEYS;
use crate::record::Record;
use crate::row::Row;
use crate::verb::Act;
use crate::wait::{EndSignal, SentSignal, SignalEntry, Wake};

/// The signals that one decision has sent so far. The kernel does not know them yet, and a later signal of the same
/// decision may repeat one of them, or be one too many.
///
/// Nearly every decision sends none, and neither creates nor drops anything for them.
#[derive(Default)]
pub(super) struct Sent(Option<Box<SentSoFar>>);

#[derive(Default)]
struct SentSoFar {
    counts: BTreeMap<ProcedureId, u32>,
    keys: BTreeMap<(ProcedureId, Key), (u32, SignalEntry)>,
    closed: BTreeSet<(ProcedureId, EventName)>,
    /// Receivers that a signal wakes once it is delivered.
    woken: BTreeSet<ProcedureId>,
    /// Those that the reporting procedure has sent to itself.
    own: Vec<(EventName, u32)>,
}

impl Sent {
    pub(super) const fn new() -> Self {
        Self(None)
    }

    fn count(&self, id: ProcedureId) -> u32 {
        let sent = self.0.as_ref();
        sent.and_then(|sent| sent.counts.get(&id).copied()).unwrap_or_default()
    }

    fn with_key(&self, id: ProcedureId, key: &Key) -> Option<(u32, &SignalEntry)> {
        let (number, entry) = self.0.as_ref()?.keys.get(&(id, key.clone()))?;
        Some((*number, entry))
    }

    fn closes(&self, id: ProcedureId, name: &EventName) -> bool {
        let sent = self.0.as_ref();
        sent.is_some_and(|sent| sent.closed.contains(&(id, name.clone())))
    }

    /// Counts the names that this decision closes for a procedure.
    fn closed(&self, id: ProcedureId) -> usize {
        let Some(sent) = &self.0 else { return 0 };
        let from = (id, EventName::from(""));
        sent.closed.range(from..).take_while(|(of, _)| *of == id).count()
    }

    /// Returns the oldest signal of this name that the reporting procedure has sent to itself.
    pub(super) fn own(&self, name: &str) -> Option<u32> {
        let mut own = self.0.as_ref()?.own.iter();
        own.find(|(event, _)| event.as_str() == name).map(|(_, number)| *number)
    }

    fn note(&mut self, id: ProcedureId, number: u32, entry: &SignalEntry) {
        let sent = self.0.get_or_insert_default();
        *sent.counts.entry(id).or_default() += 1;
        if let Some(key) = &entry.key {
            sent.keys.insert((id, key.clone()), (number, entry.clone()));
        }
        if entry.last {
            sent.closed.insert((id, entry.name.clone()));
        }
    }

    fn wakes(&self, id: ProcedureId) -> bool {
        self.0.as_ref().is_some_and(|sent| sent.woken.contains(&id))
    }

    fn note_woken(&mut self, id: ProcedureId) {
        self.0.get_or_insert_default().woken.insert(id);
    }

    fn note_own(&mut self, name: EventName, number: u32) {
        self.0.get_or_insert_default().own.push((name, number));
    }
}

impl Draft<'_> {
    /// Takes a client's signals: all of them or none.
    pub(super) fn signalled(&mut self, request: RequestId, signals: Vec<SentSignal>) {
        if let Err(refusal) = self.check_batch(&signals) {
            return self.refuse(request, refusal);
        }
        let numbers = signals.into_iter().map(|signal| self.take_signal(signal));
        let answer = match numbers.collect() {
            Ok(numbers) => Answer::Signalled(numbers),
            Err(refusal) => {
                self.forget();
                Answer::Refused(refusal)
            }
        };
        self.reply(request, answer);
    }

    /// Checks the bounds of what one message or one stage may send.
    pub(super) fn check_batch(&self, signals: &[SentSignal]) -> Result<(), Refusal> {
        let bounds = &self.kernel.rules.bounds;
        if signals.len() > bounds.batch {
            return Err(Refusal::BatchTooLarge(signals.len(), bounds.batch));
        }
        let size = signals.iter().map(|signal| signal.payload.len()).sum();
        // A single signal may be as large as any payload.
        let limit = bounds.write_bytes.max(bounds.payload);
        if signals.len() > 1 && size > limit {
            return Err(Refusal::TooLarge(size, limit));
        }
        Ok(())
    }

    /// Stores a signal, wakes its receiver, and returns the signal's number. A repeat gets the number of the first.
    pub(super) fn take_signal(&mut self, signal: SentSignal) -> Result<u32, Refusal> {
        if let Some(number) = self.admit(&signal)? {
            return Ok(number);
        }
        // A broadcast under way was sent earlier, so the receiver gets it first.
        self.wake_by_wave(signal.to);
        Ok(self.deliver(signal))
    }

    /// Checks that a signal can be taken. Returns the number of the signal that it repeats, if it repeats one.
    fn admit(&self, signal: &SentSignal) -> Result<Option<u32>, Refusal> {
        let SentSignal {
            to: id,
            name,
            payload,
            key,
            last,
        } = signal;
        let bounds = &self.kernel.rules.bounds;
        self.check_key(key.as_ref())?;
        let names = [Some(name.as_str().len()), key.as_ref().map(|key| key.as_str().len())];
        if let Some(size) = names.into_iter().flatten().find(|size| *size > bounds.name) {
            return Err(Refusal::TooLarge(size, bounds.name));
        }
        if payload.len() > bounds.payload {
            return Err(Refusal::TooLarge(payload.len(), bounds.payload));
        }
        let live = self.row_before(*id).filter(|row| !row.is_ended());
        let Some((family, row)) = self.family(id.family).zip(live) else {
            return Err(Refusal::NotLive(*id));
        };
        if let Some(number) = self.repeats(signal)? {
            return Ok(Some(number));
        }
        if row.rare().closed.contains(name) || self.sent().closes(*id, name) {
            return Err(Refusal::Closed(*id, name.clone()));
        }
        let waiting = family.signals.waiting(id.member) + self.sent().count(*id) as usize;
        let most = self.rules_of(&row.kind).and_then(|rules| rules.signals);
        // A full mailbox takes the signal that its owner waits for: the owner would never consume the others. The
        // signal ends the wait, so the mailbox is over its bound by one, and by one more if a broadcast comes first.
        if waiting >= most.unwrap_or(bounds.signals) && !self.is_awaited(signal) {
            let text =
                format!("{waiting} signals wait for {id}, which is the limit; send again when it has consumed some");
            return Err(Refusal::NotNow(NotNow::Full, text));
        }
        if *last && row.rare().closed.len() + self.sent().closed(*id) >= bounds.closed {
            let text = format!(
                "{} events of {id} have had their last signal, which is the limit; use a name for several events",
                bounds.closed
            );
            return Err(Refusal::NotNow(NotNow::Full, text));
        }
        Ok(None)
    }

    /// Returns `true` if a signal would wake its receiver.
    fn is_awaited(&self, signal: &SentSignal) -> bool {
        let row = self.row(signal.to).filter(|row| row.waits_for(&signal.name));
        row.is_some_and(|row| !self.sent().wakes(row.id) && !self.is_stopping(row))
    }

    /// Returns the number of the signal that this one repeats. Refuses a different signal with the same key.
    pub(super) fn repeats(&self, signal: &SentSignal) -> Result<Option<u32>, Refusal> {
        let Some(key) = &signal.key else { return Ok(None) };
        let id = signal.to;
        let sent = self.sent().with_key(id, key);
        let known = sent.or_else(|| self.family(id.family)?.signals.with_key(id.member, key));
        match known {
            Some((number, entry)) if entry.is_repeated_by(signal) => Ok(Some(number)),
            Some((number, _)) => Err(Refusal::SignalConflict(key.clone(), id, number)),
            None => Ok(None),
        }
    }

    /// Refuses an empty key: all senders that forgot theirs would share it.
    pub(super) fn check_key(&self, key: Option<&Key>) -> Result<(), Refusal> {
        match key {
            Some(key) if key.as_str().is_empty() => Err(Refusal::BadKey(0, self.kernel.rules.bounds.name)),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns how many keys of consumed signals are remembered for a procedure.
    pub(super) fn keys_remembered(&self, row: &Row) -> usize {
        self.rules_of(&row.kind).map_or(SIGNAL_KEYS, |rules| rules.signal_keys)
    }

    /// Makes room for one more consumed signal that is kept for its key: the oldest ones are dropped.
    pub(super) fn key_remembered(&mut self, id: ProcedureId, most: usize) {
        let Some(family) = self.family(id.family) else { return };
        let over = (family.signals.consumed(id.member) + 1).saturating_sub(most);
        for (number, entry) in family.signals.oldest_consumed(id.member).take(over) {
            self.record(Record::SignalDropped(id, number, entry.name.clone()));
        }
    }

    /// Stores a signal, wakes its receiver if it waits for that event, and returns the signal's number.
    pub(super) fn deliver(&mut self, signal: SentSignal) -> u32 {
        let Some(mut row) = self.take(signal.to) else { return 0 };
        let name = signal.name.clone();
        let number = self.keep(&mut row, signal);
        if row.waits_for(&name) && !self.is_stopping(&row) {
            row.wake = Some(Wake::Signal(name, number));
            // A signal is progress, so that the runs of the stage are counted from here.
            row.same_stage = 0;
            self.set_going(&mut row, None);
        }
        self.put(row);
        number
    }

    /// Stores a signal, and returns its number.
    fn keep(&mut self, row: &mut Row, signal: SentSignal) -> u32 {
        let SentSignal {
            to: id,
            name,
            payload,
            key,
            last,
        } = signal;
        row.signals += 1;
        if last {
            row.rare_mut().closed.push(name.clone());
        }
        let entry = SignalEntry {
            name,
            digest: key.as_ref().map(|_| payload.digest()),
            key,
            consumed: false,
            sent: Some(self.now),
            last,
        };
        self.sent_mut().note(id, row.signals, &entry);
        self.record(Record::Signal(id, row.signals, entry, payload));
        row.signals
    }

    /// Sends the signal of a family that ends in this decision.
    pub(super) fn send_end_signal(&mut self, family: u64, signal: EndSignal) {
        let EndSignal { to, name, payload } = signal;
        // The rows before this decision are not enough: the receiver may end in it as well.
        let is_live = self.row(to).is_some_and(|row| !row.is_ended());
        if to.family == family || !is_live {
            return;
        }
        let signal = SentSignal {
            to,
            name,
            payload,
            key: None,
            last: false,
        };
        // A refusal is the receiver's own affair, and changes nothing about the end. A receiver whose mailbox is full
        // runs anyway, and can look then.
        if let Ok(None) = self.admit(&signal) {
            self.wake_by_wave(to);
            self.deliver(signal);
        }
    }

    // Signals that a stage sends.

    /// Checks that the signals of a stage can be taken, and drops those that repeat earlier ones. What the stage does
    /// otherwise cannot change the answer.
    pub(super) fn admit_all(&self, signals: &mut Vec<SentSignal>) -> Result<(), String> {
        // Nearly every stage sends none, and a second draft is a cost of each stage.
        if signals.is_empty() {
            return Ok(());
        }
        let mut trial = Draft::new(self.kernel, self.now);
        let mut refused = None;
        signals.retain(|signal| match trial.admit(signal) {
            Ok(None) => {
                trial.expect_signal(signal);
                true
            }
            Ok(Some(_)) => false,
            Err(refusal) => {
                refused.get_or_insert_with(|| format!("its signal to {} was refused: {}", signal.to, words(&refusal)));
                false
            }
        });
        refused.map_or(Ok(()), Err)
    }

    /// Counts a signal as sent, for the checks of those behind it.
    fn expect_signal(&mut self, signal: &SentSignal) {
        if self.is_awaited(signal) {
            self.sent_mut().note_woken(signal.to);
        }
        let before = self.row_before(signal.to).map_or(0, |row| row.signals);
        let entry = SignalEntry {
            name: signal.name.clone(),
            key: signal.key.clone(),
            consumed: false,
            digest: signal.key.as_ref().map(|_| signal.payload.digest()),
            sent: None,
            last: signal.last,
        };
        let number = before + self.sent().count(signal.to) + 1;
        self.sent_mut().note(signal.to, number, &entry);
    }

    /// Stores the signals that a procedure has sent to itself. Its stage is over, so none of them wakes it; a stage
    /// that waits for one finds it.
    pub(super) fn keep_own(&mut self, row: &mut Row, signals: &mut Vec<SentSignal>) {
        let id = row.id;
        for signal in signals.extract_if(.., |signal| signal.to == id) {
            let name = signal.name.clone();
            let number = self.keep(row, signal);
            self.sent_mut().note_own(name, number);
        }
    }

    /// Delivers the signals of a stage to other procedures.
    #[inline(never)]
    pub(super) fn deliver_all(&mut self, signals: Vec<SentSignal>) {
        for signal in signals {
            self.wake_by_wave(signal.to);
            self.deliver(signal);
        }
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
                Answer::Refused(Refusal::NotNow(
                    NotNow::KeyUsed,
                    format!("the key was used for another request: {}", before.words),
                ))
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

/// Words a refusal of a signal for the cause of a stage's failure.
pub(super) fn words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotLive(id) => format!("{id} has ended, or is not known"),
        Refusal::Closed(_, name) => format!("the last signal of \"{name}\" was sent before"),
        Refusal::SignalConflict(key, _, number) => {
            format!("its key \"{key}\" was used for another signal, number {number}")
        }
        Refusal::BadKey(size, limit) => format!("a key has 1 to {limit} bytes, and this one has {size}"),
        Refusal::TooLarge(size, limit) => format!("{size} bytes are over the limit of {limit}"),
        Refusal::NotNow(_, text) => text.clone(),
        Refusal::BatchTooLarge(number, limit) => format!("{number} signals are over the limit of {limit}"),
        Refusal::UnknownKind(_)
        | Refusal::KeyConflict(..)
        | Refusal::BatchConflict(..)
        | Refusal::Draining
        | Refusal::BadChildren(_)
        | Refusal::BadName(..)
        | Refusal::BadLabels(_)
        | Refusal::NumbersExhausted
        | Refusal::Revised(..) => "it cannot be taken now".to_owned(),
    }
}
