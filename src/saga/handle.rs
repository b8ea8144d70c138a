//! `Saga`: how a saga stands, and what a person decides about it.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use procession_actors::view::{HistoryPage, Status};
use procession_actors::{AskError, CodecError, ReadError};
use procession_kernel::{Cause, HistoryEntry, Operated, OperatorRequest, ProcedureId, ProcedureState};
use serde::Serialize;
use serde_json::{Map, Value};

use super::machine::{Decision, Machine};
use super::reading::{self, Ended, Resting, SagaInstance, SagaOutcome};
use super::service::value_of;
use crate::executor::Executor;

/// Members of a saga that are read at once.
const PAGE: usize = 1_000;
/// Decisions that are under way at once.
const DECISIONS: usize = 64;
/// How often a saga is looked at by those who wait for a rest, at first and at most.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(500);

/// Watches one saga, and decides about it. Dropping it cancels nothing.
///
/// With the id of a whole saga, readings and decisions are about all its members; with the id of a branch, a loop element or
/// a sub machine they are about that one and what lies below it. A decision takes an [`OperatorRequest`], so it can be a
/// dry run, and is in the audit.
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
    /// The members that go on, with the states at which they rested.
    pub members: Vec<Resting>,
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
        let (status, machine) = self.read().await?;
        let members = self.members().await?;
        let rests = self.rests_of(&members).await?;
        let page = self.newest(&members).await?;
        let updates = reading::updates(&self.executor, &machine).await?;
        let origin = self.origin(status.cause.as_ref()).await?;
        Ok(reading::instance(
            &status,
            &machine,
            origin.as_ref(),
            &members,
            rests,
            &page,
            updates,
        ))
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
            let members = self.members().await?;
            if reading::stuck(&members).is_some() {
                let page = self.newest(&members).await?;
                let (state, why) = reading::stuck_at(&page);
                return Ok(Settled::CompensationRests { state, why });
            }
            if members.iter().all(reading::is_still) {
                let rests = self.rests_of(&members).await?;
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
        let machine = self.machine(self.id).await?;
        let origin = self.origin(outcome.cause.as_ref()).await?;
        let members = self.members().await?;
        let mut history = self.executor.history(self.root()).await?;
        self.retain(&members, &mut history);
        Ok(reading::outcome(&Ended {
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
        let (status, _) = self.read().await?;
        let members = self.members().await?;
        let rests = self.rests_of(&members).await?;
        if rests.is_empty() {
            let page = self.newest(&members).await?;
            let doing = reading::doing(&status, &page);
            return Err(DecideError::NotResting { doing });
        }
        rests.iter().try_for_each(can)?;
        // They go on together: one that is done may let another one begin, which was to come behind all of them.
        let decisions = stream::iter(rests).map(async |rest| {
            let by = by_of(&by, &rest);
            match self.executor.decide(rest.id, decision, by).await {
                Ok(_) => Ok(Some(rest)),
                // It was decided about by somebody else meanwhile.
                Err(AskError::NotNow { .. } | AskError::Revised { .. } | AskError::Finished { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        });
        let decided = decisions
            .buffered(DECISIONS)
            .try_collect::<Vec<Option<Resting>>>()
            .await?;
        let decided: Vec<Resting> = decided.into_iter().flatten().collect();
        match decided.is_empty() {
            true => Err(DecideError::Superseded),
            false => Ok(Decided { members: decided }),
        }
    }

    fn root(&self) -> ProcedureId {
        ProcedureId::root(self.id.family)
    }

    async fn read(&self) -> Result<(Status, Machine), AskError> {
        let status = self.executor.status(self.id).await?;
        Ok((status, self.machine(self.id).await?))
    }

    /// Reads the member in which a failure began, if that is another one.
    async fn origin(&self, cause: Option<&Cause>) -> Result<Option<Machine>, AskError> {
        match cause.map(|cause| cause.origin).filter(|origin| *origin != self.id) {
            // It may be of another kind, if the saga is a child of another procedure.
            Some(origin) => Ok(self.executor.value::<Machine>(origin).await.unwrap_or_default()),
            None => Ok(None),
        }
    }

    async fn machine(&self, id: ProcedureId) -> Result<Machine, AskError> {
        let machine = self.executor.value::<Machine>(id).await.map_err(AskError::Read)?;
        machine.ok_or(AskError::Unknown(id))
    }

    /// Returns the members that this handle is about: the procedure itself, and what lies below it.
    async fn members(&self) -> Result<Vec<Status>, AskError> {
        let (mut members, mut below) = (Vec::new(), BTreeSet::from([self.id]));
        let mut from = 0;
        loop {
            let page = self.executor.members(self.root(), from, PAGE).await?;
            for member in page.items {
                // A parent has a smaller number than its children.
                if member.id == self.id || member.parent.is_some_and(|parent| below.contains(&parent)) {
                    below.insert(member.id);
                    members.push(member);
                }
            }
            match page.next {
                Some(next) => from = next,
                None => return Ok(members),
            }
        }
    }

    /// Reads the newest entries of the history that are about these members.
    async fn newest(&self, members: &[Status]) -> Result<HistoryPage, AskError> {
        let mut page = self.executor.history_page(self.root(), None, PAGE).await?;
        self.retain(members, &mut page.entries);
        Ok(page)
    }

    /// Leaves the entries out that are about other members of the family.
    fn retain(&self, members: &[Status], entries: &mut Vec<HistoryEntry>) {
        if self.id != self.root() {
            let members: BTreeSet<u32> = members.iter().map(|member| member.id.member).collect();
            entries.retain(|entry| members.contains(&entry.member));
        }
    }

    async fn rests_of(&self, members: &[Status]) -> Result<Vec<Resting>, AskError> {
        let mut rests = Vec::new();
        let undone = reading::rolled_back(members);
        let may_rest = |member: &&Status| reading::may_rest(member) && !undone.contains(&member.id);
        for member in members.iter().filter(may_rest) {
            let machine: Result<Option<Machine>, ReadError> = self.executor.value(member.id).await;
            if let Some(machine) = machine.map_err(AskError::Read)? {
                rests.extend(reading::resting(member, &machine));
            }
        }
        Ok(rests)
    }

    /// Returns the member whose undo has failed, and waits for a person.
    async fn stuck(&self) -> Result<Option<ProcedureId>, AskError> {
        let members = self.members().await?;
        Ok(reading::stuck(&members).map(|member| member.id))
    }
}

/// Returns the request about one member: a key is good for one, and for as long as the member rests as it does.
fn by_of(by: &OperatorRequest, rest: &Resting) -> OperatorRequest {
    let by = match &by.key {
        Some(key) => by.clone().key(format!("{key}/{}", rest.id)),
        None => by.clone(),
    };
    match by.expected {
        Some(_) => by,
        None => by.expecting(rest.revision),
    }
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
