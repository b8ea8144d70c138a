//! The incident of `docs/how-to/handle-an-incident.md`, handled with logs, metrics and one request.

use std::fmt::{Debug, Write as _};
use std::future::IntoFuture;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_web::test::TestRequest;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use procession::procedure::RetryPolicy;
use procession::testkit::{Trouble, World};
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::kit::{Site, Tested, at, everybody, near, site_in};

const ORDERS: usize = 12;
const REFUSES: &str = "the payment service refuses the connection";

/// Whether the payment service answers.
#[derive(Clone, Debug, Default)]
struct Payments(Arc<AtomicBool>);

#[derive(Debug, Serialize, Deserialize)]
struct Order;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    Reserve,
    Pay,
}

impl Procedure for Order {
    const KIND: &'static str = "order";
    type Stage = Stage;
    type Env = Payments;
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Reserve
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(2)
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Reserve => Ok(Step::Next(Stage::Pay)),
            Stage::Pay if cx.env().0.load(Ordering::SeqCst) => Ok(Step::Done(())),
            Stage::Pay => Err(StageError::retry(REFUSES)),
        }
    }

    async fn rollback(&mut self, _: Stage, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        Ok(())
    }
}

/// Each line of the log, as its level, its name and its fields.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

#[derive(Default)]
struct Line {
    name: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.name = format!("{value:?}"),
            // Writing to a text cannot fail.
            name => write!(self.fields, " {name}={value:?}").unwrap_or_default(),
        }
    }
}

impl<S: tracing::Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let (level, Line { name, fields }) = (event.metadata().level(), line);
        let line = format!("{level} {name}:{fields}");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

impl Log {
    fn of(&self, begin: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| line.starts_with(begin)).cloned().collect()
    }
}

/// A metric, by its name and words among its labels.
type Named<'a> = (&'a str, &'a [&'a str]);

const UNACKNOWLEDGED: Named<'static> = ("procession_stuck", &["unacknowledged_failures"]);

/// Returns the values of metrics. What is counted begins anew with each reading.
fn metrics_of<const N: usize>(snapshotter: &Snapshotter, names: [Named<'_>; N]) -> [f64; N] {
    let read = snapshotter.snapshot().into_vec();
    names.map(|(name, words)| {
        let found = read.iter().find(|(key, ..)| {
            let key = key.key();
            key.name() == name
                && words
                    .iter()
                    .all(|word| key.labels().any(|label| label.value() == *word))
        });
        match found {
            Some((_, _, _, DebugValue::Counter(count))) => f64::from(u32::try_from(*count).unwrap_or(u32::MAX)),
            Some((_, _, _, DebugValue::Gauge(value))) => value.into_inner(),
            Some((_, _, _, DebugValue::Histogram(_))) | None => 0.0,
        }
    })
}

/// Returns path and body of each of the page's requests.
fn requests() -> Result<Vec<(String, Value)>, Trouble> {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/docs/how-to/handle-an-incident.md"
    ))?;
    let lines = page.lines().filter(|line| line.starts_with("curl "));
    let read = lines.map(|line| {
        let path = line.split("/api/v1/").nth(1).and_then(|rest| rest.split('\'').next());
        let body = line.split("-d '").nth(1).and_then(|rest| rest.split('\'').next());
        Ok((
            path.ok_or("no path")?.to_owned(),
            serde_json::from_str(body.ok_or("no body")?)?,
        ))
    });
    read.collect()
}

async fn handled(site: &Site<'_>, payments: &Payments, log: &Log, snapshotter: &Snapshotter) -> Tested {
    for number in 1..=ORDERS {
        let order = site.run.executor.submit(Order).key(format!("order-{number}"));
        let order = site.run.wait(order.into_future()).await??;
        site.run.wait(order.outcome()).await?.err().ok_or("it does not fail")?;
    }
    site.run.pass(Duration::from_secs(1)).await;
    site.run.executor.verdicts().await?;
    // How many.
    let failed: Named<'_> = ("procession_failed_total", &["order"]);
    let counts = metrics_of(snapshotter, [failed, UNACKNOWLEDGED]);
    assert!(counts == [12.0, 12.0], "{counts:?}");
    // What, and why.
    let failed = log.of("ERROR a procedure failed:");
    assert_eq!(failed.len(), ORDERS, "{failed:#?}");
    for (number, line) in (1..).zip(&failed) {
        let told = [format!("key=\"order-{number}\""), format!("text=\"{REFUSES}\"")];
        assert!(told.iter().all(|told| line.contains(told.as_str())), "{line}");
    }
    let attempts = log.of("WARN an attempt failed:");
    assert!(
        attempts.iter().all(|line| line.contains("stage=\"Pay\"")),
        "{attempts:#?}"
    );
    assert!(attempts.len() >= ORDERS, "{attempts:#?}");

    payments.0.store(true, Ordering::SeqCst);
    let requests = requests()?;
    let [(asks, what), (does, wish)] = requests.as_slice() else {
        return Err(format!("the page has other requests: {requests:?}").into());
    };
    let post = || near(TestRequest::post()).insert_header(("x-procession", "1"));
    let plan = site.ask(post().set_json(what), asks).await;
    assert_eq!(
        (plan.status.as_u16(), at(&plan.body, "/count")),
        (200, ORDERS.into()),
        "{}",
        plan.body
    );
    let mut wish = wish.clone();
    assert_eq!(
        site.ask(post().set_json(&wish), does).await.status,
        409,
        "the page's revision is an example"
    );
    let fields = wish.as_object_mut().ok_or("a body is an object")?;
    fields.insert("expected".to_owned(), at(&plan.body, "/revision"));
    let reply = site.ask(post().set_json(&wish), does).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    site.run.settle().await;
    site.run.pass(Duration::from_secs(1)).await;
    site.run.executor.verdicts().await?;
    let succeeded: Named<'_> = ("procession_finished_total", &["order", "success"]);
    let counts = metrics_of(snapshotter, [succeeded, UNACKNOWLEDGED]);
    assert!(counts == [12.0, 0.0], "{counts:?}");
    assert_eq!(log.of("ERROR ").len(), ORDERS, "nothing else has failed");
    Ok(())
}

#[test]
fn a_payment_service_fails_and_logs_and_metrics_are_enough() -> Tested {
    // Or a line that another test's thread reaches first counts as wanted by nobody, here too.
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).ok();
    let (payments, log, recorder) = (Payments::default(), Log::default(), DebuggingRecorder::new());
    let snapshotter = recorder.snapshotter();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(log.clone()), || {
        metrics::with_local_recorder(&recorder, || {
            site_in(
                &World::new(),
                |builder| builder.register::<Order>(payments.clone()),
                everybody,
                async |site| handled(site, &payments, &log, &snapshotter).await,
            )
        })
    })
}
