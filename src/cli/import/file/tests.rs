//! Each thing that may be wrong with a file is named, with what to do.

use super::find;

const FAMILY: &str = r#"{"type":"family","format":1,"family":7,"whole":true,"procedures":[],"stages":[],"entries":[]}"#;
const OTHERS: &str = "{\"type\":\"procedure\",\"id\":\"7.0\"}\n\n{\"type\":\"value\",\"id\":\"7.0\",\"bytes\":3}\n";

fn refusal(text: &str) -> String {
    let found = find(text.as_bytes(), "a file").map(|export| export.family);
    found.err().map(|failure| failure.text).unwrap_or_default()
}

#[test]
fn the_family_is_found_among_the_lines() {
    let text = format!("{OTHERS}{FAMILY}\n{OTHERS}");
    assert_eq!(
        find(text.as_bytes(), "a file").map(|export| export.family).ok(),
        Some(7)
    );
    // Its last line need not end.
    assert!(find(FAMILY.as_bytes(), "a file").is_ok());
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    for (text, expected) in [
        (String::new(), "export it with --payload"),
        (OTHERS.to_owned(), "export it with --payload"),
        (
            format!("{FAMILY}\n{}\n", FAMILY.replace(":7", ":8")),
            "the families of 7.0 and 8.0",
        ),
        (
            format!("{OTHERS}{}", &FAMILY[..FAMILY.len() / 2]),
            "line 4 of a file is cut off",
        ),
        (FAMILY.replace("\"format\":1", "\"format\":3"), "reads up to 2"),
        (FAMILY.replace("\"whole\":true,", ""), "missing field `whole`"),
        (
            FAMILY.replace(
                "\"entries\":[]",
                "\"entries\":[{\"space\":\"x\",\"key\":\"é\",\"value\":\"\"}]",
            ),
            "hexadecimal",
        ),
        ("not JSON\n".to_owned(), "line 1 of a file is none of an export"),
        ("[1]\n".to_owned(), "line 1 of a file is none of an export"),
        ("\u{1b}[2J\n".to_owned(), "none of an export"),
    ] {
        let said = refusal(&text);
        assert!(said.contains(expected), "{text}: {said}");
    }
}
