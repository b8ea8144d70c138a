//! Items by a small number. A number is used again once its item is removed.

/// Items by number.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Room that is kept when the slab is empty. Any room that was needed beyond it is given back.
    const KEPT: usize = 1024;

    /// Adds an item and returns its number.
    pub(super) fn add(&mut self, thing: T) -> u32 {
        if let Some(number) = self.free.pop() {
            if let Some(place) = self.places.get_mut(index(number)) {
                *place = Some(thing);
            }
            return number;
        }
        let number = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        self.places.push(Some(thing));
        number
    }

    /// Removes an item and returns it.
    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let thing = self.places.get_mut(index(number))?.take()?;
        self.free.push(number);
        if self.free.len() == self.places.len() {
            self.places.clear();
            self.places.shrink_to(Self::KEPT);
            self.free.clear();
            self.free.shrink_to(Self::KEPT);
        }
        Some(thing)
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.places.get(index(number))?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut(index(number))?.as_mut()
    }

    /// Returns all items, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..)
            .zip(&self.places)
            .filter_map(|(number, thing)| Some((number, thing.as_ref()?)))
    }

    /// Returns the number of items.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

const fn index(number: u32) -> usize {
    number as usize
}
