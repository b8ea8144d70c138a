//! Cuts agree in the order of lines and in the order of keys.

use super::{Cut, cut, digest, divide, key_of, text_of};

#[test]
fn a_key_ends_at_the_first_semicolon_or_tab() {
    assert_eq!(key_of("0041;LATIN\tA"), "0041");
    assert_eq!(key_of("0041\tLATIN;A"), "0041");
    assert_eq!(key_of("0041"), "0041");
    assert_eq!(key_of(";x"), "");
}

#[test]
fn a_cut_is_near_the_middle_and_its_boundary_is_short() {
    let lines = ["0041;A", "0042;B", "0051;Q", "0052;R"];
    assert_eq!(
        cut(&lines, 2),
        Some(Cut {
            at: 2,
            boundary: "005".into()
        })
    );
}

#[test]
fn a_cut_puts_each_row_on_one_side_by_line_and_by_key() {
    let mut lines = vec!["1F5F;a", "1F60;b", "1F600;c", "1F60F;d", "1F61;e", "1F610;f", "1F7;g"];
    lines.sort_unstable();
    for middle in 0..=lines.len() {
        let Some(Cut { at, boundary }) = cut(&lines, middle) else {
            panic!("no cut at {middle}")
        };
        for (place, line) in lines.iter().enumerate() {
            assert_eq!(place < at, **line < *boundary, "{line} against {boundary}");
            assert_eq!(
                place < at,
                key_of(line) < boundary.as_str(),
                "{line} against {boundary}"
            );
        }
    }
}

#[test]
fn rows_of_one_key_are_never_parted() {
    assert_eq!(cut(&["k;1", "k;2", "k;3"], 1), None);
    assert_eq!(cut(&["k;1"], 0), None);
    assert_eq!(cut(&[], 0), None);
}

#[test]
fn the_digest_tells_texts_apart() {
    assert_ne!(
        digest(text_of(["a", "b"]).as_bytes()),
        digest(text_of(["a", "c"]).as_bytes())
    );
    assert_eq!(digest(b""), 0xCBF2_9CE4_8422_2325);
}

#[test]
fn pieces_cover_the_rows_and_the_key_space() {
    let lines: Vec<String> = (0..100).map(|number| format!("{number:04};row")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let pieces = divide(&lines, 8, "", None);
    assert_eq!(pieces.len(), 8);
    assert_eq!(pieces.iter().map(|piece| piece.lines.len()).sum::<usize>(), 100);
    assert!(pieces.windows(2).all(|two| two[0].end.as_ref() == Some(&two[1].start)));
    assert_eq!((pieces[0].start.as_str(), pieces[7].end.as_ref()), ("", None));
    assert_eq!(divide(&[], 8, "", None).len(), 1);
}
