//! One reading of the limiter's queues, a page at a time, and what follows once all pages have arrived.
//!
//! The supervisor takes each page in the limiter's turn. So the kernel knows of every grant that the limiter made
//! before it sent the page.

use futures::future::LocalBoxFuture;
use procession_kernel::{ClaimId, Kernel, Lacking, Missing, ProcedureId};
use tokio::sync::oneshot;

use super::check::Check;
use super::diagnosis_input::Queues;
use crate::error::AskError;
use crate::limiter::{Waiters, Waits};
use crate::supervisor::admission::claims::Claims;
use crate::view::Explanation;

/// An explanation if the procedure is live, and the wait for the commit that it rests on.
pub(in crate::supervisor) type Explained = (Option<Explanation>, LocalBoxFuture<'static, Result<(), AskError>>);

/// The reason for a reading.
pub(in crate::supervisor) enum Reason {
    /// A check that begins.
    Check(Box<Check>),
    /// A check that looks a second time at procedures that seem to wait for nothing.
    Recheck(Box<Check>),
    /// A caller of `Explain`.
    Explain(ProcedureId, oneshot::Sender<Explained>),
}

/// A reading under way.
pub(in crate::supervisor) struct QueueReading {
    reason: Reason,
    from: usize,
    /// The claim whose first lack the limiter reports in full.
    of: Option<(ClaimId, Lacking)>,
    queues: Queues,
    missing: Option<Missing>,
}

/// The step that follows a page.
pub(in crate::supervisor) enum PageRead {
    /// Read the next page.
    More(QueueReading),
    /// All pages have arrived.
    All(Reason, Queues, Option<Missing>),
}

impl QueueReading {
    /// Begins a reading for a health check.
    pub(in crate::supervisor) fn for_check(check: Box<Check>) -> Self {
        Self::new(Reason::Check(check), None)
    }

    /// Begins the second reading of a health check.
    pub(in crate::supervisor) fn for_recheck(check: Box<Check>) -> Self {
        Self::new(Reason::Recheck(check), None)
    }

    /// Begins a reading that explains why this procedure waits.
    pub(in crate::supervisor) fn to_explain(
        id: ProcedureId,
        sender: oneshot::Sender<Explained>,
        kernel: &Kernel,
        claims: &Claims,
    ) -> Self {
        let of = kernel
            .lacks(id)
            .and_then(|(asker, lacking)| Some((claims.claim(asker)?, lacking)));
        Self::new(Reason::Explain(id, sender), of)
    }

    fn new(reason: Reason, of: Option<(ClaimId, Lacking)>) -> Self {
        Self {
            reason,
            from: 0,
            of,
            queues: Queues::default(),
            missing: None,
        }
    }

    /// Returns the request for the next page.
    pub(in crate::supervisor) fn next_page(&self) -> Waits {
        Waits {
            from: self.from,
            of: self.of.clone(),
        }
    }

    /// Takes a page.
    pub(in crate::supervisor) fn take(mut self, page: Waiters, claims: &Claims, kernel: &Kernel) -> PageRead {
        self.queues.extend(page.waiting, claims, kernel);
        // Each page includes it, and the last is the newest.
        self.missing = page.missing;
        match page.next {
            Some(from) => PageRead::More(Self { from, ..self }),
            None => PageRead::All(self.reason, self.queues, self.missing),
        }
    }
}
