//! Every shape of record that came with format 7, as bytes and back.

use std::collections::BTreeSet;

use procession_actors::journal::keys;
use procession_actors::testkit::format;
use procession_kernel::{Label, LabelDigest, ProcedureId, RowLabels};

use crate::samples::ID;
use crate::samples_4::labels;
use crate::samples_7 as samples;
use crate::values::{compare, value};
use crate::values_4::read_history;
use crate::{Line, Tested};

#[test]
fn the_index_of_labels_is_as_it_was_when_its_entries_became_shorter() -> Tested {
    let golden = compare("v7/label_index.hex", &samples::label_index())?;
    let of = |name: &str| -> Vec<&Line> {
        let lines = golden.iter().filter(|line| line.name == name && line.space == "live");
        lines.collect()
    };
    let families = [
        ("labelled", 42, 5),
        ("labelled-of-4-bytes", 0x0100_0000, 8),
        ("labelled-of-8-bytes", (1 << 62) - 1, 12),
    ];
    for (name, family, length) in families {
        let lines = of(name);
        let found = lines.iter().map(|line| keys::parse_label(&line.key));
        let digests = labels();
        let digests = digests.iter().map(|label| Some((label.digest(), family)));
        assert_eq!(found.collect::<BTreeSet<_>>(), digests.collect(), "{name}");
        assert!(lines.iter().all(|line| line.key.len() == length), "{name}: {lines:?}");
        assert!(lines.iter().all(|line| matches!(line.key.first(), Some(0x40..=0x7f))));
    }
    let keys = |name: &str| of(name).iter().map(|line| line.key.clone()).collect::<BTreeSet<_>>();
    assert_eq!(
        keys("evicted"),
        keys("labelled"),
        "an eviction takes out what the submission put in"
    );
    let long = |label: &Label| -> LabelDigest { label.long_digest() };
    let old = labels()
        .iter()
        .map(long)
        .map(|digest| keys::label(digest, 42).to_vec())
        .collect();
    assert_eq!(keys("evicted-of-both-forms"), &keys("labelled") | &old);
    assert!(
        golden
            .iter()
            .filter(|line| line.name.starts_with("evicted"))
            .all(|line| line.value.is_none())
    );
    Ok(())
}

#[test]
fn labels_are_as_they_were_when_they_got_an_entry_of_their_own() -> Tested {
    let golden = compare("v7/label_entries.hex", &samples::label_entries())?;
    let find = |name: &str| golden.iter().find(|line| line.name == name).ok_or("it is there");
    for (name, id) in [("labels", ID), ("labels-of-root", ProcedureId::root(42))] {
        let line = find(name)?;
        assert_eq!(keys::parse_labels(&line.key), Some(id));
        assert_eq!(format::labels(id, value(line)?)?, labels());
        // It stands behind the row.
        assert!(line.key.starts_with(&keys::family(id.family)) && line.key[..] > keys::procedure(id)[..]);
    }
    for (name, member) in [("its-own", ID.member), ("inherited", 0)] {
        let row = format::row(ID, value(find(name)?)?)?;
        assert_eq!(row.labels, RowLabels::in_entry(member, Default::default()));
    }
    let gone = golden
        .iter()
        .filter(|line| line.name == "evicted" && line.space == "procedures");
    let gone: Vec<_> = gone
        .map(|line| (keys::parse_labels(&line.key), line.value.is_none()))
        .collect();
    let expected = [0, 300].map(|member| (Some(ProcedureId::new(42, member)), true));
    assert_eq!(gone, expected);
    Ok(())
}

#[test]
fn a_history_entry_is_as_it_was_when_it_got_the_first_value() -> Tested {
    read_history("v7/first_values.hex", &samples::first_values())
}
