//! One record of every shape that format 7 has besides those before it.

use procession_kernel::{EvictedFamily, HistoryEntry, Label, ProcedureId, Record, Row, RowLabels, SubmittedValue};

use crate::samples::{ID, Sample, blob, plain, row};
use crate::samples_2;
use crate::samples_4::{doomed, labels};

/// Labels in the index, of families whose numbers have one byte, four and eight, and families that leave it: one with the new
/// entries, one with those of both forms.
pub(crate) fn label_index() -> Vec<Sample> {
    let short = || labels().iter().map(Label::digest).collect::<Vec<_>>();
    let evicted = |family, labels| {
        let doomed = doomed(family);
        Record::Evicted(Box::new(EvictedFamily { labels, ..doomed }))
    };
    let long = || labels().iter().map(Label::long_digest).collect::<Vec<_>>();
    let samples = [
        ("labelled", Record::Labelled(42, labels())),
        ("labelled-of-4-bytes", Record::Labelled(0x0100_0000, labels())),
        ("labelled-of-8-bytes", Record::Labelled((1 << 62) - 1, labels())),
        ("evicted", evicted(42, short())),
        ("evicted-of-both-forms", evicted(42, [short(), long()].concat())),
    ];
    samples.map(|(name, record)| (name.to_owned(), record)).into()
}

/// An entry of labels, a row that names its own, one that names an ancestor's, and a family that leaves with two of them.
pub(crate) fn label_entries() -> Vec<Sample> {
    let names = |member| Row {
        labels: RowLabels::in_entry(member, labels()),
        ..plain()
    };
    let gone = EvictedFamily {
        labelled: vec![0, 300],
        ..doomed(42)
    };
    vec![
        ("labels".to_owned(), Record::Labels(ID, labels())),
        (
            "labels-of-root".to_owned(),
            Record::Labels(ProcedureId::root(42), labels()),
        ),
        row("its-own".to_owned(), names(ID.member)),
        row("inherited".to_owned(), names(0)),
        ("evicted".to_owned(), Record::Evicted(Box::new(gone))),
    ]
}

/// Entries of stages that replaced the value with which their root was submitted.
pub(crate) fn first_values() -> Vec<Sample> {
    let with = |(name, record): Sample| match record {
        Record::History(entry) => {
            let submitted = Some(Box::new(SubmittedValue {
                version: 3,
                value: blob("value"),
            }));
            let entry = HistoryEntry { submitted, ..*entry };
            (name, Record::History(Box::new(entry)))
        }
        other => (name, other),
    };
    samples_2::history().into_iter().map(with).collect()
}
