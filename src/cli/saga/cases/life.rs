//! One life of an engine in a case: from the step in hand to the end of the case, or to its next restart.

use std::future::{Future, IntoFuture};
use std::time::Duration;

use procession::ProcedureId;
use procession::errors::{AskError, ReadError};
use procession::operate::OperatorRequest;

use procession::procedure::Timestamp;
use procession::provider::Clock;
use procession::saga::{DecideError, Saga, Sagas, Settled, Standing};
use procession::status::WaitReason;
use procession::testkit::Trouble;

use super::case::{Case, Step, What};
use super::double::Double;
use super::expect;
use super::found::Found;
use super::ground::Ground;

/// Rounds without a timer after which nothing more is expected to happen.
const QUIET_ROUNDS: usize = 3;

/// How a life ended.
#[derive(Debug)]
pub enum Lived {
    /// The case is over: this is what it has left.
    Over(Box<Found>),
    /// A restart is part of the case, after this time.
    Restarts(Duration),
}

/// One life of an engine in a case.
pub struct Life<'a, G> {
    /// The case.
    pub case: &'a Case,
    /// What the engine was given.
    pub sagas: &'a Sagas,
    /// The double of all services.
    pub double: &'a Double,
    /// The engine.
    pub ground: &'a G,
    /// What is compared.
    pub compared: Compared,
}

/// How much of what a case expects is compared at the end of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// All that it names: nothing has crashed.
    All,
    /// What is the same after a crash.
    End,
    /// Nothing: the caller compares the end.
    Nothing,
}

