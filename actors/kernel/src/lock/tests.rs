//! Rules of `lock`, one by one.

use super::*;

fn texts(path: &str) -> Vec<String> {
    LockPath::parse(path).ancestors().map(|path| path.to_string()).collect()
}

#[test]
fn a_path_has_one_text() {
    for text in ["ns/t", "/ns/t", "ns/t/", "//ns///t//"] {
        assert_eq!(LockPath::parse(text).as_str(), "ns/t");
    }
    for text in ["", "/", "//"] {
        assert_eq!(LockPath::parse(text).as_str(), "");
        assert_eq!(LockPath::parse(text).to_string(), "/");
    }
}

#[test]
fn a_part_is_one_level_whatever_it_holds() {
    for part in [
        "a/b", "/", "//", "%", "%2F", "%25", "a%00", "\0", " ", "ü/ü", "..", "/a/",
    ] {
        let path = LockPath::of(["ns", part]);
        assert!(!path.has_empty_part(), "{part:?}");
        assert_eq!(path.ancestors().count(), 2, "{part:?}");
        assert_eq!(
            LockPath::parse(path.as_str()),
            path,
            "{part:?}: it is read back as it is"
        );
        assert!(LockPath::parse("ns").covers(&path));
    }
    let texts = ["a/b", "a%2Fb", "a%252Fb", "a%", "a%25", "\0", "%00", "a"];
    let paths: std::collections::BTreeSet<LockPath> = texts.iter().map(|text| LockPath::of([text])).collect();
    assert_eq!(paths.len(), texts.len(), "no two parts are one path");
}

#[test]
fn an_empty_part_is_seen_and_is_no_other_path() {
    let empty: [&[&str]; 5] = [&["customer", ""], &["", "customer"], &["", ""], &[""], &[]];
    for parts in empty {
        let path = LockPath::of(parts);
        assert!(path.has_empty_part(), "{parts:?}");
        assert!(path != LockPath::parse("customer") && path != LockPath::parse(""));
    }
    assert!(!LockPath::parse("").has_empty_part(), "the whole tree can be asked for");
}

#[test]
fn ancestors_are_given_nearest_first() {
    assert_eq!(texts("ns/t/r"), ["ns/t", "ns", "/"]);
    assert_eq!(texts("ns"), ["/"]);
    assert!(texts("/").is_empty());
}

#[test]
fn a_path_covers_itself_and_what_lies_under_it() {
    let covers = |one: &str, other: &str| LockPath::parse(one).covers(&LockPath::parse(other));
    assert!(covers("ns", "ns"));
    assert!(covers("ns", "ns/t/r"));
    assert!(covers("/", "ns"));
    assert!(covers("/", "/"));
    assert!(!covers("ns/t", "ns"));
    assert!(!covers("ns", "nsx"));
    assert!(!covers("ns", "/"));
}

#[test]
fn locks_and_modes_are_shown_in_words() {
    assert_eq!(LockNeed::exclusive("ns/t").to_string(), "exclusive ns/t");
    assert_eq!(LockNeed::shared("/").to_string(), "shared /");
}

/// E-068: every holder against every requester.
#[test]
fn e_068_exclusive_excludes_at_and_under() {
    let asked = ["ns", "ns/t", "ns/t/r", "ns/u", "other"];
    let refused = |held: LockNeed| -> Vec<String> {
        asked
            .iter()
            .flat_map(|path| [LockNeed::exclusive(*path), LockNeed::shared(*path)])
            .filter(|need| need.conflicts(&held) && held.conflicts(need))
            .map(|need| need.to_string())
            .collect()
    };
    let all_of_ns = [
        "exclusive ns",
        "shared ns",
        "exclusive ns/t",
        "shared ns/t",
        "exclusive ns/t/r",
        "shared ns/t/r",
        "exclusive ns/u",
        "shared ns/u",
    ];
    assert_eq!(refused(LockNeed::exclusive("ns")), all_of_ns);
    let table = [
        "exclusive ns",
        "exclusive ns/t",
        "shared ns/t",
        "exclusive ns/t/r",
        "shared ns/t/r",
    ];
    assert_eq!(refused(LockNeed::exclusive("ns/t")), table);
    assert_eq!(refused(LockNeed::shared("ns/t")), ["exclusive ns", "exclusive ns/t"]);
    let region = ["exclusive ns", "exclusive ns/t", "exclusive ns/t/r", "shared ns/t/r"];
    assert_eq!(refused(LockNeed::exclusive("ns/t/r")), region);
}
