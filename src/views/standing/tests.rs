//! The words of states.

use super::{ROLLING_BACK, Reason, state_word};
use procession_kernel::ProcedureState;

#[test]
fn the_words_are_those_of_the_page() {
    let page = include_str!("../../page/files/states.js");
    for reason in Reason::ALL {
        let line = format!("  {reason}: stand('{}',", reason.standing());
        assert!(page.contains(&line), "the page has no line {line}");
    }
    for state in ProcedureState::ALL {
        // The page says of one that has failed whether it has ended.
        let word = if state == ProcedureState::Failed {
            ROLLING_BACK
        } else {
            state_word(state)
        };
        let line = format!("  {state}: stand('{word}',");
        assert!(page.contains(&line), "the page has no line {line}");
    }
    assert!(page.contains("ENDED_FAILED = stand('failed',"));
}
