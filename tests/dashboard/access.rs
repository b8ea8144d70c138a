//! Who may look, and from where. What is for this machine alone stays so.

use actix_web::http::Method;
use actix_web::test::TestRequest;
use procession::dashboard::{
    Dashboard, DashboardBuilder, EngineListError, Grant, HostNameError, NoAccess, Right, Rights, TraceUrlError,
};
use procession::testkit::World;
use serde_json::json;

use crate::kit::{Tested, everybody, near, site, site_in, text};

/// Asks as one who is on this machine, after the request was changed.
fn local_only(change: impl Fn(TestRequest) -> TestRequest, expected: u16) -> Tested {
    site_in(
        &World::new(),
        |builder| builder,
        DashboardBuilder::local_only,
        async |site| {
            let reply = site.ask(change(near(TestRequest::get())), "engine").await;
            assert_eq!(reply.status.as_u16(), expected, "{}", reply.body);
            Ok(())
        },
    )
}

fn host(name: &'static str) -> impl Fn(TestRequest) -> TestRequest {
    move |request| request.insert_header(("host", name))
}

#[test]
fn by_default_this_machine_may_look() -> Tested {
    local_only(|request| request, 200)?;
    for name in [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1",
        "127.8.9.1:80",
        "[::1]:80",
        "[::1]",
    ] {
        local_only(host(name), 200)?;
    }
    Ok(())
}

#[test]
fn by_default_another_machine_may_not() -> Tested {
    for peer in [[10, 0, 0, 1], [192, 168, 1, 1], [8, 8, 8, 8]] {
        local_only(|request| request.peer_addr((peer, 5).into()), 403)?;
    }
    local_only(
        |request| request.peer_addr("[::ffff:127.0.0.1]:5".parse().expect("an address")),
        200,
    )
}

#[test]
fn by_default_a_name_that_was_made_to_point_here_is_refused() -> Tested {
    let names = [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "",
        "[::2]",
        "[::1",
    ];
    for name in names {
        local_only(host(name), 421)?;
    }
    local_only(|request| request.append_header(("host", "evil.example")), 421)
}

#[test]
fn a_host_may_have_a_name_that_local_requests_do_not_know() -> Tested {
    let named =
        |dashboard: DashboardBuilder<NoAccess>| dashboard.hosts(["ops.example"]).expect("it is one").local_only();
    site_in(
        &World::new(),
        |builder| builder,
        named,
        async |site| {
            for (name, status) in [("ops.example", 403), ("localhost", 421)] {
                let reply = site.ask(host(name)(near(TestRequest::get())), "engine").await;
                assert_eq!(reply.status.as_u16(), status, "{name}");
            }
            Ok(())
        },
    )
}

#[test]
fn a_dashboard_is_reached_by_the_names_that_its_host_gives() -> Tested {
    let named = |dashboard| {
        everybody(dashboard)
            .hosts(["ops.example", "10.0.0.5:8443"])
            .expect("they are")
    };
    site_in(
        &World::new(),
        |builder| builder,
        named,
        async |site| {
            for name in ["ops.example", "OPS.example:81", "10.0.0.5:8443"] {
                let reply = site.ask(host(name)(near(TestRequest::get())), "engine").await;
                assert_eq!(reply.status, 200, "{name}");
            }
            for name in [
                "localhost",
                "127.0.0.1:8080",
                "10.0.0.5",
                "10.0.0.5:80",
                "x.ops.example",
                "evil.example",
            ] {
                let reply = site.ask(host(name)(near(TestRequest::get())), "engine").await;
                assert_eq!(reply.status, 421, "{name}");
                assert!(
                    text(&reply.body["detail"]).contains("ops.example, 10.0.0.5:8443"),
                    "{}",
                    reply.body
                );
            }
            let builder = || Dashboard::builder(&site.run.executor);
            let wrong = HostNameError::Name("https://ops.example".to_owned());
            assert_eq!(builder().hosts(["https://ops.example"]).err(), Some(wrong));
            assert_eq!(builder().hosts::<&str>([]).err(), Some(HostNameError::None));
            Ok(())
        },
    )
}

#[test]
fn by_default_a_request_through_a_proxy_is_refused() -> Tested {
    for name in [
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-real-ip",
        "via",
    ] {
        local_only(|request| request.insert_header((name, "127.0.0.1")), 403)?;
    }
    Ok(())
}

#[test]
fn who_may_not_look_sees_nothing_but_the_refusal() -> Tested {
    let rights = Rights::none().with(Right::Operate);
    let grants = [
        Grant::Deny,
        Grant::Only {
            who: "bob".to_owned(),
            rights,
        },
    ];
    for (grant, kind) in grants.into_iter().zip(["denied", "right"]) {
        let denied = move |_: &actix_web::HttpRequest| grant.clone();
        site_in(
            &World::new(),
            |builder| builder,
            |dashboard| dashboard.access(denied),
            async |site| {
                for path in ["attention", "procedures", "events", "audit", "procedures/1.0/tree"] {
                    let reply = site.get(path).await;
                    assert_eq!(reply.status, 403, "{path}");
                    assert_eq!(reply.body["kind"], kind);
                }
                Ok(())
            },
        )?;
    }
    Ok(())
}

#[test]
fn every_reply_has_the_headers_that_protect_it() -> Tested {
    site(async |site| {
        for path in ["engine", "procedures/77", "no/such/path", "procedures?filter=:"] {
            let reply = site.get(path).await;
            let policy = reply.header("content-security-policy");
            assert!(
                policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'none'"),
                "{policy}"
            );
            assert_eq!(reply.header("x-content-type-options"), "nosniff");
            assert_eq!(reply.header("referrer-policy"), "no-referrer");
            assert_eq!(reply.header("cache-control"), "no-store");
            assert!(!reply.headers.contains_key("set-cookie"));
        }
        Ok(())
    })
}

