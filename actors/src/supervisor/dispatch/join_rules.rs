//! Calls of rules: of joins, and of gates. One call of a rule is out at a time. However many children end meanwhile, they
//! lead to one more call, which is made once the rule has ruled. A child that waits at its gate has no children yet, so
//! a procedure has one rule at most.

use procession_kernel::{ProcedureId, StageCall};
use rustc_hash::FxHashMap;

/// The rules that are out, each with its next call.
#[derive(Default)]
pub(super) struct JoinRules(FxHashMap<ProcedureId, Option<Box<StageCall>>>);

impl JoinRules {
    /// Returns the call if it may be made now. Otherwise keeps it for later, replacing the call kept before.
    pub(super) fn begin(&mut self, call: Box<StageCall>) -> Option<Box<StageCall>> {
        match self.0.get_mut(&call.id) {
            Some(next) => {
                *next = Some(call);
                None
            }
            None => {
                self.0.insert(call.id, None);
                Some(call)
            }
        }
    }

    /// Notes that the rule has ruled, or that its call is lost. Returns the call that was kept.
    pub(super) fn end(&mut self, id: ProcedureId) -> Option<Box<StageCall>> {
        self.0.remove(&id).flatten()
    }
}

#[cfg(test)]
mod tests {
    //! How many calls of one rule there are.

    use super::*;
    use crate::supervisor::dispatch::sample;

    fn call(family: u64, version: u16) -> Box<StageCall> {
        Box::new(StageCall {
            version,
            ..sample::call(family)
        })
    }

    #[test]
    fn one_call_is_out_and_the_newest_of_the_others_follows() {
        let (mut rules, id) = (JoinRules::default(), ProcedureId::root(1));
        assert!(rules.begin(call(1, 1)).is_some());
        assert!(rules.begin(call(1, 2)).is_none());
        assert!(rules.begin(call(1, 3)).is_none());
        assert!(rules.begin(call(2, 1)).is_some(), "another procedure's rule");
        assert_eq!(rules.end(id).map(|next| next.version), Some(3));
        assert!(rules.end(id).is_none());
        assert!(rules.begin(call(1, 4)).is_some());
    }
}
