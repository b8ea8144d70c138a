//! Counters of refused submissions. They are shared, since the sender may wait for the answer on any thread.

use std::collections::BTreeMap;

use metrics::Counter;
use procession_kernel::Kind;

use super::labels::{REFUSALS, UNREGISTERED, refusal_place};
use super::names::{REFUSED, counter, shared};
use crate::error::SubmitError;

type Reasons = [Counter; REFUSALS.len()];

/// Counters by kind and reason.
pub(crate) struct Refused {
    kinds: BTreeMap<Kind, Reasons>,
    unregistered: Reasons,
}

impl Refused {
    pub(super) fn new<'a>(kinds: impl IntoIterator<Item = &'a Kind>) -> Self {
        let of = |kind: &str| {
            let kind = shared(kind);
            REFUSALS.map(|reason| counter(&REFUSED, [kind.clone(), reason.into()]))
        };
        Self {
            kinds: kinds
                .into_iter()
                .map(|kind| (kind.clone(), of(kind.as_str())))
                .collect(),
            unregistered: of(UNREGISTERED),
        }
    }

    /// Counts one refused submission.
    pub(crate) fn count(&self, kind: &Kind, why: &SubmitError) {
        let reasons = self.kinds.get(kind).unwrap_or(&self.unregistered);
        if let Some(reason) = refusal_place(why).and_then(|place| reasons.get(place)) {
            reason.increment(1);
        }
    }
}
