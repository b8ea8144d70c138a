//! Keys and values of the store as text, to show where two runs differ.

use std::fmt::Write;

use procession_actors::journal::codec;
use serde_json::Value;

/// What a key in hexadecimal begins with.
const HEX: &str = "0x";

/// Shows a key: as it is if it is text, otherwise in hexadecimal. No two keys look alike.
pub(super) fn key(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.starts_with(HEX) && !text.chars().any(char::is_control) => text.to_owned(),
        Ok(_) | Err(_) => bytes.iter().fold(HEX.to_owned(), |mut text, byte| {
            // Writing to a string cannot fail.
            write!(text, "{byte:02x}").ok();
            text
        }),
    }
}

/// Shows a value as JSON, with the names of its fields. A value that JSON cannot hold, such as bytes, is shown as far
/// as it is text. Two values may look alike: see [`Line`](super::lines::Line).
pub(super) fn value(bytes: &[u8]) -> String {
    match codec::decode_user::<Value>(bytes) {
        Ok(value) => value.to_string(),
        Err(_) => readable(bytes),
    }
}

/// Shows bytes as far as they are text.
fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain = |letter: char| {
        if letter.is_control() || letter == '\u{fffd}' {
            '.'
        } else {
            letter
        }
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use procession_kernel::Blob;
    use serde::Serialize;

    use super::{key, value};

    fn encoded<T: Serialize>(value: &T) -> Result<Blob, procession_actors::CodecError> {
        procession_actors::journal::codec::encode_user(value)
    }

    #[test]
    fn a_value_is_shown_with_the_names_of_its_fields() -> Result<(), procession_actors::CodecError> {
        #[derive(Serialize)]
        struct Order {
            customer: &'static str,
            lines: Vec<u32>,
        }
        let order = Order {
            customer: "kim",
            lines: vec![1, 2],
        };
        assert_eq!(
            value(encoded(&order)?.as_slice()),
            r#"{"customer":"kim","lines":[1,2]}"#
        );
        Ok(())
    }

    #[test]
    fn a_value_that_json_cannot_hold_is_shown_as_far_as_it_is_text() -> Result<(), procession_actors::CodecError> {
        let pairs = encoded(&BTreeMap::from([((1, 2), "kim")]))?;
        let shown = value(pairs.as_slice());
        assert!(shown.contains("kim"), "{shown}");
        Ok(())
    }

    #[test]
    fn keys_that_are_no_text_are_told_apart() {
        assert_eq!(key(b"orders/7"), "orders/7");
        assert_eq!(key(&7_u32.to_be_bytes()), "0x00000007");
        assert_ne!(key(&[0xff, 1]), key(&[0xff, 2]));
        assert_ne!(key(&[7]), key(b"0x07"));
    }
}
