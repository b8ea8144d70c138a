//! The mount's address, as links need it.

use super::{base_of, escaped, prefix_of, without_comments};

#[test]
fn scripts_are_sent_without_comments() {
    let script =
        "/** One.\n * @param {string} a */\n  // Halves it.\nconst f = (/** @type {any} */ a) => a / 2; // kept\n";
    assert_eq!(without_comments(script), "\n\n\nconst f = ( a) => a / 2; // kept\n");
    for path in procession_page::paths().filter(|path| path.ends_with(".js")) {
        let file = procession_page::file(&path).expect("it is listed");
        let sent = without_comments(std::str::from_utf8(file.content()).expect("it is a text"));
        // Nothing else looks like such a comment: a text with one of its two ends would be cut.
        assert_eq!(sent.matches("/*").count(), sent.matches("*/").count(), "{path}");
        assert_eq!(
            sent.lines().count(),
            file.content().split(|byte| *byte == b'\n').count() - 1,
            "{path}"
        );
    }
}

#[test]
fn the_base_is_the_mount() {
    let base = |path: &str, tail| base_of(&path.parse().expect("a path"), tail);
    assert_eq!(base("/", Some("")), "/");
    assert_eq!(base("/procedures/42.3", Some("procedures/42.3")), "/");
    assert_eq!(base("/ops", None), "/ops/");
    assert_eq!(base("/ops/", Some("")), "/ops/");
    assert_eq!(
        base("/ops/a%20b/procedures/42.3?tab=waits", Some("procedures/42.3")),
        "/ops/a%20b/"
    );
    assert_eq!(base("//evil.example/waits", Some("waits")), "/evil.example/");
}

#[test]
fn what_a_proxy_took_away_is_a_path_and_nothing_else() {
    assert_eq!(prefix_of("/team"), "/team");
    assert_eq!(prefix_of(" /team/ops/ "), "/team/ops");
    assert_eq!(prefix_of("team"), "/team");
    for other in [
        "",
        "/",
        "//evil.example//x",
        "/a/../b",
        "/a b",
        "/\"onload=",
        "https://evil.example",
        "/a?b",
    ] {
        assert_eq!(prefix_of(other), "", "{other}");
    }
    assert_eq!(prefix_of(&"/a".repeat(200)), "");
}

#[test]
fn an_address_ends_no_attribute() {
    assert_eq!(escaped("/a\"b'c<d>&/"), "/a&quot;b&#39;c&lt;d&gt;&amp;/");
}
