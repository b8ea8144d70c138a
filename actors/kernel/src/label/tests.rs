//! Bounds of labels, and the number that stands for one on disk.

use super::*;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(name, value)| Label::new(*name, *value)).collect()
}

#[test]
fn a_name_has_one_value_and_a_child_may_set_its_own() {
    let parent = labels(&[("tenant", "acme"), ("customer", "1"), ("customer", "4711")]);
    assert_eq!((parent.len(), parent.get("customer")), (2, Some("4711")));
    let child = parent.with(&labels(&[("customer", "4712"), ("line", "2")]));
    let shown: Vec<String> = child.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["customer=4712", "line=2", "tenant=acme"]);
    assert_eq!(parent.get("customer"), Some("4711"), "the parent keeps its own");
    assert_eq!(Labels::default().with(&Labels::default()), Labels::default());
}

#[test]
fn bounds_are_in_bytes_and_hold_to_the_last_one() {
    let name = "n".repeat(LABEL_NAME_MAX);
    let value = "ä".repeat(LABEL_VALUE_MAX / 2);
    assert_eq!(Label::new(name.as_str(), value.as_str()).check(), Ok(()));
    assert_eq!(Label::new("urgent", "").check(), Ok(()));
    let long = Label::new("a", format!("{value}b")).check();
    assert_eq!(long, Err(LabelError::Value("a".to_owned(), LABEL_VALUE_MAX + 1)));
    for wrong in ["", "a b", "a=b", "ä", "a\n", &format!("{name}n")] {
        let refused = Label::new(wrong, "1").check();
        assert!(matches!(refused, Err(LabelError::Name(_))), "{wrong}");
    }
    let many = |count: usize| -> Labels { (0..count).map(|at| Label::new(format!("l{at}"), "")).collect() };
    assert_eq!(many(LABELS_MAX).check(), Ok(()));
    assert_eq!(many(LABELS_MAX + 1).check(), Err(LabelError::TooMany(LABELS_MAX + 1)));
}

#[test]
fn a_row_has_labels_inside_or_names_the_member_that_has_them() {
    let own = labels(&[("customer", "4711")]);
    let inside = RowLabels::in_row(own.clone());
    assert_eq!((inside.entry(), inside.is_in_row(), &*inside), (None, true, &own));
    let beside = RowLabels::in_entry(3, own.clone());
    assert_eq!((beside.entry(), beside.is_in_row(), &*beside), (Some(3), false, &own));
    let none = RowLabels::in_row(Labels::default());
    assert_eq!((none.entry(), none.is_in_row(), none.len()), (None, false, 0));
    assert_eq!(none, RowLabels::default());
}

/// It is on disk.
#[test]
fn the_digest_of_a_label_never_changes() {
    let label = Label::new("customer", "4711");
    let hash = fnv([&b"customer\xff4711"[..]]);
    assert_eq!(label.long_digest(), LabelDigest::Long(hash | LABEL_BIT));
    assert_eq!(label.long_digest(), LabelDigest::Long(0xda9e_228b_5147_7a01));
    // The 32 highest bits without the highest and the lowest four of them.
    assert_eq!(label.digest(), LabelDigest::Short((0xda9e_228b & 0x7fff_ffff) >> 4));
    assert_eq!(label.digest(), LabelDigest::Short(0x05a9_e228));
    assert_ne!(Label::new("ab", "c").digest(), Label::new("a", "bc").digest());
}