/// What a write answers that carries these headers. There is no such path: 404 means that it passed.
async fn write(site: &crate::kit::Site<'_>, headers: &[(&'static str, &'static str)]) -> (u16, String) {
    let mut request = near(TestRequest::post()).set_payload("{}");
    for header in headers {
        request = request.insert_header(*header);
    }
    let reply = site.ask(request, "no/such/path").await;
    let kind = reply.body.get("kind").map(crate::kit::text);
    (reply.status.as_u16(), kind.unwrap_or_default())
}

#[test]
fn a_write_from_a_page_of_another_site_is_refused() -> Tested {
    const MARK: (&str, &str) = ("x-procession", "1");
    const JSON: (&str, &str) = ("content-type", "application/json");
    site(async |site| {
        let passed = (404, "path".to_owned());
        let refused = (403, "cross_site".to_owned());
        assert_eq!(write(site, &[MARK, JSON]).await, passed);
        assert_eq!(
            write(site, &[MARK, ("content-type", "application/json; charset=utf-8")]).await,
            passed
        );
        assert_eq!(write(site, &[JSON]).await, refused);
        assert_eq!(write(site, &[("x-procession", "0"), JSON]).await, refused);
        assert_eq!(write(site, &[MARK]).await, (415, "not_json".to_owned()));
        assert_eq!(
            write(site, &[MARK, ("content-type", "text/plain")]).await,
            (415, "not_json".to_owned())
        );
        assert_eq!(
            write(site, &[MARK, JSON, ("sec-fetch-site", "same-origin")]).await,
            passed
        );
        for site_of in ["cross-site", "same-site", "none", ""] {
            assert_eq!(
                write(site, &[MARK, JSON, ("sec-fetch-site", site_of)]).await,
                refused,
                "{site_of}"
            );
        }
        assert_eq!(
            write(site, &[MARK, JSON, ("origin", "http://localhost:8080")]).await,
            passed
        );
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost:9090",
            "http://localhost:8080.evil.example",
        ] {
            assert_eq!(
                write(site, &[MARK, JSON, ("origin", origin)]).await,
                refused,
                "{origin}"
            );
        }
        Ok(())
    })
}

#[test]
fn what_is_read_is_changed_by_no_method() -> Tested {
    site(async |site| {
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            let request = near(TestRequest::default().method(method.clone()));
            let request = request
                .insert_header(("x-procession", "1"))
                .insert_header(("content-type", "application/json"));
            let reply = site.ask(request, "limits").await;
            assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, "GET"), "{method}");
        }
        Ok(())
    })
}

#[test]
fn it_is_mounted_wherever_the_host_likes() -> Tested {
    site(async |site| {
        for mount in ["", "/ops", "/a/b/c"] {
            let reply = site.ask_at(mount, near(TestRequest::get()), "engine").await;
            assert_eq!(reply.status, 200, "{mount}");
        }
        Ok(())
    })
}

#[test]
fn who_may_look_is_told_where_traces_are() -> Tested {
    const TEMPLATE: &str = "https://tracing.example/trace/{trace_id}?uiFind={span_id}";
    let traced = |dashboard| everybody(dashboard).trace_url(TEMPLATE).expect("it is one");
    site_in(
        &World::new(),
        |builder| builder,
        traced,
        async |site| {
            assert_eq!(site.body("me").await?["trace_url"], TEMPLATE);
            let builder = || Dashboard::builder(&site.run.executor);
            let refused = builder().trace_url("javascript:alert('{trace_id}')").err();
            assert_eq!(refused, Some(TraceUrlError::Scheme));
            Ok(())
        },
    )?;
    site(async |site| {
        assert_eq!(site.body("me").await?["trace_url"], json!(null));
        Ok(())
    })
}

#[test]
fn who_may_look_is_told_of_the_other_engines() -> Tested {
    let listed = |dashboard| {
        let engines = [("north", "https://north.example/ops"), ("south", "/south")];
        everybody(dashboard).engines(engines).expect("they can be led to")
    };
    site_in(
        &World::new(),
        |builder| builder,
        listed,
        async |site| {
            let engines = json!([
                { "name": "north", "url": "https://north.example/ops" },
                { "name": "south", "url": "/south" },
            ]);
            assert_eq!(site.body("me").await?["engines"], engines);
            let refused = |engines: &[(&str, &str)]| {
                let builder = Dashboard::builder(&site.run.executor);
                builder.engines(engines.iter().copied()).err()
            };
            for address in [
                "javascript:alert(1)",
                "//north.example",
                "https:///ops",
                "ops",
                "",
                "/ops?x",
                "/a b",
                "/\\a",
            ] {
                let why = Some(EngineListError::Address(address.to_owned()));
                assert_eq!(refused(&[("north", address)]), why, "{address}");
            }
            let long = "n".repeat(65);
            for name in ["", "a\nb", long.as_str()] {
                assert_eq!(refused(&[(name, "/ops")]), Some(EngineListError::Name(name.to_owned())));
            }
            let twice = refused(&[("north", "/a"), ("north", "/b")]);
            assert_eq!(twice, Some(EngineListError::Name("north".to_owned())));
            let names: Vec<String> = (0..65).map(|number| number.to_string()).collect();
            let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "/ops")).collect();
            assert_eq!(refused(&many), Some(EngineListError::TooMany));
            assert_eq!(refused(&many[..64]), None);
            Ok(())
        },
    )
}
