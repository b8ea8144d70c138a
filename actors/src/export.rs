//! `FamilyExport`: everything that the journal holds of one family, as stored and in readable form. It is read beside
//! the engine. Entries that cannot be decoded are kept as they are, since damaged families are what exports are for.

use procession_kernel::{
    Blob, HistoryEntry, Key, Labels, ProcedureId, Row, SUBMITTED_ENTRY_LAST, SubmittedValue, Timestamp, settle_standing,
};
use serde::{Deserialize, Serialize};

use crate::error::CodecError;
use crate::journal::reader::{LabelEntries, decode_row};
use crate::journal::{Space, codec, keys};
use crate::view::{SignalSummary, Status};

/// Newest format of an export. Fields are added, never renamed and never reused.
///
/// 2 since labels have entries of their own: a release that knows 1 would find no labels in the rows.
const EXPORT_FORMAT: u32 = 2;

/// Format of an export without such entries, so that earlier releases can read it.
const EXPORT_WITHOUT_LABELS: u32 = 1;

/// Largest export in bytes, unless a caller that reads a closed journal asks for more. An export is held in memory as
/// a whole, several times while it is encoded, beside a running engine.
pub(crate) const EXPORT_MAX: usize = 256 << 20;

/// One family as the journal holds it, for an archive or a fault report.
///
/// Its serde form has words and numbers for people; in a readable format such as JSON, raw bytes are hexadecimal.
/// [`to_bytes`](Self::to_bytes) returns the compact form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FamilyExport {
    /// Format of the export: 1.
    pub format: u32,
    /// The family's number.
    pub family: u64,
    /// `false` if the family changed while it was read, so that its members may be from different moments.
    pub whole: bool,
    /// Why the exporting engine has it in quarantine.
    #[serde(default)]
    pub quarantined: Option<String>,
    /// Its procedures, by member, as far as their rows can be read.
    pub procedures: Vec<ExportedProcedure>,
    /// Its executed stages and undos, in commit order, as far as they can be read.
    pub stages: Vec<ExportedStage>,
    /// What cannot be read, each with its reason. Entries that cannot be decoded are among `entries` all the same; those of a
    /// closed journal that are in a damaged part of its files are not.
    #[serde(default)]
    pub unreadable: Vec<String>,
    /// Every entry of the journal that belongs to the family, raw.
    pub entries: Vec<ExportedEntry>,
}

/// One entry of the journal, raw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExportedEntry {
    /// Name of the keyspace.
    pub space: String,
    /// The key.
    #[serde(with = "raw")]
    pub key: Blob,
    /// The value.
    #[serde(with = "raw")]
    pub value: Blob,
}

/// One procedure of an export, in readable form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExportedProcedure {
    /// Its id, as `42.3`.
    pub id: String,
    /// Its parent's id; `None` for a root.
    #[serde(default)]
    pub parent: Option<String>,
    /// Its kind.
    pub kind: String,
    /// Schema version of its stored payload.
    pub version: u16,
    /// Its state.
    pub state: String,
    /// Why it does not run.
    #[serde(default)]
    pub wait: Option<String>,
    /// The stage that runs, or runs next.
    pub stage: String,
    /// Failed attempts of that stage.
    pub attempt: u32,
    /// Why it failed.
    #[serde(default)]
    pub cause: Option<String>,
    /// Idempotency key of its submission.
    #[serde(default)]
    pub key: Option<String>,
    /// Its labels by name, inherited ones included.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// When it was born, in microseconds since 1970.
    pub submitted: Timestamp,
    /// When the current state and wait reason began.
    pub since: Timestamp,
    /// When it ended.
    #[serde(default)]
    pub ended: Option<Timestamp>,
}

/// One executed stage or undo of an export, in readable form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExportedStage {
    /// Its number in the family.
    pub number: u32,
    /// The procedure that ran the stage.
    pub id: String,
    /// The stage.
    pub stage: String,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// How it ended.
    pub ending: String,
    /// The error, if it failed.
    #[serde(default)]
    pub error: Option<String>,
    /// `true` if it stands on the rollback stack.
    pub stands: bool,
    /// When user code began.
    pub begun: Timestamp,
    /// When user code ended.
    pub ended: Timestamp,
}

