//! The page: files that are in the program itself, below wherever the host mounts them. No path
//! of theirs is absolute, and whatever is no file is the page, which reads its address.

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, EntityTag, Header, HeaderValue, IfNoneMatch, TryIntoHeaderValue, VARY,
};
use actix_web::http::{StatusCode, Uri};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use procession_page::File;

use super::problem::{Answer, Problem};
use super::state::viewer;

/// The page itself; it has one [`BASE`].
const INDEX: &str = "index.html";
/// What the address of the mount takes the place of.
const BASE: &str = "<base href=\"./\">";

/// The path that a proxy took away before it passed a request on.
const PREFIX: &str = "x-forwarded-prefix";
/// Longest such path, in bytes.
const PREFIX_MAX: usize = 256;

/// What the address of a procedure begins with.
const PROCEDURES: &str = "procedures/";

/// Any path below the mount that is none of the API's.
pub(super) async fn page(request: HttpRequest) -> Answer {
    viewer(&request)?;
    let tail = request.match_info().get("tail").unwrap_or_default();
    if tail == "api" || tail.starts_with("api/") {
        return Err(Problem::no_such_path());
    }
    match procession_page::file(tail) {
        Some(file) if tail != INDEX => Ok(send(&request, kind_of(tail), tag_of(&file), body_of(tail, &file))),
        None if is_asset(tail) => Err(Problem::no_such_path()),
        Some(_) | None => Ok(index(&request, tail)),
    }
}

/// Returns what is sent of a file: of the page's own scripts, all but the comments that the type checker reads, and those that
/// have a line of their own.
fn body_of(path: &str, file: &File) -> Vec<u8> {
    match std::str::from_utf8(file.content()) {
        Ok(script) if path.ends_with(".js") => without_comments(script).into_bytes(),
        Ok(_) | Err(_) => file.content().to_vec(),
    }
}

/// Removes the comments that begin with two asterisks, a sixth of what scripts weigh, and those that have a line of their own.
/// Lines keep their numbers. No text of a script has a line that begins like a comment.
fn without_comments(script: &str) -> String {
    let mut kept = String::with_capacity(script.len());
    let mut rest = script;
    while let Some((before, comment)) = rest.split_once("/**") {
        let (comment, after) = comment.split_once("*/").unwrap_or((comment, ""));
        kept.push_str(before);
        kept.extend(comment.chars().filter(|each| *each == '\n'));
        rest = after;
    }
    kept.push_str(rest);
    let lines = kept.split_inclusive('\n');
    let without_own = lines.map(|line| match line.trim_start().starts_with("//") {
        true => "\n",
        false => line,
    });
    without_own.collect()
}

pub(super) async fn other_method() -> HttpResponse {
    Problem::method("GET").error_response()
}

fn index(request: &HttpRequest, tail: &str) -> HttpResponse {
    let Some(file) = procession_page::file(INDEX) else {
        return Problem::no_such_path().error_response();
    };
    let mount = base_of(request.uri(), request.match_info().get("tail").map(|_| tail));
    let prefix = request.headers().get(PREFIX).and_then(|prefix| prefix.to_str().ok());
    let base = escaped(&format!("{}{mount}", prefix.map(prefix_of).unwrap_or_default()));
    let text = String::from_utf8_lossy(file.content()).replace(BASE, &format!("<base href=\"{base}\">"));
    let tag = format!("{}-{base}", tag_of(&file));
    let tag: String = tag.chars().filter(char::is_ascii_alphanumeric).collect();
    send(request, kind_of(INDEX), tag, text.into_bytes())
}

/// Returns the address of the mount, with a slash at its end: as it was asked for, escapes and
/// all, without the parts that stand behind the mount.
fn base_of(uri: &Uri, tail: Option<&str>) -> String {
    let path = uri.path();
    let mount = match tail {
        None => path,
        Some(tail) => {
            let parts = tail.split('/').count();
            path.rsplitn(parts + 1, '/').last().unwrap_or_default()
        }
    };
    // Two slashes at the beginning would name another host.
    let mount = mount.trim_matches('/');
    if mount.is_empty() {
        "/".to_owned()
    } else {
        format!("/{mount}/")
    }
}

/// Returns the path that a proxy took away, without a slash at its end; nothing if it is none. It stands in the page of whoever
/// sent it alone, but it must not name another host.
fn prefix_of(text: &str) -> String {
    let path = text.trim().trim_matches('/');
    let is_plain = |part: &str| {
        let is_named = !matches!(part, "" | "." | "..");
        is_named
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte))
    };
    match path.len() <= PREFIX_MAX && path.split('/').all(is_plain) {
        true => format!("/{path}"),
        false => String::new(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Sends a file, or says that the caller has it already.
fn send(request: &HttpRequest, kind: &'static str, tag: String, body: Vec<u8>) -> HttpResponse {
    let tag = EntityTag::new_strong(tag);
    let is_known = match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|known| known.weak_eq(&tag)),
        Err(_) => false,
    };
    let status = if is_known {
        StatusCode::NOT_MODIFIED
    } else {
        StatusCode::OK
    };
    let mut response = HttpResponse::build(status);
    response.insert_header((CACHE_CONTROL, "no-cache"));
    // What a proxy took away stands in the page.
    response.insert_header((VARY, PREFIX));
    response.insert_header((CONTENT_TYPE, kind));
    response.insert_header((ETAG, tag.try_into_value().unwrap_or(HeaderValue::from_static("\"\""))));
    if is_known {
        response.finish()
    } else {
        response.body(body)
    }
}

fn tag_of(file: &File) -> String {
    file.hash().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a path names a file rather than a screen. A procedure is named by its key too, whatever that ends with.
fn is_asset(path: &str) -> bool {
    kind_of(path) != kind_of(INDEX) && !path.starts_with(PROCEDURES)
}

fn kind_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        Some("json") => "application/json",
        Some(_) | None => "text/html; charset=utf-8",
    }
}

#[cfg(test)]
mod tests;
