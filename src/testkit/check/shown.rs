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

/// Returns the bytes to compare a value by, beside how it is shown. The entries of a map come in another order each time
/// that a `HashMap` is written, and JSON shows them in one.
pub(super) fn compared(bytes: &[u8]) -> Vec<u8> {
    let mut compared = bytes.to_vec();
    if codec::decode_user::<Value>(bytes).is_ok() {
        compared.sort_unstable();
    }
    compared
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
mod tests;
