//! The names under which a dashboard is reached, and the one that a request gives.
//!
//! A stranger's page can make its own name lead to this machine (DNS rebinding). To the browser the
//! dashboard is then part of that page's site: every header that browsers protect says so, and `Host`
//! alone still has the stranger's name. So each request is held against the names that the host's code
//! gave, before anything else is asked about it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use actix_web::HttpRequest;
use actix_web::http::uri::Authority;

use super::problem::Problem;

/// Longest name, in bytes, and longest part of it between dots: the DNS knows no longer ones.
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;

/// Why a text is no name under which a dashboard can be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostNameError {
    /// Nobody could reach the dashboard.
    #[error("a dashboard without a name is reached by nobody; give one name at least, for instance ops.example")]
    None,
    /// It is not as a browser would send it.
    #[error(
        "{0:?} is no name of a host; write what stands between :// and the path in the browser's address: a name \
         in ASCII (xn-- for others) or an IP address (IPv6 in brackets), and :port only where the address shows one"
    )]
    Name(String),
}

/// A host as a request names it, or as the builder was told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    name: Name,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Address(IpAddr),
    /// In lower case.
    Dns(String),
}

/// The names under which a dashboard is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hosts {
    /// `localhost` and the loopback addresses, with any port.
    Loopback,
    /// These; one without a port stands for every port.
    Named(Vec<Host>),
}

impl Hosts {
    /// Reads the names that the host's code gives.
    pub(super) fn named<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Result<Self, HostNameError> {
        let read = |name: N| Host::read(name.as_ref()).ok_or_else(|| HostNameError::Name(name.as_ref().to_owned()));
        let hosts = names.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        if hosts.is_empty() {
            return Err(HostNameError::None);
        }
        Ok(Self::Named(hosts))
    }

    /// Refuses a request that was made to any other name.
    pub(super) fn check(&self, request: &HttpRequest) -> Result<(), Problem> {
        let host = Host::of(request);
        match host {
            Some(host) if self.has(&host) => Ok(()),
            Some(host) => Err(Problem::strange_host(&format!("as {host}"), self)),
            None => Err(Problem::strange_host("without one name that can be read", self)),
        }
    }

    fn has(&self, host: &Host) -> bool {
        match self {
            Self::Loopback => host.is_loopback(),
            Self::Named(own) => own
                .iter()
                .any(|own| own.name == host.name && (own.port.is_none() || own.port == host.port)),
        }
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback => f.write_str("localhost, 127.0.0.1 and [::1]"),
            Self::Named(hosts) => {
                let names: Vec<String> = hosts.iter().map(ToString::to_string).collect();
                f.write_str(&names.join(", "))
            }
        }
    }
}

impl Host {
    /// Reads the one host that a request names: in its one `Host` header, in its target, or the same in both.
    /// A server must follow the target and a page's origin follows it too, so neither alone decides.
    pub(super) fn of(request: &HttpRequest) -> Option<Self> {
        let mut headers = request.headers().get_all("host");
        let (header, second) = (headers.next(), headers.next());
        if second.is_some() {
            return None;
        }
        let header = match header {
            Some(value) => Some(Self::read(value.to_str().ok()?)?),
            None => None,
        };
        let target = match request.uri().authority() {
            Some(authority) => Some(Self::read(authority.as_str())?),
            None => None,
        };
        match (header, target) {
            (Some(header), Some(target)) => (header == target).then_some(header),
            (one, other) => one.or(other),
        }
    }

    /// Reads a host with or without a port, and nothing else.
    ///
    /// `Authority` passes over user information, behind a bracket and behind a port that is no number, so
    /// what it found is held against the text: name and port must be all of it.
    pub(super) fn read(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        let name = authority.host();
        let port = match text.strip_prefix(name)? {
            "" => None,
            rest => Some(port(rest.strip_prefix(':')?)?),
        };
        Some(Self {
            name: Name::read(name)?,
            port,
        })
    }

    /// Returns `true` if only this machine answers to it. A resolver that follows RFC 6761 leads `localhost` nowhere else.
    pub(super) fn is_loopback(&self) -> bool {
        match &self.name {
            Name::Address(address) => address.is_loopback(),
            Name::Dns(name) => name == "localhost",
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Name::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            Name::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
            Name::Dns(name) => f.write_str(name)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl Name {
    fn read(text: &str) -> Option<Self> {
        if let Some(address) = text.strip_prefix('[') {
            let address: Ipv6Addr = address.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(IpAddr::V4(address)));
        }
        is_dns_name(text).then(|| Self::Dns(text.to_ascii_lowercase()))
    }
}

/// Digits alone, as `u16` reads a sign and leading zeros as well.
fn port(text: &str) -> Option<u16> {
    let port: u16 = text.parse().ok()?;
    (port.to_string() == text).then_some(port)
}

/// Labels between single dots. One that ends in a number is an address to browsers, in a form of its own.
fn is_dns_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_of_it = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=LABEL_MAX).contains(&label.len()) && label.bytes().all(is_of_it)
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    text.len() <= NAME_MAX && text.split('.').all(is_label) && !last.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
