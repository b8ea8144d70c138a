//! Requests of a hostile page or program, against a dashboard whose host lets everybody do everything: each
//! is refused before the host's access is asked, and nothing was done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_web::http::Method;
use actix_web::http::header::HeaderValue;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::{App, HttpRequest, web};
use procession::dashboard::Grant;
use procession::testkit::World;
use serde_json::{Value, json};

use crate::kit::{Job, Reply, Site, Tested, at, near, site, site_in, text};

/// Names under which no dashboard is reached by default, however they are written.
const STRANGE: [&str; 44] = [
    // DNS rebinding: the page's own name leads to this machine.
    "evil.example",
    "evil.example:8080",
    "EVIL.EXAMPLE",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil",
    "evil-localhost",
    "xlocalhost",
    "localhost-",
    // Other addresses, and forms of this machine's that a browser would resolve, but never sends.
    "0.0.0.0",
    "10.0.0.1",
    "128.0.0.1",
    "[::]",
    "[::2]:80",
    "[fe80::1]",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.01",
    "localhost.",
    "127.0.0.1.",
    // User information before the name.
    "localhost@evil.example",
    "localhost:80@evil.example",
    "evil@localhost",
    "@localhost",
    // Ports that are none.
    "localhost:",
    "localhost:99999999",
    "localhost:65536",
    "localhost:-1",
    "localhost:+80",
    "localhost:080",
    "localhost:http",
    "localhost:80:80",
    // Brackets.
    "[::1",
    "::1",
    "[::1]evil",
    "[::1].evil.example",
    "[localhost]",
    "[127.0.0.1]",
    // No name, or several.
    "",
    ":8080",
    "localhost, evil.example",
    "localhost/evil",
];

/// Names of this machine.
const OWN: [&str; 9] = [
    "localhost",
    "LocalHost:8080",
    "localhost:65535",
    "127.0.0.1",
    "127.8.9.1:80",
    "[::1]",
    "[::1]:8080",
    "[0:0:0:0:0:0:0:1]:1",
    "[::ffff:127.0.0.1]:8080",
];

/// Every sort of path below a mount: the page, its files, the API, streams, and paths that are not there.
const PATHS: [&str; 12] = [
    "",
    "/",
    "/page.js",
    "/procedures/1.0",
    "/api/v1/me",
    "/api/v1/attention",
    "/api/v1/procedures",
    "/api/v1/procedures/1.0/history",
    "/api/v1/events",
    "/api/v1/openapi.json",
    "/api/v1/no/such/path",
    "/api",
];

