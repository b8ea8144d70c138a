//! The requests wing: from a caller's message to an event, and from the decision back to the caller. It owns the
//! replies that callers wait for, the callers that wait for outcomes, the reads of finished rows, and the discharges
//! under way.
//!
//! It checks a message and reads what the kernel does not hold; the supervisor decides. Replies and outcomes leave
//! only as effects of a receipt.

pub(super) mod again;
pub(super) mod discharge;
pub(super) mod finished;
mod newest_ends;
pub(super) mod operate;
pub(super) mod outcomes;
pub(super) mod replies;
pub(super) mod submissions;

use std::collections::BTreeSet;
use std::time::Duration;

use procession_kernel::{Ended, Kernel, NotNow, ProcedureId, RequestId, Row};

use self::finished::{FinishedRead, FinishedReads};
use self::outcomes::{OutcomeWatch, OutcomeWatchers};
use self::replies::{Answered, Replies, Reply};
use super::failure::FailureCause;
use crate::error::{AskError, SubmitBound, SubmitError};
use crate::read::CommittedReader;
use crate::view::Outcome;

/// When to repeat a request that met a full queue: a few commits later.
const RETRY_AFTER: Duration = Duration::from_millis(20);
/// When to repeat a submission that met too many awake procedures. Some of them have to end first. A whole second
/// keeps refused callers cheaper than served ones.
const RETRY_AWAKE: Duration = Duration::from_secs(1);

/// The requests wing.
pub(super) struct Requests {
    replies: Replies,
    outcomes: OutcomeWatchers,
    finished: FinishedReads,
    /// Families whose discharge is being committed.
    discharging: BTreeSet<u64>,
    /// Requests that may wait for their commit.
    max_queued: usize,
    /// Bounds the awake families: submissions are accepted up to this many.
    max_awake: usize,
}

impl Requests {
    pub(super) fn new(max_queued: usize, max_awake: usize) -> Self {
        Self {
            replies: Replies::default(),
            outcomes: OutcomeWatchers::new(max_awake),
            finished: FinishedReads::default(),
            discharging: BTreeSet::new(),
            max_queued,
            max_awake,
        }
    }

    // Replies.

    /// Opens a request of the engine itself, which `max_queued` never refuses. If the engine has failed, nothing will
    /// be decided, so the reply is ready at once.
    pub(super) fn open(&mut self, failed: Option<&FailureCause>) -> (RequestId, Reply) {
        let (request, reply) = self.replies.open();
        if let Some(why) = failed {
            self.replies.send(request, Err(why.clone().into()));
        }
        (request, reply)
    }

    /// Opens a caller's request, unless too many wait for their commit.
    pub(super) fn admit(&mut self) -> Result<(RequestId, Reply), AskError> {
        if self.replies.len() >= self.max_queued {
            return Err(AskError::Busy {
                retry_after: RETRY_AFTER,
            });
        }
        Ok(self.replies.open())
    }

    /// Checks that there is room for a submission. A batch may exceed the bound on awake families: otherwise a batch
    /// as large as the bound would never be taken.
    fn check_room(&self, kernel: &Kernel) -> Result<(), SubmitError> {
        let families = kernel.families();
        let (bound, retry_after) = if self.replies.len() >= self.max_queued {
            (SubmitBound::Queued(self.max_queued), RETRY_AFTER)
        } else if families.len() - families.frozen() >= self.max_awake {
            (SubmitBound::Awake(self.max_awake), RETRY_AWAKE)
        } else {
            return Ok(());
        };
        Err(SubmitError::Busy { bound, retry_after })
    }

    /// Sends a reply. The caller may have gone.
    pub(super) fn reply(&mut self, request: RequestId, answer: Answered) {
        self.replies.send(request, answer);
    }

    /// Tells every caller that the engine has failed. Callers that wait for an outcome read the cause in `Failure`,
    /// so it must be set before.
    pub(super) fn fail_all(&mut self, cause: &FailureCause) {
        self.outcomes.clear();
        self.replies.fail_all(cause);
    }

    // Outcomes.

    /// Registers a caller that waits for an outcome, unless too many do.
    pub(super) fn watch(&mut self, id: ProcedureId) -> Result<OutcomeWatch, AskError> {
        self.outcomes.watch(id)
    }

    /// Begins to keep outcomes that nobody was waiting for, because a stage runs ahead of the disk.
    pub(super) const fn keep_newest_ends(&mut self) {
        self.outcomes.keep_newest();
    }

    /// Takes the outcome of a procedure that ended a moment ago, if nobody was waiting for it.
    pub(super) fn newest_end(&mut self, id: ProcedureId) -> Option<Outcome> {
        self.outcomes.newest_end(id)
    }

    /// Sends the outcome of a procedure whose end is on disk.
    pub(super) fn ended(&mut self, ended: Ended) {
        self.outcomes.ended(ended);
    }

    // Finished rows.

    /// Reads the row of a finished procedure as the newest decision leaves it, or `None` for a live or unknown
    /// procedure. Pass the result to [`take_finished`](Self::take_finished).
    pub(super) fn read_finished<S>(
        &mut self,
        kernel: &Kernel,
        id: ProcedureId,
        settled: S,
        committed: CommittedReader,
    ) -> impl Future<Output = FinishedRead> + use<S>
    where
        S: Future<Output = Result<(), AskError>>,
    {
        FinishedRead::begin(&mut self.finished, kernel, id, settled, committed)
    }

    /// Returns the row that was read, or `None` if it must be read again. Decide on the row before anything else is
    /// decided, because only until then is it the newest.
    pub(super) fn take_finished(
        &mut self,
        kernel: &Kernel,
        read: FinishedRead,
    ) -> Option<Result<Option<Row>, AskError>> {
        read.end(&mut self.finished, kernel)
    }

    /// Records a decision on a finished family, so that rows read before it are read again.
    pub(super) fn overtake(&mut self, family: u64) {
        self.outcomes.overtake(family);
        self.finished.overtake(family);
    }

    /// Returns the row of a finished root whose result is acknowledged at once.
    pub(super) fn result_of(
        &mut self,
        kernel: &Kernel,
        id: ProcedureId,
        row: Option<Row>,
    ) -> Result<Box<Row>, AskError> {
        let root = ProcedureId::root(id.family);
        if kernel.row(root).is_some() {
            return Err(AskError::NotNow {
                kind: NotNow::NotEnded,
                text: format!("{root} has not ended; there is no result to acknowledge"),
            });
        }
        let row = row.ok_or(AskError::Unknown(id))?;
        self.overtake(root.family);
        Ok(Box::new(row))
    }
}
