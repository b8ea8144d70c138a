//! The engine's metrics as Prometheus reads them.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header::ContentType;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::demo::pace;

/// Upper bounds of the buckets of durations, in seconds: from a commit to a long wait.
const SECONDS: [f64; 8] = [0.000_1, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1_000.0];
/// Upper bounds of the buckets of what is counted in a batch.
const COUNTS: [f64; 5] = [1.0, 8.0, 64.0, 512.0, 4_096.0];
/// How often samples are sorted into their buckets, whether or not somebody reads them.
const SORT_EVERY: Duration = Duration::from_secs(5);

/// What the engine has counted, once a recorder is there for it.
#[derive(Clone)]
pub struct Figures(Option<PrometheusHandle>);

impl Figures {
    /// Installs the recorder. Must come before the engine starts, and inside an actix system; if the
    /// process has a recorder already, there is nothing to show.
    #[must_use]
    pub fn install() -> Self {
        let handle = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .and_then(|builder| {
                builder.set_buckets_for_metric(Matcher::Prefix("procession_journal_batch".to_owned()), &COUNTS)
            })
            .and_then(PrometheusBuilder::install_recorder)
            .ok();
        if let Some(handle) = handle.clone() {
            actix_rt::spawn(async move {
                loop {
                    pace::pause(SORT_EVERY).await;
                    handle.run_upkeep();
                }
            });
        }
        Self(handle)
    }

    /// Answers Prometheus.
    pub(super) fn serve(&self) -> HttpResponse {
        match &self.0 {
            Some(handle) => HttpResponse::Ok()
                .insert_header(("content-type", "text/plain; version=0.0.4; charset=utf-8"))
                .body(handle.render()),
            None => HttpResponse::ServiceUnavailable()
                .insert_header(ContentType::plaintext())
                .body("another recorder of metrics is installed in this process\n"),
        }
    }
}