impl FamilyExport {
    /// The newest format that this release reads, and the one that it writes.
    pub const NEWEST_FORMAT: u32 = EXPORT_FORMAT;

    /// Encodes the export as a version byte and MessagePack with field names.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the export cannot be encoded.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
        let mut bytes = Vec::new();
        codec::encode_into(&mut bytes, self)?;
        Ok(bytes)
    }

    /// Decodes the output of [`to_bytes`](Self::to_bytes), of this release or an earlier one.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the bytes are no export, are damaged, or were written by a newer release.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CodecError> {
        let export: Self = codec::decode(bytes)?;
        if export.format > EXPORT_FORMAT {
            return Err(CodecError {
                what: "the export cannot be read",
                why: format!(
                    "it has format {}, and this release reads up to {EXPORT_FORMAT}",
                    export.format
                ),
            });
        }
        Ok(export)
    }

    /// Returns its procedures by member, as far as their rows can be read.
    #[must_use]
    pub fn statuses(&self) -> Vec<Status> {
        self.rows().filter_map(Result::ok).map(|row| Status::of(&row)).collect()
    }

    /// Returns its executed stages and undos in commit order, as far as they can be read.
    #[must_use]
    pub fn history(&self) -> Vec<HistoryEntry> {
        let mut entries: Vec<HistoryEntry> = self.entries_of_history().filter_map(Result::ok).collect();
        settle_standing(&mut entries);
        entries
    }

    /// Returns the value that its root was submitted with, if an entry of its history has it. A larger one is among the
    /// values, under a key of its own.
    #[must_use]
    pub fn submitted_in_history(&self) -> Option<SubmittedValue> {
        // Entries stand in the order of their numbers, so a long history is not read to its end.
        let early = self.entries_of_history().take(SUBMITTED_ENTRY_LAST as usize);
        let mut of_root = early.filter_map(Result::ok).filter(|entry| entry.member == 0);
        of_root.find_map(|entry| entry.submitted).map(|found| *found)
    }

    /// Returns its stored signals by procedure and number, each with its payload.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if one of them cannot be decoded.
    pub fn signals(&self) -> Result<Vec<(SignalSummary, Blob)>, CodecError> {
        let entries = self.in_space(&Space::Signals);
        let stored = entries.filter_map(|entry| SignalSummary::stored(entry.key.as_slice(), entry.value.as_slice()));
        stored.collect()
    }

    /// Counts its rows, readable or not.
    pub(crate) fn members(&self) -> u32 {
        let entries = self.in_space(&Space::Procedures);
        let rows = entries.filter(|entry| keys::parse_labels(entry.key.as_slice()).is_none());
        u32::try_from(rows.count()).unwrap_or(u32::MAX)
    }

    /// Returns the idempotency key that stands for the family.
    pub(crate) fn idempotency_key(&self) -> Option<Key> {
        let entry = self.in_space(&Space::Keys).next()?;
        let text = String::from_utf8_lossy(entry.key.as_slice());
        Some(Key::from(text.into_owned()))
    }

    pub(crate) fn of(family: u64, whole: bool, entries: Vec<ExportedEntry>) -> Self {
        let mut export = Self {
            format: EXPORT_WITHOUT_LABELS,
            family,
            whole,
            quarantined: None,
            procedures: Vec::new(),
            stages: Vec::new(),
            unreadable: Vec::new(),
            entries,
        };
        if export.members() as usize != export.in_space(&Space::Procedures).count() {
            export.format = EXPORT_FORMAT;
        }
        export.procedures = export.statuses().into_iter().map(ExportedProcedure::from).collect();
        export.stages = export.history().into_iter().map(ExportedStage::from).collect();
        let rows = export.rows().filter_map(Result::err);
        export.unreadable = rows
            .chain(export.entries_of_history().filter_map(Result::err))
            .collect();
        export
    }

    fn in_space(&self, space: &Space) -> impl Iterator<Item = &ExportedEntry> {
        let name = space.name();
        self.entries.iter().filter(move |entry| entry.space == name)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = Result<Row, String>> {
        let entries = self.in_space(&Space::Procedures);
        let labels = LabelEntries::of(entries.map(|entry| (entry.key.as_slice(), entry.value.as_slice())));
        let entries = self.in_space(&Space::Procedures);
        let rows = entries.filter(|entry| keys::parse_labels(entry.key.as_slice()).is_none());
        rows.map(move |entry| {
            let id = entry.id()?;
            let row = decode_row(id, entry.value.as_slice()).and_then(|row| labels.complete(row));
            row.map_err(|error| format!("the row of {id}: {error}"))
        })
    }

    fn entries_of_history(&self) -> impl Iterator<Item = Result<HistoryEntry, String>> {
        self.in_space(&Space::History).map(|stored| {
            let id = stored.id()?;
            let entry: HistoryEntry = codec::decode(stored.value.as_slice())
                .map_err(|error| format!("entry {} of the history: {error}", id.member))?;
            Ok(HistoryEntry {
                family: id.family,
                number: id.member,
                ..entry
            })
        })
    }
}