/// What a page that may send anything would ask for.
const ACTS: [(&str, &str); 6] = [
    ("engine/pause", r#"{ "reason": "x" }"#),
    ("engine/drain?dry_run=true", "{}"),
    ("procedures/1.0/abort?dry_run=true", "{}"),
    ("procedures/1.0/pause", r#"{ "reason": "x" }"#),
    ("procedures/1.0/reveal", r#"{ "reason": "x" }"#),
    ("limits/job", r#"{ "reason": "x", "limit": 0 }"#),
];

const MOUNT: &str = "/ops/procedures";

/// Sends a request as it is to a target, which may have an authority.
async fn ask(site: &Site<'_>, request: TestRequest, target: &str) -> Reply {
    let scope = web::scope(MOUNT).configure(site.dashboard.routes());
    let app = init_service(App::new().service(scope)).await;
    let response = call_service(&app, request.uri(target).to_request()).await;
    let (status, headers) = (response.status(), response.headers().clone());
    let is_stream = headers
        .get("content-type")
        .is_some_and(|kind| kind == "text/event-stream");
    let body = if is_stream {
        Value::Null
    } else {
        serde_json::from_slice(&read_body(response).await).unwrap_or(Value::Null)
    };
    Reply { status, headers, body }
}

fn from_here(method: Method) -> TestRequest {
    let request = TestRequest::default().method(method);
    request.peer_addr(([127, 0, 0, 1], 50_000).into())
}

/// A write as a page at this name sends it, which the browser takes for the dashboard's own.
fn act_of(name: &str, body: &'static str) -> TestRequest {
    from_here(Method::POST)
        .insert_header(("host", name))
        .insert_header(("origin", format!("http://{name}")))
        .insert_header(("sec-fetch-site", "same-origin"))
        .insert_header(("x-procession", "1"))
        .insert_header(("content-type", "application/json"))
        .set_payload(body)
}

fn assert_refused(reply: &Reply, what: &str) {
    assert_eq!(reply.status.as_u16(), 421, "{what}: {}", reply.body);
    assert_eq!(text(&at(&reply.body, "/kind")), "host", "{what}");
    let remedy = format!("{} {}", at(&reply.body, "/detail"), at(&reply.body, "/remedy"));
    assert!(
        remedy.contains("localhost") && remedy.contains("hosts"),
        "{what}: {remedy}"
    );
}

/// Nothing is paused, and no act was written down.
async fn assert_untouched(site: &Site<'_>) -> Tested {
    let snapshot = site.run.executor.snapshot().await?;
    assert_eq!(snapshot.paused, []);
    assert_eq!(site.run.executor.audit(None, 10).await?, []);
    assert_eq!(
        site.run
            .executor
            .limits()
            .await?
            .iter()
            .filter(|limit| limit.limit == Some(0))
            .count(),
        0
    );
    Ok(())
}

#[test]
fn a_name_that_was_made_to_point_here_is_refused_on_every_path() -> Tested {
    site(async |site| {
        site.submit(Job::Wait("go".to_owned()), "a").await?;
        for name in STRANGE {
            for path in PATHS {
                let request = from_here(Method::GET).insert_header(("host", name));
                let reply = ask(site, request, &format!("{MOUNT}{path}")).await;
                assert_refused(&reply, &format!("GET {path} of \"{name}\""));
            }
            for (path, body) in ACTS {
                let reply = ask(site, act_of(name, body), &format!("{MOUNT}/api/v1/{path}")).await;
                assert_refused(&reply, &format!("POST {path} of \"{name}\""));
            }
        }
        assert_untouched(site).await
    })
}

#[test]
fn this_machine_is_reached_by_its_own_names() -> Tested {
    site(async |site| {
        for name in OWN {
            for path in ["", "/page.js", "/api/v1/me"] {
                let request = from_here(Method::GET).insert_header(("host", name));
                let reply = ask(site, request, &format!("{MOUNT}{path}")).await;
                assert_eq!(reply.status, 200, "{path} of {name}: {}", reply.body);
            }
        }
        Ok(())
    })
}

#[test]
fn a_request_names_its_host_once() -> Tested {
    site(async |site| {
        let me = format!("{MOUNT}/api/v1/me");
        assert_refused(&ask(site, from_here(Method::GET), &me).await, "no Host");
        for second in ["localhost", "evil.example"] {
            let request = from_here(Method::GET).insert_header(("host", "localhost"));
            let reply = ask(site, request.append_header(("host", second)), &me).await;
            assert_refused(&reply, "two Hosts");
        }
        let bytes = HeaderValue::from_bytes(b"localhost\xff")?;
        let request = from_here(Method::GET).insert_header(("host", bytes));
        assert_refused(&ask(site, request, &me).await, "a Host that is no text");
        let long = "a".repeat(60_000);
        let request = from_here(Method::GET).insert_header(("host", long));
        assert_refused(&ask(site, request, &me).await, "a long Host");
        Ok(())
    })
}

/// A target with an authority takes precedence over `Host`: either alone could lead elsewhere.
#[test]
fn a_target_with_an_authority_names_this_machine_as_host_does() -> Tested {
    site(async |site| {
        for (authority, host) in [
            ("evil.example", Some("localhost")),
            ("localhost", Some("evil.example")),
            ("localhost:8080", Some("localhost:9090")),
            ("evil.example", Some("evil.example")),
            ("evil.example", None),
            ("localhost@evil.example", None),
            ("user@localhost", Some("localhost")),
        ] {
            let mut request = from_here(Method::GET);
            if let Some(host) = host {
                request = request.insert_header(("host", host));
            }
            let reply = ask(site, request, &format!("http://{authority}{MOUNT}/api/v1/me")).await;
            assert_refused(&reply, &format!("{authority} and {host:?}"));
        }
        for host in [Some("LOCALHOST:8080"), None] {
            let mut request = from_here(Method::GET);
            if let Some(host) = host {
                request = request.insert_header(("host", host));
            }
            let reply = ask(site, request, &format!("http://localhost:8080{MOUNT}/api/v1/me")).await;
            assert_eq!(reply.status, 200, "{host:?}: {}", reply.body);
        }
        Ok(())
    })
}

#[test]
fn the_hosts_access_is_not_asked_about_a_strange_name() -> Tested {
    let asked = Arc::new(AtomicUsize::default());
    let counts = Arc::clone(&asked);
    let counting = move |_: &HttpRequest| {
        counts.fetch_add(1, Ordering::Relaxed);
        Grant::All { who: "ann".to_owned() }
    };
    site_in(
        &World::new(),
        |builder| builder,
        |dashboard| dashboard.access(counting),
        async |site| {
            let me = format!("{MOUNT}/api/v1/me");
            let strange = from_here(Method::GET).insert_header(("host", "evil.example"));
            assert_refused(&ask(site, strange, &me).await, "evil.example");
            assert_eq!(asked.load(Ordering::Relaxed), 0);
            assert_eq!(ask(site, near(TestRequest::get()), &me).await.status, 200);
            assert_eq!(asked.load(Ordering::Relaxed), 1);
            Ok(())
        },
    )
}

/// Origins of pages that may not write, though their request names this machine.
#[test]
fn a_page_of_another_origin_changes_nothing() -> Tested {
    site(async |site| {
        site.submit(Job::Wait("go".to_owned()), "a").await?;
        let pause = format!("{MOUNT}/api/v1/engine/pause");
        let write = || {
            near(TestRequest::post())
                .insert_header(("x-procession", "1"))
                .insert_header(("content-type", "application/json"))
                .set_payload(r#"{ "reason": "x" }"#)
        };
        for origin in [
            "http://evil.example",
            "https://evil.example:8080",
            "http://localhost:8081",
            "http://localhost",
            "http://127.0.0.1:8080",
            "http://localhost:8080.evil.example",
            "http://localhost:8080@evil.example",
            "http://localhost:8080/",
            "http://localhost:8080 http://evil.example",
            "file://",
            "null",
            "",
            "localhost:8080",
        ] {
            let reply = ask(site, write().insert_header(("origin", origin)), &pause).await;
            assert_eq!(
                (reply.status.as_u16(), &reply.body["kind"]),
                (403, &json!("cross_site")),
                "{origin}"
            );
        }
        for fetched in [
            "cross-site",
            "same-site",
            "none",
            "",
            "same-origin, cross-site",
            "Same-Origin",
        ] {
            let request = write().insert_header(("sec-fetch-site", fetched));
            let reply = ask(site, request, &pause).await;
            assert_eq!(
                (reply.status.as_u16(), &reply.body["kind"]),
                (403, &json!("cross_site")),
                "{fetched}"
            );
        }
        let own = || write().insert_header(("origin", "http://localhost:8080"));
        let twice = own().append_header(("origin", "http://evil.example"));
        assert_eq!(ask(site, twice, &pause).await.status, 403);
        let marked_twice = own().append_header(("x-procession", "1"));
        assert_eq!(ask(site, marked_twice, &pause).await.status, 403);
        assert_untouched(site).await
    })
}

/// Bodies that no page of ours sends: each is refused by name, and nothing was done.
#[test]
fn a_strange_body_changes_nothing() -> Tested {
    site(async |site| {
        site.submit(Job::Wait("go".to_owned()), "a").await?;
        let pause = format!("{MOUNT}/api/v1/engine/pause");
        let write = |kind: &'static str, body: Vec<u8>| {
            near(TestRequest::post())
                .insert_header(("x-procession", "1"))
                .insert_header(("content-type", kind))
                .set_payload(body)
        };
        let deep = "[".repeat(60_000).into_bytes();
        let bodies: [(&str, Vec<u8>); 12] = [
            ("nothing", Vec::new()),
            ("no JSON", b"reason=x".to_vec()),
            ("half of it", b"{ \"reason\": \"x\"".to_vec()),
            ("two of it", b"{ \"reason\": \"x\" } { \"reason\": \"y\" }".to_vec()),
            ("a list", b"[]".to_vec()),
            ("a text", b"\"pause\"".to_vec()),
            (
                "a field that is not known",
                b"{ \"reason\": \"x\", \"who\": \"root\" }".to_vec(),
            ),
            ("a field twice", b"{ \"reason\": \"x\", \"reason\": \"y\" }".to_vec()),
            ("another type", b"{ \"reason\": 1 }".to_vec()),
            ("no UTF-8", b"{ \"reason\": \"\xff\" }".to_vec()),
            ("a bad escape", b"{ \"reason\": \"\\ud800\" }".to_vec()),
            ("depth", deep),
        ];
        for (what, body) in bodies {
            let reply = ask(site, write("application/json", body), &pause).await;
            assert_eq!(
                (reply.status.as_u16(), &reply.body["kind"]),
                (400, &json!("request")),
                "{what}"
            );
        }
        let large = format!("{{ \"reason\": \"x\" }}{}", " ".repeat(65_536)).into_bytes();
        assert_eq!(ask(site, write("application/json", large), &pause).await.status, 413);
        let long = format!("{{ \"reason\": \"{}\" }}", "x".repeat(1_025)).into_bytes();
        assert_eq!(ask(site, write("application/json", long), &pause).await.status, 413);
        let whole = || b"{ \"reason\": \"x\" }".to_vec();
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/jsonx",
            "",
        ] {
            let reply = ask(site, write(kind, whole()), &pause).await;
            assert_eq!(
                (reply.status.as_u16(), &reply.body["kind"]),
                (415, &json!("not_json")),
                "{kind}"
            );
        }
        assert_untouched(site).await
    })
}

/// Paths that try to leave the mount, or to reach what is not there: never a fault of ours, never more than the page.
#[test]
fn a_strange_path_is_not_found_or_is_the_page() -> Tested {
    site(async |site| {
        for path in [
            "/../../etc/passwd",
            "/..%2f..%2fetc%2fpasswd",
            "/%2e%2e/%2e%2e/Cargo.toml",
            "/vendor/../../../Cargo.toml",
            "/%00",
            "/%ff%fe",
            "//evil.example/",
            "/api/v1/../v1/me/..",
            "/api/v1/procedures/..%2f..%2faudit",
            "/api/v1/procedures/99999999999999999999.0",
            "/api/v1/procedures/-1.0",
            "/api/v1/procedures/1.4294967296",
            "/api/v1/procedures/%00",
            "/api/v1/procedures/1.0/history?cursor=%ff",
            "/api/v1/procedures?filter=err:%22",
            "/api/v1/timeline",
            "/API/V1/ME",
            "/api/v2/me",
        ] {
            let reply = ask(site, near(TestRequest::get()), &format!("{MOUNT}{path}")).await;
            let status = reply.status.as_u16();
            let kind = reply.header("content-type").to_owned();
            let is_page = status == 200 && kind.starts_with("text/html");
            assert!(is_page || matches!(status, 400 | 404), "{path}: {status} {kind}");
        }
        for method in ["TRACE", "CONNECT", "OPTIONS", "PROPFIND", "DELETE", "PUT", "X"] {
            for path in ["", "/page.js", "/api/v1/me", "/api/v1/engine/pause"] {
                let method = Method::from_bytes(method.as_bytes())?;
                let request = near(TestRequest::default().method(method.clone()));
                let reply = ask(site, request, &format!("{MOUNT}{path}")).await;
                assert!(
                    matches!(reply.status.as_u16(), 403 | 405),
                    "{method} {path}: {}",
                    reply.status
                );
            }
        }
        assert_untouched(site).await
    })
}

#[test]
fn every_answer_stays_with_its_own_origin() -> Tested {
    site(async |site| {
        let mut asked: Vec<(TestRequest, &str)> = PATHS.map(|path| (near(TestRequest::get()), path)).into();
        asked.push((from_here(Method::GET).insert_header(("host", "evil.example")), "/"));
        asked.push((near(TestRequest::post()), "/api/v1/engine/pause"));
        for (request, path) in asked {
            let reply = ask(site, request, &format!("{MOUNT}{path}")).await;
            assert_eq!(reply.header("cross-origin-resource-policy"), "same-origin", "{path}");
            assert_eq!(reply.header("cross-origin-opener-policy"), "same-origin", "{path}");
            assert!(!reply.headers.contains_key("access-control-allow-origin"), "{path}");
        }
        Ok(())
    })
}
