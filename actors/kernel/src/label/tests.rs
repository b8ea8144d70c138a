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

/// It is on disk.
#[test]
fn the_digest_of_a_label_never_changes() {
    let digest = Label::new("customer", "4711").digest();
    assert_eq!(digest, fnv([&b"customer\xff4711"[..]]) | LABEL_BIT);
    assert_eq!(digest, 0xda9e_228b_5147_7a01);
    assert_ne!(Label::new("ab", "c").digest(), Label::new("a", "bc").digest());
}
