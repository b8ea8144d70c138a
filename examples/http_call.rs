//! A call of an HTTP API: once in effect, whatever crashes, and with an answer to each way in which it can fail.
//!
//! ```text
//! cargo run --example http_call
//! ```
//! A stage may run more than once, so the call carries the stage's token, by which the API knows a repeat. What the API
//! answers decides what becomes of the stage: it is tried again, later, or never.
//!
//! The example brings the API that it calls, so that it runs anywhere: a server that is busy at the first call.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use procession::procedure::RetryPolicy;
use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use ureq::Agent;
use ureq::http::{StatusCode, header};

/// A client of the API. It is the environment of the stages, so it is `Clone`, `Send` and `Sync`.
#[derive(Clone)]
struct Payments {
    agent: Agent,
    url: String,
}

/// Why a call has failed.
#[derive(Debug)]
enum PaymentError {
    Unreachable(ureq::Error),
    Broken(StatusCode),
    Busy(Duration),
    Refused(StatusCode),
}

/// What that means for the stage. With this a stage writes `?`.
impl From<PaymentError> for StageError {
    fn from(error: PaymentError) -> Self {
        match error {
            PaymentError::Unreachable(error) => Self::retry(error),
            PaymentError::Broken(status) => Self::retry(format!("the payment API answers {status}")),
            PaymentError::Busy(delay) => Self::retry_after(delay, "the payment API is busy"),
            PaymentError::Refused(status) => Self::fail(format!("the payment API refuses with {status}")),
        }
    }
}

impl Payments {
    fn new(url: &str) -> Self {
        // A call without a time limit would hold its stage for ever.
        let config = Agent::config_builder().timeout_global(Some(Duration::from_secs(10)));
        Self {
            agent: config.http_status_as_error(false).build().into(),
            url: url.to_owned(),
        }
    }

    /// Pays once for each token.
    fn pay(&self, token: &str, amount: u32) -> Result<(), PaymentError> {
        let request = self.agent.put(format!("{}/payments/{token}", self.url));
        let reply = request.send(amount.to_string()).map_err(PaymentError::Unreachable)?;
        let status = reply.status();
        if status == StatusCode::TOO_MANY_REQUESTS {
            let seconds = reply.headers().get(header::RETRY_AFTER);
            let seconds = seconds.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
            return Err(PaymentError::Busy(Duration::from_secs(seconds.unwrap_or(30))));
        }
        allowed(status)
    }

    /// Takes the payment back. One that was never made is no error: the stage may have been cut off before the call.
    fn refund(&self, token: &str) -> Result<(), PaymentError> {
        let request = self.agent.delete(format!("{}/payments/{token}", self.url));
        let reply = request.call().map_err(PaymentError::Unreachable)?;
        match reply.status() {
            StatusCode::NOT_FOUND => Ok(()),
            status => allowed(status),
        }
    }
}

fn allowed(status: StatusCode) -> Result<(), PaymentError> {
    match status {
        status if status.is_success() => Ok(()),
        status if status.is_server_error() => Err(PaymentError::Broken(status)),
        status => Err(PaymentError::Refused(status)),
    }
}

#[derive(Serialize, Deserialize)]
struct Pay {
    amount: u32,
}

impl Procedure for Pay {
    const KIND: &'static str = "pay";
    type Stage = ();
    type Env = Payments;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    fn retry() -> RetryPolicy {
        RetryPolicy::default()
            .attempts(10)
            .max(Duration::from_mins(1))
            .jitter(200)
    }

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let (payments, token, amount) = (cx.env().clone(), cx.token().to_string(), self.amount);
        // This client holds its thread while it waits; the stages of others share the worker's.
        cx.blocking(move || payments.pay(&token, amount)).await??;
        Ok(Step::Done(()))
    }

    async fn rollback(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        // The token of the stage that is undone.
        let (payments, token) = (cx.env().clone(), cx.token().to_string());
        cx.blocking(move || payments.refund(&token)).await??;
        Ok(())
    }
}

#[actix_rt::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let api = Api::start()?;
    let executor = Executor::builder(directory.path().join("journal"))
        .register::<Pay>(Payments::new(&api.url))
        .start()
        .await?;
    executor.submit(Pay { amount: 25 }).key("invoice 17").await?.await?;
    println!("paid; the API has {:?}", api.payments());
    executor.drain(Duration::from_secs(5)).await?;
    Ok(())
}

/// The other side: it keeps a payment for each token, and asks for patience at the first call of each.
struct Api {
    url: String,
    /// Amounts by token; none yet where the caller was told to come again.
    kept: Arc<Mutex<BTreeMap<String, Option<String>>>>,
}

impl Api {
    fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let url = format!("http://{}", listener.local_addr()?);
        let kept = Arc::new(Mutex::new(BTreeMap::new()));
        let weak = Arc::downgrade(&kept);
        thread::spawn(move || {
            while let (Ok((stream, _)), Some(kept)) = (listener.accept(), weak.upgrade()) {
                answer(stream, &kept).unwrap_or_default();
            }
        });
        Ok(Self { url, kept })
    }

    fn payments(&self) -> Vec<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.values().flatten().cloned().collect()
    }
}

fn answer(stream: TcpStream, kept: &Mutex<BTreeMap<String, Option<String>>>) -> io::Result<()> {
    let mut reader = BufReader::new(&stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head)? > 0 {}
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = String::new();
    reader.by_ref().take(length.unwrap_or(0)).read_to_string(&mut body)?;

    let token = head.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = kept.contains_key(&token);
    let (status, payment) = match (head.starts_with("DELETE"), is_known) {
        (true, true) => ("204 No Content", None),
        (true, false) => ("404 Not Found", None),
        (false, true) => ("204 No Content", Some(body)),
        (false, false) => ("429 Too Many Requests\r\nretry-after: 1", None),
    };
    kept.insert(token, payment);
    drop(kept);
    write!(
        &stream,
        "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )
}

#[cfg(test)]
mod tests {
    use procession::testkit::{Check, Finding};

    use super::*;

    #[test]
    fn a_payment_is_made_once_whatever_crashes() -> Result<(), Finding> {
        Check::with(
            || Ok(Api::start()?),
            |api, builder| builder.register::<Pay>(Payments::new(&api.url)),
            |_| Pay { amount: 25 },
        )
        .picture(|api| Ok(api.payments()))
        .everything()
        .map(drop)
    }
}
