//! `Saga`: how a saga stands, and what a person decides about it.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use procession_actors::view::Status;
use procession_actors::{AskError, CodecError};
use procession_kernel::{Operated, OperatorRequest, ProcedureId, ProcedureState, Seq};
use serde::Serialize;
use serde_json::{Map, Value};

use super::machine::Decision;
use super::reader::SagaReader;
use super::reading::{self, Ended, Resting, SagaInstance, SagaOutcome};
use super::service::value_of;
use crate::executor::Executor;

/// Decisions that are under way at once.
const DECISIONS: usize = 64;
/// Members that are asked whether a decision was taken before.
const REPEATED: usize = 1_000;
/// The bits of a plan's revision that are the newest revision of its members; those above count the other members.
const REVISION_BITS: u32 = 48;
/// How often a saga is looked at by those who wait for a rest, at first and at most.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(500);

/// Watches one saga, and decides about it. Dropping it cancels nothing.
///
/// With the id of a whole saga, readings and decisions are about all its members; with the id of a branch, a loop element or
/// a sub machine they are about that one and what lies below it. A decision takes an [`OperatorRequest`], so it can be a
/// dry run, and is in the audit. What a request expects is [`Decided::revision`] of its dry run.
#[derive(Clone, Debug)]
pub struct Saga {
    executor: Executor,
    id: ProcedureId,
}

/// What a saga came to for now: [`Saga::settled`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Settled {
    /// It has ended.
    Ended(SagaOutcome),
    /// These of its members rest, and nothing else of it runs or sleeps.
    Rests(Vec<Resting>),
    /// It is being compensated, and this state's undo has failed as often as it may. A person decides: [`Saga::compensate`]
    /// tries it again, [`Saga::skip_compensation`] passes it over.
    CompensationRests {
        /// The state.
        state: String,
        /// Why the undo failed the last time.
        why: String,
    },
}

/// What a decision did, or would do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Decided {
    /// The members that go on, with the states at which they rested. Empty for a repeat, which changes nothing.
    pub members: Vec<Resting>,
    /// What the engine did for each of them, or would do.
    pub operated: Vec<Operated>,
    /// What a request expects that was planned by this one: it is refused unless the same members rest as before.
    pub revision: Seq,
}

/// Why a decision was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// Nothing of the saga rests.
    #[error("the saga does not rest: {doing}")]
    NotResting {
        /// What it does.
        doing: String,
    },
    /// Another decision came first.
    #[error("another decision came first")]
    Superseded,
    /// What rests is no task.
    #[error("state [{state}] cannot be skipped: it is no task; forward the saga with other params, or compensate it")]
    CannotSkip {
        /// Where it rests.
        state: String,
    },
    /// The params or results are no JSON object.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The engine refused, or did not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
}

impl Saga {
    pub(super) const fn new(executor: Executor, id: ProcedureId) -> Self {
        Self { executor, id }
    }

    fn reader(&self) -> SagaReader {
        SagaReader::live(&self.executor, self.id)
    }

    /// Returns the id.
    #[must_use]
    pub const fn id(&self) -> ProcedureId {
        self.id
    }

    /// Returns how it stands: status, context, the newest of its state instances, and who rests.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if it is not known, or its result has gone.
    pub async fn instance(&self) -> Result<SagaInstance, AskError> {
        self.reader().instance().await
    }

