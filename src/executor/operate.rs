//! Requests of operators. Each is journalled with who sent it, and why.

use super::Executor;
use procession_actors::FamilyExport;
use procession_actors::journal::codec;
use procession_actors::messages::{Audit, Operate, ReadArchive, Submit, SubmitBy};
use procession_actors::{AskError, SubmitError};
use procession_kernel::{
    AuditEntry, BypassAs, BypassScope, Kind, Limit, Operated, OperatorRequest, PauseScope, ProcedureId, RevealScope,
};
use serde::Serialize;

impl Executor {
    /// Sends a request of an operator. Use it for a verb that the caller has as a value, and for `Operate::signal`,
    /// `acknowledge` and `drain`, to have them in the audit. Each other verb has a method below.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the request is refused, or the engine has stopped or its journal has failed.
    pub async fn operate(&self, request: Operate) -> Result<Operated, AskError> {
        self.engine.admit_verb(&request.verb).await?;
        self.ask(request).await
    }

    /// Aborts a procedure: it stops between stages, and rolls back. The intent is durable when this returns, and the
    /// answer's `abort` says in which state it met the procedure.
    ///
    /// # Errors
    ///
    /// [`AskError::Finished`] if it has ended, [`AskError::Unknown`] if it is not known.
    pub async fn abort(&self, id: ProcedureId, by: OperatorRequest) -> Result<Operated, AskError> {
        self.operate(Operate::abort(id, by)).await
    }

    /// Sets what a limit allows, durably: a number of permits at once, a rate, or `None` for anything.
    ///
    /// Where the name had no limit until now, procedures that live already take no permit of it for themselves. The plan
    /// of a dry run says so.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if the name is too long, or the period of a rate too short; [`AskError`] if the engine has
    /// stopped or its journal has failed.
    pub async fn set_limit(
        &self,
        key: &str,
        limit: impl Into<Limit>,
        by: OperatorRequest,
    ) -> Result<Operated, AskError> {
        self.operate(Operate::set_limit(key, limit, by)).await
    }

    /// Submits a failed root again, with the value that it was submitted with, and acknowledges its failure. The answer's
    /// `submitted` is the new root. See [`Operate::run_again`] for what it takes over, and when it is refused.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if it has not failed, or its value is not kept; [`AskError::Unknown`] if it is not known.
    pub async fn run_again(&self, id: ProcedureId, by: OperatorRequest) -> Result<Operated, AskError> {
        self.operate(Operate::run_again(id, by)).await
    }

    /// Returns the message that submits a value of a kind that is known by its name alone: what JSON says, for instance.
    /// It is checked and encoded as the kind's own type. Send it with [`submit_by`](Self::submit_by), or to the
    /// [supervisor](Self::supervisor).
    ///
    /// ```
    /// # #[actix_rt::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use procession::operate::OperatorRequest;
    /// # use procession::procedure::Noop;
    /// # use procession::{Executor, Procedure};
    /// # let directory = tempfile::tempdir()?;
    /// # let executor = Executor::builder(directory.path().join("j")).register::<Noop>(()).start().await?;
    /// let submit = executor.submission_of(Noop::KIND, &serde_json::json!(null))?.key("nightly-1");
    /// let by = OperatorRequest::new("ann", "the nightly run was skipped");
    /// let submitted = executor.submit_by(submit, by).await?.submitted;
    /// # assert!(submitted.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SubmitError::UnknownKind`] if the kind is not registered; [`SubmitError::Unsupported`] if the value is none of
    /// the kind, or cannot run here; [`SubmitError::Codec`] if it cannot be encoded.
    pub fn submission_of(&self, kind: &str, value: &impl Serialize) -> Result<Submit, SubmitError> {
        let value = codec::encode_user(value)?;
        self.engine.submission_of(&Kind::from(kind), &value)
    }

    /// Submits a procedure in the name of an operator: the audit log has who submitted it, and why. The answer's
    /// `submitted` is the new root, or the one that the same key and value submitted before.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if the submission is refused: the key stands for another value, for instance; [`AskError`] if
    /// the engine has stopped or its journal has failed.
    pub async fn submit_by(&self, submit: Submit, by: OperatorRequest) -> Result<Operated, AskError> {
        self.ask(SubmitBy { submit, by }).await
    }

    /// Changes the priority of a procedure, and its place in the queues. One that rolls back moves with the undo that
    /// waits, whichever member that belongs to.
    ///
    /// # Errors
    ///
    /// [`AskError::Finished`] if it has ended, [`AskError::Unknown`] if it is not known.
    pub async fn set_priority(
        &self,
        id: ProcedureId,
        priority: i16,
        by: OperatorRequest,
    ) -> Result<Operated, AskError> {
        self.operate(Operate::set_priority(id, priority, by)).await
    }

