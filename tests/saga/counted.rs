//! Metrics of calls: each has its state and what it came to.

use std::collections::BTreeMap;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use procession::operate::OperatorRequest;
use serde_json::json;

use crate::Tested;
use crate::kit::Ground;

#[test]
fn calls_are_counted_by_state_and_by_what_they_came_to() -> Tested {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let ground = Ground::new(
            &["simple_statelang_with_compensation_for_recovery.json"],
            "simpleCompensationStateMachineForRecovery",
        )?;
        ground.rules(json!([
            { "state": "FirstState", "takes_ms": 250 },
            { "state": "SecondState", "fault": { "class": "x.Down" } }
        ]))?;
        ground.live(async |run| {
            let saga = ground.start(run, "1", json!({ "a": 1 })).await?;
            run.pass(std::time::Duration::from_secs(1)).await;
            run.wait(saga.compensate(OperatorRequest::new("ann", "a test")))
                .await??;
            run.settle().await;
            Ok(())
        })
    })?;
    let mut counted = BTreeMap::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let key = key.key();
        if let (DebugValue::Histogram(seconds), "procession_saga_call_seconds") = (value, key.name()) {
            let labels: Vec<&str> = key.labels().map(metrics::Label::value).collect();
            let seconds: Vec<f64> = seconds.iter().map(|seconds| seconds.into_inner()).collect();
            counted.insert(labels.join(" "), seconds);
        }
    }
    let kind = "saga.simpleCompensationStateMachineForRecovery";
    let expected = [
        ("CompensateFirstState SU", 0.0),
        ("FirstState SU", 0.25),
        ("SecondState FA", 0.0),
    ];
    let expected = expected.map(|(what, seconds)| (format!("{kind} {what}"), vec![seconds]));
    assert_eq!(counted, BTreeMap::from(expected));
    Ok(())
}
