//! What a kind says of signals is asked before they are kept, whoever sends them.

use procession::errors::AskError;
use procession::messages::SendSignal;
use procession::operate::OperatorRequest;
use procession::procedure::Accepts;
use procession::status::{Ending, ProcedureState};
use procession::testkit::{FaultPlan, Run, World};
use procession::{Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::lifecycle::kit::submit;
use crate::support::Tested;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Approval {
    by: String,
}

/// Waits for an approval.
#[derive(Serialize, Deserialize)]
struct Order;

impl Procedure for Order {
    const KIND: &'static str = "order";
    type Stage = bool;
    type Env = ();
    type Output = String;

    fn first(&self) -> bool {
        false
    }

    async fn execute(&mut self, is_woken: bool, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if !is_woken {
            return Ok(Step::Wait {
                event: "approved".to_owned(),
                timeout: None,
                then: true,
            });
        }
        let signal = cx.signal().ok_or(StageError::fail("nothing woke it"))?;
        Ok(Step::Done(signal.payload::<Approval>()?.by))
    }

    fn accepts(_: &()) -> Accepts {
        Accepts::only()
            .event_if("approved", |approval: &Approval| match approval.by.as_str() {
                "" => Err("the name of who approves is missing".to_owned()),
                "eve" => panic!("eve"),
                _ => Ok(()),
            })
            .event::<u32>("number")
    }
}

/// Approves an order from a stage: first without a name, then with one.
#[derive(Serialize, Deserialize)]
struct Approve(ProcedureId);

impl Procedure for Approve {
    const KIND: &'static str = "approve";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let by = if cx.attempt() == 1 { "" } else { "ann" };
        cx.put("approvals", "written", &cx.attempt())?;
        cx.send_signal(self.0, "approved", &approval(by))?;
        Ok(Step::Done(()))
    }
}

fn approval(by: &str) -> Approval {
    Approval { by: by.to_owned() }
}

fn run(drive: impl AsyncFnOnce(&Run) -> Tested) -> Tested {
    let kinds = |builder: procession::Builder| builder.register::<Order>(()).register::<Approve>(());
    World::new().run(FaultPlan::none(), kinds, drive)?.done()
}

/// Returns what the kind said.
fn said<T: std::fmt::Debug>(refused: Result<T, AskError>) -> Result<String, procession::testkit::Trouble> {
    match refused {
        Err(AskError::NotAccepted { why, .. }) => Ok(why),
        other => Err(format!("{other:?}").into()),
    }
}

fn by() -> OperatorRequest {
    OperatorRequest::new("ann", "a test")
}

#[test]
fn a_signal_of_the_wrong_shape_is_refused_and_leaves_no_trace() -> Tested {
    run(async |run| {
        let (executor, order) = (&run.executor, submit(run, Order, "a").await?);
        let id = order.id();
        run.settle().await;
        assert!(said(executor.signal(id, "approved", &()).await)?.contains("invalid type"));
        let nameless = said(executor.signal(id, "approved", &approval("")).await)?;
        assert_eq!(nameless, "the name of who approves is missing");
        let unknown = said(executor.signal(id, "aproved", &approval("ann")).await)?;
        assert_eq!(unknown, "its kind waits for no event of this name");
        let panicked = said(executor.signal(id, "approved", &approval("eve")).await)?;
        assert_eq!(panicked, "accepts panicked: eve");
        let both = vec![
            SendSignal::new(id, "number", &7_u32)?,
            SendSignal::new(id, "number", &"7")?,
        ];
        said(executor.signal_all(both).await)?;
        said(
            executor
                .operate(procession::messages::Operate::signal(
                    id,
                    "approved",
                    &approval(""),
                    by(),
                )?)
                .await,
        )?;
        said(
            executor
                .operate(procession::messages::Operate::signal(
                    id,
                    "approved",
                    &(),
                    by().dry_run(),
                )?)
                .await,
        )?;
        run.settle().await;
        assert_eq!(order.status().await?.state, ProcedureState::WaitingTimeout);
        assert!(executor.mailbox(id).await?.kept.is_empty());
        assert!(executor.audit(None, 10).await?.is_empty());

        executor.signal(id, "number", &7_u32).await?;
        executor.signal(id, "approved", &approval("ann")).await?;
        assert_eq!(run.wait(order.outcome()).await??, "ann");
        let late = executor.signal(id, "approved", &()).await;
        assert!(matches!(late, Err(AskError::Finished { .. })), "{late:?}");
        let nobody = executor.signal("99.0".parse()?, "approved", &()).await;
        assert!(matches!(nobody, Err(AskError::Unknown(_))), "{nobody:?}");
        Ok(())
    })
}

#[test]
fn a_stage_whose_signal_is_refused_has_failed_its_attempt() -> Tested {
    run(async |run| {
        let order = submit(run, Order, "a").await?;
        let sender = submit(run, Approve(order.id()), "b").await?;
        run.wait(sender.outcome()).await??;
        assert_eq!(run.wait(order.outcome()).await??, "ann");
        let history = run.executor.history(sender.id()).await?;
        let [first, second] = &history[..] else {
            return Err(format!("{history:?}").into());
        };
        let text = first.error.as_deref().unwrap_or_default();
        assert_eq!(first.ending, Ending::Retry);
        assert!(
            text.contains("does not take the signal \"approved\": the name of who approves"),
            "{text}"
        );
        assert_eq!(second.ending, Ending::Done);
        assert_eq!(run.executor.get::<u32>("approvals", "written").await?, Some(2));
        Ok(())
    })
}