impl<G: Ground> Life<'_, G> {
    /// Goes on with the step in hand.
    ///
    /// # Errors
    ///
    /// What the engine answers, or in what it differs from what the case expects.
    pub async fn live(&self) -> Result<Lived, Trouble> {
        let commits = self.ground.commits();
        let id = self.start().await?;
        loop {
            let at = self.double.outside().at.step;
            let Some(step) = self.case.steps.get(at) else {
                return Err("a case has at least one step".into());
            };
            let refused = match self.begin(step) {
                true if step.what == What::Restart => {
                    self.double.forget_times();
                    self.double.outside().commits += self.ground.commits() - commits;
                    return Ok(Lived::Restarts(Duration::from_millis(step.down_ms)));
                }
                is_first => self.act(id, step, is_first).await?,
            };
            self.go_on(id, step).await?;
            let found = self.found(id, commits, refused).await?;
            if self.compared != Compared::Nothing {
                self.settles(id, &found).await?;
                let name = format!("step {}, {:?}", at + 1, step.what);
                expect::compare(&step.expect, &found, self.compared).map_err(|why| format!("{name}: {why}"))?;
            }
            if at + 1 == self.case.steps.len() {
                return Ok(Lived::Over(Box::new(found)));
            }
            self.double.next(at + 1);
        }
    }

    /// Starts the saga. The key makes it the same one in every life.
    async fn start(&self) -> Result<ProcedureId, Trouble> {
        let at = self.double.outside().at.step;
        if let Some(step) = self.case.steps.get(at) {
            self.double.set_rules(&step.double);
        }
        let machine = self.sagas.machine(&self.case.machine)?.params(&self.case.params)?;
        let submitted = self.ground.executor().submit(machine).key("the case");
        Ok(self.ask(submitted.into_future()).await??.id())
    }

    /// Begins a step, unless it had begun before a crash. Returns whether this is the first time.
    fn begin(&self, step: &Step) -> bool {
        let is_first = self.double.begin(self.ground.clock().now());
        self.double.set_rules(&step.double);
        is_first
    }

    /// Lets the time come to the next deadline, if there is one.
    fn jump(&self) -> bool {
        if let Some(at) = self.ground.clock().next_deadline() {
            self.double.note_time(at);
        }
        self.ground.clock().jump()
    }

    /// Does what a step says. Returns why it was refused, if it was. After a crash nobody knows whether it was done: then it
    /// is done again, with the same key, and a refusal says that it was.
    async fn act(&self, id: ProcedureId, step: &Step, is_first: bool) -> Result<Option<String>, Trouble> {
        let key = format!("step {}", self.double.outside().at.step);
        let by = OperatorRequest::new("ann", "a case").key(key);
        let saga = self.ground.executor().saga(self.member(id, step).await?);
        let refused = match step.what {
            What::Start | What::PassMs | What::Restart => None,
            What::Forward => said(self.ask(saga.forward(&step.params, by)).await?)?,
            What::Skip => said(self.ask(saga.skip(&step.params, by)).await?)?,
            What::Compensate => asked(self.ask(saga.compensate(by)).await?)?,
            What::SkipCompensation => asked(self.ask(saga.skip_compensation(by)).await?)?,
        };
        match refused {
            Some(why) if is_first && !step.expect.contains_key("refused") => {
                Err(format!("it was refused: {why}").into())
            }
            refused => Ok(refused),
        }
    }

    /// Returns the member that a step is about: the whole saga, or who rests at the state that it names, or its rollback.
    async fn member(&self, id: ProcedureId, step: &Step) -> Result<ProcedureId, Trouble> {
        let Some(state) = &step.member else { return Ok(id) };
        let members = self.ground.executor().members(id, 0, 1_000).await?;
        let rests = members.items.iter().find(|member| {
            let rests = matches!(member.wait, Some(WaitReason::Decision(_) | WaitReason::RollbackFailed));
            rests && member.stage == *state
        });
        Ok(rests.map_or(id, |rest| rest.id))
    }

    /// Lets time pass until the step is over.
    async fn go_on(&self, id: ProcedureId, step: &Step) -> Result<(), Trouble> {
        let begun = self.double.outside().at.begun.unwrap_or(Timestamp(0));
        if let Some(ms) = step.ms {
            let until = begun.after(Duration::from_millis(ms));
            let left = until.0.saturating_sub(self.ground.clock().now().0);
            self.ground.pass(Duration::from_micros(left)).await;
            return self.release(id).await;
        }
        let mut quiet = 0;
        while quiet < QUIET_ROUNDS {
            self.ground.settle().await;
            self.release(id).await?;
            if self.double.holds() || self.is_settled(id).await? {
                return Ok(());
            }
            quiet = if self.jump() { 0 } else { quiet + 1 };
        }
        Ok(())
    }

    /// Returns whether it has ended, or waits for a person and for nothing else.
    async fn is_settled(&self, id: ProcedureId) -> Result<bool, Trouble> {
        let instance = self.ground.executor().saga(id).instance().await?;
        let members = self.ground.executor().members(id, 0, 1_000).await?;
        let is_still = members.items.iter().all(|member| {
            let waits = matches!(
                member.wait,
                Some(WaitReason::Decision(_) | WaitReason::Children | WaitReason::Width | WaitReason::RollbackFailed)
            );
            member.ended.is_some() || (waits && !member.going)
        });
        let is_over = matches!(instance.standing, Standing::Ended | Standing::CompensationRests);
        Ok(is_over || (is_still && instance.standing == Standing::Rests))
    }

    /// Who waits for a saga that has settled is answered at once, as it stands.
    async fn settles(&self, id: ProcedureId, found: &Found) -> Result<(), Trouble> {
        if !self.is_settled(id).await? {
            return Ok(());
        }
        let settled = self.ask(self.ground.executor().saga(id).settled()).await??;
        let standing = match settled {
            Settled::Ended(_) => Some(Standing::Ended),
            Settled::Rests(_) => Some(Standing::Rests),
            Settled::CompensationRests { .. } => Some(Standing::CompensationRests),
            _ => None,
        };
        match standing == Some(found.instance.standing) {
            true => Ok(()),
            false => Err(format!(
                "it stands as {:?}, and settled as {standing:?}",
                found.instance.standing
            )
            .into()),
        }
    }

    /// A process that died twice or more while one saga ran suspects it, and leaves the rest to a person, who lets it go on.
    async fn release(&self, id: ProcedureId) -> Result<(), Trouble> {
        let members = self.ground.executor().members(id, 0, 1_000).await?;
        for member in members.items {
            if member.wait == Some(WaitReason::Poison) {
                let by = OperatorRequest::new("kim", "the process was killed by hand");
                self.ask(self.ground.executor().retry_now(member.id, by)).await??;
                self.ground.settle().await;
            }
        }
        Ok(())
    }

    /// Awaits what the engine answers without time passing.
    async fn ask<F: Future>(&self, future: F) -> Result<F::Output, Trouble> {
        let answer = self.ground.at_rest(future).await;
        Ok(answer.ok_or("the engine does not answer without time passing")?)
    }

    async fn found(&self, id: ProcedureId, before: u64, refused: Option<String>) -> Result<Found, Trouble> {
        let (step, earlier) = {
            let outside = self.double.outside();
            (outside.at.step, outside.commits)
        };
        let saga: Saga = self.ground.executor().saga(id);
        let instance = saga.instance().await?;
        let outcome = match instance.standing == Standing::Ended {
            true => Some(self.ask(saga.outcome()).await??),
            false => None,
        };
        let log = self.double.log();
        Ok(Found {
            commits: earlier + self.ground.commits() - before,
            at: self.ground.clock().now(),
            calls: log.iter().filter(|called| called.step == step).cloned().collect(),
            family: log.first().map(|called| called.family().to_owned()).unwrap_or_default(),
            instance,
            outcome,
            refused,
        })
    }
}

/// Returns why a decision was refused, if it was.
fn said<T>(decided: Result<T, DecideError>) -> Result<Option<String>, Trouble> {
    match decided {
        Ok(_) => Ok(None),
        Err(DecideError::Ask(error)) => asked::<()>(Err(error)),
        Err(error) => Ok(Some(error.to_string())),
    }
}

fn asked<T>(operated: Result<T, AskError>) -> Result<Option<String>, Trouble> {
    match operated {
        Ok(_) => Ok(None),
        Err(error @ AskError::Read(ReadError::Store(_))) => Err(error.into()),
        Err(error) => Ok(Some(error.to_string())),
    }
}
