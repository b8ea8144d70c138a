//! The page: files that are in the program itself, below wherever the host mounts them. No path
//! of theirs is absolute, and whatever is no file is the page, which reads its address.

use actix_web::body::MessageBody;
use actix_web::http::header::{
    AcceptEncoding, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, Encoding, EntityTag, Header, HeaderValue,
    IfNoneMatch, TryIntoHeaderValue, VARY,
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
        Some(file) if tail != INDEX => Ok(send_file(&request, kind_of(tail), &file)),
        None if is_asset(tail) => Err(Problem::no_such_path()),
        Some(_) | None => Ok(index(&request, tail)),
    }
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
    send(request, kind_of(INDEX), tag, || text.into_bytes())
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

/// Sends a file, compressed to whoever accepts that.
fn send_file(request: &HttpRequest, kind: &'static str, file: &File) -> HttpResponse {
    let plain = tag_of(file);
    let mut response = match file.gzip().filter(|_| accepts_gzip(request)) {
        // Other bytes have another tag.
        Some(compressed) => {
            let mut response = send(request, kind, format!("{plain}-gzip"), || compressed);
            response
                .headers_mut()
                .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        }
        None => send(request, kind, plain, || file.content().to_vec()),
    };
    response
        .headers_mut()
        .append(VARY, HeaderValue::from_static("accept-encoding"));
    response
}

/// Whether a caller said that it takes gzip. One that said nothing may take anything, and gets the bytes as they are.
fn accepts_gzip(request: &HttpRequest) -> bool {
    let offered = [Encoding::gzip(), Encoding::identity()];
    match AcceptEncoding::parse(request) {
        Ok(accepted) if !accepted.is_empty() => accepted.negotiate(offered.iter()) == Some(Encoding::gzip()),
        Ok(_) | Err(_) => false,
    }
}

/// Sends bytes, or says that the caller has them already.
fn send<B: MessageBody + 'static>(
    request: &HttpRequest,
    kind: &'static str,
    tag: String,
    body: impl FnOnce() -> B,
) -> HttpResponse {
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
        response.body(body())
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
