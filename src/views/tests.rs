//! Words that programs go by must be all different, and lead back to what they name.

use super::Reason;

#[test]
fn every_reason_has_a_word_of_its_own() {
    for reason in Reason::ALL {
        assert_eq!(reason.as_str().parse(), Ok(reason));
    }
    assert_eq!("nothing".parse::<Reason>(), Err(()));
}
