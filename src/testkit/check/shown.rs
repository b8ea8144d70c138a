//! Keys and values of the store as text: to compare two runs, and to show where they differ.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use procession_actors::journal::codec;
use serde_json::Value;

/// Shows a key: as it is if it is text, otherwise in hexadecimal, so that two keys never look alike.
pub(super) fn key(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        Ok(_) | Err(_) => bytes.iter().fold("0x".to_owned(), |mut text, byte| {
            // Writing to a string cannot fail.
            write!(text, "{byte:02x}").ok();
            text
        }),
    }
}

/// Shows a value as JSON, with the names of its fields. A value that JSON cannot hold, such as bytes, is shown as far
/// as it is text, with a number that tells it from all others.
pub(super) fn value(bytes: &[u8]) -> String {
    match codec::decode_user::<Value>(bytes) {
        Ok(value) => value.to_string(),
        Err(_) => format!("{} #{:016x}", readable(bytes), digest(bytes)),
    }
}

fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
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
    fn values_that_json_cannot_hold_are_told_apart() -> Result<(), procession_actors::CodecError> {
        let pairs = |number: u8| encoded(&BTreeMap::from([((1, 2), number)]));
        let (one, two) = (value(pairs(1)?.as_slice()), value(pairs(2)?.as_slice()));
        assert_ne!(one, two);
        assert!(one.contains('#'), "{one}");
        Ok(())
    }

    #[test]
    fn keys_that_are_no_text_are_told_apart() {
        assert_eq!(key(b"orders/7"), "orders/7");
        assert_eq!(key(&7_u32.to_be_bytes()), "0x00000007");
        assert_ne!(key(&[0xff, 1]), key(&[0xff, 2]));
    }
}
