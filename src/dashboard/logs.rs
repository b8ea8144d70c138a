//! What stages and undos logged: a layer of the host's subscriber keeps the newest events of each attempt, in memory and
//! within bounds.
//!
//! The engine wraps each call of user code in a span that names the procedure, the visit and the attempt. Whatever is
//! logged inside that span belongs to the attempt, in spans of its own and in tasks that carry the span as well. Nothing
//! is asked of user code, and without the layer nothing is paid.

mod kept;
pub(super) mod shown;
mod text;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use procession_actors::clock::{Clock, SystemClock};
use procession_kernel::ProcedureId;
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use kept::{AttemptLog, CallKey, Kept, LogEvent};
use text::{CallFields, LogText};

/// The target of the engine's spans.
const TARGET: &str = "procession";
/// The spans around calls of user code.
const STAGE: &str = "stage";
const UNDO: &str = "undo";

/// Keeps what stages and undos log with `tracing`, for the page of their procedure: of each attempt the newest 50
/// events, and of all attempts together 16 MiB. Those that have logged nothing for longest go first.
///
/// It is a layer of the host's subscriber, and a setting of the dashboard. Clones share what they keep, and one serves
/// all engines of a process:
///
/// ```
/// use procession::dashboard::{Dashboard, StageLogs};
/// use tracing_subscriber::layer::SubscriberExt;
///
/// # async fn start(executor: &procession::Executor) -> Result<(), Box<dyn std::error::Error>> {
/// let logs = StageLogs::new();
/// tracing::subscriber::set_global_default(tracing_subscriber::registry().with(logs.clone()))?;
/// let dashboard = Dashboard::builder(executor).logs(&logs).local_only().start().await?;
/// # Ok(())
/// # }
/// ```
///
/// Events count as of an attempt if they are inside the engine's span `stage` or `undo`, at the level info with the
/// target `procession`: a filter that leaves these spans out leaves their logs out too. Which levels are kept is what the
/// subscriber lets through; a filter of this layer's own says otherwise.
///
/// Texts are cut: a message to 1,024 bytes, a field to 256, and 16 fields are kept. They are shown as far as the host's
/// [`Redact`](super::Redact) lets [`Part::Log`](super::Part::Log) through, which by default is none of them.
#[derive(Clone)]
pub struct StageLogs {
    kept: Arc<Mutex<Kept>>,
}

impl Default for StageLogs {
    fn default() -> Self {
        Self::new()
    }
}

impl StageLogs {
    /// Keeps nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            kept: Arc::new(Mutex::new(Kept::new(Arc::new(SystemClock)))),
        }
    }

    /// Keeps this many bytes of all attempts together, for all clones. What is beyond goes at the next event.
    #[must_use]
    pub fn max_bytes(self, bytes: usize) -> Self {
        self.lock().set_most(bytes);
        self
    }

    /// Reads times from an engine's clock, so that they are those of its history.
    pub(super) fn on_clock(&self, clock: Arc<dyn Clock>) {
        self.lock().set_clock(clock);
    }

    /// Returns the attempts of a procedure that have logged something, the newest last, and how many attempts of any
    /// procedure were forgotten.
    pub(super) fn of(&self, store: u64, id: ProcedureId, wanted: impl Fn(&CallKey) -> bool) -> (Vec<AttemptLog>, u64) {
        let kept = self.lock();
        (kept.of(store, id, wanted), kept.forgotten())
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for StageLogs {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        let is_undo = metadata.name() == UNDO;
        if metadata.target() != TARGET || !(is_undo || metadata.name() == STAGE) {
            return;
        }
        let mut fields = CallFields::default();
        attributes.record(&mut fields);
        if let (Some(call), Some(span)) = (fields.call(is_undo), context.span(id)) {
            // Another clone may be a layer of the same subscriber, so one may be there.
            span.extensions_mut().replace(call);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(scope) = context.event_scope(event) else {
            return;
        };
        let call = |span: tracing_subscriber::registry::SpanRef<'_, S>| span.extensions().get::<text::Call>().cloned();
        let Some(call) = scope.into_iter().find_map(call) else {
            return;
        };
        // Formatting runs user code, so it comes before the lock.
        let text = LogText::of(event);
        self.lock().add(&call, event.metadata(), text);
    }
}
