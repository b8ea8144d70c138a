//! The span around each call of user code.

use procession_kernel::{Kind, ProcedureId, ProcedureState, Seq, TraceParent};
use tracing::Span;
use tracing::field::{DisplayValue, Empty, display};

/// The span of a call that has failed, unless nobody listens. It is kept until the line of the failure is written, so
/// that the line is inside it.
pub(crate) type FailedSpan = Option<Box<Span>>;

/// The fields of a span of one call of user code.
pub(crate) struct Marks<'a> {
    pub(crate) procedure: ProcedureId,
    pub(crate) kind: &'a Kind,
    pub(crate) state: ProcedureState,
    pub(crate) seq: Seq,
    pub(crate) attempt: u32,
    /// The visit: with the attempt it names the history entry of the call.
    pub(crate) visit: u32,
    /// The store's own number: ids of two engines of one process may be the same.
    pub(crate) store: u64,
    /// The trace in which the family was submitted.
    pub(crate) link: Option<TraceParent>,
    /// The call may be ahead of the disk: after a crash it never was.
    pub(crate) is_speculative: bool,
}

impl Marks<'_> {
    /// A field without a value is omitted.
    fn linked(&self) -> Option<DisplayValue<TraceParent>> {
        self.link.map(display)
    }
}

// Field values are computed only if somebody listens. The macro checks that before it evaluates them, unless a crate
// of the host has enabled tracing's feature `log`. Then it computes them for `log` whenever there is no subscriber at
// all, which is a tenth of a worker's effort for a stage. A span has no parent: the submitter's span would have to
// stay open as long as the procedure, so `link` names it instead.

/// Creates the span of one attempt of a stage; `outcome`, and `error.type` if it failed, are recorded at its end.
pub(crate) fn stage_span(marks: &Marks<'_>, stage: impl Fn() -> String) -> Span {
    if !tracing::level_enabled!(tracing::Level::INFO) {
        return Span::none();
    }
    tracing::info_span!(
        target: "procession",
        parent: None,
        "stage",
        procedure = %marks.procedure,
        kind = %marks.kind,
        stage = %stage(),
        state = %marks.state,
        seq = marks.seq.0,
        attempt = marks.attempt,
        visit = marks.visit,
        store = marks.store,
        speculative = marks.is_speculative.then_some(true),
        outcome = Empty,
        error.type = Empty,
        link = marks.linked(),
    )
}

/// Creates the span of one attempt of an undo; `outcome`, and `error.type` if it failed, are recorded at its end.
pub(crate) fn undo_span(marks: &Marks<'_>, stage: impl Fn() -> String) -> Span {
    if !tracing::level_enabled!(tracing::Level::INFO) {
        return Span::none();
    }
    tracing::info_span!(
        target: "procession",
        parent: None,
        "undo",
        procedure = %marks.procedure,
        kind = %marks.kind,
        stage = %stage(),
        state = %marks.state,
        seq = marks.seq.0,
        attempt = marks.attempt,
        visit = marks.visit,
        store = marks.store,
        outcome = Empty,
        error.type = Empty,
        link = marks.linked(),
    )
}

/// Outcomes that OpenTelemetry counts as errors; none of them contains users' text.
pub(crate) const ERRORS: [&str; 3] = ["retry", "failed", "panicked"];

/// Records how the call of this span ended. For a disabled span `outcome` is not evaluated: it would read memory that
/// another processor has just written, and stall.
pub(crate) fn record_outcome(span: &Span, outcome: impl FnOnce() -> &'static str) {
    if span.is_disabled() {
        return;
    }
    let outcome = outcome();
    span.record("outcome", outcome);
    if ERRORS.contains(&outcome) {
        span.record("error.type", outcome);
    }
}
