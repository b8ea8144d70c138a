//! What a stage asks for next, and how its children stand.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use procession_kernel::{
    Admission, Birth, Blob, Brood, Cause, ChildPermits, JoinPolicy, Kind, Labels, NextStageNeeds, OnFailure,
    ProcedureId, ProcedureState, Row, Timestamp,
};
use serde::de::DeserializeOwned;

use crate::child::Child;
use crate::error::CodecError;
use crate::guard::guarded;
use crate::journal::codec;
use crate::procedure::Procedure;

/// What a stage asks for next. The value, the step and everything the stage wrote through its context are one commit.
#[non_exhaustive]
pub enum Step<P: Procedure> {
    /// Run this stage next, behind everything that already waits for the worker.
    Next(P::Stage),
    /// The procedure has succeeded with this output.
    Done(P::Output),
    /// Spawn children, and run `then` once their join policy is met. An empty list is the same as `Next(then)`.
    Spawn {
        /// The children, the join policy, and how many run at once.
        children: Children,
        /// The stage that sees the children's outcomes.
        then: P::Stage,
    },
    /// Run `then` at this instant. It is durable and absolute: time that passes while the engine is down counts.
    Sleep {
        /// The instant.
        until: Timestamp,
        /// The stage to run at that instant.
        then: P::Stage,
    },
    /// Run `then` when the named event arrives or the timeout expires. An event that arrived earlier is consumed at
    /// once.
    Wait {
        /// Name of the event.
        event: String,
        /// Longest wait; `None` waits for ever.
        timeout: Option<Duration>,
        /// The stage to run; it reads the event with [`CallContext::signal`](crate::CallContext::signal).
        then: P::Stage,
    },
    /// Ask a person, and run `then` once the question is answered with `Executor::decide`, an operator lets the
    /// procedure go on without an answer, or the time is up.
    ///
    /// The procedure is parked meanwhile: it releases permits that it holds while active, locks unless it holds them for
    /// life, and its place in its parent's width unless the list [keeps places](Children::keep_places). A signal or a
    /// broadcast is no answer. An operator sees the question, for as long as nobody decides, in the verdict `undecided`.
    Ask {
        /// The question, for people; cut to 2,048 bytes.
        question: String,
        /// How long to wait for the answer; `None` waits for ever.
        timeout: Option<Duration>,
        /// The stage to run; it reads the answer with [`CallContext::answer`](crate::CallContext::answer).
        then: P::Stage,
    },
    /// Fail the procedure with this cause, and keep what the stage did: the value, the writes, the signals and the
    /// families that it submitted are part of the commit, as with any other step. The rollback then begins with the
    /// undo of this stage, which sees all of it.
    ///
    /// [`StageError::Fail`](crate::StageError::Fail) discards these instead; return it if the stage has done nothing worth keeping.
    ///
    /// A stage that has added children must not return it: the failure is then one over a bound, and names what to
    /// return. Past the point of no return it is the same as [`StageError::Fail`](crate::StageError::Fail): nothing is kept, and the stage runs
    /// again.
    ///
    /// ```
    /// # use procession_actors::{Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # struct Bank;
    /// # impl Bank {
    /// #     async fn reserve(&self) -> Result<(u64, bool), std::io::Error> { Ok((7, false)) }
    /// # }
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Pay { reservation: Option<u64> }
    /// # impl Procedure for Pay {
    /// #     const KIND: &'static str = "pay";
    /// #     type Stage = ();
    /// #     type Env = std::sync::Arc<Bank>;
    /// #     type Output = ();
    /// #     fn first(&self) {}
    /// async fn execute(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    ///     let (id, is_covered) = cx.env().reserve().await?;
    ///     self.reservation = Some(id);
    ///     if !is_covered {
    ///         // The undo must know the reservation to cancel it.
    ///         return Ok(Step::Fail("the account is not covered".to_owned()));
    ///     }
    ///     Ok(Step::Done(()))
    /// }
    /// # }
    /// ```
    Fail(String),
    /// Run the same stage again, behind all other stages. Nothing is stored, and the value is the last committed one.
    Yield,
}

impl<P: Procedure> Step<P> {
    /// Returns the stage that this step asks for, if it asks for one.
    pub(crate) const fn next_stage(&self) -> Option<&P::Stage> {
        match self {
            Self::Next(then)
            | Self::Spawn { then, .. }
            | Self::Sleep { then, .. }
            | Self::Wait { then, .. }
            | Self::Ask { then, .. } => Some(then),
            Self::Done(_) | Self::Fail(_) | Self::Yield => None,
        }
    }
}

