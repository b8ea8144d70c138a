//! The calls of user code that one case makes: which there were, how each was left,
//! and which of them is made to fail.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use procession_actors::testkit::{Called, Injection, Interception, Leaving, StageInterceptor};
use procession_kernel::ProcedureId;

use super::check::Case;

/// How often in a row a stage is made to fail: beyond its point of no return it is
/// tried again for ever, and a second failure shows that it bears that.
const FAILURES: u32 = 2;

/// Others get up to this many turns before a call begins, where a seed draws them.
const TURNS_BELOW: u64 = 8;

/// Calls that a report lists; the last ones tell most.
const LISTED: usize = 40;

/// One call of a stage or of an undo, the same in every run of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spot(pub(super) Called);

impl Spot {
    /// Returns `true` if `called` is this one: numbers of families may shift when a crash
    /// skips some, so of those only the root's counts.
    fn is(&self, called: &Called, root: u64, root_here: u64) -> bool {
        let Self(spot) = self;
        (spot.id.family == root) == (called.id.family == root_here)
            && (spot.id.member, &spot.kind, &spot.stage, spot.visit, spot.undo)
                == (called.id.member, &called.kind, &called.stage, called.visit, called.undo)
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Called {
            id,
            kind,
            stage,
            visit,
            attempt,
            undo,
        } = &self.0;
        let what = if *undo { "the undo of " } else { "" };
        write!(f, "{what}{stage} of {kind} {id} (visit {visit}, attempt {attempt})")
    }
}

/// Whether a call is made to fail with nothing done, or with all done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Before,
    After,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "before it begins",
            Self::After => "after all it does",
        })
    }
}

/// A call that is to fail, and when.
pub(super) type Failure = (Spot, Moment);

/// A call that was begun.
#[derive(Clone, Debug)]
struct Noted {
    called: Called,
    left: Option<Leaving>,
    made_to_fail: bool,
}

#[derive(Debug, Default)]
struct Notes {
    calls: Vec<Noted>,
    inside: usize,
    /// None while the scenario is set up: nothing is noted, and nothing fails.
    seed: Option<u64>,
    /// How many pure stages were examined.
    examined: usize,
    /// The first of them that is not pure, and why.
    impure: Option<(Spot, String)>,
}

/// Sees every call of one case, over all its lives.
#[derive(Debug, Default)]
pub(super) struct Calls {
    root: u64,
    stage: Option<Failure>,
    undo: Option<Failure>,
    /// Pure stages are computed several times.
    examines: bool,
    notes: Mutex<Notes>,
    /// What fails of streams: the node, and not the stage.
    #[cfg(feature = "flow")]
    injections: crate::flow::Injections,
}

impl Calls {
    /// Has these fail; `root` is the family that the root had when they were found.
    pub(super) fn new(root: u64, case: &Case) -> Self {
        Self {
            root,
            stage: case.stage.clone(),
            undo: case.undo.clone(),
            examines: case.examines,
            notes: Mutex::default(),
            #[cfg(feature = "flow")]
            injections: crate::flow::Injections::default(),
        }
    }

    #[cfg(feature = "flow")]
    pub(super) fn injections(&self) -> crate::flow::Injections {
        self.injections.clone()
    }

