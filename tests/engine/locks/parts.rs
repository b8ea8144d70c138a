//! Locks on paths with names from outside: a name is one level, and none is no other level.

use std::time::Duration;

use procession::errors::{ProcedureError, SubmitError};
use procession::limits::{LockNeed, LockPath};
use procession::status::{CauseKind, ProcedureState};
use procession::testkit::{FaultPlan, Run, World};
use procession::{Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::lifecycle::kit::submit;
use crate::support::Tested;

/// Waits for an approval, and holds the lock of its customer meanwhile. Then it locks the customer's account.
#[derive(Serialize, Deserialize)]
struct Order {
    customer: String,
    account: String,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    Begin,
    Book,
}

impl Procedure for Order {
    const KIND: &'static str = "order";
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = ();
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Begin
    }

    fn locks(&self, stage: &Stage) -> Vec<LockNeed> {
        let customer = LockPath::of(["customer", &self.customer]);
        match stage {
            Stage::Begin => vec![LockNeed::exclusive(customer)],
            Stage::Book => vec![LockNeed::exclusive(LockPath::of(["account", &self.account]))],
        }
    }

    async fn execute(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(match stage {
            Stage::Begin => Step::Wait {
                event: "approved".to_owned(),
                timeout: Some(Duration::from_hours(1)),
                then: Stage::Book,
            },
            Stage::Book => Step::Done(()),
        })
    }
}

fn order(customer: &str, account: &str) -> Order {
    Order {
        customer: customer.to_owned(),
        account: account.to_owned(),
    }
}

fn run(drive: impl AsyncFnOnce(&Run) -> Tested) -> Tested {
    World::new()
        .run(FaultPlan::none(), |builder| builder.register::<Order>(()), drive)?
        .done()
}

async fn is_parked(run: &Run, id: ProcedureId) -> Result<bool, procession::errors::AskError> {
    run.settle().await;
    Ok(run.executor.status(id).await?.state == ProcedureState::WaitingTimeout)
}

#[test]
fn a_name_with_a_slash_is_one_level() -> Tested {
    run(async |run| {
        let smith = submit(run, order("smith", "1"), "a").await?;
        let both = submit(run, order("smith/jones", "2"), "b").await?;
        assert!(is_parked(run, smith.id()).await? && is_parked(run, both.id()).await?);
        let locks = run.executor.locks().await?;
        let paths: Vec<String> = locks.iter().map(|lock| lock.path.to_string()).collect();
        assert!(paths.contains(&"customer/smith%2Fjones".to_owned()), "{paths:?}");
        Ok(())
    })
}

#[test]
fn a_submission_that_locks_an_empty_part_is_refused() -> Tested {
    run(async |run| {
        let refused = run.executor.submit(order("", "1")).key("a").await;
        let Err(SubmitError::Codec(why)) = refused else {
            return Err(format!("{refused:?}").into());
        };
        let text = "the procedure cannot be submitted: stage Begin asks for the lock \"customer/(empty)\"";
        assert!(why.to_string().starts_with(text), "{why}");
        let next = submit(run, order("smith", "1"), "b").await?;
        assert!(is_parked(run, next.id()).await?, "nobody holds all customers");
        Ok(())
    })
}

#[test]
fn a_stage_after_which_an_empty_part_is_asked_for_fails() -> Tested {
    run(async |run| {
        let handle = submit(run, order("smith", ""), "a").await?;
        let Err(ProcedureError::RolledBack { cause, .. }) = run.wait(handle.outcome()).await? else {
            return Err("it ended well".into());
        };
        assert_eq!(cause.kind, CauseKind::Failed);
        assert!(
            cause.text.contains("stage Book asks for the lock \"account/(empty)\""),
            "{}",
            cause.text
        );
        Ok(())
    })
}
