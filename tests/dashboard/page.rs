//! The page: every file that it names is in the program, whatever the mount, and nothing of it
//! may come from elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::{App, web};
use procession::testkit::World;
use serde_json::Value;

use crate::kit::{Site, Tested, near, site, site_in, text};

/// Where a host may mount the dashboard.
const MOUNTS: [&str; 3] = ["", "/ops", "/a/b/procedures"];
/// Most of the page that a browser loads at first, in bytes that are not compressed.
const SIZE_MAX: usize = 200_000;
/// What a browser fetches when a saga, a graph or a screen that few look at is opened, and not before.
const LATE: [&str; 17] = [
    "chart.js",
    "charts.js",
    "columns.js",
    "complete.js",
    "engine.js",
    "engines.js",
    "failures.js",
    "flows.js",
    "gates.js",
    "graph.js",
    "history.js",
    "kinds.js",
    "layout.js",
    "limits.js",
    "machine.js",
    "passes.js",
    "start.js",
];
const LATE_STYLES: [&str; 4] = ["attempt.css", "charts.css", "machine.css", "uplot.css"];
/// The page's own sources, of which its files are made.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/page/files");

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
    /// Bytes of the body.
    length: usize,
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
    let sent = read_body(response).await;
    Answer {
        status,
        headers,
        body: String::from_utf8_lossy(&sent).into_owned(),
        length: sent.len(),
    }
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
    let quotes = ['\'', '"', '`'];
    let named = quotes.into_iter().flat_map(|quote| {
        ["from", "import", "import("]
            .into_iter()
            .flat_map(move |before| between(code, &format!("{before}{quote}"), quote))
    });
    named
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

/// The sources that nobody else wrote, by their paths.
fn own_sources() -> std::io::Result<BTreeMap<String, String>> {
    let mut sources = BTreeMap::new();
    for folder in [".", "screens", "css"] {
        for entry in std::fs::read_dir(Path::new(SOURCES).join(folder))? {
            let path = entry?.path();
            if path.is_file() {
                sources.insert(path.display().to_string(), std::fs::read_to_string(&path)?);
            }
        }
    }
    assert!(sources.len() > 50, "{} sources", sources.len());
    Ok(sources)
}

#[test]
fn every_file_that_the_page_names_is_in_the_program() -> Tested {
    site(async |site| {
        let files = loaded(site).await;
        for expected in ["page.js", "page.css", "theme.js", "icon.svg", "layout.js"] {
            assert!(files.contains_key(expected), "{expected} is not reached");
        }
        let index = get(site, "/").await.body;
        for (path, code) in files.iter().filter(|(path, _)| path.ends_with("js")) {
            let is_late = LATE.contains(&path.as_str());
            let is_named = index.contains(&format!("src=\"{path}\""));
            assert_eq!(is_named, !is_late, "{path} is loaded late, or is named and may wait");
            // What is named brings nothing else but by `import()`, when somebody needs it.
            let brings = LATE.iter().any(|late| code.contains(&format!("from\"./{late}\"")));
            assert!(!brings || is_late, "{path} brings what may wait");
        }
        for late in LATE {
            assert!(files.contains_key(late), "nothing loads {late}");
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
        for (path, code) in own_sources()? {
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
            for path in ["/api", "/api/v1/nothing", "/api/v2/attention", "/nothing.js"] {
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
        for path in ["/", "/page.js", "/page.css"] {
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
            for path in ["/", "/page.js", "/procedures/1.0"] {
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
fn files_are_compressed_for_those_who_take_that() -> Tested {
    site(async |site| {
        let asked = |accepted| TestRequest::get().insert_header(("accept-encoding", accepted));
        let plain = get(site, "/page.js").await;
        assert_eq!(plain.header("content-encoding"), "");
        for accepted in ["gzip", "br, gzip;q=0.5"] {
            let packed = ask(site, "/ops", asked(accepted), "/page.js").await;
            assert_eq!(packed.header("content-encoding"), "gzip", "{accepted}");
            assert_ne!(packed.header("etag"), plain.header("etag"));
            assert!(packed.length * 2 < plain.length, "{} bytes", packed.length);
            let vary: Vec<_> = packed.headers.get_all("vary").collect();
            assert!(vary.iter().any(|name| *name == "accept-encoding"), "{vary:?}");
        }
        for accepted in ["identity", "br", "gzip;q=0", ""] {
            let same = ask(site, "/ops", asked(accepted), "/page.js").await;
            assert_eq!(same.header("content-encoding"), "", "{accepted}");
            assert_eq!(same.body, plain.body, "{accepted}");
        }
        // Whoever has one of the two is not sent it again.
        let tag = ask(site, "/ops", asked("gzip"), "/page.js")
            .await
            .header("etag")
            .to_owned();
        let again = ask(
            site,
            "/ops",
            asked("gzip").insert_header(("if-none-match", tag)),
            "/page.js",
        )
        .await;
        assert_eq!((again.status, again.length), (StatusCode::NOT_MODIFIED, 0));
        Ok(())
    })
}

#[test]
fn what_others_wrote_has_its_licence() -> Tested {
    site(async |site| {
        let table: Vec<Value> = serde_json::from_str(&get(site, "/vendor/versions.json").await.body)?;
        let mut listed = BTreeSet::new();
        // That a file has the hash of the table is checked where the page's files are made of it.
        for file in &table {
            let licence = get(site, &format!("/vendor/{}", text(&file["text"]))).await;
            assert!(
                licence.status.is_success() && licence.body.len() > 500,
                "{file} has no licence"
            );
            listed.insert(text(&file["file"]).to_owned());
        }
        let mut there = BTreeSet::new();
        for entry in std::fs::read_dir(Path::new(SOURCES).join("vendor"))? {
            there.insert(entry?.file_name().to_string_lossy().into_owned());
        }
        there.retain(|name| !name.ends_with(".d.mts") && !name.ends_with(".txt") && name != "versions.json");
        assert_eq!(there, listed);
        Ok(())
    })
}
