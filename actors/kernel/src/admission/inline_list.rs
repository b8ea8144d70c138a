//! A short list that is stored inside its owner. Most requests need one or two items, and a list on the heap would cost
//! one more memory access.

/// A list of any length. Up to `N` items are stored in place.
#[derive(Clone, Debug)]
pub(super) enum InlineList<T, const N: usize> {
    /// The first `len` of these.
    Here { len: u8, items: [T; N] },
    /// All items, if there are more than `N`.
    There(Vec<T>),
}

impl<T: Copy + Default, const N: usize> Default for InlineList<T, N> {
    fn default() -> Self {
        Self::Here {
            len: 0,
            items: [T::default(); N],
        }
    }
}

impl<T: Copy + Default + PartialEq, const N: usize> InlineList<T, N> {
    pub(super) fn as_slice(&self) -> &[T] {
        match self {
            Self::Here { len, items } => items.get(..usize::from(*len)).unwrap_or_default(),
            Self::There(items) => items,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = T> {
        self.as_slice().iter().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    pub(super) fn contains(&self, item: T) -> bool {
        self.as_slice().contains(&item)
    }

    /// Removes all items.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Here { len, .. } => *len = 0,
            Self::There(_) => *self = Self::default(),
        }
    }

    /// Adds an item at the end.
    pub(super) fn push(&mut self, item: T) {
        match self {
            Self::Here { len, items } => {
                if let Some(place) = items.get_mut(usize::from(*len)) {
                    *place = item;
                    *len += 1;
                } else {
                    *self = Self::There(items.iter().copied().chain([item]).collect());
                }
            }
            Self::There(items) => items.push(item),
        }
    }

    /// Removes the items for which `keep` returns `false`.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(T) -> bool) {
        match self {
            Self::Here { .. } => {
                let mut kept = Self::default();
                self.iter().filter(|item| keep(*item)).for_each(|item| kept.push(item));
                *self = kept;
            }
            Self::There(items) => items.retain(|item| keep(*item)),
        }
    }

    /// Removes an item and moves the last item into its place. Returns `true` if the item was in the list.
    pub(super) fn remove(&mut self, item: T) -> bool {
        let Some(place) = self.iter().position(|other| other == item) else {
            return false;
        };
        match self {
            Self::Here { len, items } => {
                *len -= 1;
                items.swap(place, usize::from(*len));
            }
            Self::There(items) => {
                items.swap_remove(place);
            }
        }
        true
    }
}
