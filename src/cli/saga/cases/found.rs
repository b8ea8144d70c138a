//! How a saga stands at the end of a step.

use procession::procedure::Timestamp;
use procession::saga::{SagaError, SagaInstance, SagaOutcome, SagaStatus, Standing, StateInstance};
use serde_json::{Map, Value, json};

use super::calls::Called;

/// What was found at the end of a step.
#[derive(Clone, Debug)]
pub struct Found {
    /// Since the case began.
    pub commits: u64,
    pub(super) at: Timestamp,
    /// Of this step.
    pub calls: Vec<Called>,
    /// How ids begin that name the saga.
    pub family: String,
    pub(super) instance: SagaInstance,
    pub(super) outcome: Option<SagaOutcome>,
    /// Why the decision was refused.
    pub refused: Option<String>,
}

impl Found {
    /// Returns the end, as far as it must be the same after every crash.
    pub fn end(&self) -> Value {
        json!({
            "standing": self.standing(),
            "status": self.status(),
            "compensation": self.compensation(),
            "error": self.error(),
            "context": self.context(),
            // After a crash, siblings may be called in another order.
            "states": by_member(&self.instance.states).into_iter().map(state).collect::<Vec<_>>(),
            "rests": self.rests(),
            "skipped": self.skipped(),
        })
    }

    /// Returns how it stands, in a word of cases.
    #[must_use]
    pub const fn standing(&self) -> &'static str {
        match self.instance.standing {
            Standing::Running => "running",
            Standing::Rests => "rests",
            Standing::Compensating => "compensating",
            Standing::CompensationRests => "compensation_rests",
            Standing::Ended => "ended",
            _ => "unknown",
        }
    }

    /// Returns what it has come to.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        self.instance.status.word()
    }

    /// Returns what its compensation has come to.
    #[must_use]
    pub fn compensation(&self) -> Option<&'static str> {
        self.instance.compensation.map(SagaStatus::word)
    }

    pub(super) fn error(&self) -> Value {
        self.instance.error.as_ref().map_or(Value::Null, error)
    }

    /// Returns the variables, with the family's id cut from ids in them: a crash may have cost a number.
    pub fn context(&self) -> Map<String, Value> {
        let named = |(name, value): (&String, &Value)| (name.clone(), self.without_family(value));
        self.instance.context.iter().map(named).collect()
    }

    pub(super) fn without_family(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if !self.family.is_empty() => text.replace(&self.family, "saga").into(),
            Value::Array(items) => items.iter().map(|item| self.without_family(item)).collect(),
            Value::Object(members) => {
                let named = |(name, value): (&String, &Value)| (name.clone(), self.without_family(value));
                members.iter().map(named).collect::<Map<_, _>>().into()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }

    pub(super) fn states(&self) -> Vec<Value> {
        self.instance.states.iter().map(state).collect()
    }

    pub(super) fn rests(&self) -> Vec<Value> {
        let rests = self.instance.rests.iter();
        rests
            .map(|rest| {
                json!({
                    "state": rest.state,
                    "error": error(&rest.error),
                    "can_skip": rest.can_skip,
                    "question": rest.question,
                })
            })
            .collect()
    }

    pub(super) fn skipped(&self) -> Vec<Value> {
        let skipped = self.outcome.iter().flat_map(|outcome| &outcome.skipped);
        skipped
            .map(|undo| json!({ "state": undo.state, "by": undo.by }))
            .collect()
    }

    /// Returns in what the two readings of an end differ.
    pub(super) fn disagreement(&self) -> Option<String> {
        let (instance, outcome) = (&self.instance, self.outcome.as_ref()?);
        let is_same = instance.status == outcome.status
            && instance.compensation == outcome.compensation
            && instance.error == outcome.error
            && instance.context == outcome.context;
        (!is_same).then(|| format!("instance and outcome differ: {instance:?}, {outcome:?}"))
    }
}

fn state(state: &StateInstance) -> Value {
    json!({
        "state": state.state,
        "member": state.member.member,
        "status": state.status.word(),
        "tries": state.tries,
        "fault": state.fault,
        "compensated": state.is_compensated,
        "routed": state.routed,
        "overwritten": state.overwritten,
    })
}

fn error(error: &SagaError) -> Value {
    json!({
        "code": error.code,
        "message": error.message,
        "class": error.class,
        "fault": error.fault,
        "state": error.state,
    })
}

/// Returns the state instances of each member in their order, one member after the other.
fn by_member(states: &[StateInstance]) -> Vec<&StateInstance> {
    let mut states: Vec<&StateInstance> = states.iter().collect();
    states.sort_by_key(|state| state.member);
    states
}
