//! Whether a stage has left a machine as it was. Its value is then not encoded to find that out, which costs as
//! much as all else that a task does in the machine.

use procession_saga_language::Digest;

use super::Machine;
use super::part::Part;
use super::tally::Tally;

/// What can differ of a machine that has nothing in hand: it waits for no retry, child or person, and has not ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Settled {
    pinned: Option<Digest>,
    tally: Tally,
    /// How often a variable of the context was set.
    sets: u32,
    /// Variables that a branch has written.
    written: usize,
    took_over: Option<u32>,
    visits_from: u32,
    undone: Option<u32>,
}

impl Machine {
    /// Returns what can differ; none if the machine has something in hand. Every field is named, so that a new one forces a
    /// decision here.
    pub(super) fn settled(&self) -> Option<Settled> {
        let Self {
            // These stay as they were at birth.
            name: _,
            version: _,
            saga: _,
            kept: _,
            birth: _,
            is_as_before: _,
            above: _,
            pinned,
            context,
            part,
            instance,
            script_began,
            tally,
            last,
            retries,
            rest,
            windows,
            joining,
            took_over,
            results,
            forwards,
            visits_from,
            error,
            status,
            undone,
        } = self;
        let has_nothing_in_hand = instance.is_none()
            && script_began.is_none()
            && *last == 0
            && retries.is_empty()
            && rest.is_none()
            && windows.is_empty()
            && joining.is_none()
            && results.is_none()
            && *forwards == 0
            && error.is_none()
            && status.is_none();
        let written = match part {
            Some(Part::Branch { written, .. }) => written.len(),
            // What these have differs from what they were born with only after a rest.
            Some(Part::Sub | Part::Element { .. } | Part::Call { .. }) | None => 0,
        };
        has_nothing_in_hand.then(|| Settled {
            pinned: *pinned,
            tally: *tally,
            sets: context.sets(),
            written,
            took_over: *took_over,
            visits_from: *visits_from,
            undone: *undone,
        })
    }

    /// Notes whether a stage has left it as it was before: `before` is what it returned then.
    pub(super) fn compare(&mut self, before: Option<Settled>) {
        self.is_as_before = before.is_some() && self.settled() == before;
    }
}
