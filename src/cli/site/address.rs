//! The address of a dashboard, and the headers for it, as they are written on a command line;
//! and what is said when something else is there.

use std::fmt::Write;
use std::net::IpAddr;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use ureq::Body;
use ureq::http::{HeaderName, HeaderValue, Response, StatusCode, Uri, header};

use super::super::exit::{Exit, Failure};
use super::super::print;
use super::problem::{Problem, Unanswered};

/// What stands for itself in a path or in a query; all else is escaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where a dashboard is mounted: an address without a slash at its end.
#[derive(Debug, Clone)]
pub(super) struct Address {
    base: String,
    host: String,
}

impl FromStr for Address {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            Err(Failure::usage(format!(
                "the address \"{}\" {why}; an address reads like http://localhost:8080/ops/procedures",
                print::plain(text)
            )))
        };
        let Ok(uri) = text.parse::<Uri>() else {
            return wrong("makes no sense");
        };
        let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host().filter(|host| !host.is_empty())) else {
            return wrong("lacks its beginning, http:// or https://, or its host");
        };
        if !matches!(scheme, "http" | "https") {
            return wrong("is not of http");
        }
        if uri
            .authority()
            .is_some_and(|authority| authority.as_str().contains('@'))
        {
            let remedy = "has a login in it; give that with --header 'Authorization: …'";
            return wrong(remedy);
        }
        if uri.query().is_some() || text.contains('#') {
            return wrong("has more than a path; give the path where the dashboard is mounted");
        }
        if scheme == "https" && !cfg!(feature = "https") {
            return Err(Failure::usage(
                "this build speaks no https; build it with `--features https`, or go through a tunnel that ends here",
            ));
        }
        let base = text.trim_end_matches('/');
        let base = base.strip_suffix("/api/v1").unwrap_or(base);
        Ok(Self {
            base: base.to_owned(),
            host: host.trim_matches(['[', ']']).to_owned(),
        })
    }
}

impl Address {
    /// Returns the address of a path of the API.
    pub(super) fn of(&self, path: &str, query: &[(&str, &str)]) -> String {
        let mut url = format!("{}/api/v1/{path}", self.base);
        for (number, (name, value)) in query.iter().enumerate() {
            let mark = if number == 0 { '?' } else { '&' };
            let value = utf8_percent_encode(value, ESCAPED);
            // Writing to a text does not fail.
            write!(url, "{mark}{name}={value}").ok();
        }
        url
    }

    /// Tells whether it is this machine's own.
    pub(super) fn is_here(&self) -> bool {
        let is_loopback = |address: IpAddr| address.is_loopback();
        self.host.eq_ignore_ascii_case("localhost") || self.host.parse().is_ok_and(is_loopback)
    }

    pub(super) fn unreached(&self, error: &ureq::Error) -> Unanswered {
        if let ureq::Error::BodyExceedsLimit(limit) = error {
            return Unanswered::Unreached(format!(
                "the reply of {} has more than {limit} bytes; ask for less",
                self.base
            ));
        }
        Unanswered::Unreached(format!(
            "{} does not answer: {}; is the engine running, and is that its dashboard's address?",
            self.base,
            print::plain(&error.to_string())
        ))
    }

    /// Tells whether a reply says that it is JSON.
    pub(super) fn is_json(&self, reply: &Response<Body>) -> bool {
        let kind = reply.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("application/json") || kind.eq_ignore_ascii_case("application/problem+json")
    }

    /// Says what a reply means that is not what was asked for.
    pub(super) fn refused(&self, reply: &Response<Body>, body: Option<&Value>) -> Unanswered {
        let status = reply.status();
        let header = |name: HeaderName| {
            let value = reply.headers().get(name).and_then(|value| value.to_str().ok());
            value.map(print::plain)
        };
        if let Some(mut problem) = body.and_then(Problem::read) {
            problem.retry_in(header(header::RETRY_AFTER).as_deref());
            return Unanswered::Problem(Box::new(problem));
        }
        let base = &self.base;
        let (exit, text) = match status {
            StatusCode::UNAUTHORIZED => (
                Exit::Refused,
                format!("{base} wants a login; give it with --header 'Authorization: …'"),
            ),
            StatusCode::FORBIDDEN => (
                Exit::Refused,
                format!("{base} refuses this; give a login that may do it with --header 'Authorization: …'"),
            ),
            status if status.is_redirection() => {
                let to = header(header::LOCATION).unwrap_or_else(|| "elsewhere".to_owned());
                let text = format!("{base} sends to {to}, which is not followed; give the dashboard's own address");
                (Exit::Failed, text)
            }
            status => (
                Exit::Failed,
                format!(
                    "there is no dashboard at {base} (it answers {}); give the path where it is mounted",
                    status.as_u16()
                ),
            ),
        };
        Unanswered::Other(Failure { exit, text })
    }
}

/// Escapes a name that stands between two slashes.
pub(crate) fn segment(name: &str) -> String {
    utf8_percent_encode(name, ESCAPED).to_string()
}

/// Reads a header. Its value is not said again: it may be a password.
pub(super) fn header(text: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let wrong = || {
        Failure::usage("a header reads like --header 'Name: value', and has no line break; one that was given does not")
    };
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let name = HeaderName::try_from(name.trim()).map_err(|_| wrong())?;
    let value = HeaderValue::try_from(value.trim()).map_err(|_| wrong())?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::{Address, header};

    #[test]
    fn a_path_and_a_query_are_escaped() {
        let address: Address = "http://localhost:1/ops/".parse().unwrap();
        assert_eq!(
            address.of("procedures", &[("filter", "key:a b&c"), ("limit", "1")]),
            "http://localhost:1/ops/api/v1/procedures?filter=key%3Aa%20b%26c&limit=1"
        );
        let address: Address = "http://localhost:1/ops/api/v1/".parse().unwrap();
        assert_eq!(address.of("engine", &[]), "http://localhost:1/ops/api/v1/engine");
    }

    #[test]
    fn only_addresses_of_this_machine_are_here() {
        for (url, is_here) in [
            ("http://localhost:1", true),
            ("http://127.8.9.1/x", true),
            ("http://[::1]:80", true),
            ("http://localhost.example", false),
            ("http://10.0.0.1", false),
        ] {
            let address: Address = url.parse().unwrap();
            assert_eq!(address.is_here(), is_here, "{url}");
        }
    }

    #[test]
    fn an_address_that_makes_no_sense_is_usage() {
        for url in [
            "",
            "localhost:8080",
            "ftp://a",
            "http://",
            "http://u:p@a",
            "http://a/?x=1",
            "http://a/#x",
        ] {
            assert!(url.parse::<Address>().is_err(), "{url}");
        }
    }

    #[test]
    fn a_header_has_a_name_and_a_value() {
        assert!(header("Authorization: Bearer x:y").is_ok());
        for text in ["", "x", ": x", "a b: c", "a: b\r\nc: d"] {
            assert!(header(text).is_err(), "{text}");
        }
    }
}
