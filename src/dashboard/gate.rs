//! What every request passes: who asks, what protects writes, and the headers of each reply.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpRequest, ResponseError, web};

use super::access::{Grant, Right};
use super::hosts::Host;
use super::problem::Problem;
use super::state::State;

/// Nothing but what comes from here, and nobody may put it into a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'self'; form-action 'none'; frame-ancestors 'none'";

/// The header that no page of another origin can send without being asked about it.
const MARK: &str = "x-procession";

/// Who asks, as handlers find it in the request.
#[derive(Clone)]
pub(super) struct Caller(pub(super) Grant);

impl Caller {
    /// Refuses one without a right.
    pub(super) fn need(&self, right: Right) -> Result<(), Problem> {
        if self.0.has(right) {
            return Ok(());
        }
        Err(Problem::right(right))
    }
}

/// Lets a request through that may pass, and completes its reply.
pub(super) async fn gate(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let mut response = match admit(request.request()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.call(request).await?.map_into_boxed_body()
        }
        Err(problem) => request.into_response(problem.error_response()),
    };
    complete(response.headers_mut());
    Ok(response)
}

fn complete(headers: &mut HeaderMap) {
    let fixed = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Files of the page say themselves that they may be kept and asked about.
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

fn admit(request: &HttpRequest) -> Result<Caller, Problem> {
    let state = request.app_data::<web::Data<State>>().ok_or_else(Problem::closing)?;
    // First of all: an access that goes by nothing a browser keeps from pages would grant it to a stranger's.
    state.hosts.check(request)?;
    let grant = state.access.resolve(request);
    if grant == Grant::Deny {
        return Err(Problem::denied());
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        check_write(request)?;
    }
    Ok(Caller(grant))
}

/// A write comes from our page, or from a program: a page of another site cannot make one.
fn check_write(request: &HttpRequest) -> Result<(), Problem> {
    if text(request, MARK) != Some("1") {
        let text = "A request that changes something carries the header `X-Procession: 1`.";
        return Err(Problem::unsafe_write(text, "Send it: no page of another site can."));
    }
    let origin = "The request comes from a page of another origin.";
    let remedy = "Send it from the dashboard's own page, or from a program.";
    match (text(request, "sec-fetch-site"), text(request, "origin")) {
        (Some("same-origin"), _) | (None, None) => {}
        (None, Some(from)) if is_own(request, from) => {}
        (Some(_), _) | (None, Some(_)) => return Err(Problem::unsafe_write(origin, remedy)),
    }
    let is_json = text(request, CONTENT_TYPE.as_str()).is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/json")
    });
    if is_json { Ok(()) } else { Err(Problem::not_json()) }
}

/// Returns `true` if an origin names the host that the request was made to.
fn is_own(request: &HttpRequest, origin: &str) -> bool {
    let Some((_, name)) = origin.split_once("://") else {
        return false;
    };
    Host::read(name).is_some_and(|origin| Host::of(request) == Some(origin))
}

/// Returns the text of a header. A header that is sent twice, or is not text, matches nothing.
fn text<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let name = HeaderName::try_from(name).ok()?;
    let mut values = request.headers().get_all(name);
    let first = values.next()?;
    if values.next().is_some() {
        return Some("");
    }
    Some(first.to_str().unwrap_or_default())
}
