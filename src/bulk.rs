//! `Bulk`: one verb of an operator for many procedures, as a procedure of its own. So it
//! survives a crash, has a page, and can be paused and aborted like any other.
//!
//! Each stage asks for a few of them, each with a key of its own: a stage that runs again after
//! a crash asks for the same, and is answered as before.

use futures::future::join_all;
use procession_actors::messages::Operate;
use procession_actors::{AskError, Procedure, StageContext, StageError, Step};
use procession_kernel::{Operated, OperatorRequest, PauseScope, ProcedureId, RetryPolicy, Verb};
use serde::{Deserialize, Serialize};

use crate::executor::EngineLink;

/// Procedures that one stage asks for, unless fewer are said: some kilobytes of audit a commit.
const AT_ONCE: u16 = 32;
/// Bytes of a refusal's text that are kept: enough for one of the engine's sentences.
const TEXT_MAX: usize = 120;

/// A verb that can be requested of many procedures at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum BulkVerb {
    /// [`Verb::Pause`] of each procedure.
    Pause,
    /// [`Verb::Resume`] of each procedure.
    Resume,
    /// [`Verb::RetryNow`].
    Retry,
    /// [`Verb::Abort`].
    Abort,
    /// [`Verb::RetryUndo`].
    RetryUndo,
    /// [`Verb::SkipUndo`].
    SkipUndo,
    /// [`Verb::Acknowledge`].
    Acknowledge,
    /// [`Verb::RunAgain`].
    RunAgain,
    /// [`Verb::SetPriority`].
    Priority(i16),
}

impl BulkVerb {
    /// Returns the verb for one of the procedures.
    #[must_use]
    pub const fn of(self, id: ProcedureId) -> Verb {
        match self {
            Self::Pause => Verb::Pause(PauseScope::One(id)),
            Self::Resume => Verb::Resume(PauseScope::One(id)),
            Self::Retry => Verb::RetryNow(id),
            Self::Abort => Verb::Abort(id),
            Self::RetryUndo => Verb::RetryUndo(id),
            Self::SkipUndo => Verb::SkipUndo(id),
            Self::Acknowledge => Verb::Acknowledge(id),
            Self::RunAgain => Verb::RunAgain(id),
            Self::Priority(priority) => Verb::SetPriority(id, priority),
        }
    }
}

/// What became of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BulkOutcome {
    /// Which one.
    pub id: String,
    /// Number of the entry in the audit; none if it was refused, or nothing had to change.
    #[serde(default)]
    pub number: Option<u64>,
    /// Why it was refused; none if it was done.
    #[serde(default)]
    pub refused: Option<String>,
}

/// What a bulk did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BulkReport {
    /// How many were done.
    pub done: u32,
    /// How many were refused.
    pub refused: u32,
    /// Each, in the order given.
    pub outcomes: Vec<BulkOutcome>,
}

/// One verb for many procedures. Every engine has this kind; it is submitted like any other.
///
/// An abort of it stops it between stages; what it did stays. While everything is paused it
/// is, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bulk {
    verb: BulkVerb,
    who: String,
    why: String,
    at_once: u16,
    todo: Vec<(u64, u32)>,
    report: BulkReport,
    /// Which filter admitted them; bulks of before have none.
    #[serde(default)]
    filter: Option<String>,
}

impl Bulk {
    /// Asks for a verb of each of these, in their order.
    #[must_use]
    pub fn new(
        verb: BulkVerb,
        ids: impl IntoIterator<Item = ProcedureId>,
        who: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        let todo = ids.into_iter().map(|id| (id.family, id.member));
        Self {
            verb,
            who: who.into(),
            why: why.into(),
            at_once: AT_ONCE,
            todo: todo.collect(),
            report: BulkReport::default(),
            filter: None,
        }
    }

    /// Says which filter admitted them, for who reads of it later; it is not asked again.
    #[must_use]
    pub fn chosen_by(mut self, filter: impl Into<String>) -> Self {
        self.filter = Some(filter.into());
        self
    }

    /// Returns the filter that admitted them, if it is known.
    #[must_use]
    pub fn filter(&self) -> Option<&str> {
        self.filter.as_deref()
    }

    /// Returns who asks for it.
    #[must_use]
    pub fn who(&self) -> &str {
        &self.who
    }

    /// Returns the reason, in the words of who asks.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Asks for so many in one stage, at least one and at most 32, which is the default.
    #[must_use]
    pub fn at_once(mut self, at_once: u16) -> Self {
        self.at_once = at_once.clamp(1, AT_ONCE);
        self
    }

