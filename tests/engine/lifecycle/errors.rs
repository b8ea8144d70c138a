//! Errors of a stage: what becomes of it is said by the error itself, by the kind of error, or where it happens.

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;
use procession::errors::ProcedureError;
use procession::procedure::{RetryPolicy, Timestamp, Transient};
use procession::status::CauseKind;
use procession::testkit::{FaultPlan, Run, World};
use procession::{OrStageError, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::submit;
use crate::support::Tested;

/// Says itself what becomes of the stage.
#[derive(Debug)]
enum BankError {
    Unreachable,
    NoAccount,
}

impl fmt::Display for BankError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "the bank does not answer",
            Self::NoAccount => "there is no such account",
        })
    }
}

impl std::error::Error for BankError {}

impl From<BankError> for StageError {
    fn from(error: BankError) -> Self {
        match error {
            BankError::Unreachable => Self::retry_after(Duration::from_secs(7), error),
            BankError::NoAccount => Self::fail(error),
        }
    }
}

/// Passes, as it says in one line.
#[derive(Debug)]
struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("busy")
    }
}

impl Transient for Busy {}

fn own() -> Result<(), StageError> {
    Err(BankError::NoAccount)?;
    Ok(())
}

fn marked() -> Result<(), StageError> {
    Err(Busy)?;
    Ok(())
}

fn boxed() -> Result<(), StageError> {
    let error: Box<dyn std::error::Error + Send + Sync> = "boxed".into();
    Err(error)?;
    Ok(())
}

fn boxed_for_one_thread() -> Result<(), StageError> {
    let error: Box<dyn std::error::Error> = "boxed".into();
    Err(error)?;
    Ok(())
}

fn any() -> Result<(), StageError> {
    Err(BankError::Unreachable).context("no payment")?;
    Ok(())
}

fn standard() -> Result<(), StageError> {
    "x".parse::<u32>()?;
    Ok(())
}

fn chosen() -> Result<(), StageError> {
    "x".parse::<u32>().or_fail()?;
    Ok(())
}

#[test]
fn an_error_says_what_becomes_of_the_stage() {
    let retry = |text: &str| Err(StageError::Retry(text.to_owned()));
    let fail = |text: &str| Err(StageError::Fail(text.to_owned()));
    assert_eq!(own(), fail("there is no such account"));
    assert_eq!(marked(), retry("busy"));
    assert_eq!(boxed(), retry("boxed"));
    assert_eq!(boxed_for_one_thread(), retry("boxed"));
    assert_eq!(any(), retry("no payment: the bank does not answer"), "the whole chain");
    assert_eq!(standard(), retry("invalid digit found in string"));
    assert_eq!(chosen(), fail("invalid digit found in string"));
    let text = Err::<(), _>("text");
    assert_eq!(text.or_retry(), retry("text"));
    let after = Duration::from_secs(3);
    assert_eq!(
        text.or_retry_after(after),
        Err(StageError::RetryAfter(after, "text".to_owned()))
    );
    let deep = Err::<(), _>(anyhow::Error::from(BankError::NoAccount).context("no payment"));
    assert_eq!(deep.or_fail(), fail("no payment: there is no such account"));
}

/// Fails in the way that it holds, in its only stage.
#[derive(Serialize, Deserialize)]
enum Failing {
    Own,
    Late,
}

impl Procedure for Failing {
    const KIND: &'static str = "failing";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match self {
            Self::Own if cx.attempt() == 1 => Err(BankError::Unreachable)?,
            Self::Own => Err(BankError::NoAccount)?,
            Self::Late => cx.within(Duration::from_secs(3), std::future::pending()).await?,
        }
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(2)
    }
}

async fn cause(run: &Run, failing: Failing) -> Result<procession::status::Cause, procession::testkit::Trouble> {
    let handle = submit(run, failing, "p").await?;
    match run.wait(handle.outcome()).await? {
        Err(ProcedureError::RolledBack { cause, .. }) => Ok(cause),
        other => Err(format!("{other:?}").into()),
    }
}

#[test]
fn an_own_error_is_tried_again_and_fails_as_it_says() -> Tested {
    let drive = async |run: &Run| {
        let cause = cause(run, Failing::Own).await?;
        assert_eq!(
            (cause.kind, cause.text.as_str()),
            (CauseKind::Failed, "there is no such account")
        );
        assert_eq!(run.now(), Timestamp(7_000_000), "the delay of its first attempt");
        Ok(())
    };
    World::new()
        .run(FaultPlan::none(), |builder| builder.register::<Failing>(()), drive)?
        .done()
}

#[test]
fn a_failure_by_time_outs_has_a_kind() -> Tested {
    let drive = async |run: &Run| {
        let cause = cause(run, Failing::Late).await?;
        assert_eq!(
            (cause.kind, cause.text.as_str()),
            (CauseKind::StageTimedOut, "timed out after 3 s")
        );
        assert_eq!(run.now(), Timestamp(7_000_000), "two attempts, and one backoff");
        Ok(())
    };
    World::new()
        .run(FaultPlan::none(), |builder| builder.register::<Failing>(()), drive)?
        .done()
}
