//! Words of a filter that stand for states and rules.

use std::fmt;

use procession_actors::view::{Rule, Status};
use procession_kernel::ProcedureState;

/// What `state:` may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateWord {
    /// It has not ended.
    Live,
    /// It has ended.
    Ended,
    /// It is in this state.
    Is(ProcedureState),
}

impl StateWord {
    /// Reads a word; case and underscores do not matter.
    pub(super) fn read(word: &str) -> Result<Self, String> {
        let plain = word.replace('_', "").to_ascii_lowercase();
        match plain.as_str() {
            "live" => return Ok(Self::Live),
            "ended" => return Ok(Self::Ended),
            _ => {}
        }
        let named = ProcedureState::ALL.into_iter().find(|state| word_of(*state) == plain);
        named.map(Self::Is).ok_or_else(|| {
            let known: Vec<String> = ProcedureState::ALL.into_iter().map(word_of).collect();
            format!(
                "\"{}\" is no state; the states are live, ended, {}",
                word.escape_debug(),
                known.join(", ")
            )
        })
    }

    pub(super) fn admits(self, status: &Status) -> bool {
        match self {
            Self::Live => status.ended.is_none(),
            Self::Ended => status.ended.is_some(),
            // Who waits with a time limit waits, too.
            Self::Is(ProcedureState::Waiting) => {
                matches!(status.state, ProcedureState::Waiting | ProcedureState::WaitingTimeout)
            }
            Self::Is(state) => status.state == state,
        }
    }
}

fn word_of(state: ProcedureState) -> String {
    state.to_string().to_ascii_lowercase()
}

impl fmt::Display for StateWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live => f.write_str("live"),
            Self::Ended => f.write_str("ended"),
            Self::Is(state) => f.write_str(&word_of(*state)),
        }
    }
}

/// Short names of rules, as the pages for operators number them.
const NUMBERED: [(&str, &[Rule]); 12] = [
    ("S1", &[Rule::Overrun, Rule::BlockedWorker]),
    ("S2", &[Rule::RetryStorm]),
    ("S3", &[Rule::NoProgress]),
    ("S4", &[Rule::LostWake]),
    ("S5", &[Rule::Deadlock]),
    ("S6", &[Rule::Starved]),
    ("S7", &[Rule::ActorLost]),
    ("S8", &[Rule::RollbackFailed]),
    ("S9", &[Rule::Poison]),
    ("S10", &[Rule::Quarantined]),
    ("S11", &[Rule::StoreSlow, Rule::DiskNearlyFull, Rule::StoreFailed]),
    ("S12", &[Rule::Size]),
];

/// Reads the name or the number of a rule.
pub(super) fn read_rule(word: &str) -> Result<Vec<Rule>, String> {
    if let Some(rule) = Rule::ALL.into_iter().find(|rule| rule.as_str() == word) {
        return Ok(vec![rule]);
    }
    let numbered = NUMBERED.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    numbered.map(|(_, rules)| rules.to_vec()).ok_or_else(|| {
        let known: Vec<&str> = Rule::ALL.into_iter().map(Rule::as_str).collect();
        format!(
            "\"{}\" is no rule; the rules are {}",
            word.escape_debug(),
            known.join(", ")
        )
    })
}