    /// Returns the outcomes so far.
    #[must_use]
    pub const fn report(&self) -> &BulkReport {
        &self.report
    }

    /// Returns the verb in words, for example `skip-undo` or `priority 7`.
    #[must_use]
    pub fn words(&self) -> String {
        let name = self.verb.of(ProcedureId::root(0)).name();
        match self.verb {
            BulkVerb::Priority(priority) => format!("{name} {priority}"),
            BulkVerb::Pause
            | BulkVerb::Resume
            | BulkVerb::Retry
            | BulkVerb::Abort
            | BulkVerb::RetryUndo
            | BulkVerb::SkipUndo
            | BulkVerb::Acknowledge
            | BulkVerb::RunAgain => name.to_string(),
        }
    }

    /// Returns `true` if it asks for this of what the same filter admits, for the same reason.
    #[cfg(feature = "dashboard")]
    pub(crate) fn is_for(&self, verb: BulkVerb, filter: &str, who: &str, why: &str) -> bool {
        let same_filter = self.filter.as_deref().is_none_or(|known| known == filter);
        same_filter && (self.verb, self.who.as_str(), self.why.as_str()) == (verb, who, why)
    }

    /// Returns how many are still to come.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.todo.len()
    }
}

/// The only stage of a bulk: it asks for the next few.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BulkStage {
    /// Ask for the next few.
    Operate,
}

/// The way from a bulk to the engine that it runs in: known once that has started.
#[derive(Clone, Debug, Default)]
pub struct BulkEngine(EngineLink);

impl BulkEngine {
    pub(crate) const fn new(link: EngineLink) -> Self {
        Self(link)
    }

    async fn operate(&self, request: Operate) -> Result<Operated, AskError> {
        let supervisor = self.0.supervisor().await?;
        supervisor.send(request).await.map_err(|_| AskError::Stopped)?
    }
}

impl Procedure for Bulk {
    const KIND: &'static str = "procession.bulk";
    /// What operators did is not undone.
    const ROLLBACK: bool = false;
    type Stage = BulkStage;
    type Env = BulkEngine;
    type Output = BulkReport;

    fn first(&self) -> Self::Stage {
        BulkStage::Operate
    }

    async fn execute(
        &mut self,
        BulkStage::Operate: Self::Stage,
        cx: &mut StageContext<'_, Self>,
    ) -> Result<Step<Self>, StageError> {
        let few = self.todo.len().min(usize::from(self.at_once));
        let next: Vec<ProcedureId> = self
            .todo
            .drain(..few)
            .map(|(family, member)| ProcedureId::new(family, member))
            .collect();
        let made = next.into_iter().map(|id| {
            let by = OperatorRequest::new(self.who.as_str(), self.why.as_str()).key(format!("{}: {id}", cx.id()));
            let (env, verb) = (cx.env(), self.verb);
            async move {
                let verb = verb.of(id);
                outcome(id, env.operate(Operate { verb, by }).await)
            }
        });
        for outcome in join_all(made).await {
            let outcome = outcome?;
            match outcome.refused {
                None => self.report.done += 1,
                Some(_) => self.report.refused += 1,
            }
            self.report.outcomes.push(outcome);
        }
        if self.todo.is_empty() {
            Ok(Step::Done(self.report.clone()))
        } else {
            Ok(Step::Next(BulkStage::Operate))
        }
    }

    /// Operators go first.
    fn priority(&self) -> i16 {
        i16::MAX
    }

    /// An engine that is busy is asked again for as long as it takes a person to look.
    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(100)
    }
}

/// Tells what became of one; an engine that cannot answer now is asked again for all of them.
fn outcome(id: ProcedureId, made: Result<Operated, AskError>) -> Result<BulkOutcome, StageError> {
    let (number, refused) = match made {
        Ok(operated) => (operated.number, too_late(&operated)),
        Err(
            error @ (AskError::Busy { .. }
            | AskError::Stopped
            | AskError::JournalFailed(_)
            | AskError::Moved { .. }
            | AskError::NotYet),
        ) => {
            return Err(StageError::retry(error));
        }
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(BulkOutcome {
        id: id.to_string(),
        number,
        refused: refused.map(cut),
    })
}

/// An abort that comes too late is answered, and does nothing.
fn too_late(operated: &Operated) -> Option<String> {
    match &operated.abort {
        Some(procession_kernel::AbortAnswer::TooLate(why)) => Some(why.clone()),
        Some(_) | None => None,
    }
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_MAX));
    text
}
