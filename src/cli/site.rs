//! A dashboard that runs, spoken to over HTTP. What it sends is bounded, in size and in time, and
//! a redirect is never followed: the headers carry the host's login.

mod address;
mod problem;
mod stream;

pub(super) use address::segment;
pub(super) use problem::{Problem, Unanswered};
pub(super) use stream::{Event, Heard, Listening};

use std::time::Duration;

use procession::provider::{Clock, SystemClock};
use serde_json::Value;
use ureq::http::{HeaderName, HeaderValue, Response, StatusCode};
use ureq::{Agent, Body, Proxy};

use super::document::Document;
use super::exit::Failure;
use address::Address;

/// Bytes of one reply at most: a page of 500 rows has half a million, an exported family of the
/// 16 MiB that a dashboard lets go has a few times that.
const REPLY_MAX: u64 = 96 << 20;
/// How long it may take until a connection stands.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a reply may take, from the question to its last byte.
const REPLY: Duration = Duration::from_secs(30);
/// How often one that is busy for a moment is asked again.
const AGAIN: u32 = 3;
/// The longest moment for which it is asked again without being told to.
const MOMENT: Duration = Duration::from_secs(2);

/// One dashboard.
#[derive(Clone)]
pub(super) struct Site {
    agent: Agent,
    address: Address,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Site {
    /// Takes an address and headers as they were written; nothing is asked yet.
    pub(super) fn new(url: &str, headers: &[String]) -> Result<Self, Failure> {
        let address: Address = url.parse()?;
        let headers = headers.iter().map(|header| address::header(header));
        let headers = headers.collect::<Result<_, Failure>>()?;
        // No proxy reaches this machine's own addresses as this process does.
        let proxy = if address.is_here() { None } else { Proxy::try_from_env() };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_per_call(Some(REPLY))
            .user_agent(concat!("procession/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            agent: config.new_agent(),
            address,
            headers,
        })
    }

    /// Reads a path of the API. One that is busy for a moment is asked again.
    pub(super) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Document, Unanswered> {
        let url = self.address.of(path, query);
        for _ in 1..AGAIN {
            match self.ask(&url, None).await {
                Err(Unanswered::Problem(problem)) => match problem.retry_after {
                    Some(time) if time <= MOMENT => SystemClock.sleep_until(SystemClock.now().after(time)).await,
                    Some(_) | None => return Err(Unanswered::Problem(problem)),
                },
                told => return told,
            }
        }
        self.ask(&url, None).await
    }

    /// Asks for an act, or for its plan.
    pub(super) async fn post(&self, path: &str, body: &Value, dry_run: bool) -> Result<Document, Unanswered> {
        let query: &[(&str, &str)] = if dry_run { &[("dry_run", "true")] } else { &[] };
        self.ask(&self.address.of(path, query), Some(body.to_string())).await
    }

    async fn ask(&self, url: &str, body: Option<String>) -> Result<Document, Unanswered> {
        let (site, url) = (self.clone(), url.to_owned());
        let asked = actix_rt::task::spawn_blocking(move || site.ask_and_wait(&url, body)).await;
        asked.unwrap_or_else(|error| Err(Unanswered::Unreached(error.to_string())))
    }

    fn ask_and_wait(&self, url: &str, body: Option<String>) -> Result<Document, Unanswered> {
        let unreached = |error: ureq::Error| self.address.unreached(&error);
        let reply = match body {
            None => self.with_headers(self.agent.get(url)).call(),
            Some(body) => {
                let request = self.with_headers(self.agent.post(url));
                let request = request.header("content-type", "application/json");
                request.header("x-procession", "1").send(body)
            }
        };
        let mut reply = reply.map_err(unreached)?;
        let read = reply.body_mut().with_config().limit(REPLY_MAX).read_to_vec();
        let read = read.map_err(unreached)?;
        self.told(&reply, &read)
    }

    fn with_headers<B>(&self, mut request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request
    }

    /// Takes a reply for what it is: a body of the API, one of its problems, or something else.
    fn told(&self, reply: &Response<Body>, read: &[u8]) -> Result<Document, Unanswered> {
        let is_json = self.address.is_json(reply);
        let body = serde_json::from_slice::<Value>(read).ok().filter(|_| is_json);
        match body {
            Some(body) if reply.status() == StatusCode::OK => Ok(Document(body)),
            body => Err(self.address.refused(reply, body.as_ref())),
        }
    }
}
