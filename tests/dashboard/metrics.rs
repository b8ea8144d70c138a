//! What a dashboard records of its streams.

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use crate::kit::{Tested, site};

/// Returns how many streams are open, and how many had to read anew since the last look.
fn recorded(snapshotter: &Snapshotter) -> (f64, u64) {
    let (mut streams, mut resyncs) = (0.0, 0);
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        match (key.key().name(), value) {
            ("procession_dashboard_streams", DebugValue::Gauge(value)) => streams = value.into_inner(),
            ("procession_dashboard_resyncs_total", DebugValue::Counter(value)) => resyncs += value,
            _ => {}
        }
    }
    (streams, resyncs)
}

#[test]
fn streams_and_resyncs_are_counted() -> Tested {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        site(async |site| {
            assert_eq!(recorded(&snapshotter), (0.0, 0));
            let mut first = site.listen("").await?;
            let second = site.listen("").await?;
            first.next_of("ping").await?;
            assert_eq!(recorded(&snapshotter), (2.0, 0));
            drop(second);
            assert_eq!(recorded(&snapshotter), (1.0, 0));
            let mut lost = site.listen("?from=77-1").await?;
            lost.next_of("resync").await?;
            assert_eq!(recorded(&snapshotter).1, 1);
            drop((first, lost));
            assert_eq!(recorded(&snapshotter).0, 0.0);
            Ok(())
        })
    })
}
