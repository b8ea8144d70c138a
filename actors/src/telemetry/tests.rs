//! The page shows exactly what the code registers. Metrics that no engine test reaches are tested here.

use std::collections::BTreeMap;

use futures::executor::block_on;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use procession_kernel::Seq;

use super::Telemetry;
use super::labels::{LIVE, MAILBOXES, REFUSALS, RULES, WAITS};
use super::names::{ALL, MAILBOX_DEPTH, Metric, SYNC_SECONDS, Sort};
use crate::journal::{Batch, EmbeddedStore, JournalStore, Space, SyncMode};

/// Runs this with a recorder of its own. Returns every counter and gauge, by name and labels.
pub(crate) fn recorded(run: impl FnOnce()) -> BTreeMap<String, f64> {
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, run);
    let series = recorder.snapshotter().snapshot().into_vec().into_iter();
    let numbers = series.filter_map(|(key, _, _, value)| {
        let number = match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(_) => return None,
        };
        let labels: Vec<&str> = key.key().labels().map(metrics::Label::value).collect();
        Some((format!("{} {}", key.key().name(), labels.join(" ")), number))
    });
    numbers.collect()
}

fn row(metric: &Metric) -> String {
    let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
    let labels = if labels.is_empty() {
        "–".to_owned()
    } else {
        labels.join(", ")
    };
    let sort = format!("{:?}", metric.sort).to_lowercase();
    let (name, unit, meaning) = (metric.name, metric.unit.as_str(), metric.meaning);
    format!("| `{name}` | {sort} | {labels} | {unit} | {meaning} |")
}

#[test]
fn the_page_shows_every_metric_as_it_is() {
    let page = include_str!("../../../docs/reference/metrics.md");
    let shown: Vec<&str> = page.lines().filter(|line| line.starts_with("| `procession_")).collect();
    let wanted: Vec<String> = ALL.iter().map(row).collect();
    assert_eq!(shown, wanted, "the page is to have these rows:\n{}", wanted.join("\n"));
    for value in LIVE
        .iter()
        .chain(&WAITS)
        .chain(&MAILBOXES)
        .chain(&RULES)
        .chain(&REFUSALS)
    {
        assert!(page.contains(&format!("`{value}`")), "the page does not name `{value}`");
    }
}

#[test]
fn there_is_a_gauge_for_each_rule() {
    let rules = crate::view::Rule::ALL.map(crate::view::Rule::as_str);
    assert_eq!(rules, RULES);
}

#[test]
fn names_follow_the_rules() {
    for metric in ALL {
        let is_total = metric.name.ends_with("_total");
        assert_eq!(is_total, metric.sort == Sort::Counter, "{}", metric.name);
        let is_time = metric.name.ends_with("_seconds");
        assert_eq!(is_time, metric.unit == metrics::Unit::Seconds, "{}", metric.name);
    }
}

#[test]
fn each_sync_is_measured() -> Result<(), Box<dyn std::error::Error>> {
    let (recorder, place) = (DebuggingRecorder::new(), tempfile::tempdir()?);
    metrics::with_local_recorder(&recorder, || {
        let store = EmbeddedStore::open(place.path(), SyncMode::Data)?;
        let mut batch = Batch::new(block_on(store.acquire())?);
        batch.advance_to(Seq(1));
        batch.put(Space::Keys, b"key", b"value");
        block_on(store.append(batch))?;
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    let series = recorder.snapshotter().snapshot().into_vec();
    let syncs = series.into_iter().find_map(|(key, _, _, value)| match value {
        DebugValue::Histogram(samples) if key.key().name() == SYNC_SECONDS.name => Some(samples.len()),
        DebugValue::Histogram(_) | DebugValue::Counter(_) | DebugValue::Gauge(_) => None,
    });
    assert_eq!(syncs, Some(1));
    Ok(())
}

#[test]
fn each_mailbox_has_its_gauge() {
    let shown = recorded(|| Telemetry::new([]).mailboxes([1, 2, 3, 4, 5]));
    for (actor, waiting) in MAILBOXES.iter().zip([1.0, 2.0, 3.0, 4.0, 5.0]) {
        let series = format!("{} {actor}", MAILBOX_DEPTH.name);
        assert_eq!(shown.get(&series), Some(&waiting), "{series}");
    }
}
