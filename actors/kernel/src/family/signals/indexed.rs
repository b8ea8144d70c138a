//! Signals with an index for each query.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{EventName, Key, Timestamp};
use crate::wait::SignalEntry;

/// Signals by member and number.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexed {
    entries: BTreeMap<(u32, u32), SignalEntry>,
    keys: BTreeMap<(u32, Key), u32>,
    waiting: BTreeSet<(u32, EventName, u32)>,
    /// How many signals of each name wait.
    names: BTreeMap<(u32, EventName), u32>,
    consumed: BTreeSet<(u32, u32)>,
    counts: BTreeMap<u32, Counts>,
}

/// Numbers of signals of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    waiting: usize,
    consumed: usize,
}

impl Indexed {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns all signals, in the order of members and numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32, &SignalEntry)> {
        let entries = self.entries.iter();
        entries.map(|((member, number), entry)| (*member, *number, entry))
    }

    /// Returns a signal.
    pub(super) fn get(&self, member: u32, number: u32) -> Option<&SignalEntry> {
        self.entries.get(&(member, number))
    }

    /// Returns the signal that a sender's key stands for.
    pub(super) fn with_key(&self, member: u32, key: &Key) -> Option<(u32, &SignalEntry)> {
        let number = *self.keys.get(&(member, key.clone()))?;
        Some((number, self.get(member, number)?))
    }

    /// Returns how many signals of a member wait to be consumed.
    pub(super) fn waiting(&self, member: u32) -> usize {
        self.counts.get(&member).map_or(0, |counts| counts.waiting)
    }

    /// Returns how many consumed signals of a member are kept for their keys.
    pub(super) fn consumed(&self, member: u32) -> usize {
        self.counts.get(&member).map_or(0, |counts| counts.consumed)
    }

    /// Returns the consumed signals of a member that are kept for their keys, oldest first.
    pub(super) fn oldest_consumed(&self, member: u32) -> impl Iterator<Item = (u32, &SignalEntry)> {
        let numbers = self.consumed.range((member, 0)..=(member, u32::MAX));
        numbers.filter_map(move |(_, number)| Some((*number, self.get(member, *number)?)))
    }

    /// Counts the signals of a member that wait to be consumed, by name.
    pub(super) fn kept(&self, member: u32) -> BTreeMap<EventName, u32> {
        let of_member = self.names.range((member, EventName::from(""))..);
        of_member
            .take_while(|((of, _), _)| *of == member)
            .map(|((_, name), count)| (name.clone(), *count))
            .collect()
    }

    /// Returns when the oldest signal was sent that a member has yet to consume. Only the first signal of each name is
    /// visited.
    pub(super) fn oldest_sent(&self, member: u32) -> Option<Timestamp> {
        let mut oldest = None;
        let mut from = (member, EventName::from(""), 0);
        while let Some((of, name, number)) = self.waiting.range(from..).next()
            && *of == member
        {
            let sent = self.get(member, *number).and_then(|entry| entry.sent);
            oldest = [oldest, sent].into_iter().flatten().min();
            from = (member, name.clone(), u32::MAX);
        }
        oldest
    }

    /// Finds the oldest pending signal of this name, except the one that is being consumed.
    pub(super) fn pending(&self, member: u32, name: &str, consuming: Option<u32>) -> Option<u32> {
        let name = EventName::from(name);
        let of_name = (member, name.clone(), 0)..=(member, name, u32::MAX);
        let mut numbers = self.waiting.range(of_name).map(|(_, _, number)| *number);
        numbers.find(|number| consuming != Some(*number))
    }

    pub(super) fn insert(&mut self, member: u32, number: u32, entry: SignalEntry) {
        self.remove(member, number);
        if let Some(key) = &entry.key {
            self.keys.insert((member, key.clone()), number);
        }
        let counts = self.counts.entry(member).or_default();
        if entry.consumed {
            counts.consumed += 1;
            self.consumed.insert((member, number));
        } else {
            counts.waiting += 1;
            *self.names.entry((member, entry.name.clone())).or_default() += 1;
            self.waiting.insert((member, entry.name.clone(), number));
        }
        self.entries.insert((member, number), entry);
    }

    pub(super) fn remove(&mut self, member: u32, number: u32) {
        let Some(entry) = self.entries.remove(&(member, number)) else {
            return;
        };
        let counts = self.counts.entry(member).or_default();
        if entry.consumed {
            counts.consumed -= 1;
            self.consumed.remove(&(member, number));
        } else {
            counts.waiting -= 1;
            self.waiting.remove(&(member, entry.name.clone(), number));
            let place = (member, entry.name);
            if let Some(count) = self.names.get_mut(&place) {
                *count -= 1;
                if *count == 0 {
                    self.names.remove(&place);
                }
            }
        }
        if *counts == Counts::default() {
            self.counts.remove(&member);
        }
        if let Some(key) = entry.key {
            let place = (member, key);
            if self.keys.get(&place) == Some(&number) {
                self.keys.remove(&place);
            }
        }
    }
}
