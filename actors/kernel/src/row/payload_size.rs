//! The size of a value, noted while it is large enough for the health check to report it.

use serde::{Deserialize, Serialize};

use super::Row;
use crate::id::Blob;

/// A value's size is noted from one quarter of the allowed size. The health check reports values from one half by
/// default, so its threshold can be lowered that far.
const PART: usize = 4;

/// The size of a large value, and the stage that grew it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadSizeNote {
    /// Size of the value when it was last written, in bytes.
    #[serde(rename = "b")]
    pub bytes: u32,
    /// The encoded stage that last grew the value; `None` if it was submitted at this size.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Blob>,
}

impl Row {
    /// Records that the value was written. `bound` is the allowed size; `stage` returns the stage that wrote the
    /// value.
    pub(crate) fn note_size(&mut self, bytes: usize, bound: usize, stage: impl FnOnce(&Self) -> Option<Blob>) {
        if bytes.saturating_mul(PART) < bound || bytes == 0 {
            self.clear_rare(|rare| rare.payload_size = None);
            return;
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let before = self.rare_if_any().and_then(|rare| rare.payload_size.take());
        let before = before.filter(|before| before.bytes >= bytes);
        let stage = match before {
            Some(before) => before.stage,
            None => stage(self),
        };
        self.rare_mut().payload_size = Some(Box::new(PayloadSizeNote { bytes, stage }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Kind, ProcedureId, Timestamp};

    #[test]
    fn the_stage_that_grew_it_last_is_named_until_it_is_small_again() {
        let id = ProcedureId::root(1);
        let mut row = Row::new(id, Kind::from("kind"), 1, Blob::default(), Timestamp(0));
        let mut noted = |bytes, stage: Option<&[u8]>| {
            row.note_size(bytes, 100, |_| stage.map(Blob::from));
            let size = row.rare().payload_size.as_deref()?;
            Some((size.bytes, size.stage.as_ref().map(|stage| stage.as_slice().to_vec())))
        };
        let by = |stage: &[u8]| Some(stage.to_vec());
        assert_eq!(noted(25, None), Some((25, None)), "it was submitted so");
        assert_eq!(noted(25, Some(b"a")), Some((25, None)), "it has not grown");
        assert_eq!(noted(60, Some(b"b")), Some((60, by(b"b"))));
        assert_eq!(
            noted(30, Some(b"c")),
            Some((30, by(b"b"))),
            "less, and still by that stage"
        );
        assert_eq!(noted(24, Some(b"d")), None);
        assert_eq!(noted(26, Some(b"e")), Some((26, by(b"e"))));
        assert_eq!(noted(0, Some(b"f")), None);
    }
}