    /// Waits until it has ended, or a person has to decide: some of its members rest and nothing else of it moves, or its
    /// compensation rests. It looks again after 5 ms, and then less and less often, up to twice a second.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if it is not known, or its result has gone.
    pub async fn settled(&self) -> Result<Settled, AskError> {
        let mut pause = LOOK_AGAIN;
        loop {
            let status = self.executor.status(self.id).await?;
            if status.ended.is_some() {
                return Ok(Settled::Ended(self.outcome().await?));
            }
            let members = self.reader().members(usize::MAX).await?;
            if reading::stuck(&members).is_some() {
                let page = self.reader().newest(&members, 1).await?;
                let (state, why) = reading::stuck_at(&page);
                return Ok(Settled::CompensationRests { state, why });
            }
            if members.iter().all(reading::is_still) {
                let rests = self.reader().rests_of(&members, usize::MAX).await?;
                if !rests.is_empty() {
                    return Ok(Settled::Rests(rests));
                }
            }
            self.executor.sleep(pause).await;
            pause = (pause * 2).min(LOOK_AGAIN_MAX);
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if it is not known, or its result has gone.
    pub async fn outcome(&self) -> Result<SagaOutcome, AskError> {
        let outcome = self.executor.outcome(self.id).await?;
        let machine = self.reader().machine_at(outcome.state).await?;
        let origin = self.reader().origin(outcome.cause.as_ref()).await?;
        let members = self.reader().members(usize::MAX).await?;
        let mut history = self.executor.history(ProcedureId::root(self.id.family)).await?;
        self.reader().retain(&members, &mut history);
        Ok(reading::outcome(&Ended {
            id: self.id,
            outcome: &outcome,
            machine: &machine,
            origin: origin.as_ref(),
            history: &history,
        }))
    }

    /// Lets what rests go on at the state where it stopped, after these params have replaced variables of its context. What
    /// has succeeded is not called again.
    ///
    /// # Errors
    ///
    /// [`DecideError::NotResting`] if nothing rests; [`DecideError::Superseded`] if another decision came first.
    pub async fn forward<T: Serialize + ?Sized>(
        &self,
        params: &T,
        by: OperatorRequest,
    ) -> Result<Decided, DecideError> {
        let decision = Decision::Forward(object(params)?);
        self.decide(&decision, by, |_| Ok(())).await
    }

    /// Counts the states at which it rests as skipped, lays these results over its context, and lets it go on behind them.
    ///
    /// # Errors
    ///
    /// As [`forward`](Self::forward), and [`DecideError::CannotSkip`] if a member rests at a Choice.
    pub async fn skip<T: Serialize + ?Sized>(&self, results: &T, by: OperatorRequest) -> Result<Decided, DecideError> {
        let decision = Decision::Skip(object(results)?);
        let can_skip = |rest: &Resting| match rest.can_skip {
            true => Ok(()),
            false => Err(DecideError::CannotSkip {
                state: rest.state.clone(),
            }),
        };
        self.decide(&decision, by, can_skip).await
    }

    /// Undoes all that took effect. If its compensation rests, what failed is tried again.
    ///
    /// A sub machine may have rolled back by itself, and its compensation rests. Then the handle of the saga has all of it
    /// undone, with what failed tried again; the handle of the sub machine only tries that again, and the saga goes on.
    ///
    /// # Errors
    ///
    /// [`AskError::Finished`] if it has ended, [`AskError::Unknown`] if it is not known.
    pub async fn compensate(&self, by: OperatorRequest) -> Result<Operated, AskError> {
        let status = self.executor.status(self.id).await?;
        let is_undone = status.state == ProcedureState::Failed;
        match self.stuck().await?.filter(|_| is_undone) {
            Some(id) => self.executor.retry_undo(id, by).await,
            None => self.executor.abort(self.id, by).await,
        }
    }

    /// Skips the compensator that its compensation rests at. It was undone by hand, or is left as it is.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if no compensation rests, [`AskError::Unknown`] if it is not known.
    pub async fn skip_compensation(&self, by: OperatorRequest) -> Result<Operated, AskError> {
        let id = self.stuck().await?.unwrap_or(self.id);
        self.executor.skip_undo(id, by).await
    }

    async fn decide(
        &self,
        decision: &Decision,
        by: OperatorRequest,
        can: impl Fn(&Resting) -> Result<(), DecideError>,
    ) -> Result<Decided, DecideError> {
        let status = self.executor.status(self.id).await?;
        self.reader().machine(self.id).await?;
        let members = self.reader().members(usize::MAX).await?;
        let mut rests = self.reader().rests_of(&members, usize::MAX).await?;
        let revision = revision_of(&rests);
        let planned = by.expected.unwrap_or(revision);
        let mut before = Vec::new();
        if rests.is_empty() || planned != revision {
            before = self.repeated(decision, &by, &members).await?;
            if before.is_empty() && !rests.is_empty() {
                return Err(DecideError::Superseded);
            }
            if before.is_empty() {
                let page = self.reader().newest(&members, 1).await?;
                let doing = reading::doing(&status, &page);
                return Err(DecideError::NotResting { doing });
            }
            // A crash may have come between the members that were planned.
            rests.retain(|rest| rest.revision <= newest_of(planned));
        }
        rests.iter().try_for_each(can)?;
        // They go on together: one that is done may let another one begin, which was to come behind all of them.
        let decisions = stream::iter(rests).map(async |rest| {
            let by = by_of(&by, rest.id, rest.revision);
            let operated = taken(self.executor.decide(rest.id, decision, by).await)?;
            Ok::<_, AskError>(operated.map(|operated| (rest, operated)))
        });
        let decided = decisions.buffered(DECISIONS).try_collect::<Vec<_>>().await?;
        let (members, mut operated): (Vec<_>, Vec<_>) = decided.into_iter().flatten().unzip();
        operated.extend(before);
        // A member may have gone on while this was planned: the plan is for those that it lists.
        let revision = match by.dry_run {
            true => revision_of(&members),
            false => planned,
        };
        match operated.is_empty() {
            true => Err(DecideError::Superseded),
            false => Ok(Decided {
                members,
                operated,
                revision,
            }),
        }
    }

    /// Returns what this very decision did, if it was taken before: nothing may rest any more when it is sent again.
    async fn repeated(
        &self,
        decision: &Decision,
        by: &OperatorRequest,
        members: &[Status],
    ) -> Result<Vec<Operated>, AskError> {
        if by.key.is_none() || by.dry_run {
            return Ok(Vec::new());
        }
        let sagas = members.iter().filter(|member| reading::is_member(member));
        let asked = stream::iter(sagas.take(REPEATED)).map(async |member| {
            // A key that was used is answered before the revision is compared, and no row ever has this one.
            let by = by_of(by, member.id, Seq(u64::MAX));
            taken(self.executor.decide(member.id, decision, by).await)
        });
        let before = asked.buffered(DECISIONS).try_collect::<Vec<_>>().await?;
        Ok(before.into_iter().flatten().collect())
    }

    /// Returns the member whose undo has failed, and waits for a person.
    async fn stuck(&self) -> Result<Option<ProcedureId>, AskError> {
        let members = self.reader().members(usize::MAX).await?;
        Ok(reading::stuck(&members).map(|member| member.id))
    }
}

/// Returns the revision of a plan for these members: the newest revision among them, with the number of the others. A member
/// that comes to rest later has a newer revision than all of them, so while the newest stays the same, members can only have
/// gone.
fn revision_of(rests: &[Resting]) -> Seq {
    let newest = rests.iter().map(|rest| rest.revision.0).max().unwrap_or_default();
    let others = u64::try_from(rests.len().saturating_sub(1)).unwrap_or(u64::MAX);
    Seq(newest | others.min(u64::MAX >> REVISION_BITS) << REVISION_BITS)
}

/// Returns the newest revision of the members of a plan.
const fn newest_of(planned: Seq) -> Seq {
    Seq(planned.0 & !(u64::MAX << REVISION_BITS))
}

/// Returns what a decision did, unless somebody else has decided about the member meanwhile.
fn taken(operated: Result<Operated, AskError>) -> Result<Option<Operated>, AskError> {
    match operated {
        Ok(operated) => Ok(Some(operated)),
        Err(AskError::NotNow { .. } | AskError::Revised { .. } | AskError::Finished { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the request about one member: a key is good for one, and for as long as the member is as it was read.
fn by_of(by: &OperatorRequest, id: ProcedureId, revision: Seq) -> OperatorRequest {
    let by = match &by.key {
        Some(key) => by.clone().key(format!("{key}/{id}")),
        None => by.clone(),
    };
    by.expecting(revision)
}

fn object<T: Serialize + ?Sized>(values: &T) -> Result<Map<String, Value>, CodecError> {
    let wrong = |why: String| CodecError::new("the decision cannot be taken", why);
    match value_of(values) {
        Ok(Value::Object(values)) => Ok(values),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(wrong("its values are no object".to_owned())),
        Err(why) => Err(wrong(why)),
    }
}