impl ExportedEntry {
    pub(crate) fn new(space: &Space, key: Vec<u8>, value: Vec<u8>) -> Self {
        Self {
            space: space.name(),
            key: Blob::from(key),
            value: Blob::from(value),
        }
    }

    /// Parses the procedure's id, or for the history the family's number and the entry's.
    fn id(&self) -> Result<ProcedureId, String> {
        keys::parse_procedure(self.key.as_slice()).ok_or_else(|| format!("a key in {} names nothing", self.space))
    }
}

impl From<Status> for ExportedProcedure {
    fn from(status: Status) -> Self {
        Self {
            id: status.id.to_string(),
            parent: status.parent.map(|parent| parent.to_string()),
            kind: status.kind.to_string(),
            version: status.version,
            state: status.state.to_string(),
            wait: status.wait.map(|wait| wait.to_string()),
            stage: status.stage,
            attempt: status.attempt,
            cause: status.cause.map(|cause| format!("{}: {}", cause.origin, cause.text)),
            key: status.key.map(|key| key.to_string()),
            labels: status.labels,
            submitted: status.submitted,
            since: status.since,
            ended: status.ended,
        }
    }
}

impl From<HistoryEntry> for ExportedStage {
    fn from(entry: HistoryEntry) -> Self {
        Self {
            number: entry.number,
            id: ProcedureId::new(entry.family, entry.member).to_string(),
            stage: codec::describe(entry.stage.as_slice()),
            attempt: entry.attempt,
            // The names of the variants are words, and never change.
            ending: format!("{:?}", entry.ending),
            error: entry.error,
            stands: entry.stands,
            begun: entry.begun,
            ended: entry.ended,
        }
    }
}

/// Serialises bytes: raw in a binary format, hexadecimal in a readable one.
mod raw {
    use procession_kernel::Blob;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &Blob, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return bytes.serialize(serializer);
        }
        let digits = bytes.as_slice().iter().map(|byte| format!("{byte:02x}"));
        serializer.serialize_str(&digits.collect::<String>())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Blob, D::Error> {
        if !deserializer.is_human_readable() {
            return Blob::deserialize(deserializer);
        }
        let text = String::deserialize(deserializer)?;
        let bytes = text.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>();
        bytes
            .map(Blob::from)
            .ok_or_else(|| serde::de::Error::custom("these are not bytes in hexadecimal"))
    }

    fn byte(digits: &[u8]) -> Option<u8> {
        let [high, low] = digits else { return None };
        let digit = |digit: &u8| char::from(*digit).to_digit(16);
        u8::try_from(digit(high)? * 16 + digit(low)?).ok()
    }
}
