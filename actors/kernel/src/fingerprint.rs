//! Fingerprints of failure texts: texts that differ only in numbers have the same fingerprint.
//!
//! Fingerprints are on disk and are compared across processes and releases, so the folding must not change. If it ever
//! did, streaks of failures would merely restart their count once.

/// Placeholder for a number.
const SIGN: char = '#';

/// From this length on, a word of hex letters alone counts as a number.
const HEX_LETTERS: usize = 8;

/// Returns the fingerprint of a text: 64-bit FNV-1a over its UTF-8, with each number replaced by one placeholder.
///
/// A run of decimal digits is a number. So is a whole word of hex digits, with or without `0x`, in one of three cases:
/// it contains a decimal digit, it has at least eight digits, or it stands between two hyphens. Ids are written so.
/// Numbers joined by a single `.`, `,` or `:` count as one number.
#[must_use]
pub fn fingerprint(text: &str) -> u64 {
    crate::id::fnv([folded(text).as_bytes()])
}

fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric());
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        if word.is_empty() {
            folded.push(first);
            rest = rest.split_at(first.len_utf8()).1;
            continue;
        }
        let is_between = folded.ends_with('-') && after.starts_with('-');
        if is_hex(word, is_between) {
            push_sign(&mut folded);
        } else {
            push_word(&mut folded, word);
        }
        rest = after;
    }
    folded
}

fn is_hex(word: &str, is_between: bool) -> bool {
    let prefixed = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let digits = prefixed.unwrap_or(word);
    let is_number = is_between || digits.len() >= HEX_LETTERS || word.bytes().any(|byte| byte.is_ascii_digit());
    is_number && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn push_word(folded: &mut String, word: &str) {
    for letter in word.chars() {
        if letter.is_ascii_digit() {
            push_sign(folded);
        } else {
            folded.push(letter);
        }
    }
}

/// Appends the placeholder, or merges the number with the number before it.
fn push_sign(folded: &mut String) {
    let before = folded.strip_suffix(['.', ',', ':']).unwrap_or(folded);
    match before.ends_with(SIGN) {
        true => folded.truncate(before.len()),
        false => folded.push(SIGN),
    }
}

#[cfg(test)]
mod tests {
    //! What is folded, what is not, and that a fingerprint never changes.

    use super::*;

    #[test]
    fn numbers_are_one_sign() {
        for (text, expected) in [
            ("timeout after 31 ms at rs-17", "timeout after # ms at rs-#"),
            ("took 1.5s, 12ms, 3,141 rows at 10:42:05", "took #s, #ms, # rows at #"),
            ("node17 of table1 refused 10.0.0.7:8080", "node# of table# refused #"),
            ("at 0x7ffe and 0Xab", "at # and #"),
            ("id 550e8400-e29b-abcd-a716-dddddddddddd", "id #-#-#-#-#"),
            ("commit deadbeef, 9fceb02", "commit #, #"),
            ("the table \u{fc}ber 5 \u{20ac}", "the table \u{fc}ber # \u{20ac}"),
        ] {
            assert_eq!(folded(text), expected, "{text}");
        }
    }

    #[test]
    fn words_are_none() {
        for text in [
            "",
            "a bad face added",
            "no such table: users",
            "rs-a is dead-locked",
            "0x",
            "-",
        ] {
            let expected = text.replace('0', "#");
            assert_eq!(folded(text), expected, "{text}");
        }
        assert_ne!(fingerprint("rpc timeout rs-17"), fingerprint("rpc refused rs-17"));
    }

    #[test]
    fn a_fingerprint_is_the_same_for_ever() {
        assert_eq!(fingerprint(""), 0xcbf2_9ce4_8422_2325);
        // A published FNV-1a vector; its text contains no number to fold.
        assert_eq!(fingerprint("foobar"), 0x8594_4171_f739_67e8);
        let alike = ["timeout after 31 ms at rs-17", "timeout after 29 ms at rs-4"];
        assert_eq!(alike.map(fingerprint), [0xd3ef_794d_bf76_feb5; 2]);
    }
}
