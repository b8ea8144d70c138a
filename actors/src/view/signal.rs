//! Stored signals, and counts of what is stored.

use std::collections::BTreeMap;

use procession_kernel::{Blob, Kernel, ProcedureId, Row, SignalEntry, Timestamp};

use crate::error::CodecError;
use crate::journal::encode::StoredSignal;
use crate::journal::{codec, keys};

/// One stored signal, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignalSummary {
    /// The procedure that it was sent to.
    pub id: ProcedureId,
    /// Its number, in the order of delivery.
    pub number: u32,
    /// What is stored with it, apart from the payload.
    pub entry: SignalEntry,
    /// The size of its payload in bytes.
    pub size: usize,
}

impl SignalSummary {
    /// Decodes an entry of the journal, with its payload. Returns `None` if the key is not that of a signal.
    pub(crate) fn stored(key: &[u8], value: &[u8]) -> Option<Result<(Self, Blob), CodecError>> {
        let (id, number, _) = keys::parse_signal(key)?;
        let signal = codec::decode(value).map(|StoredSignal { entry, payload }| {
            let size = payload.len();
            let signal = Self {
                id,
                number,
                entry,
                size,
            };
            (signal, payload)
        });
        Some(signal)
    }
}

/// How much is stored of one procedure, counted up to a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredCounts {
    /// The number of its history entries: executed stages and undos.
    pub history: usize,
    /// `true` if there may be more history entries than were counted.
    pub more_history: bool,
    /// The number of its signals.
    pub signals: usize,
    /// `true` if there are more signals than were counted.
    pub more_signals: bool,
}

/// The signals that a live procedure has yet to consume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mailbox {
    /// How many signals of each name are kept.
    pub kept: BTreeMap<String, u32>,
    /// When the oldest of them was sent. `None` if there is none, or if it was stored before this was recorded.
    pub oldest: Option<Timestamp>,
    /// Event names that are closed: the procedure refuses further signals of them.
    pub closed: Vec<String>,
}

impl Mailbox {
    /// Computes the mailbox of a procedure from its row and its stored signals.
    pub(crate) fn stored(row: &Row, signals: &[SignalSummary]) -> Self {
        let mut mailbox = Self {
            closed: row.rare().closed.iter().map(ToString::to_string).collect(),
            ..Self::default()
        };
        for signal in signals.iter().filter(|signal| signal.id == row.id) {
            let SignalEntry {
                name, consumed, sent, ..
            } = &signal.entry;
            if !consumed {
                *mailbox.kept.entry(name.to_string()).or_default() += 1;
                mailbox.oldest = [mailbox.oldest, *sent].into_iter().flatten().min();
            }
        }
        mailbox
    }

    pub(crate) fn of(kernel: &Kernel, id: ProcedureId) -> Option<Self> {
        let row = kernel.row(id).filter(|row| !row.is_ended())?;
        let signals = &kernel.families().get(&id.family)?.signals;
        let kept = signals.kept(id.member).into_iter();
        Some(Self {
            kept: kept.map(|(name, count)| (name.to_string(), count)).collect(),
            oldest: signals.oldest_sent(id.member),
            closed: row.rare().closed.iter().map(ToString::to_string).collect(),
        })
    }
}
