//! Words of a filter that stand for states and rules.

use std::fmt;

use procession_actors::view::{Rule, Status};
use procession_kernel::{ProcedureState, WaitReason};

/// The words of `state:`, as a refusal lists them. A procedure that waits with a time limit is `waiting` too.
pub(super) const STATES: [&str; 10] = [
    "live",
    "ended",
    "initializing",
    "runnable",
    "waiting",
    "retrying",
    "rolling_back",
    "failed",
    "rolled_back",
    "success",
];

/// What `state:` may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateWord {
    /// It has not ended.
    Live,
    /// It has ended.
    Ended,
    /// Its last attempt has failed, and the next is due: nobody has paused it; not of those that are undone.
    Retrying,
    /// It has failed, and its rollback goes on by itself: nobody has paused it, no undo has used up its attempts,
    /// and its family is not set aside.
    RollingBack,
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
            "retrying" => return Ok(Self::Retrying),
            "rollingback" => return Ok(Self::RollingBack),
            _ => {}
        }
        let named = ProcedureState::ALL.into_iter().find(|state| word_of(*state) == plain);
        named.map(Self::Is).ok_or_else(|| {
            let [others @ .., last] = STATES;
            format!(
                "\"{}\" is no state; the states are {} and {last}, and what holds one back is a reason",
                word.escape_debug(),
                others.join(", ")
            )
        })
    }

    /// Returns `true` if none that has ended is meant.
    pub(super) const fn is_of_live(self) -> bool {
        use ProcedureState as S;
        match self {
            Self::Live | Self::Retrying | Self::RollingBack => true,
            Self::Is(S::Initializing | S::Runnable | S::Waiting | S::WaitingTimeout) => true,
            // One that has failed is live until its family has been undone.
            Self::Is(S::Failed | S::RolledBack | S::Success) | Self::Ended => false,
        }
    }

    pub(super) fn admits(self, status: &Status) -> bool {
        match self {
            Self::Live => status.ended.is_none(),
            Self::Ended => status.ended.is_some(),
            Self::Retrying => is_retrying(status),
            Self::RollingBack => is_rolling_back(status),
            // Who waits with a time limit waits, too.
            Self::Is(ProcedureState::Waiting) => {
                matches!(status.state, ProcedureState::Waiting | ProcedureState::WaitingTimeout)
            }
            Self::Is(state) => status.state == state,
        }
    }
}

/// Returns `true` if one is tried again when its time has come.
pub(crate) fn is_retrying(status: &Status) -> bool {
    let backs_off = matches!(status.wait, Some(WaitReason::Backoff(..)));
    // Who is paused keeps what it waited for.
    backs_off && !status.paused && status.state != ProcedureState::Failed && status.ended.is_none()
}

/// Returns `true` if one is being undone, and nobody has to act before that goes on.
pub(crate) fn is_rolling_back(status: &Status) -> bool {
    let held = matches!(
        status.wait,
        Some(WaitReason::RollbackFailed | WaitReason::Paused | WaitReason::Quarantined)
    );
    status.state == ProcedureState::Failed && status.ended.is_none() && !status.paused && !held
}

fn word_of(state: ProcedureState) -> String {
    state.to_string().to_ascii_lowercase()
}

impl fmt::Display for StateWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live => f.write_str("live"),
            Self::Ended => f.write_str("ended"),
            Self::Retrying => f.write_str("retrying"),
            Self::RollingBack => f.write_str("rolling_back"),
            Self::Is(state) => f.write_str(&word_of(*state)),
        }
    }
}

/// Short names of rules, as the pages for operators number them.
const NUMBERED: [(&str, &[Rule]); 15] = [
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
    (
        "S11",
        &[
            Rule::StoreSlow,
            Rule::StoreUnreadable,
            Rule::DiskNearlyFull,
            Rule::StoreFailed,
        ],
    ),
    ("S12", &[Rule::Size]),
    ("S13", &[Rule::ClockAhead]),
    ("S14", &[Rule::Undecided]),
    ("S15", &[Rule::UnacknowledgedFailures]),
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
