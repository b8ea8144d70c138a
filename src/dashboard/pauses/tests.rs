//! Which act counts, and which is forgotten.

use procession_kernel::ProcedureId;

use super::*;

/// An act of an older release, which recorded only its words.
fn act(number: u64, words: &str) -> AuditEntry {
    let entry = AuditEntry {
        number: 0,
        at: procession_kernel::Timestamp(number),
        who: "ann".to_owned(),
        why: String::new(),
        words: words.to_owned(),
        target: None,
        changes: Vec::new(),
        changed: 0,
        key: None,
        digest: None,
        act: None,
        abort: None,
        submitted: None,
        reach: None,
    };
    entry.restored(number)
}

#[test]
fn the_newest_counts_as_long_as_the_audit_keeps_it() {
    let mut known = Known::default();
    let one = PauseScope::One(ProcedureId::root(7));
    let number = |known: &Known, what: &PauseScope| known.acts.get(what).map(|act| act.number);
    known.take(
        vec![act(9, "pause 7.0"), act(3, "pause 7.0"), act(4, "pause everything")],
        9,
    );
    assert_eq!(
        (number(&known, &one), number(&known, &PauseScope::All)),
        (Some(9), Some(4))
    );
    known.take(vec![act(12, "import the family 7")], 12);
    assert_eq!(number(&known, &one), Some(12));
    assert_eq!(number(&known, &PauseScope::One(ProcedureId::new(7, 1))), None);
    known.take(vec![act(5, "pause 7.0")], 8);
    assert_eq!(
        (number(&known, &one), known.upto),
        (Some(12), Some(12)),
        "an older reading"
    );
    known.take(Vec::new(), 4 + AUDIT_KEPT as u64);
    assert_eq!(
        (number(&known, &one), number(&known, &PauseScope::All)),
        (Some(12), None)
    );
}
