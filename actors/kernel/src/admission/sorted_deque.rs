//! A sorted set that is cheapest at its ends, because queues grow at one end and shrink at the other. It is kept in
//! pieces, so that a change in the middle of a long set moves few items.
//!
//! No crate serves: `BTreeSet` descends its tree at both ends too, and sorted vectors move their items at the front.

use std::collections::VecDeque;
use std::iter;

/// Items in order, each once.
#[derive(Clone, Debug)]
pub(super) struct SortedDeque<T> {
    first: VecDeque<T>,
    /// The pieces behind the first. No piece is empty, and neither is `first` if there are any.
    rest: VecDeque<Piece<T>>,
}

#[derive(Clone, Debug)]
struct Piece<T> {
    /// A bound: no item of this piece is before it, and all items of earlier pieces are. It is stored beside the items,
    /// so that the search for a piece does not look into any piece.
    least: T,
    items: VecDeque<T>,
}

impl<T> Default for SortedDeque<T> {
    fn default() -> Self {
        Self {
            first: VecDeque::new(),
            rest: VecDeque::new(),
        }
    }
}

impl<T: Copy + Ord> SortedDeque<T> {
    /// The length of the longest piece.
    const MOST: usize = 64;

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    #[inline]
    pub(super) fn first(&self) -> Option<T> {
        self.first.front().copied()
    }

    #[inline]
    pub(super) fn last(&self) -> Option<T> {
        self.rest
            .back()
            .map_or(&self.first, |piece| &piece.items)
            .back()
            .copied()
    }

    /// Returns all items, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = T> {
        self.first
            .iter()
            .chain(self.rest.iter().flat_map(|piece| &piece.items))
            .copied()
    }

    /// Returns the item at this place, counted from 0. Takes a step for each piece before it.
    pub(super) fn nth(&self, place: usize) -> Option<T> {
        let mut left = place;
        let pieces = iter::once(&self.first).chain(self.rest.iter().map(|piece| &piece.items));
        for items in pieces {
            if let Some(item) = items.get(left) {
                return Some(*item);
            }
            left -= items.len();
        }
        None
    }

    /// Returns all items from `start` on.
    pub(super) fn from(&self, start: T) -> impl Iterator<Item = T> {
        let at = self.piece_of(start);
        let piece = self.piece(at);
        let skipped = piece.map_or(0, |piece| piece.partition_point(|item| *item < start));
        let later = self.rest.iter().skip(at).flat_map(|piece| &piece.items);
        piece
            .into_iter()
            .flat_map(move |piece| piece.range(skipped..))
            .chain(later)
            .copied()
    }

    /// Returns the last item before `bound`.
    pub(super) fn before(&self, bound: T) -> Option<T> {
        if self.first()? >= bound {
            return None;
        }
        let last = self.last()?;
        if last < bound {
            return Some(last);
        }
        let at = self.piece_of(bound);
        let piece = self.piece(at)?;
        match piece.partition_point(|item| *item < bound).checked_sub(1) {
            Some(place) => piece.get(place).copied(),
            None => self.piece(at.checked_sub(1)?)?.back().copied(),
        }
    }

    /// Returns the first item behind `bound`.
    pub(super) fn after(&self, bound: T) -> Option<T> {
        if self.last()? <= bound {
            return None;
        }
        let at = self.piece_of(bound);
        let piece = self.piece(at)?;
        let place = piece.partition_point(|item| *item <= bound);
        let next = piece.get(place).or_else(|| self.piece(at + 1)?.front());
        next.copied()
    }

    /// Adds an item, unless the set already contains it.
    #[inline]
    pub(super) fn insert(&mut self, item: T) {
        let tail = self.rest.back_mut().map_or(&mut self.first, |piece| &mut piece.items);
        if tail.back().is_some_and(|last| *last >= item) {
            self.insert_within(item);
        } else if tail.len() < Self::MOST {
            tail.push_back(item);
        } else {
            let mut items = VecDeque::with_capacity(Self::MOST);
            items.push_back(item);
            self.rest.push_back(Piece { least: item, items });
        }
    }

    fn insert_within(&mut self, item: T) {
        let at = self.piece_of(item);
        if let Some(piece) = self.piece_mut(at)
            && let Err(place) = piece.binary_search(&item)
        {
            piece.insert(place, item);
            if piece.len() > Self::MOST {
                let items = piece.split_off(Self::MOST / 2);
                if let Some(least) = items.front().copied() {
                    self.rest.insert(at, Piece { least, items });
                }
            }
        }
    }

    /// Removes an item. Returns `true` if the set contained it.
    #[inline]
    pub(super) fn remove(&mut self, item: T) -> bool {
        if self.first.front() != Some(&item) {
            return self.remove_within(item);
        }
        self.first.pop_front();
        if self.first.is_empty()
            && let Some(next) = self.rest.pop_front()
        {
            self.first = next.items;
        }
        true
    }

    fn remove_within(&mut self, item: T) -> bool {
        let at = self.piece_of(item);
        let Some(piece) = self.piece_mut(at) else {
            return false;
        };
        let Ok(place) = piece.binary_search(&item) else {
            return false;
        };
        piece.remove(place);
        if piece.len() < Self::MOST / 4 && !self.rest.is_empty() {
            self.join(at);
        }
        true
    }

    /// Joins a short piece with the piece before it. The first piece is joined with the piece behind it.
    fn join(&mut self, at: usize) {
        let behind = at.saturating_sub(1);
        let before = self.piece(behind).map_or(0, VecDeque::len);
        let length = self.rest.get(behind).map_or(0, |piece| piece.items.len());
        if before == 0 || length == 0 || before + length <= Self::MOST / 2 {
            let piece = self.rest.remove(behind);
            if let Some(piece) = piece
                && let Some(before) = self.piece_mut(behind)
            {
                before.extend(piece.items);
            }
        }
    }

    /// Returns the number of the piece that contains the item, if the set contains it.
    #[inline]
    fn piece_of(&self, item: T) -> usize {
        let is_before = |piece: &Piece<T>| piece.least <= item;
        match self.rest.back() {
            None => 0,
            Some(last) if is_before(last) => self.rest.len(),
            Some(_) if !self.rest.front().is_some_and(is_before) => 0,
            Some(_) => self.rest.partition_point(is_before),
        }
    }

    #[inline]
    fn piece(&self, at: usize) -> Option<&VecDeque<T>> {
        match at.checked_sub(1) {
            None => Some(&self.first),
            Some(behind) => self.rest.get(behind).map(|piece| &piece.items),
        }
    }

    #[inline]
    fn piece_mut(&mut self, at: usize) -> Option<&mut VecDeque<T>> {
        match at.checked_sub(1) {
            None => Some(&mut self.first),
            Some(behind) => self.rest.get_mut(behind).map(|piece| &mut piece.items),
        }
    }
}
