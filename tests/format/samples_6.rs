//! One record of every shape that format 6 has besides those before it.

use procession_kernel::{Act, AuditEntry, BypassAs, BypassScope, Reach, Record, Verb};

use crate::samples::{ID, Sample};
use crate::samples_2;

/// An act that says how many executed stages it concerned.
pub(crate) fn reaching() -> Vec<Sample> {
    let act = Act::Operate(Verb::Bypass(ID, BypassScope::Alone, BypassAs::Success));
    let mut reach = Reach::default();
    (reach.undone, reach.stays) = (3, 300);
    let entry = AuditEntry {
        words: act.to_string(),
        changes: Vec::new(),
        act: Some(act),
        reach: Some(reach),
        ..samples_2::audit()
    };
    vec![("reach".to_owned(), Record::Audit(Box::new(entry)))]
}
