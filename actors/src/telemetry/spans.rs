//! The span around each call of user code.

use procession_kernel::{Kind, ProcedureId, ProcedureState, Seq, TraceParent};
use tracing::Span;
use tracing::field::{DisplayValue, Empty, display};

/// What a span says of one call of user code.
pub(crate) struct Marks<'a> {
    pub(crate) procedure: ProcedureId,
    pub(crate) kind: &'a Kind,
    pub(crate) state: ProcedureState,
    pub(crate) seq: Seq,
    pub(crate) attempt: u32,
    /// The trace in which its family was submitted.
    pub(crate) link: Option<TraceParent>,
}

impl Marks<'_> {
    /// A field without a value is no field.
    fn linked(&self) -> Option<DisplayValue<TraceParent>> {
        self.link.map(display)
    }
}

// Values of fields are made only where somebody listens. The macro tests that before it evaluates
// them, but not where a crate of the host has turned on tracing's feature `log`: then it makes them for
// `log` wherever there is no subscriber at all, a tenth of what a worker does for a stage. A span has
// no parent: the one of its submitter would have to stay open as long as the procedure; `link` names
// it instead.

/// Makes the span of one attempt of a stage; `outcome`, and `error.type` if it failed, are recorded at its end.
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
        outcome = Empty,
        error.type = Empty,
        link = marks.linked(),
    )
}

/// Makes the span of one attempt of an undo; `outcome`, and `error.type` if it failed, are recorded at its end.
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
        outcome = Empty,
        error.type = Empty,
        link = marks.linked(),
    )
}

/// How the calls end that OpenTelemetry counts as errors; none of them is a text of users'.
const ERRORS: [&str; 3] = ["retry", "failed", "panicked"];

/// Says how the call of this span ended. Nothing is looked at for a span that nobody takes: what the call has just
/// written is on its way to this processor, and would be waited for.
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
