//! Signals of a family: pending signals, and consumed signals whose keys are remembered.
//!
//! Most families that keep any keep a few, which are looked through. Where there may be thousands, each query has an index
//! of its own, so that a signal costs no more there.

mod indexed;

use std::collections::BTreeMap;

use indexed::Indexed;

use crate::id::{EventName, Key, Timestamp};
use crate::seldom::Empty;
use crate::wait::SignalEntry;

/// How many signals are looked through. More than these are indexed, until none is left.
const FEW: usize = 8;

/// Signals by member and number.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// In the order of members and numbers; empty if they are indexed.
    few: Vec<(u32, u32, SignalEntry)>,
    indexed: Option<Box<Indexed>>,
}

/// Compares what is kept. Whether it is indexed depends on how many there were.
impl PartialEq for Signals {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Signals {}

impl Empty for Signals {
    const EMPTY: &'static Self = &Self {
        few: Vec::new(),
        indexed: None,
    };
}

impl Signals {
    /// Returns `true` if no signal is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.few.is_empty() && self.indexed.is_none()
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u32, &SignalEntry)> {
        let few = self.few.iter().map(|(member, number, entry)| (*member, *number, entry));
        few.chain(self.indexed.iter().flat_map(|indexed| indexed.iter()))
    }

    /// Returns those of a member among the few, in the order of their numbers.
    fn few_of(&self, member: u32) -> impl Iterator<Item = (u32, &SignalEntry)> {
        let of_member = self.few.iter().filter(move |(of, ..)| *of == member);
        of_member.map(|(_, number, entry)| (*number, entry))
    }

    /// Returns a signal.
    #[must_use]
    pub fn get(&self, member: u32, number: u32) -> Option<&SignalEntry> {
        match &self.indexed {
            Some(indexed) => indexed.get(member, number),
            None => self
                .few_of(member)
                .find(|(of, _)| *of == number)
                .map(|(_, entry)| entry),
        }
    }

    /// Returns the signal that a sender's key stands for.
    #[must_use]
    pub fn with_key(&self, member: u32, key: &Key) -> Option<(u32, &SignalEntry)> {
        match &self.indexed {
            Some(indexed) => indexed.with_key(member, key),
            // Of two with one key, the newest.
            None => self
                .few_of(member)
                .filter(|(_, entry)| entry.key.as_ref() == Some(key))
                .last(),
        }
    }

    /// Returns how many signals of a member wait to be consumed.
    #[must_use]
    pub fn waiting(&self, member: u32) -> usize {
        match &self.indexed {
            Some(indexed) => indexed.waiting(member),
            None => self.few_of(member).filter(|(_, entry)| !entry.consumed).count(),
        }
    }

    /// Returns how many consumed signals of a member are kept for their keys.
    #[must_use]
    pub fn consumed(&self, member: u32) -> usize {
        match &self.indexed {
            Some(indexed) => indexed.consumed(member),
            None => self.few_of(member).filter(|(_, entry)| entry.consumed).count(),
        }
    }

    /// Returns the consumed signals of a member that are kept for their keys, oldest first.
    pub(crate) fn oldest_consumed(&self, member: u32) -> impl Iterator<Item = (u32, &SignalEntry)> {
        let indexed = self
            .indexed
            .iter()
            .flat_map(move |indexed| indexed.oldest_consumed(member));
        self.few_of(member).filter(|(_, entry)| entry.consumed).chain(indexed)
    }

    /// Counts the signals of a member that wait to be consumed, by name.
    #[must_use]
    pub fn kept(&self, member: u32) -> BTreeMap<EventName, u32> {
        if let Some(indexed) = &self.indexed {
            return indexed.kept(member);
        }
        let mut kept = BTreeMap::new();
        for (_, entry) in self.few_of(member).filter(|(_, entry)| !entry.consumed) {
            *kept.entry(entry.name.clone()).or_default() += 1;
        }
        kept
    }

    /// Returns when the oldest signal was sent that a member has yet to consume.
    #[must_use]
    pub fn oldest_sent(&self, member: u32) -> Option<Timestamp> {
        match &self.indexed {
            Some(indexed) => indexed.oldest_sent(member),
            None => oldest_of_names(self.few_of(member)),
        }
    }

    /// Finds the oldest pending signal of this name, except the one that is being consumed.
    pub(crate) fn pending(&self, member: u32, name: &str, consuming: Option<u32>) -> Option<u32> {
        if let Some(indexed) = &self.indexed {
            return indexed.pending(member, name, consuming);
        }
        let waits = |entry: &SignalEntry| !entry.consumed && entry.name.as_str() == name;
        let mut of_member = self.few_of(member);
        let found = of_member.find(|(number, entry)| waits(entry) && consuming != Some(*number));
        found.map(|(number, _)| number)
    }

    pub(crate) fn insert(&mut self, member: u32, number: u32, entry: SignalEntry) {
        if let Some(indexed) = &mut self.indexed {
            return indexed.insert(member, number, entry);
        }
        let place = self.few.partition_point(|(of, at, _)| (*of, *at) < (member, number));
        let is_full = self.few.len() >= FEW;
        match self.few.get_mut(place) {
            Some((of, at, kept)) if (*of, *at) == (member, number) => *kept = entry,
            Some(_) | None if is_full => self.index((member, number, entry)),
            Some(_) | None => self.few.insert(place, (member, number, entry)),
        }
    }

    /// Indexes the few, and one more.
    fn index(&mut self, more: (u32, u32, SignalEntry)) {
        let mut indexed = Indexed::default();
        for (member, number, entry) in std::mem::take(&mut self.few).into_iter().chain([more]) {
            indexed.insert(member, number, entry);
        }
        self.indexed = Some(Box::new(indexed));
    }

    pub(crate) fn remove(&mut self, member: u32, number: u32) {
        if let Some(indexed) = &mut self.indexed {
            indexed.remove(member, number);
            self.indexed.take_if(|indexed| indexed.is_empty());
        } else {
            self.few.retain(|(of, at, _)| (*of, *at) != (member, number));
        }
    }
}

