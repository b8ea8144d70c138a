//! Prints what a saga does: a line for each state that it visits.

use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use procession::errors::AskError;
use procession::operate::OperatorRequest;
use procession::procedure::Timestamp;
use procession::provider::{Clock, SystemClock};
use procession::saga::{Saga, SagaInstance, Settled, StateInstance};
use procession::status::WaitReason;
use procession::{Executor, ProcedureId};
use serde_json::{Value, json};

use super::super::exit::{Exit, Failure};
use super::super::print;

/// How often a saga is looked at, at most.
const PAUSE: Duration = Duration::from_millis(50);
/// Members that are looked at for one that needs the person who runs the saga again.
const MEMBERS: usize = 1_000;

/// Follows one saga. If it ends more than 1,000 stages between two looks, some of them are not printed.
pub(super) struct Follower<'a> {
    executor: &'a Executor,
    pub(super) saga: Saga,
    is_json: bool,
    /// The visits that were printed, and whether they were printed as undone.
    told: HashMap<Visit, bool>,
}

/// The member, the state, and when its last try began.
type Visit = (ProcedureId, String, Timestamp);

impl<'a> Follower<'a> {
    pub(super) fn new(executor: &'a Executor, id: ProcedureId, is_json: bool) -> Self {
        Self {
            executor,
            saga: executor.saga(id),
            is_json,
            told: HashMap::new(),
        }
    }

    /// Lets members go on that were out when processes ended: whoever runs the saga again wants that.
    pub(super) async fn release(&self) -> Result<(), Failure> {
        let members = self.executor.members(self.saga.id(), 0, MEMBERS).await?;
        let poison = members
            .items
            .iter()
            .filter(|member| member.wait == Some(WaitReason::Poison));
        for member in poison {
            let by = OperatorRequest::new("procession saga run", "the saga is run again");
            match self.executor.retry_now(member.id, by).await {
                Ok(_) | Err(AskError::NotNow { .. } | AskError::Finished { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Follows it until it has ended, or a person has to decide.
    pub(super) async fn until_settled(&mut self) -> Result<Settled, Failure> {
        let saga = self.saga.clone();
        let mut settled = pin!(saga.settled());
        let mut pause = PAUSE;
        loop {
            match select(
                settled.as_mut(),
                SystemClock.sleep_until(SystemClock.now().after(pause)),
            )
            .await
            {
                Either::Left((settled, _)) => {
                    self.tell().await?;
                    return Ok(settled?);
                }
                Either::Right(_) => {
                    let begun = SystemClock.now();
                    self.tell().await?;
                    self.check().await?;
                    // Reading a large saga takes long, and must not be most of what the process does.
                    pause = PAUSE.max(SystemClock.now().since(begun) * 4);
                }
            }
        }
    }

    /// A saga whose services are not all registered does not move, and does not settle.
    async fn check(&self) -> Result<(), Failure> {
        let status = self.executor.status(self.saga.id()).await?;
        match status.wait {
            Some(WaitReason::Quarantined) => Err(Failure {
                exit: Exit::Refused,
                text: format!("saga {} cannot go on here: {}", status.id, status.next),
            }),
            _ => Ok(()),
        }
    }

    /// Prints what is new. Only the visits that the saga still lists are remembered, so their number has a bound.
    async fn tell(&mut self) -> Result<(), Failure> {
        let instance = self.saga.instance().await?;
        let (before, mut undone) = (std::mem::take(&mut self.told), Vec::new());
        for state in &instance.states {
            let visit = (state.member, state.state.clone(), state.ran.0);
            let was_undone = before.get(&visit).copied();
            self.told.insert(visit, state.is_compensated);
            if was_undone.is_none() {
                self.print(state, false)?;
            }
            if state.is_compensated && was_undone != Some(true) {
                undone.push(state);
            }
        }
        // The newest was undone first.
        undone.iter().rev().try_for_each(|state| self.print(state, true))
    }

    fn print(&self, state: &StateInstance, is_undone: bool) -> Result<(), Failure> {
        let took_ms = state.ran.1.since(state.ran.0).as_millis();
        let fault = state
            .fault
            .as_ref()
            .map(|(class, message)| format!("{class}: {message}"));
        if self.is_json {
            return print::json(&json!({
                "member": state.member.to_string(), "state": state.state, "status": state.status.word(),
                "undone": is_undone, "tries": state.tries, "took_ms": took_ms, "fault": fault,
            }));
        }
        let name = &state.state;
        let line = match is_undone {
            true => format!("{name:<28}  undone"),
            false => {
                let tries = match state.tries {
                    0 | 1 => String::new(),
                    tries => format!(", {tries} tries"),
                };
                let fault = fault.map(|fault| format!("  {fault}")).unwrap_or_default();
                format!("{name:<28}  {:<6}  {took_ms} ms{tries}{fault}", state.status.word())
            }
        };
        print::line(&print::plain(&line));
        Ok(())
    }

    /// Prints how the saga stands, in words, and returns it.
    pub(super) async fn conclude(&self) -> Result<SagaInstance, Failure> {
        let instance = self.saga.instance().await?;
        match self.is_json {
            true => print::json(&document(self.saga.id(), &instance))?,
            false => {
                let line = format!(
                    "saga {} of machine [{}]: {}",
                    self.saga.id(),
                    instance.machine,
                    instance.sentence()
                );
                print::line(&print::plain(&line));
            }
        }
        Ok(instance)
    }
}

fn document(id: ProcedureId, instance: &SagaInstance) -> Value {
    let rests = instance.rests.iter();
    let rests: Vec<Value> = rests
        .map(|rest| json!({ "member": rest.id.to_string(), "state": rest.state, "why": rest.error.to_string() }))
        .collect();
    json!({
        "saga": id.to_string(), "machine": instance.machine, "status": instance.status.to_string(),
        "compensation": instance.compensation.map(|status| status.to_string()),
        "error": instance.error.as_ref().map(ToString::to_string), "sentence": instance.sentence(),
        "context": instance.context, "rests": rests,
    })
}
