//! Services that are reached over HTTP. It owns the form of a request and of its answer, and what a failure of the network
//! means.

mod answer;
mod client;
mod watched;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use awc::http::Uri;
use awc::http::header::{HeaderName, HeaderValue};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::{Call, Fault, Service};

/// What stands in a URL for the name of the method.
const METHOD: &str = "{method}";
/// How long a call may take, unless an endpoint says otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where a service is reached over HTTP: [`SagasBuilder::http`](crate::saga::SagasBuilder::http).
///
/// Each call is a POST whose body is the state's `Input` as a JSON list. Its headers are
///
/// | header | has |
/// |---|---|
/// | `Idempotency-Key` | the [token](Call::token), the same for all tries of one visit to a state |
/// | `Procession-Saga` | the id of the saga |
/// | `Procession-State` | the name of the state, percent-encoded |
/// | `Procession-Attempt` | the number of the try, from 1 |
/// | `traceparent` | the trace in which the saga was submitted, if it was in one |
///
/// A status of 200 to 299 is a success, and its body the result: JSON of at most 1 MiB, or nothing, which is null. Any
/// other status is a fault, also if its body breaks off. Its class and message are those of the body,
/// `{"class": "..", "message": ".."}`, else the class is `http.` and the status, for instance `http.409`. Redirects are not
/// followed.
///
/// | failure | class | network |
/// |---|---|---|
/// | no connection comes about | `java.net.ConnectException` | [`Refused`](super::Network::Refused): the call had no effect |
/// | nobody answers the attempt to connect | `java.net.SocketTimeoutException` | [`ConnectTimeout`](super::Network::ConnectTimeout) |
/// | no answer in time | `java.net.SocketTimeoutException` | [`ReadTimeout`](super::Network::ReadTimeout) |
/// | the connection breaks | `java.io.IOException` | none: the call may have had its effect |
///
/// ```
/// use std::time::Duration;
///
/// use procession::saga::{Endpoint, Sagas};
///
/// let stock = Endpoint::new("http://127.0.0.1:8080/stock/{method}")
///     .timeout(Duration::from_secs(5))
///     .header("Authorization", "Bearer 1234")
///     .fault("http.409", "com.acme.OutOfStock");
/// let sagas = Sagas::builder().http("stock", stock).build()?;
/// # Ok::<(), procession::saga::DefinitionErrors>(())
/// ```
#[derive(Clone)]
#[must_use = "`SagasBuilder::http` registers it"]
pub struct Endpoint {
    url: String,
    headers: Vec<(String, String)>,
    timeout: Duration,
    /// The class that stands for another one.
    faults: BTreeMap<String, String>,
}

/// Headers may have secrets, and so may a URL.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Creates an endpoint with this address. `{method}` in it stands for the name of the method, percent-encoded; without
    /// it, all methods have one address.
    ///
    /// The scheme is `http`. For a service behind TLS implement [`Service`] with a client of your own, or put a proxy
    /// beside the host.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            timeout: TIMEOUT,
            faults: BTreeMap::new(),
        }
    }

    /// Limits how long a call may take, from its connection to the last byte of its answer. By default 30 s. Half of it may
    /// go into connecting.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Adds a header to each request. A name that is given twice is sent twice; one of the table above is replaced.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Replaces the class of faults, for instance of a status by one that definitions know:
    /// `fault("http.409", "com.acme.OutOfStock")`.
    pub fn fault(mut self, from: impl Into<String>, class: impl Into<String>) -> Self {
        self.faults.insert(from.into(), class.into());
        self
    }

    /// Returns the service, and what is wrong with its address or its headers.
    pub(in crate::saga) fn into_service(self) -> (Http, Option<String>) {
        let headers = self.headers.iter().map(|(name, value)| header(name, value));
        let headers: Result<Vec<_>, String> = headers.collect();
        let mistake = self.mistake().or_else(|| headers.as_ref().err().cloned());
        let headers = headers.unwrap_or_default();
        (
            Http {
                endpoint: self,
                headers,
            },
            mistake,
        )
    }

    /// Returns what is wrong with its address or its time-out, and what to do.
    fn mistake(&self) -> Option<String> {
        const EXAMPLE: &str = "write for instance http://127.0.0.1:8080/stock/{method}";
        if self.timeout.is_zero() {
            return Some("its time-out is 0; leave it out for 30 s".to_owned());
        }
        let url: Uri = match self.url.replace(METHOD, "method").parse() {
            Ok(url) => url,
            Err(error) => return Some(format!("its url cannot be read, {error}; {EXAMPLE}")),
        };
        match (url.scheme_str(), url.host()) {
            (Some("http"), Some(host)) if !host.is_empty() => None,
            (Some("https"), _) => Some(
                "its url begins with https, which is not spoken here; put a proxy that speaks it beside the host, or \
                 register a service with a client of your own"
                    .to_owned(),
            ),
            _ => Some(format!("its url has no scheme or no host; {EXAMPLE}")),
        }
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let named = HeaderName::try_from(name).map_err(|_| format!("its header [{name}] has no name of a header"))?;
    // The value may be a secret, so it is not shown.
    let value = HeaderValue::try_from(value).map_err(|_| format!("the value of its header [{name}] cannot be sent"))?;
    Ok((named, value))
}

/// A service at an endpoint. Which methods it has only the other side knows.
pub(in crate::saga) struct Http {
    endpoint: Endpoint,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Service for Http {
    fn methods(&self) -> &[&str] {
        &[]
    }

    fn has_method(&self, _: &str) -> bool {
        true
    }

    fn call(&self, method: &str, arguments: Vec<Value>, call: Call) -> LocalBoxFuture<'_, Result<Value, Fault>> {
        let method = method.to_owned();
        async move {
            let asked = self.ask(&method, &arguments, &call);
            let answered = match actix_rt::time::timeout(self.endpoint.timeout, asked).await {
                Ok(answered) => answered,
                Err(_) => Err(client::silent(self.endpoint.timeout)),
            };
            answered.map_err(|fault| self.renamed(fault))
        }
        .boxed_local()
    }
}

impl Http {
    async fn ask(&self, method: &str, arguments: &[Value], call: &Call) -> Result<Value, Fault> {
        let method = encoded(method);
        let url = self.endpoint.url.replace(METHOD, &method);
        let mut request = client::post(&url, self.endpoint.timeout / 2)
            .insert_header(("Idempotency-Key", call.token().to_string()))
            .insert_header(("Procession-Saga", call.saga().to_string()))
            .insert_header(("Procession-State", encoded(call.state())))
            .insert_header(("Procession-Attempt", call.attempt().to_string()));
        if let Some(trace) = call.trace_parent() {
            request = request.insert_header(("traceparent", trace.to_string()));
        }
        for (name, _) in &self.headers {
            request.headers_mut().remove(name);
        }
        for (name, value) in &self.headers {
            request = request.append_header((name.clone(), value.clone()));
        }
        let response = request
            .send_json(&arguments)
            .await
            .map_err(|error| client::fault_of(&error))?;
        answer::read(response).await
    }

    fn renamed(&self, fault: Fault) -> Fault {
        match self.endpoint.faults.get(fault.class()) {
            Some(class) => fault.of_class(class),
            None => fault,
        }
    }
}

/// Returns a name as it fits into a URL and a header.
fn encoded(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}
