//! A list that is mostly empty: it is one word then, where a `Vec` is three. A row has nine of them.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A list that is one word long, and nothing else while it is empty. It reads as a slice, and is stored as a `Vec` is.
// There is no box without an item: each function that takes items away sees to that.
#[derive(Clone)]
pub struct List<T>(Option<Box<Items<T>>>);

/// Most lists that are not empty have one item: the lock of a stage, the limit of a kind. It costs one allocation then.
#[derive(Clone)]
enum Items<T> {
    One(T),
    Several(Vec<T>),
}

impl<T> List<T> {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// Returns `true` if there are no items.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        if let Some(Items::Several(items)) = self.0.as_deref_mut() {
            items.push(item);
        } else {
            self.change(|items| items.push(item));
        }
    }

    /// Makes the list this long; what is added are copies of the item.
    pub fn resize(&mut self, length: usize, item: T)
    where
        T: Clone,
    {
        if length != self.len() {
            self.change(|items| items.resize(length, item));
        }
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// Removes the items that do not fit.
    pub fn retain(&mut self, fits: impl FnMut(&T) -> bool) {
        if !self.is_empty() {
            self.change(|items| items.retain(fits));
        }
    }

    /// Removes the first item, and returns it; `None` if there is none.
    pub fn take_first(&mut self) -> Option<T> {
        let mut items = std::mem::take(self).into_iter();
        let first = items.next();
        *self = items.collect();
        first
    }

    fn change(&mut self, change: impl FnOnce(&mut Vec<T>)) {
        let mut items = Vec::from(std::mem::take(self));
        change(&mut items);
        *self = items.into();
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self.0.as_deref() {
            None => &[],
            Some(Items::One(item)) => std::slice::from_ref(item),
            Some(Items::Several(items)) => items,
        }
    }
}

impl<T> DerefMut for List<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self.0.as_deref_mut() {
            None => &mut [],
            Some(Items::One(item)) => std::slice::from_mut(item),
            Some(Items::Several(items)) => items,
        }
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(mut items: Vec<T>) -> Self {
        if items.len() > 1 {
            return Self(Some(Box::new(Items::Several(items))));
        }
        Self(items.pop().map(|item| Box::new(Items::One(item))))
    }
}

impl<T> From<List<T>> for Vec<T> {
    fn from(list: List<T>) -> Self {
        match list.0.map(|items| *items) {
            None => Self::new(),
            Some(Items::One(item)) => vec![item],
            Some(Items::Several(items)) => items,
        }
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Vec::from_iter(items).into()
    }
}

impl<T> Extend<T> for List<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            self.push(item);
        }
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        Vec::from(self).into_iter()
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: PartialEq> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for List<T> {}

impl<T: PartialEq> PartialEq<Vec<T>> for List<T> {
    fn eq(&self, other: &Vec<T>) -> bool {
        **self == **other
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_a_vec_and_one_word_while_it_is_empty() {
        assert_eq!(size_of::<List<u32>>(), size_of::<usize>());
        let mut list = List::new();
        assert_eq!((list.take_first(), &*list), (None, &[][..]));
        list.extend([3, 1, 2]);
        assert_eq!(list, vec![3, 1, 2]);
        assert_eq!(list.take_first(), Some(3));
        list.sort_unstable();
        list.retain(|item| *item > 1);
        assert_eq!(
            (format!("{list:?}"), list.clone().into_iter().collect::<List<_>>()),
            ("[2]".to_owned(), list.clone())
        );
        list.retain(|_| false);
        assert!(list.0.is_none(), "what is empty keeps no room");
        assert_eq!(Vec::from(List::from(vec![7])), [7]);
    }
}
