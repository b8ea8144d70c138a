//! The page: every file that it names is in the program, whatever the mount, and nothing of it
//! may come from elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::{App, web};
use procession::testkit::World;
use serde_json::Value;

use crate::kit::{Site, Tested, near, site, site_in, text};

/// Where a host may mount the dashboard.
const MOUNTS: [&str; 3] = ["", "/ops", "/a/b/procedures"];
/// Most of the page that a browser loads, in bytes that are not compressed.
const SIZE_MAX: usize = 300_000;
/// What a browser fetches when a saga, or a screen that few look at, is opened, and not before.
const LATE: [&str; 16] = [
    "chart.js",
    "columns.js",
    "complete.js",
    "engines.js",
    "history.js",
    "machine.js",
    "passes.js",
    "plot.js",
    "screens/charts.js",
    "screens/engine.js",
    "screens/failures.js",
    "screens/flows.js",
    "screens/kinds.js",
    "screens/limits.js",
    "start.js",
    "vendor/uplot.mjs",
];
const LATE_STYLES: [&str; 4] = [
    "css/attempt.css",
    "css/charts.css",
    "css/machine.css",
    "vendor/uplot.css",
];

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }
}

async fn ask(site: &Site<'_>, mount: &str, request: TestRequest, path: &str) -> Answer {
    let scope = web::scope(mount).configure(site.dashboard.routes());
    let app = init_service(App::new().service(scope)).await;
    let response = call_service(&app, near(request).uri(&format!("{mount}{path}")).to_request()).await;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = String::from_utf8_lossy(&read_body(response).await).into_owned();
    Answer { status, headers, body }
}

async fn get(site: &Site<'_>, path: &str) -> Answer {
    ask(site, "/ops", TestRequest::get(), path).await
}

/// What stands between two marks, wherever they are.
fn between<'a>(text: &'a str, before: &str, after: char) -> Vec<&'a str> {
    let parts = text.split(before).skip(1);
    parts.filter_map(|part| part.split(after).next()).collect()
}

/// The files that a module imports, by their paths from the mount.
fn imports(path: &str, code: &str) -> BTreeSet<String> {
    let folder: Vec<&str> = path
        .split('/')
        .rev()
        .skip(1)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    let quoted = ["from '", "import '", "import('"]
        .iter()
        .flat_map(|before| between(code, before, '\''));
    let doubly = ["from\"", "from \"", "import\"", "import(\""]
        .iter()
        .flat_map(|before| between(code, before, '"'));
    quoted
        .chain(doubly)
        .map(|name| {
            assert!(
                name.starts_with("./") || name.starts_with("../"),
                "{path} imports {name}, which is not relative"
            );
            let mut parts = folder.clone();
            for part in name.split('/') {
                match part {
                    "." => {}
                    ".." => drop(parts.pop()),
                    part => parts.push(part),
                }
            }
            parts.join("/")
        })
        .collect()
}

