//! What a service is told of a call besides its arguments.

use std::fmt;
use std::sync::Arc;

use procession_actors::{Fence, Token};
use procession_kernel::{ProcedureId, TraceParent};
use serde_json::Value;

/// One call of a service: which saga makes it, in which state, and how often it was made.
#[derive(Clone, Debug)]
pub struct Call {
    parts: CallParts,
}

/// What a call consists of, as the machine that makes it knows it.
#[derive(Clone, Debug)]
pub(in crate::saga) struct CallParts {
    pub(in crate::saga) saga: ProcedureId,
    pub(in crate::saga) member: ProcedureId,
    pub(in crate::saga) machine: Arc<str>,
    pub(in crate::saga) state: Arc<str>,
    /// From 1.
    pub(in crate::saga) attempt: u32,
    pub(in crate::saga) element: Option<Element>,
    pub(in crate::saga) compensates: bool,
    pub(in crate::saga) fence: Fence,
    /// With the visit that began the state instance, so that all its tries have one token.
    pub(in crate::saga) token: Token,
    pub(in crate::saga) trace: Option<TraceParent>,
}

/// The element of a Loop for which a call is made.
#[derive(Clone, Debug)]
pub(in crate::saga) struct Element {
    /// From 0.
    pub(in crate::saga) index: usize,
    pub(in crate::saga) value: Value,
}

impl Call {
    pub(in crate::saga) const fn new(parts: CallParts) -> Self {
        Self { parts }
    }

    /// Returns the id of the saga: of the procedure that was submitted, or spawned by another kind of procedure.
    #[must_use]
    pub const fn saga(&self) -> ProcedureId {
        self.parts.saga
    }

    /// Returns the id of the member of the saga that makes the call: the saga itself, or one of its branches, loop
    /// elements or sub machines.
    #[must_use]
    pub const fn member(&self) -> ProcedureId {
        self.parts.member
    }

    /// Returns the `Name` of the machine whose state makes the call, which is the sub machine's inside of one.
    #[must_use]
    pub fn machine(&self) -> &str {
        &self.parts.machine
    }

    /// Returns the name of the state. Of a compensation it is the compensator's own.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.parts.state
    }

    /// Returns the number of this try, from 1. Retries count, and tries after a decision to go forward. A call that is
    /// made again because the process had ended keeps its number.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.parts.attempt
    }

    /// Returns the index of the Loop's element, from 0. `None` outside of a Loop.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        self.parts.element.as_ref().map(|element| element.index)
    }

    /// Returns the Loop's element. `None` outside of a Loop.
    #[must_use]
    pub fn element(&self) -> Option<&Value> {
        self.parts.element.as_ref().map(|element| &element.value)
    }

    /// Returns `true` if the call undoes what another state did.
    #[must_use]
    pub const fn compensates(&self) -> bool {
        self.parts.compensates
    }

    /// Returns a number that grows from call to call, across restarts too. Pass it to callees that refuse outdated
    /// requests.
    #[must_use]
    pub const fn fence(&self) -> Fence {
        self.parts.fence
    }

    /// Returns what identifies the visit to the state: all tries of it have this token, after retries, restarts and
    /// decisions to go forward too, and no other state has it. Pass it to callees that deduplicate.
    #[must_use]
    pub const fn token(&self) -> CallToken {
        CallToken::new(self.parts.token, self.parts.compensates)
    }

    /// Returns the trace in which the saga was submitted, for the header `traceparent` of a request.
    #[must_use]
    pub const fn trace_parent(&self) -> Option<TraceParent> {
        self.parts.trace
    }
}

/// Identifies a visit to a state in one store. Its text is short and in ASCII, so it suits a header such as
/// `Idempotency-Key`, or a column.
///
/// The text of a compensator's token is that of the state it undoes, with `-c` behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallToken {
    stage: Token,
    compensates: bool,
}

impl CallToken {
    pub(in crate::saga) const fn new(stage: Token, compensates: bool) -> Self {
        Self { stage, compensates }
    }
}

impl fmt::Display for CallToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stage.fmt(f)?;
        match self.compensates {
            true => f.write_str("-c"),
            false => Ok(()),
        }
    }
}
