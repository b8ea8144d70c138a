//! `charts`: what ended in each stretch of the last hour or day, and how long it took.

use std::time::Duration;

use actix_web::{HttpRequest, web};
use procession_actors::view::{ChartBucket, ChartFigures, ChartOf, ChartSpan, ChartTimes};
use procession_kernel::Kind;
use serde_json::{Value, json};

use super::params::Params;
use super::problem::{Answer, Problem};
use super::state::{State, viewer};
use crate::views::{fine_millis, millis, time};

/// Shorter times are shown to the microsecond.
const FINE: Duration = Duration::from_secs(1);

pub(super) async fn charts(request: HttpRequest, state: web::Data<State>) -> Answer {
    viewer(&request)?;
    let params = Params::of(&request, &["kind", "span"])?;
    let word = params.choice("span", ["1h", "24h"])?;
    let span = match word {
        "1h" => ChartSpan::Hour,
        _ => ChartSpan::Day,
    };
    let kind = params.text("kind").map(|kind| Kind::from(kind.to_owned()));
    let moment = state.moment()?;
    let chart = state.engine().chart(kind.as_ref(), span);
    let chart = chart.ok_or_else(|| {
        let text = "No kind of this name is registered, and none has ended in the last 24 hours.";
        Problem::request(text, "Correct \"kind\", or leave it out.")
    })?;
    let of = match chart.of {
        ChartOf::Roots => "roots",
        ChartOf::Kind(_) => "kind",
        ChartOf::OtherKinds => "other_kinds",
    };
    let (open, closed) = chart
        .buckets
        .split_last()
        .map_or((Value::Null, &[][..]), |(open, closed)| (shown(open), closed));
    let buckets: Vec<Value> = closed.iter().map(shown).collect();
    let body = json!({
        "of": of,
        "kind": kind.as_ref().map(Kind::as_str),
        "span": word,
        "step_ms": span.step_minutes() * 60_000,
        "buckets": buckets,
        "open": open,
    });
    state.reply(moment, body)
}

fn shown(bucket: &ChartBucket) -> Value {
    let from = time(bucket.from);
    match bucket.figures {
        None => json!({ "from": from, "known": false, "ended": null, "failed": null, "took": null, "queued": null }),
        Some(ChartFigures {
            ended,
            failed,
            took,
            queued,
            ..
        }) => json!({
            "from": from,
            "known": true,
            "ended": ended,
            "failed": failed,
            "took": took.map(times),
            "queued": queued.map(times),
        }),
    }
}

fn times(times: ChartTimes) -> Value {
    json!({ "count": times.count, "p50_ms": shown_millis(times.p50), "p99_ms": shown_millis(times.p99) })
}

/// Shows microseconds as far as they matter: procedures take days, too.
fn shown_millis(time: Duration) -> Value {
    match time < FINE {
        true => json!(fine_millis(time)),
        false => json!(millis(time)),
    }
}