    /// Passes on to a stream what is to fail of it.
    #[cfg(feature = "flow")]
    fn inject(&self, called: &Called, interception: Interception) -> Interception {
        use crate::flow::{Injected, StreamRoot};
        use procession_actors::Procedure;

        if called.kind.as_str() != StreamRoot::KIND {
            return interception;
        }
        let injected = |after, why| Some(Injected { after, why });
        let injected = match interception {
            Interception::Proceed => None,
            Interception::FailsBefore(why) => injected(false, why),
            Interception::FailsAfter(why) => injected(true, why),
        };
        self.injections.put(called.id, injected);
        Interception::Proceed
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on calls are noted, and those that are to fail do.
    pub(super) fn begin(&self, seed: u64) {
        self.notes().seed = Some(seed);
    }

    /// Returns `true` if an undo is made to fail.
    pub(super) fn fails_an_undo(&self) -> bool {
        self.undo.is_some()
    }

    /// Returns how many pure stages were examined, or the first that is not pure.
    pub(super) fn examined(&self) -> Result<usize, String> {
        let notes = self.notes();
        match &notes.impure {
            None => Ok(notes.examined),
            Some((spot, why)) => Err(format!("{spot} is not pure: {why}")),
        }
    }

    /// Returns `true` if user code is on its way.
    pub(super) fn inside(&self) -> bool {
        self.notes().inside > 0
    }

    /// Returns each call once, in the order of their first attempts.
    pub(super) fn spots(&self, undo: bool) -> Vec<Spot> {
        let mut spots = Vec::new();
        for noted in self.notes().calls.iter().filter(|noted| noted.called.undo == undo) {
            let spot = Spot(noted.called.clone());
            if !spots.contains(&spot) {
                spots.push(spot);
            }
        }
        spots
    }

    /// Returns the family of the first call.
    pub(super) fn first_family(&self) -> u64 {
        self.notes().calls.first().map_or(0, |noted| noted.called.id.family)
    }

    /// Lists the last calls in words.
    pub(super) fn line(&self) -> String {
        let notes = self.notes();
        let skipped = notes.calls.len().saturating_sub(LISTED);
        let calls = notes.calls.iter().skip(skipped).map(ToString::to_string);
        let dots = (skipped > 0).then(|| format!("({skipped} before)"));
        dots.into_iter().chain(calls).collect::<Vec<_>>().join(", ")
    }

    fn interception(&self, called: &Called, root_here: u64) -> Interception {
        let meets = |(spot, moment): &Failure| {
            let Spot(Called { attempt, undo, .. }) = spot;
            // An undo fails once, and then succeeds; a stage fails for good.
            let times = if *undo { 1 } else { FAILURES };
            let now = (*attempt..attempt + times).contains(&called.attempt);
            (now && spot.is(called, self.root, root_here)).then_some(*moment)
        };
        let why = || "the test kit made it fail".to_owned();
        match self.stage.iter().chain(&self.undo).find_map(meets) {
            None => Interception::Proceed,
            Some(Moment::Before) => Interception::FailsBefore(why()),
            Some(Moment::After) => Interception::FailsAfter(why()),
        }
    }
}

impl StageInterceptor for Calls {
    fn begins(&self, called: &Called) -> Injection {
        let mut notes = self.notes();
        notes.inside += 1;
        let Some(seed) = notes.seed else {
            return Injection::default();
        };
        let root_here = notes
            .calls
            .first()
            .map_or(called.id.family, |first| first.called.id.family);
        let interception = self.interception(called, root_here);
        notes.calls.push(Noted {
            called: called.clone(),
            left: None,
            made_to_fail: interception != Interception::Proceed,
        });
        #[cfg(feature = "flow")]
        let interception = self.inject(called, interception);
        Injection {
            turns: turns(seed, called.id, notes.calls.len()),
            interception,
        }
    }

    fn left(&self, called: &Called, how: Leaving) {
        let mut notes = self.notes();
        notes.inside = notes.inside.saturating_sub(1);
        let mut open = notes.calls.iter_mut().rev().filter(|noted| noted.left.is_none());
        if let Some(noted) = open.find(|noted| noted.called == *called) {
            noted.left = Some(how);
        }
    }

    fn examines_pure_stages(&self) -> bool {
        self.examines && self.notes().seed.is_some()
    }

    fn examined(&self, called: &Called, why: Option<&str>) {
        let mut notes = self.notes();
        notes.examined += 1;
        if let Some(why) = why {
            notes
                .impure
                .get_or_insert_with(|| (Spot(called.clone()), why.to_owned()));
        }
    }
}

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Called { id, stage, undo, .. } = &self.called;
        let undo = if *undo { "undo of " } else { "" };
        let left = match (self.left, self.made_to_fail) {
            (_, true) => " (made to fail)",
            (Some(Leaving::Succeeded), _) => "",
            (Some(Leaving::Failed), _) => " (failed)",
            (Some(Leaving::Dropped) | None, _) => " (cut off)",
        };
        write!(f, "{undo}{stage} of {id}{left}")
    }
}

/// Draws how many turns others get before this call; none where there is no seed.
fn turns(seed: u64, id: ProcedureId, call: usize) -> u32 {
    if seed == 0 {
        return 0;
    }
    let call = u64::try_from(call).unwrap_or_default();
    let mut mixed = seed ^ id.family.rotate_left(40) ^ u64::from(id.member).rotate_left(20) ^ call;
    for _ in 0..3 {
        mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    u32::try_from((mixed >> 32) % TURNS_BELOW).unwrap_or_default()
}

/// One value for all lives of a case.
pub(super) type Shared = Arc<Calls>;
