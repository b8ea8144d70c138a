//! A call that a machine does not wait for: a family of its own.

use std::sync::Arc;

use procession_actors::StageError;
use serde_json::Value;

use super::error::SagaError;
use super::task::{self, Tried};
use super::turn::{Turn, Turned};
use crate::saga::status::SagaStatus;

impl Turn<'_, '_> {
    /// Makes the call, as often as its `Retry` says. What becomes of it is seen here alone.
    pub(super) async fn detached(mut self, name: &str, arguments: Vec<Value>) -> Turned {
        let definition = Arc::clone(&self.definition);
        let Some((state, task)) = task::named(&definition, name) else {
            return Err(StageError::fail(format!(
                "machine [{}] has no task [{name}]",
                self.machine.name()
            )));
        };
        let Some(at) = definition.index_of(name) else {
            return self.done(SagaStatus::Success);
        };
        self.begin_try(at, task);
        match self.call(state, task, arguments).await {
            Tried::Returned(_) | Tried::NotCalled(_) => {
                self.count_call(name, SagaStatus::Success);
                self.record(task, SagaStatus::Success, None);
                self.stands = false;
                self.done(SagaStatus::Success)
            }
            Tried::Faulted(fault) => {
                self.count_call(name, SagaStatus::Failed);
                self.record(task, SagaStatus::Failed, Some(&fault));
                if let Some(delay) = self.retry(task, &fault) {
                    let until = self.cx.now().after(delay);
                    return self.sleep(at, until);
                }
                self.machine.error = Some(SagaError::of_fault(&fault, name));
                self.fail(SagaStatus::Failed)
            }
        }
    }
}