impl<P: Procedure> fmt::Debug for Step<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Next(stage) => f.debug_tuple("Next").field(stage).finish(),
            Self::Done(_) => f.write_str("Done"),
            Self::Spawn { children, then } => f
                .debug_struct("Spawn")
                .field("children", &children.births.len())
                .field("then", then)
                .finish(),
            Self::Sleep { until, then } => f
                .debug_struct("Sleep")
                .field("until", until)
                .field("then", then)
                .finish(),
            Self::Wait { event, timeout, then } => f
                .debug_struct("Wait")
                .field("event", event)
                .field("timeout", timeout)
                .field("then", then)
                .finish(),
            Self::Ask {
                question,
                timeout,
                then,
            } => f
                .debug_struct("Ask")
                .field("question", question)
                .field("timeout", timeout)
                .field("then", then)
                .finish(),
            Self::Fail(cause) => f.debug_tuple("Fail").field(cause).finish(),
            Self::Yield => f.write_str("Yield"),
        }
    }
}

/// Children to spawn in one commit, and how their parent waits for them.
///
/// ```
/// # use procession_actors::{Children, Procedure};
/// # fn plan<P: Procedure>(loads: Vec<P>) -> Result<Children, procession_actors::CodecError> {
/// let children = Children::of(&loads)?.width(8);
/// # Ok(children) }
/// ```
#[derive(Default, Clone)]
pub struct Children {
    pub(crate) births: Vec<Birth>,
    pub(crate) join: JoinPolicy,
    pub(crate) width: u32,
    pub(crate) keep_places: bool,
    permits: Option<ChildPermits>,
    inherit_labels: bool,
}

impl Children {
    /// Creates an empty list: by default all children must succeed, and all run at once.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a list of these procedures, in this order.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if a value cannot be encoded.
    pub fn of<'a, P: Procedure>(procedures: impl IntoIterator<Item = &'a P>) -> Result<Self, CodecError> {
        procedures.into_iter().try_fold(Self::new(), Self::and)
    }

    /// Adds a child whose result stands even when the family rolls back later.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn and<P: Procedure>(self, procedure: &P) -> Result<Self, CodecError> {
        self.push(procedure, OnFailure::Keep, false)
    }

    /// Adds a child that is undone with the rest of the family, even if it succeeded.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn and_compensated<P: Procedure>(self, procedure: &P) -> Result<Self, CodecError> {
        self.push(procedure, OnFailure::Compensate, false)
    }

    /// Adds a family of its own. It is born in the same commit, and is neither waited for nor rolled back.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn and_detached<P: Procedure>(self, procedure: &P) -> Result<Self, CodecError> {
        self.push(procedure, OnFailure::Keep, true)
    }

    /// Adds a child with a name, or with siblings that come before it.
    #[must_use]
    pub fn child(mut self, child: Child) -> Self {
        self.births.push(child.into_birth());
        self
    }

    fn push<P: Procedure>(mut self, procedure: &P, on_failure: OnFailure, detached: bool) -> Result<Self, CodecError> {
        let mut birth = birth_of(procedure)?;
        birth.on_failure = on_failure;
        birth.detached = detached;
        self.births.push(birth);
        Ok(self)
    }

    /// Sets when the parent continues.
    #[must_use]
    pub fn join(mut self, policy: JoinPolicy) -> Self {
        self.join = policy;
        self
    }

    /// Sets how many of the children run at once; 0 is unlimited.
    #[must_use]
    pub fn width(mut self, width: u32) -> Self {
        self.width = width;
        self
    }

    /// Lets a child that [asks a person](Step::Ask) keep its place in the width. By default a sibling takes the place,
    /// and the child waits for another one when it has its answer.
    #[must_use]
    pub fn keep_places(mut self) -> Self {
        self.keep_places = true;
        self
    }

    /// Sets whose permits the children use. Default: they need none, whatever limit their kind or their
    /// [`limit`](Procedure::limit) has. A child whose `limit` names a limit that is set is then logged once for its kind.
    /// What [`limits`](Procedure::limits) names for a stage is taken in any case.
    #[must_use]
    pub fn permits(mut self, permits: ChildPermits) -> Self {
        self.permits = Some(permits);
        self
    }

    /// Copies the labels of the parent to all children on the list, detached ones too. A label that a child has
    /// [of its own](Child::label) goes before one of the same name.
    ///
    /// ```
    /// # use procession_actors::{Children, CodecError, Procedure};
    /// # fn plan<P: Procedure>(loads: Vec<P>) -> Result<Children, CodecError> {
    /// // Whoever looks for `customer=4711` finds the loads, too.
    /// Ok(Children::of(&loads)?.inherit_labels())
    /// # }
    /// ```
    #[must_use]
    pub fn inherit_labels(mut self) -> Self {
        self.inherit_labels = true;
        self
    }

    /// Returns the children with what the list says about all of them.
    pub(crate) fn into_births(self) -> Vec<Birth> {
        let mut births = self.births;
        for birth in &mut births {
            birth.permits = self.permits;
            birth.inherits_labels |= self.inherit_labels;
        }
        births
    }

    /// Returns the list for a root that is born with it.
    pub(crate) fn into_brood(self) -> Brood {
        let (join, width, keep_places) = (self.join.clone(), self.width, self.keep_places);
        Brood {
            children: self.into_births(),
            join,
            width,
            keep_places,
            output: None,
        }
    }

    /// Returns the number of children listed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.births.len()
    }

    /// Returns `true` if no child is listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.births.is_empty()
    }
}

