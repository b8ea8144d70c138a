//! The begins that a rate still counts.
//!
//! A begin counts for one period: the next is allowed once fewer than all have begun within the last period. So no time
//! of that length ever has more begins than the rate allows, which a bucket that refills while it is drained does not
//! promise.
//!
//! Begins that are close together are kept as a group, at the time of the last of them. A begin then counts for at most
//! 1/64 of a period longer than one period. So a window has few groups, whatever the rate is, and is small enough to be
//! written with each begin. A rate of up to 64 begins that are spread evenly is kept exactly.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::Timestamp;
use crate::limit::Rate;

/// Into how many parts a period is cut. Begins within one part are a group.
const PARTS: u32 = 64;

/// How many groups a window has at most. A period has [`PARTS`] and two; the rest is for a period that was changed while
/// begins of the former one still counted.
const GROUPS_MAX: usize = 2 * PARTS as usize;

/// Begins that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Group(Timestamp, u32);

/// The begins that a rate still counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateWindow {
    /// The oldest is first.
    #[serde(rename = "g")]
    groups: VecDeque<Group>,
    /// When the first begin of the newest group was.
    #[serde(rename = "o")]
    opened: Timestamp,
}

impl RateWindow {
    /// Returns `true` if no begin counts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns how many begins count.
    #[must_use]
    pub fn begun(&self) -> u32 {
        let counts = self.groups.iter().map(|Group(_, count)| *count);
        counts.fold(0, u32::saturating_add)
    }

    /// Returns how many may begin now, if the window was moved to this instant.
    #[must_use]
    pub fn spare(&self, rate: Rate) -> u32 {
        rate.begins.saturating_sub(self.begun())
    }

    /// Returns when the next may begin. Returns `None` if it may begin now, or if the rate allows none at all.
    #[must_use]
    pub fn free_at(&self, rate: Rate) -> Option<Timestamp> {
        let begun = self.begun();
        if rate.begins == 0 || begun < rate.begins {
            return None;
        }
        let mut counted = begun;
        for Group(at, count) in &self.groups {
            counted -= count;
            if counted < rate.begins {
                return Some(at.after(rate.period));
            }
        }
        None
    }

    /// Returns when the oldest begins no longer count.
    #[must_use]
    pub fn more_at(&self, period: Duration) -> Option<Timestamp> {
        self.groups.front().map(|Group(at, _)| at.after(period))
    }

    /// Moves the window to this instant: begins that are a period ago no longer count. After the clock was set back,
    /// begins of the future count as if they were now, so that none counts for longer than a period from here.
    pub fn move_to(&mut self, now: Timestamp, period: Duration) {
        let mut later = 0_u32;
        while let Some(Group(at, count)) = self.groups.back()
            && *at > now
        {
            later = later.saturating_add(*count);
            self.groups.pop_back();
        }
        if later > 0 {
            self.opened = now;
            self.groups.push_back(Group(now, later));
        }
        while self.groups.front().is_some_and(|Group(at, _)| at.after(period) <= now) {
            self.groups.pop_front();
        }
    }

    /// Counts a begin at this instant.
    pub fn begin(&mut self, now: Timestamp, period: Duration) {
        self.move_to(now, period);
        let part = period / PARTS;
        match self.groups.back_mut() {
            Some(Group(at, count)) if now.since(self.opened) < part || *at == now => {
                *at = now;
                *count = count.saturating_add(1);
            }
            Some(_) | None => {
                self.opened = now;
                self.groups.push_back(Group(now, 1));
            }
        }
        if self.groups.len() > GROUPS_MAX
            && let Some(Group(_, count)) = self.groups.pop_front()
            && let Some(Group(_, counted)) = self.groups.front_mut()
        {
            *counted = counted.saturating_add(count);
        }
    }

    /// Takes back a begin that was counted at that instant, because it never came to be. One that may not count any more
    /// changes nothing.
    pub(crate) fn take_back(&mut self, begun: Timestamp, now: Timestamp, period: Duration) {
        self.move_to(now, period);
        if begun.after(period) <= now {
            return;
        }
        // A clock that was set back has moved later begins to the newest group. A group that is empty now stays, because
        // `opened` belongs to the newest.
        let group = self.groups.iter().position(|Group(at, _)| *at >= begun);
        let group = group.or_else(|| self.groups.len().checked_sub(1));
        if let Some(Group(_, count)) = group.and_then(|place| self.groups.get_mut(place)) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests;