/// Everything that the page loads, beginning with itself.
async fn loaded(site: &Site<'_>) -> BTreeMap<String, String> {
    let index = get(site, "/").await.body;
    let named = between(&index, "src=\"", '"')
        .into_iter()
        .chain(between(&index, "href=\"", '"'));
    let mut rest: Vec<String> = named.filter(|name| *name != "/ops/").map(str::to_owned).collect();
    let mut files = BTreeMap::new();
    while let Some(path) = rest.pop() {
        if files.contains_key(&path) {
            continue;
        }
        let answer = get(site, &format!("/{path}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{path} is not in the program");
        let kind = match path.rsplit_once('.').map(|(_, end)| end) {
            Some("js" | "mjs") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!(answer.header("content-type"), kind, "{path}");
        if kind.starts_with("text/javascript") {
            let code: Vec<&str> = answer
                .body
                .lines()
                .filter(|line| !line.trim_start().starts_with('*'))
                .collect();
            rest.extend(imports(&path, &code.join("\n")));
        }
        files.insert(path, answer.body);
    }
    files
}

#[test]
fn every_file_that_the_page_names_is_in_the_program() -> Tested {
    site(async |site| {
        let files = loaded(site).await;
        for expected in [
            "app.js",
            "theme.js",
            "screens/list.js",
            "vendor/preact.mjs",
            "vendor/dagre.mjs",
        ] {
            assert!(files.contains_key(expected), "{expected} is not reached");
        }
        let index = get(site, "/").await.body;
        for path in files.keys().filter(|path| path.ends_with("js") && *path != "theme.js") {
            let named = [
                format!("<link rel=\"modulepreload\" href=\"{path}\">"),
                format!("src=\"{path}\""),
            ];
            let is_named = named.iter().any(|named| index.contains(named));
            let is_late = LATE.contains(&path.as_str());
            assert_eq!(is_named, !is_late, "{path} is loaded late, or is named and may wait");
            // What is named brings nothing else but by `import()`, when somebody needs it.
            let code = files.get(path).map(String::as_str).unwrap_or_default();
            let brings = LATE.iter().any(|late| code.contains(&format!("from './{late}'")));
            assert!(!brings || is_late, "{path} brings what may wait");
        }
        for style in LATE_STYLES {
            assert!(!index.contains(style), "{style} may wait");
            assert_eq!(get(site, &format!("/{style}")).await.status, StatusCode::OK, "{style}");
        }
        let early = files.iter().filter(|(path, _)| !LATE.contains(&path.as_str()));
        let size: usize = early.map(|(_, body)| body.len()).sum();
        assert!(size < SIZE_MAX, "{size} bytes");
        Ok(())
    })
}

#[test]
fn nothing_is_inline_and_nothing_comes_from_elsewhere() -> Tested {
    site(async |site| {
        let index = get(site, "/").await;
        let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'self'; form-action 'none'; frame-ancestors 'none'";
        assert_eq!(index.header("content-security-policy"), policy);
        for inline in ["<style", " style=", "importmap", "javascript:", " onload", "://"] {
            assert!(!index.body.contains(inline), "{inline}");
        }
        assert!(
            between(&index.body, "<script", '>')
                .iter()
                .all(|tag| tag.contains("src="))
        );
        for (path, code) in loaded(site).await {
            if !path.starts_with("vendor/") {
                for wrong in [
                    "innerHTML",
                    "outerHTML",
                    "insertAdjacentHTML",
                    "eval(",
                    "new Function",
                    "https://",
                ] {
                    assert!(!code.contains(wrong), "{path}: {wrong}");
                }
            }
        }
        Ok(())
    })
}

#[test]
fn whatever_the_mount_is_links_lead_there() -> Tested {
    site(async |site| {
        for mount in MOUNTS {
            for path in [
                "/",
                "/procedures",
                "/procedures/42.3?tab=waits",
                "/no/such/screen",
                "/index.html",
            ] {
                let answer = ask(site, mount, TestRequest::get(), path).await;
                assert_eq!(answer.status, StatusCode::OK, "{mount}{path}");
                assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
                let base = format!("<base href=\"{mount}/\">");
                assert!(answer.body.contains(&base), "{mount}{path}: {}", answer.body);
            }
            for path in ["/api", "/api/v1/nothing", "/api/v2/attention", "/screens/nothing.js"] {
                let answer = ask(site, mount, TestRequest::get(), path).await;
                assert_eq!(answer.status, StatusCode::NOT_FOUND, "{mount}{path}");
                assert!(answer.body.contains("\"remedy\""), "{mount}{path}");
            }
        }
        let bare = ask(site, "/ops", TestRequest::get(), "").await;
        assert!(bare.body.contains("<base href=\"/ops/\">"), "{}", bare.body);
        for (prefix, base) in [("/team/", "/team/ops/"), ("//evil.example//x", "/ops/")] {
            let request = || TestRequest::get().insert_header(("x-forwarded-prefix", prefix));
            let answer = ask(site, "/ops", request(), "/procedures").await;
            let base = format!("<base href=\"{base}\">");
            assert!(answer.body.contains(&base), "{prefix}: {}", answer.body);
            assert_eq!(answer.header("vary"), "x-forwarded-prefix");
        }
        let answer = ask(site, "/ops", TestRequest::post(), "/procedures").await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        Ok(())
    })
}

#[test]
fn a_file_that_the_browser_has_is_not_sent_again() -> Tested {
    site(async |site| {
        let mut tags = BTreeSet::new();
        for path in ["/", "/app.js", "/css/base.css"] {
            let first = get(site, path).await;
            assert_eq!(first.header("cache-control"), "no-cache");
            let tag = first.header("etag").to_owned();
            assert!(tags.insert(tag.clone()), "two files have the tag {tag}");
            let again = ask(
                site,
                "/ops",
                TestRequest::get().insert_header(("if-none-match", tag)),
                path,
            )
            .await;
            assert_eq!(
                (again.status, again.body.as_str()),
                (StatusCode::NOT_MODIFIED, ""),
                "{path}"
            );
            let other = TestRequest::get().insert_header(("if-none-match", "\"other\""));
            assert_eq!(ask(site, "/ops", other, path).await.status, StatusCode::OK);
        }
        // The page names its mount: at another it is another.
        let elsewhere = ask(site, "/a", TestRequest::get(), "/").await;
        assert!(!tags.contains(elsewhere.header("etag")));
        Ok(())
    })
}

#[test]
fn by_default_the_page_is_for_this_machine() -> Tested {
    site_in(
        &World::new(),
        |builder| builder,
        procession::dashboard::DashboardBuilder::local_only,
        async |site| {
            for path in ["/", "/app.js", "/procedures/1.0"] {
                assert_eq!(get(site, path).await.status, StatusCode::OK, "{path}");
                let far = TestRequest::get().insert_header(("x-forwarded-for", "10.0.0.1"));
                assert_eq!(
                    ask(site, "/ops", far, path).await.status,
                    StatusCode::FORBIDDEN,
                    "{path}"
                );
            }
            let me: Value = serde_json::from_str(&get(site, "/api/v1/me").await.body)?;
            assert_eq!(me["rights"], serde_json::json!(["view"]));
            Ok(())
        },
    )
}

#[test]
fn what_others_wrote_is_as_the_table_says() -> Tested {
    site(async |site| {
        let table: Vec<Value> = serde_json::from_str(&get(site, "/vendor/versions.json").await.body)?;
        let mut listed = BTreeSet::new();
        for file in &table {
            let path = format!("vendor/{}", text(&file["file"]));
            // A tag begins with the hash of what was sent.
            let tag = get(site, &format!("/{path}")).await.header("etag").replace('"', "");
            assert!(
                text(&file["sha256"]).starts_with(&tag) && tag.len() == 32,
                "{path} is not what the table says"
            );
            let licence = get(site, &format!("/vendor/{}", text(&file["text"]))).await;
            assert!(
                licence.status.is_success() && licence.body.len() > 500,
                "{path} has no licence"
            );
            listed.insert(path);
        }
        let used: BTreeSet<String> = loaded(site)
            .await
            .into_keys()
            .chain(LATE_STYLES.map(str::to_owned))
            .filter(|path| path.starts_with("vendor/"))
            .collect();
        assert_eq!(used, listed);
        Ok(())
    })
}
