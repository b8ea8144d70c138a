//! The mount's address, as links need it.

use super::{base_of, escaped, prefix_of};

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
