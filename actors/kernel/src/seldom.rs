//! What few have, in a box that the others do without.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// A value that reads as an empty one as long as nobody changes it, and takes one word then. Changing it creates the box,
/// so what is done for each procedure looks first whether it is empty.
pub struct Seldom<T>(Option<Box<T>>);

/// A type with an empty value.
pub trait Empty: Default + 'static {
    /// The empty value.
    const EMPTY: &'static Self;
}

impl<T> Seldom<T> {
    /// Returns the value if it was changed before, to take something away from it.
    pub fn if_any(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }
}

impl<T> Default for Seldom<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Clone> Clone for Seldom<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Empty> Deref for Seldom<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::EMPTY)
    }
}

impl<T: Empty> DerefMut for Seldom<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: Empty + PartialEq> PartialEq for Seldom<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Empty + Eq> Eq for Seldom<T> {}

impl<T: Empty + fmt::Debug> fmt::Debug for Seldom<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Empty for Vec<u8> {
        const EMPTY: &'static Self = &Self::new();
    }

    #[test]
    fn it_is_one_word_and_reads_as_empty_until_it_is_changed() {
        let mut bytes: Seldom<Vec<u8>> = Seldom::default();
        assert_eq!((size_of::<Seldom<Vec<u8>>>(), bytes.len()), (size_of::<usize>(), 0));
        assert_eq!(bytes.if_any(), None);
        bytes.push(7);
        assert_eq!((bytes.as_slice(), format!("{bytes:?}")), (&[7][..], "[7]".to_owned()));
        let mut other = bytes.clone();
        assert_eq!(bytes, other);
        other.clear();
        assert_eq!(other, Seldom::default(), "with the box or without, empty is empty");
    }
}