/// Asks a procedure for everything that the kernel must know about it, and encodes it.
pub(crate) fn birth_of<P: Procedure>(procedure: &P) -> Result<Birth, CodecError> {
    // User code may panic here, also on the submitter's thread.
    guarded("a question to it", || asked_for_birth(procedure)).unwrap_or_else(|why| {
        Err(CodecError {
            what: "the procedure cannot be submitted",
            why,
        })
    })
}

fn asked_for_birth<P: Procedure>(procedure: &P) -> Result<Birth, CodecError> {
    let first = procedure.first();
    Ok(Birth {
        kind: procedure.kind(),
        version: P::VERSION,
        stage: codec::encode_user(&first)?,
        payload: codec::encode_user(procedure)?,
        priority: procedure.priority(),
        trace: None,
        limit: procedure.limit(),
        hold: P::HOLD,
        permits: None,
        locks_for_life: P::HOLD_LOCKS,
        next_needs: stage_needs(procedure, &first, &Cell::default()).map_err(|why| CodecError {
            what: "the procedure cannot be submitted",
            why,
        })?,
        timeout: procedure.timeout(),
        on_timeout: procedure.on_timeout(),
        admission: Admission::default(),
        on_failure: OnFailure::Keep,
        detached: false,
        graph: None,
        labels: Labels::default(),
        inherits_labels: false,
        brood: None,
        end_signal: None,
    })
}

/// Asks a procedure what the kernel must know about a stage before it runs. `asked` gets the name of each method before
/// it is called.
///
/// # Errors
///
/// The reason why the stage can never run, as a sentence.
pub(crate) fn stage_needs<P: Procedure>(
    procedure: &P,
    stage: &P::Stage,
    asked: &Cell<&'static str>,
) -> Result<NextStageNeeds, String> {
    asked.set("locks");
    let mut locks = procedure.locks(stage);
    if let Some(wrong) = locks.iter().find(|need| need.path.has_empty_part()) {
        let path = wrong.path.as_str().replace('\0', "(empty)");
        return Err(format!(
            "stage {stage:?} asks for the lock \"{path}\", and a part of that path is empty; check the value before you submit it"
        ));
    }
    locks.sort_unstable();
    locks.dedup();
    asked.set("limits");
    let mut limits = procedure.limits(stage);
    limits.sort_unstable();
    limits.dedup();
    asked.set("rollback_supported");
    let is_no_return = !procedure.rollback_supported(stage);
    asked.set("expected");
    let expected = procedure.expected(stage);
    asked.set("is_pure");
    let is_pure = procedure.is_pure(stage);
    asked.set("Debug of the stage");
    let name = || format!("{stage:?}");
    Ok(NextStageNeeds {
        locks,
        limits,
        next_is_no_return: is_no_return.then(name),
        name: P::REPEAT_LIMIT.map(|_| name()),
        expected,
        is_pure,
    })
}

/// The answer of [`Procedure::join`] and of [`Procedure::gate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinVerdict {
    /// The parent may continue; the child may begin.
    Met,
    /// The rule is not met yet.
    Pending,
    /// The rule can no longer be met: the parent fails; the child ends without a call.
    Unmeetable,
}

/// How one child stands, as its parent's next stage sees it.
#[derive(Debug, Clone)]
pub struct ChildOutcome {
    /// The child's id.
    pub id: ProcedureId,
    /// The child's kind.
    pub kind: Kind,
    /// The child's name, which its list gave it, if it has one.
    pub name: Option<String>,
    /// The child's state.
    pub state: ProcedureState,
    /// Why the child failed.
    pub cause: Option<Cause>,
    /// `true` once the child can no longer change.
    pub(crate) ended: bool,
    pub(crate) output: Option<Blob>,
}

impl ChildOutcome {
    /// Reads the outcome from a row.
    pub(crate) fn of(row: &Row, output: Option<Blob>) -> Self {
        Self {
            id: row.id,
            kind: row.kind.clone(),
            name: row.name().map(str::to_owned),
            state: row.state,
            cause: row.rare().cause.as_deref().cloned(),
            ended: row.is_ended(),
            output,
        }
    }

    /// Returns `true` if the child succeeded.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.state == ProcedureState::Success
    }

    /// Returns `true` if the child failed, rolled back or not.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.state.is_failure()
    }

    /// Returns `true` if the procedure can no longer change. One that has failed and still rolls back has not ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the child's output, if it succeeded.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the output is not of this type.
    pub fn output<T: DeserializeOwned>(&self) -> Result<Option<T>, CodecError> {
        self.output
            .as_ref()
            .map(|bytes| codec::decode_user(bytes.as_slice()))
            .transpose()
    }
}
