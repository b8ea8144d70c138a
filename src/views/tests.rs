//! Words that programs go by must be all different, and lead back to what they name; what was
//! sent can be read, by a reader of another release and after a redaction, too.

use serde_json::json;

use super::{CauseView, HistoryView, Reason};

#[test]
fn every_reason_has_a_word_of_its_own() {
    for reason in Reason::ALL {
        assert_eq!(reason.as_str().parse(), Ok(reason));
    }
    assert_eq!("nothing".parse::<Reason>(), Err(()));
}

#[test]
fn a_redacted_text_is_read_as_such() -> Result<(), serde_json::Error> {
    for (text, read) in [
        (json!("no route"), "no route"),
        (json!(null), "(redacted)"),
        (json!({ "redacted": true, "size": 3 }), "(redacted)"),
    ] {
        let sent = json!({ "kind": "Failed", "origin": "1.0", "text": text, "later": [1] });
        assert_eq!(serde_json::from_value::<CauseView>(sent)?.text, read);
    }
    Ok(())
}

#[test]
fn a_view_is_read_as_it_was_sent() -> Result<(), serde_json::Error> {
    let sent = json!({
        "number": 1, "id": "1.0", "stage": "Begin", "visit": 0, "attempt": 1, "ending": "a later word", "error": null,
        "stands": true, "queued": "q", "admitted": null, "begun": "b", "ended": "e", "waited_ms": 0, "took_ms": 3,
    });
    let read: HistoryView = serde_json::from_value(sent.clone())?;
    assert_eq!(serde_json::to_value(read)?, sent);
    Ok(())
}
