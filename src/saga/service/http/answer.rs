//! The answer: a result, or a fault that its body or its status names.

use std::fmt::Display;
use std::future::poll_fn;

use awc::ClientResponse;
use awc::error::PayloadError;
use awc::http::StatusCode;
use awc::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use futures::{Stream, StreamExt};
use serde_json::Value;

use super::super::Fault;
use super::super::record::BAD_RESULT;
use super::watched;

/// Most bytes of an answer.
const ANSWER_MAX: usize = 1 << 20;

/// Reads an answer. A status that is a fault says so whatever becomes of its body.
pub(super) async fn read<S, B>(mut response: ClientResponse<S>) -> Result<Value, Fault>
where
    ClientResponse<S>: Stream<Item = Result<B, PayloadError>> + Unpin,
    B: AsRef<[u8]>,
{
    let (body, gathered) = gather(&mut response).await;
    match response.status() {
        status if status.is_success() => gathered.and_then(|()| result(&body)),
        status => Err(fault(status, &body)),
    }
}

/// Returns what has come of a body, and why that is not all of it.
async fn gather<S, B>(response: &mut ClientResponse<S>) -> (Vec<u8>, Result<(), Fault>)
where
    ClientResponse<S>: Stream<Item = Result<B, PayloadError>> + Unpin,
    B: AsRef<[u8]>,
{
    let mut body = Vec::new();
    let mut has_closed = false;
    loop {
        let part = poll_fn(|cx| {
            let (polled, closed) = watched::closes(|| response.poll_next_unpin(cx));
            has_closed |= closed;
            polled
        });
        match part.await {
            Some(Ok(part)) if body.len() + part.as_ref().len() > ANSWER_MAX => {
                let text = format!("its answer has more than {ANSWER_MAX} bytes");
                return (body, Err(Fault::new(BAD_RESULT, text)));
            }
            Some(Ok(part)) => body.extend_from_slice(part.as_ref()),
            Some(Err(error)) => return (body, Err(broken_off(&error))),
            None if is_cut(response, body.len(), has_closed) => {
                return (body, Err(broken_off(&"the connection was closed")));
            }
            None => return (body, Ok(())),
        }
    }
}

/// The client takes the end of a connection for the end of the answer. An answer of a known length is seen to be cut, and one
/// in chunks ends before the connection does. Any other one ends with its connection: it is taken to be cut if nothing has
/// come, and otherwise its JSON is not whole, unless it is a number.
fn is_cut<S>(response: &ClientResponse<S>, came: usize, has_closed: bool) -> bool {
    let text = |name| response.headers().get(name)?.to_str().ok();
    if text(TRANSFER_ENCODING).is_some_and(|coding| coding.to_ascii_lowercase().contains("chunked")) {
        return has_closed;
    }
    match text(CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => came < length,
        None => came == 0 && response.status() != StatusCode::NO_CONTENT,
    }
}

fn broken_off(why: &dyn Display) -> Fault {
    Fault::new("java.io.IOException", format!("the answer broke off: {why}"))
}

fn result(body: &[u8]) -> Result<Value, Fault> {
    match body.trim_ascii().is_empty() {
        true => Ok(Value::Null),
        false => serde_json::from_slice(body)
            .map_err(|error| Fault::new(BAD_RESULT, format!("its answer is no JSON: {error}"))),
    }
}

fn fault(status: StatusCode, body: &[u8]) -> Fault {
    Fault::read(body, || format!("http.{}", status.as_u16()))
}
