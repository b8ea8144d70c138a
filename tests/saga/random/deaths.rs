//! Calls that process after process was killed with: after the third such death a stage is not called again, and in a family
//! that fails it counts as executed.

use std::collections::{BTreeMap, BTreeSet};

use procession::ProcedureId;

use super::model::Facts;
use super::outside::Called;

/// The end of a process. Nothing is stopped in order here, so each of them is a death.
#[derive(Clone, Copy, Debug)]
pub(super) struct Death {
    /// How many events had happened by then.
    pub(super) event: usize,
    /// The store crashed, at whatever commit. Else all was quiet.
    pub(super) is_crash: bool,
}

/// A stage was out at this many deaths: it is a suspect, and runs with no other suspect beside it.
const SUSPECT_AFTER: u32 = 2;

/// What the engine may know of a stage that calls a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    /// It has not begun, as far as the disk says.
    Ahead,
    /// It is out. `alone`: the next death makes it poison.
    Out { deaths: u32, alone: bool },
    /// It waits for its turn to run alone.
    Held,
    /// It is not called again.
    Poison,
}

/// What a life shows of a stage.
#[derive(Clone, Copy)]
struct Life {
    is_called: bool,
    /// A person has let it go on.
    is_released: bool,
    /// The store crashed, so what was decided may be lost, and what is on disk may not have been called.
    is_crash: bool,
    /// All was quiet once before it was called, so it was neither out then nor waited for its turn.
    is_quiet: bool,
    /// Something was called, so the death before this life is on disk.
    is_counted: bool,
}

type Marks = BTreeSet<Mark>;

/// What is known of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was called when it had to be.
    Goes,
    /// It is poison by now.
    Poison,
    /// It was called though it is poison, or was not called though it is none.
    Wrong,
}

impl Facts {
    /// Returns the life in which an event happened.
    fn life_of(&self, event: usize) -> usize {
        self.deaths.iter().filter(|death| death.event < event).count()
    }

    /// Returns what has become of a try by now. Its stage began after this event.
    pub(super) fn fate(&self, of: &Called, since: usize) -> Fate {
        let calls = self.log.iter();
        let calls = calls.filter(|call| !call.undoes && call.token == of.token && call.attempt == of.attempt);
        let called: BTreeMap<usize, usize> = calls.map(|call| (call.life, call.begun.0)).collect();
        let first = called.first_key_value().map_or(self.life, |(life, _)| *life);
        let mut marks = Marks::from([Mark::Ahead]);
        for life in self.life_of(since).min(first)..=self.life {
            let (begun, ended) = self.span(life);
            let quiet = self.quiet_after(begun);
            let shown = Life {
                is_called: called.contains_key(&life),
                is_quiet: quiet < ended && called.get(&life).is_none_or(|call| quiet < *call),
                is_released: self.released.contains(&(life, of.member)),
                is_crash: self.deaths.get(life).is_some_and(|death| death.is_crash),
                is_counted: self.log.iter().any(|call| call.life == life),
            };
            marks = lived(&marks, shown);
        }
        match (called.contains_key(&self.life), marks.contains(&Mark::Poison)) {
            _ if marks.is_empty() => Fate::Wrong,
            (false, true) => Fate::Poison,
            (true, _) => Fate::Goes,
            (false, false) => Fate::Wrong,
        }
    }

    /// Returns between which events a life lies.
    fn span(&self, life: usize) -> (usize, usize) {
        let before = life.checked_sub(1).and_then(|before| self.deaths.get(before));
        let ended = self.deaths.get(life).map_or(usize::MAX, |death| death.event);
        (before.map_or(0, |death| death.event), ended)
    }

    /// Returns whether a crash may have lost what a call came to.
    pub(super) fn may_be_lost(&self, ended: usize) -> bool {
        let death = self.deaths.iter().find(|death| death.event >= ended);
        death.is_some_and(|death| death.is_crash && self.quiet_after(ended) > death.event)
    }

    /// Returns whether a call was out when the last process ended.
    pub(super) fn was_out(&self) -> bool {
        let mut last = self.log.iter().filter(|called| called.life + 1 == self.life);
        last.any(|called| called.ended.is_none())
    }

    /// Notes that a person lets a poisoned member go on.
    pub(super) fn release(&mut self, member: ProcedureId) {
        self.released.insert((self.life, member));
    }
}

/// Returns what may be known of a stage at the end of a life, given what may have been known at its beginning.
fn lived(before: &Marks, life: Life) -> Marks {
    let mut after = Marks::new();
    for mark in before.iter().flat_map(|mark| started(*mark)) {
        if life.is_quiet && matches!(mark, Mark::Out { .. } | Mark::Held) {
            continue;
        }
        if life.is_called {
            after.extend(called(mark, life));
        } else if life.is_crash {
            after.insert(mark);
            after.extend(called(mark, life));
        } else if !matches!(mark, Mark::Out { .. }) {
            after.insert(mark);
        }
    }
    // Neither the start nor the death before it may have come to the disk.
    if life.is_crash && !life.is_counted {
        after.extend(before);
    }
    after
}

/// Returns what a start makes of a stage.
fn started(mark: Mark) -> Vec<Mark> {
    match mark {
        Mark::Out { alone: true, .. } | Mark::Poison => vec![Mark::Poison],
        Mark::Out { deaths, alone: false } if deaths + 1 < SUSPECT_AFTER => vec![Mark::Out {
            deaths: deaths + 1,
            alone: false,
        }],
        // The first of all suspects runs, and the others wait.
        Mark::Out { alone: false, .. } => vec![ALONE, Mark::Held],
        Mark::Held => vec![BEGUN],
        Mark::Ahead => vec![Mark::Ahead],
    }
}

const BEGUN: Mark = Mark::Out {
    deaths: 0,
    alone: false,
};
const ALONE: Mark = Mark::Out {
    deaths: SUSPECT_AFTER,
    alone: true,
};

/// Returns what a stage is once it is called in a life; `None` if it is not.
fn called(mark: Mark, life: Life) -> Option<Mark> {
    match mark {
        Mark::Ahead => Some(BEGUN),
        Mark::Out { .. } => Some(mark),
        Mark::Held => Some(ALONE),
        Mark::Poison => life.is_released.then_some(BEGUN),
    }
}
