//! What a verdict says of what is hidden.

use super::told_as;

#[test]
fn a_fact_is_told_as_it_is_shown_and_one_that_is_empty_changes_nothing() {
    assert_eq!(told_as("it said: boom", "boom", "(redacted)"), "it said: (redacted)");
    assert_eq!(told_as("it said: ", "", "(redacted)"), "it said: ");
    let text = "1.0 of order has failed 11 times; the last error: 1";
    let hidden = "1.0 of order has failed 11 times; the last error: (redacted)";
    assert_eq!(
        told_as(text, "1", "(redacted)"),
        hidden,
        "the id and the count are ours"
    );
}