/// Returns when the oldest of the first waiting signals of each name was sent; the indexes look at these alone as well.
fn oldest_of_names<'a>(of_member: impl Iterator<Item = (u32, &'a SignalEntry)>) -> Option<Timestamp> {
    let mut names: Vec<&EventName> = Vec::new();
    let mut oldest = None;
    for (_, entry) in of_member.filter(|(_, entry)| !entry.consumed) {
        if !names.contains(&&entry.name) {
            names.push(&entry.name);
            oldest = [oldest, entry.sent].into_iter().flatten().min();
        }
    }
    oldest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn few_or_many_answer_alike(
            acts in prop::collection::vec((0..2_u32, 0..12_u32, prop::sample::select(vec!["a", "b", "c"]), any::<bool>(), any::<bool>(), 0..3_u64), 0..60),
        ) {
            let (mut signals, mut all) = (Signals::default(), Indexed::default());
            for (member, number, name, consumed, is_put, sent) in acts {
                let key = Key::from(format!("{number}"));
                if is_put {
                    let entry = SignalEntry {
                        name: EventName::from(name),
                        key: (number % 2 == 0).then(|| key.clone()),
                        consumed,
                        digest: None,
                        sent: sent.checked_sub(1).map(Timestamp),
                        last: false,
                    };
                    signals.insert(member, number, entry.clone());
                    all.insert(member, number, entry);
                } else {
                    signals.remove(member, number);
                    all.remove(member, number);
                }
                prop_assert!(signals.iter().eq(all.iter()));
                prop_assert_eq!(signals.is_empty(), all.is_empty());
                prop_assert_eq!(signals.get(member, number), all.get(member, number));
                prop_assert_eq!(signals.with_key(member, &key), all.with_key(member, &key));
                prop_assert_eq!(signals.waiting(member), all.waiting(member));
                prop_assert_eq!(signals.consumed(member), all.consumed(member));
                prop_assert!(signals.oldest_consumed(member).eq(all.oldest_consumed(member)));
                prop_assert_eq!(signals.kept(member), all.kept(member));
                prop_assert_eq!(signals.oldest_sent(member), all.oldest_sent(member));
                for consuming in [None, Some(number)] {
                    prop_assert_eq!(signals.pending(member, "a", consuming), all.pending(member, "a", consuming));
                }
            }
        }
    }

    fn entry(name: &str, key: Option<&str>, consumed: bool) -> SignalEntry {
        SignalEntry {
            name: EventName::from(name),
            key: key.map(Key::from),
            consumed,
            digest: None,
            sent: None,
            last: false,
        }
    }

    #[test]
    fn each_index_follows_what_is_put_and_taken() {
        let mut signals = Signals::default();
        signals.insert(1, 1, entry("a", Some("k"), false));
        signals.insert(1, 2, entry("a", None, false));
        signals.insert(1, 3, entry("b", Some("l"), false));
        signals.insert(2, 1, entry("a", Some("k"), false));
        assert_eq!(
            (signals.pending(1, "a", None), signals.pending(1, "a", Some(1))),
            (Some(1), Some(2))
        );
        assert_eq!(
            (signals.pending(1, "b", None), signals.pending(1, "c", None)),
            (Some(3), None)
        );
        assert_eq!((signals.waiting(1), signals.consumed(1), signals.waiting(2)), (3, 0, 1));
        let (a, b) = (EventName::from("a"), EventName::from("b"));
        assert_eq!(signals.kept(1), [(a.clone(), 2), (b, 1)].into());
        assert_eq!(signals.kept(2), [(a, 1)].into());
        signals.insert(1, 1, entry("a", Some("k"), true));
        assert_eq!((signals.waiting(1), signals.consumed(1)), (2, 1));
        assert_eq!(signals.with_key(1, &Key::from("k")).map(|(number, _)| number), Some(1));
        let oldest = |signals: &Signals| signals.oldest_consumed(1).map(|(number, _)| number).collect::<Vec<_>>();
        assert_eq!((signals.pending(1, "a", None), oldest(&signals)), (Some(2), vec![1]));
        for (member, number) in [(1, 1), (1, 2), (1, 3), (2, 1)] {
            signals.remove(member, number);
        }
        assert_eq!(signals, Signals::default(), "nothing is left of them");
    }
}