    /// Lets nothing more run of a procedure with all below it, of a kind, or of everything.
    ///
    /// # Errors
    ///
    /// [`AskError::Finished`] if it has ended, [`AskError::Unknown`] if it is not known.
    pub async fn pause(&self, what: PauseScope, by: OperatorRequest) -> Result<Operated, AskError> {
        self.operate(Operate::pause(what, by)).await
    }

    /// Resumes what an operator or the engine paused: also poison, and a stage that reached its repeat limit.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if it is not paused.
    pub async fn resume(&self, what: PauseScope, by: OperatorRequest) -> Result<Operated, AskError> {
        self.operate(Operate::resume(what, by)).await
    }

    /// Ends a backoff now, or the rest of one that waits for an operator as poison, or with a
    /// rollback that failed. The attempt, or the undo, begins at once; what has failed stays counted,
    /// so an undo that fails again rests again at once. One that asks a question goes on without an answer.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if it neither backs off nor rests.
    pub async fn retry_now(&self, id: ProcedureId, by: OperatorRequest) -> Result<Operated, AskError> {
        self.operate(Operate::retry_now(id, by)).await
    }

    /// Answers the question that a procedure asks with [`Step::Ask`](crate::Step::Ask). The stage behind the question
    /// reads the answer.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if it asks no question, so an answer never meets a later question;
    /// [`AskError::TooLarge`] if the answer has more than 64 KiB; [`AskError::Finished`] if the procedure has ended,
    /// [`AskError::Unknown`] if it is not known.
    pub async fn decide<T: Serialize>(
        &self,
        id: ProcedureId,
        answer: &T,
        by: OperatorRequest,
    ) -> Result<Operated, AskError> {
        self.operate(Operate::decide(id, answer, by)?).await
    }

    /// Ends a procedure without its code, from any state. Nothing is undone.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if it has live children that the scope does not include.
    pub async fn bypass(
        &self,
        id: ProcedureId,
        scope: BypassScope,
        outcome: BypassAs,
        by: OperatorRequest,
    ) -> Result<Operated, AskError> {
        self.operate(Operate::bypass(id, scope, outcome, by)).await
    }

    /// Ends a procedure without its code, as a success with this output, of its own type.
    ///
    /// # Errors
    ///
    /// As [`bypass`](Self::bypass).
    pub async fn bypass_with_output<T: Serialize>(
        &self,
        id: ProcedureId,
        scope: BypassScope,
        output: &T,
        by: OperatorRequest,
    ) -> Result<Operated, AskError> {
        self.operate(Operate::bypass_with_output(id, scope, output, by)?).await
    }

    /// Replaces the output of a procedure that succeeded, by one of its own type.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if it has not succeeded.
    pub async fn override_result<T: Serialize>(
        &self,
        id: ProcedureId,
        output: &T,
        by: OperatorRequest,
    ) -> Result<Operated, AskError> {
        self.operate(Operate::override_result(id, output, by)?).await
    }

    /// Returns the acts of operators, newest first, at most 1,000; with `before`, those before that entry.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the store cannot be read.
    pub async fn audit(&self, before: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>, AskError> {
        self.ask(Audit { before, limit }).await
    }

    /// Tries an undo again that has used up its attempts.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if the rollback has not failed.
    pub async fn retry_undo(&self, id: ProcedureId, by: OperatorRequest) -> Result<Operated, AskError> {
        self.operate(Operate::retry_undo(id, by)).await
    }

    /// Skips an undo that has used up its attempts.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if the rollback has not failed.
    pub async fn skip_undo(&self, id: ProcedureId, by: OperatorRequest) -> Result<Operated, AskError> {
        self.operate(Operate::skip_undo(id, by)).await
    }

    /// Puts a quarantined family into the archive, and frees all that it holds: locks,
    /// permits, its idempotency key. Nothing of it is undone.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if it is not quarantined, [`AskError::Unknown`] if it is not known.
    pub async fn discharge(&self, family: u64, by: OperatorRequest) -> Result<Operated, AskError> {
        self.operate(Operate::discharge(family, by)).await
    }

    /// Records in the audit log that user data of a procedure is shown in full. Show none of it
    /// before this returns.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the engine has stopped or its journal has failed.
    pub async fn audit_reveal(
        &self,
        id: ProcedureId,
        scope: RevealScope,
        by: OperatorRequest,
    ) -> Result<Operated, AskError> {
        self.operate(Operate::audit_reveal(id, scope, by)).await
    }

    /// Reads a family that was discharged, as it was.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if it is not in the archive.
    pub async fn archived(&self, family: u64) -> Result<FamilyExport, AskError> {
        self.ask(ReadArchive(family)).await
    }
}
