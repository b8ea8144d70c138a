//! What a span or an event says, read within bounds.

use std::fmt::{self, Debug, Write};

use procession_kernel::ProcedureId;
use tracing::Event;
use tracing::field::{Field, Visit};

use super::kept::CallKey;

/// Bytes of a message, of the value of a field, and of the name of a stage, at most.
const MESSAGE_MAX: usize = 1_024;
const FIELD_MAX: usize = 256;
/// Fields of one event, at most.
const FIELDS_MAX: usize = 16;
/// The field that holds the message.
const MESSAGE: &str = "message";

/// The call that a span is around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) key: CallKey,
    pub(super) stage: String,
}

/// Fields of a span that name a call.
#[derive(Default)]
pub(super) struct CallFields {
    procedure: Option<ProcedureId>,
    visit: Option<u32>,
    attempt: Option<u32>,
    store: Option<u64>,
    stage: String,
}

impl CallFields {
    /// Returns the call, if the span is one of the engine's.
    pub(super) fn call(self, is_undo: bool) -> Option<Call> {
        let key = CallKey {
            store: self.store?,
            id: self.procedure?,
            visit: self.visit?,
            attempt: self.attempt?,
            is_undo,
        };
        Some(Call { key, stage: self.stage })
    }
}

impl Visit for CallFields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "visit" => self.visit = u32::try_from(value).ok(),
            "attempt" => self.attempt = u32::try_from(value).ok(),
            "store" => self.store = Some(value),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "procedure" => self.procedure = cut(value, FIELD_MAX).0.parse().ok(),
            "stage" => self.stage = cut(value, FIELD_MAX).0,
            _ => {}
        }
    }
}

/// What an event says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::dashboard) struct LogText {
    pub(in crate::dashboard) message: String,
    pub(in crate::dashboard) fields: Vec<(&'static str, String)>,
    /// Something was over a bound.
    pub(in crate::dashboard) is_cut: bool,
}

impl LogText {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let mut text = Self::default();
        event.record(&mut text);
        text
    }

    /// Returns the bytes of what users said.
    pub(in crate::dashboard) fn len(&self) -> usize {
        let fields = self.fields.iter().map(|(name, value)| name.len() + value.len());
        fields.sum::<usize>() + self.message.len()
    }
}

impl Visit for LogText {
    fn record_str(&mut self, field: &Field, value: &str) {
        // As it is, without the quotes of its debug form.
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == MESSAGE {
            let (message, is_cut) = cut(value, MESSAGE_MAX);
            self.message = message;
            self.is_cut |= is_cut;
        } else if self.fields.len() < FIELDS_MAX {
            let (value, is_cut) = cut(value, FIELD_MAX);
            self.fields.push((field.name(), value));
            self.is_cut |= is_cut;
        } else {
            self.is_cut = true;
        }
    }
}

/// Writes a value, so many bytes of it. Returns `true` if there were more.
fn cut(value: &dyn Debug, most: usize) -> (String, bool) {
    let mut text = Bounded {
        text: String::new(),
        most,
        is_cut: false,
    };
    // It takes whatever is written, so only the value's own code can fail, and then what it wrote stands.
    write!(text, "{value:?}").ok();
    (text.text, text.is_cut)
}

/// A text that takes whatever is written, and keeps the beginning. An error instead would end the writing sooner, but code
/// of users may unwrap it.
struct Bounded {
    text: String,
    most: usize,
    is_cut: bool,
}

impl Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = if self.is_cut { 0 } else { self.most - self.text.len() };
        let end = more.floor_char_boundary(room);
        self.text.push_str(more.get(..end).unwrap_or_default());
        self.is_cut |= end < more.len();
        Ok(())
    }
}
