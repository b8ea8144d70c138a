//! What is a name, and which of them are the same.

use super::{Host, HostNameError, Hosts};

#[test]
fn a_host_is_read_as_it_is_written_or_not_at_all() {
    for (text, shown) in [
        ("ops.example", "ops.example"),
        ("OPS.Example:8443", "ops.example:8443"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("a_b.example", "a_b.example"),
        ("10.0.0.5:80", "10.0.0.5:80"),
        ("[FD00::1]:80", "[fd00::1]:80"),
        ("[::ffff:10.0.0.5]", "10.0.0.5"),
    ] {
        let host = Host::read(text).map(|host| host.to_string());
        assert_eq!(host.as_deref(), Some(shown), "{text}");
    }
    let long = [&"a".repeat(64), ".example"].concat();
    for text in [
        "",
        " ",
        "ops.example ",
        "ops.example.",
        ".example",
        "a..b",
        "bücher.example",
        "*.example",
        "ops example",
        "https://ops.example",
        "ops.example/ops",
        "user@ops.example",
        "ops.example:",
        "ops.example:x",
        "ops.example:+1",
        "ops.example:01",
        "ops.example:65536",
        "[fd00::1",
        "fd00::1",
        "[fd00::1]x",
        "[fe80::1%25lo]",
        "[v1.x]",
        "1.2.3",
        "256.1.1.1",
        "1.2.3.4.5",
        &long,
    ] {
        assert_eq!(Host::read(text), None, "{text}");
    }
}

#[test]
fn a_name_without_a_port_stands_for_every_port() -> Result<(), HostNameError> {
    let hosts = Hosts::named(["ops.example", "ops.test:8443", "10.0.0.5"])?;
    let has = |text: &str| Host::read(text).is_some_and(|host| hosts.has(&host));
    for own in [
        "ops.example",
        "OPS.example:1",
        "ops.test:8443",
        "10.0.0.5:80",
        "[::ffff:10.0.0.5]",
    ] {
        assert!(has(own), "{own}");
    }
    for strange in [
        "ops.test",
        "ops.test:80",
        "x.ops.example",
        "localhost",
        "127.0.0.1",
        "10.0.0.6",
    ] {
        assert!(!has(strange), "{strange}");
    }
    Ok(())
}

#[test]
fn what_is_no_name_is_told() {
    assert_eq!(Hosts::named::<&str>([]), Err(HostNameError::None));
    let wrong = "https://ops.example".to_owned();
    assert_eq!(Hosts::named(["ops.example", &wrong]), Err(HostNameError::Name(wrong)));
}
