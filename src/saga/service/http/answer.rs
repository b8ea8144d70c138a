//! The answer: a result, or a fault that its body or its status names.

use std::fmt::Display;

use awc::ClientResponse;
use awc::error::PayloadError;
use awc::http::StatusCode;
use awc::http::header::CONTENT_LENGTH;
use futures::{Stream, StreamExt};
use serde_json::Value;

use super::super::Fault;
use super::super::record::BAD_RESULT;

/// Most bytes of an answer.
const ANSWER_MAX: usize = 1 << 20;

/// Reads an answer.
pub(super) async fn read<S, B>(mut response: ClientResponse<S>) -> Result<Value, Fault>
where
    ClientResponse<S>: Stream<Item = Result<B, PayloadError>> + Unpin,
    B: AsRef<[u8]>,
{
    let status = response.status();
    let mut body = Vec::new();
    while let Some(part) = response.next().await {
        let part = part.map_err(|error| broken_off(&error))?;
        let part = part.as_ref();
        if body.len() + part.len() > ANSWER_MAX {
            return Err(Fault::new(
                BAD_RESULT,
                format!("its answer has more than {ANSWER_MAX} bytes"),
            ));
        }
        body.extend_from_slice(part);
    }
    if is_cut(&response, body.len()) {
        return Err(broken_off(&"the connection was closed"));
    }
    match status.is_success() {
        true => result(&body),
        false => Err(fault(status, &body)),
    }
}

/// The client takes the end of a connection for the end of the answer. An answer of a known length is seen to be cut, and one
/// of unknown length if nothing has come; the JSON of any other one is not whole, unless it is a number.
fn is_cut<S>(response: &ClientResponse<S>, came: usize) -> bool {
    let length = response.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    match length {
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
