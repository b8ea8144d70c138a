//! A stream of events, as a page listens to it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::http::StatusCode;
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::{App, web};
use procession::dashboard::Dashboard;
use procession::testkit::Trouble;
use serde_json::Value;

use crate::kit::{Site, near, text};

/// How long something may take that is to come, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// One event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

/// One stream that is open.
pub(crate) struct Listener {
    body: BoxBody,
    ready: VecDeque<Event>,
}

impl Site<'_> {
    pub(crate) async fn listen(&self, query: &str) -> Result<Listener, Trouble> {
        self.listen_as(near(TestRequest::get()), query)
            .await
            .map_err(|status| format!("{status}").into())
    }

    pub(crate) async fn listen_as(&self, request: TestRequest, query: &str) -> Result<Listener, StatusCode> {
        listen_to(&self.dashboard, request, query).await
    }
}

/// Opens a stream of a dashboard.
pub(crate) async fn listen_to(
    dashboard: &Dashboard,
    request: TestRequest,
    query: &str,
) -> Result<Listener, StatusCode> {
    let app = init_service(App::new().service(web::scope("").configure(dashboard.routes()))).await;
    let request = request.uri(&format!("/api/v1/events{query}")).to_request();
    let response = call_service(&app, request).await;
    if response.status() != StatusCode::OK {
        return Err(response.status());
    }
    assert_eq!(
        response.headers().get("content-type").map(|kind| kind.as_bytes()),
        Some(&b"text/event-stream"[..])
    );
    assert_eq!(
        response.headers().get("x-accel-buffering").map(|no| no.as_bytes()),
        Some(&b"no"[..])
    );
    let body = response.map_into_boxed_body().into_body();
    let ready = VecDeque::new();
    Ok(Listener { body, ready })
}

impl Listener {
    /// Waits for the next event; none if the stream is over.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Trouble> {
        while self.ready.is_empty() {
            let chunk = poll_fn(|cx| Pin::new(&mut self.body).poll_next(cx));
            let Some(chunk) = tokio::time::timeout(PATIENCE, chunk).await? else {
                return Ok(None);
            };
            let chunk = chunk.map_err(|error| error.to_string())?;
            self.read(std::str::from_utf8(&chunk)?);
        }
        Ok(self.ready.pop_front())
    }

    /// Waits for the next event of this name, and passes over all others.
    pub(crate) async fn next_of(&mut self, name: &str) -> Result<Event, Trouble> {
        while let Some(event) = self.next().await? {
            if event.name == name {
                return Ok(event);
            }
        }
        Err(format!("the stream ended before an event `{name}`").into())
    }

    fn read(&mut self, chunk: &str) {
        for block in chunk.split("\n\n").filter(|block| !block.is_empty()) {
            let field = |name: &str| {
                let mut lines = block
                    .lines()
                    .filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                lines.next().map(str::to_owned)
            };
            self.ready.push_back(Event {
                name: field("event").unwrap_or_default(),
                id: field("id"),
                data: field("data")
                    .and_then(|data| serde_json::from_str(&data).ok())
                    .unwrap_or_default(),
            });
        }
    }
}

/// Returns the ids of the rows of a change.
pub(crate) fn rows(event: &Event) -> Vec<String> {
    let rows = event.data.get("rows").and_then(Value::as_array);
    rows.into_iter().flatten().map(|row| text(&row["id"])).collect()
}
