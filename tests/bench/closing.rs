//! The closing line of each workload has the names that scripts read, and sane numbers.

use serde_json::Value;

use crate::{Outcome, bench};

/// Runs one round; gives the one line.
fn closing(arguments: &str) -> Outcome<Value> {
    let output = bench(&format!("{arguments} --rounds 1 --seed 7 --json"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout)?;
    assert_eq!(text.lines().count(), 1, "{text}");
    Ok(serde_json::from_str(&text)?)
}

/// Checks what every line has, and that these are numbers over zero.
fn must_have(closing: &Value, workload: &str, names: &[&str]) {
    assert_eq!(closing["workload"], workload, "{closing}");
    assert_eq!(closing["sync"], "fdatasync", "{closing}");
    assert_eq!(closing["seed"], 7, "{closing}");
    assert_eq!(closing["rounds"], 1, "{closing}");
    assert!(closing["machine"].is_string(), "{closing}");
    let common = [
        "ratio",
        "overall_per_second",
        "overall_cpu_us",
        "raw_commit_us_p50",
        "commits",
        "cores",
        "syncs",
        "longest_decision_ms",
        "peak_bytes",
    ];
    for name in names.iter().chain(&common) {
        let number = closing[name].as_f64();
        assert!(number.is_some_and(|number| number > 0.0), "{name} in {closing}");
    }
}

#[test]
fn chain_tells_its_rate_and_its_times() -> Outcome {
    let closing = closing("chain --concurrency 4 --procedures 20 --stages 3")?;
    let names = [
        "stages_per_second",
        "raw_stages_per_second",
        "stage_us_p50",
        "stage_us_p99",
        "procedure_us_p50",
        "procedure_us_p99",
        "bytes_per_stage",
    ];
    must_have(&closing, "chain", &names);
    assert_eq!(closing["commits"], 20 * 4, "a submission and three stages");
    Ok(())
}

#[test]
fn chain_compares_its_rate_with_that_beside_many_live_ones() -> Outcome {
    let closing = closing("chain --concurrency 4 --procedures 20 --stages 3 --live 50")?;
    must_have(&closing, "chain", &["stages_per_second", "live_ratio"]);
    assert_eq!(closing["live"], 50);
    assert_eq!(closing["viewers_ratio"], Value::Null, "{closing}");
    Ok(())
}

#[test]
fn chain_compares_its_rate_with_that_beside_viewers_and_searchers() -> Outcome {
    // In the second of two pairs the other engine goes first.
    let of_two = |arguments: &str| {
        let output = bench(&format!(
            "chain --concurrency 4 --procedures 200 --stages 3 {arguments} --rounds 2 --json"
        ))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        Outcome::Ok(serde_json::from_slice::<Value>(&output.stdout)?)
    };
    let above_zero = |closing: &Value, name: &str| {
        let number = closing[name].as_f64();
        assert!(number.is_some_and(|number| number > 0.0), "{name} in {closing}");
    };
    let viewed = of_two("--viewers 3")?;
    above_zero(&viewed, "viewers_ratio");
    above_zero(&viewed, "processor_ratio");
    assert_eq!(
        (&viewed["searchers_ratio"], &viewed["searches"]),
        (&Value::Null, &Value::from(0))
    );
    let searched = of_two("--searchers 3")?;
    above_zero(&searched, "searchers_ratio");
    above_zero(&searched, "searches");
    assert_eq!(searched["viewers_ratio"], Value::Null);
    Ok(())
}

#[test]
fn chain_and_fanout_compare_themselves_with_pure_stages() -> Outcome {
    // In the second of two pairs the pure ones go first.
    for (arguments, names) in [
        (
            "chain --concurrency 2 --procedures 40 --stages 5 --speculate --rounds 2",
            ["speculation_ratio", "speculation_syncs_per_procedure"],
        ),
        (
            "fanout --children 200 --width 4 --speculate --rounds 2",
            ["speculation_ratio", "speculation_syncs_ratio"],
        ),
    ] {
        let output = bench(&format!("{arguments} --json"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments}: {said}");
        let closing: Value = serde_json::from_slice(&output.stdout)?;
        for name in names {
            let number = closing[name].as_f64();
            assert!(number.is_some_and(|number| number > 0.0), "{name} in {closing}");
        }
    }
    // Six commits a procedure; stages that nobody waits for share a sync with others.
    let output = bench("chain --concurrency 1 --procedures 100 --stages 5 --speculate --rounds 1 --json")?;
    let closing: Value = serde_json::from_slice(&output.stdout)?;
    let syncs = closing["speculation_syncs_per_procedure"].as_f64();
    assert!(syncs.is_some_and(|syncs| (1.0..6.0).contains(&syncs)), "{closing}");
    Ok(())
}

#[test]
fn fanout_compares_children_that_fail_with_children_that_succeed() -> Outcome {
    // A failure and the undo of its stage are two commits, a failure with nothing to undo is one.
    for (options, commits) in [("", 43), (" --without-rollback", 23)] {
        let closing = closing(&format!("fanout --children 20 --failing{options}"))?;
        must_have(&closing, "fanout", &["children_per_second", "times_succeeding"]);
        assert_eq!(closing["failing"], true, "{closing}");
        assert_eq!(closing["commits"], commits, "{closing}");
    }
    Ok(())
}

#[test]
fn fanout_counts_children_with_and_without_a_width() -> Outcome {
    for width in [0, 3] {
        let closing = closing(&format!("fanout --children 20 --parents 2 --width {width}"))?;
        must_have(&closing, "fanout", &["children_per_second", "raw_per_second"]);
        assert_eq!(closing["width"], width);
        assert_eq!(closing["children"], 20);
    }
    Ok(())
}

#[test]
fn rollback_counts_sagas() -> Outcome {
    let closing = closing("rollback --sagas 10 --concurrency 4")?;
    must_have(&closing, "rollback", &["sagas_per_second"]);
    assert_eq!(closing["stages"], 5);
    Ok(())
}

#[test]
fn parked_tells_memory_and_wakes_from_events_and_timers() -> Outcome {
    for on in ["events", "timers"] {
        let closing = closing(&format!("parked --procedures 200 --on {on}"))?;
        must_have(&closing, "parked", &["wake_seconds", "wakes_per_second"]);
        assert_eq!(closing["on"], on);
        // So few may fit into what the process has already; where there is no /proc it is null.
        let bytes = closing.get("bytes_per_procedure").ok_or("no bytes_per_procedure")?;
        assert!(bytes.is_null() || bytes.as_f64() >= Some(0.0), "{closing}");
    }
    Ok(())
}

#[test]
fn recovery_kills_an_engine_and_finds_all_of_its_procedures() -> Outcome {
    let closing = closing("recovery --live 50 --parked 20 --finished 100 --failed 30")?;
    let names = [
        "first_stage_seconds",
        "queued_seconds",
        "running_seconds",
        "done_seconds",
    ];
    must_have(&closing, "recovery", &names);
    let seconds = |name: &str| closing[name].as_f64();
    assert!(
        seconds("first_stage_seconds") <= seconds("running_seconds"),
        "{closing}"
    );
    assert!(seconds("running_seconds") <= seconds("done_seconds"), "{closing}");
    assert!(seconds("queued_seconds") <= seconds("done_seconds"), "{closing}");
    assert!(closing["log_bytes"].as_u64() > Some(0), "{closing}");
    assert_eq!(closing["failed"].as_u64(), Some(30), "{closing}");
    Ok(())
}

#[test]
fn limits_and_locks_count_grants() -> Outcome {
    let limits = closing("limits --procedures 40 --kinds 8 --limit 2")?;
    must_have(&limits, "limits", &["grants_per_second"]);
    for each in [1, 3] {
        let locks = closing(&format!("locks --procedures 40 --locks 7 --each {each}"))?;
        must_have(&locks, "locks", &["grants_per_second"]);
    }
    Ok(())
}

#[test]
fn submit_tells_the_time_to_the_answer() -> Outcome {
    let closing = closing("submit --submissions 50 --concurrency 2")?;
    must_have(
        &closing,
        "submit",
        &["submit_us_p50", "submit_us_p99", "submissions_per_second"],
    );
    Ok(())
}

#[test]
fn set_counts_nodes_of_each_shape() -> Outcome {
    for (arguments, commits) in [
        ("chain --nodes 20", 21),
        ("wide --nodes 20 --width 4", 21),
        ("lattice --nodes 10 --sets 3", 33),
        ("sets --nodes 10 --sets 4", 44),
        ("validate --nodes 50", 51),
    ] {
        let closing = closing(&format!("set --shape {arguments}"))?;
        must_have(&closing, "set", &["nodes_per_second", "build_ms", "start_ms"]);
        assert_eq!(closing["commits"], commits, "{arguments}: starts and ends: {closing}");
        assert_eq!(
            closing.get("hop_us_p50").is_some(),
            arguments.starts_with("chain"),
            "{closing}"
        );
    }
    Ok(())
}

#[test]
fn set_tells_what_a_waiting_node_takes_beside_a_held_child() -> Outcome {
    let closing = closing("set --shape waiting --nodes 500")?;
    must_have(&closing, "set", &["nodes_per_second", "start_ms"]);
    for name in ["bytes_per_node", "bytes_per_held_child"] {
        // So few may fit into what the process has already; where there is no /proc it is null.
        let bytes = closing.get(name).ok_or("it is not there")?;
        assert!(bytes.is_null() || bytes.as_f64() >= Some(0.0), "{closing}");
    }
    Ok(())
}

#[test]
fn set_asks_and_retries_with_as_many_writes_whatever_is_behind() -> Outcome {
    let closing = closing("set --shape pend --nodes 200")?;
    must_have(&closing, "set", &["ask_ms", "retry_ms", "ask_writes", "retry_writes"]);
    assert_eq!(closing["ask_writes"], closing["ask_writes_few"], "{closing}");
    assert_eq!(closing["retry_writes"], closing["retry_writes_few"], "{closing}");
    Ok(())
}

#[test]
fn set_kills_an_engine_and_finds_all_of_its_nodes() -> Outcome {
    for streams in [0, 4] {
        let closing = closing(&format!("set --shape recovery --sets 3 --nodes 20 --streams {streams}"))?;
        must_have(&closing, "set", &["first_node_ms", "queued_ms", "read_ms"]);
        assert_eq!(closing["streams"], streams, "{closing}");
    }
    Ok(())
}

#[test]
fn stream_counts_nodes_that_were_appended_before_and_nodes_that_are_appended() -> Outcome {
    for (streams, has_hops) in [(1, true), (3, false)] {
        let closing = closing(&format!("stream --shape backlog --streams {streams} --nodes 30"))?;
        must_have(&closing, "stream", &["nodes_per_second", "append_bytes_per_node"]);
        assert_eq!(
            closing["commits"],
            30 + streams,
            "the nodes, and those that were held: {closing}"
        );
        assert_eq!(closing.get("hop_us_p50").is_some(), has_hops, "{closing}");
    }
    for (arguments, commits, tells_tenths) in [
        ("append --streams 2 --nodes 400 --producers 4", 400, true),
        ("batch --nodes 250 --named", 3, false),
    ] {
        let closing = closing(&format!("stream --shape {arguments}"))?;
        must_have(&closing, "stream", &["nodes_per_second", "append_us_p50"]);
        assert_eq!(closing["commits"], commits, "one an append: {closing}");
        // Eight producers may be answered at once: three appends tell nothing of a tenth.
        let last_tenth = closing.get("last_tenth").ok_or("it is not there")?;
        assert_eq!(
            last_tenth.as_f64().is_some_and(|ratio| ratio > 0.0),
            tells_tenths,
            "{closing}"
        );
    }
    Ok(())
}

#[test]
fn stream_tells_what_an_idle_one_takes() -> Outcome {
    let closing = closing("stream --shape idle --streams 20 --nodes 40")?;
    must_have(&closing, "stream", &["nodes_per_second"]);
    assert_eq!(closing["commits"], 20 + 40, "{closing}");
    // So few may fit into what the process has already; where there is no /proc it is null.
    let bytes = closing.get("bytes_per_stream").ok_or("it is not there")?;
    assert!(bytes.is_null() || bytes.as_f64() >= Some(0.0), "{closing}");
    Ok(())
}

#[test]
fn stream_kills_an_engine_and_finds_all_of_its_streams() -> Outcome {
    let closing = closing("stream --shape recovery --streams 5 --nodes 50")?;
    must_have(&closing, "stream", &["first_node_ms", "queued_ms", "read_ms"]);
    Ok(())
}

/// Checks that sagas and the plain procedures beside them make so many commits each.
fn must_commit(closing: &Value, commits: u32) {
    let names = [
        "states_per_second",
        "raw_states_per_second",
        "chain_ratio",
        "bytes_per_state",
        "cpu_us_per_state",
    ];
    must_have(closing, "saga", &names);
    assert_eq!(closing["commits_per_saga"], f64::from(commits), "{closing}");
    assert_eq!(closing["chain_commits_per_saga"], f64::from(commits), "{closing}");
    assert!(closing["seata_ratio"].is_null(), "{closing}");
}

#[test]
fn saga_of_tasks_in_a_line_commits_as_often_as_plain_procedures() -> Outcome {
    for (arguments, commits) in [
        ("chain --tasks 4 --concurrency 4", 4 + 1),
        ("choice --tasks 4 --concurrency 4", 4 + 1),
        ("compensate --tasks 3 --concurrency 4", 1 + 3 + 3),
    ] {
        let closing = closing(&format!("saga --shape {arguments} --sagas 10"))?;
        must_commit(&closing, commits);
        let is_choice = arguments.starts_with("choice");
        assert_eq!(closing["without_choices_ratio"].is_null(), !is_choice, "{closing}");
        assert!(closing["state_us_p50"].as_f64() > Some(0.0), "{closing}");
    }
    Ok(())
}

#[test]
fn saga_with_parts_commits_as_often_as_plain_procedures() -> Outcome {
    for (arguments, commits) in [
        // 1 Fork, 4 and 16 in it, 64 branches with a task, and a Join for each Fork.
        ("fork --concurrency 2", 1 + 21 + 64 + 21),
        ("fork --levels 1 --branches 8 --tasks 2 --concurrency 2", 1 + 1 + 16 + 1),
        ("nested --levels 2 --tasks 3 --concurrency 4", 1 + 2 + 3 + 2),
        ("loop --tasks 20 --width 3 --concurrency 2", 1 + 1 + 20 + 1),
    ] {
        let closing = closing(&format!("saga --shape {arguments} --sagas 10"))?;
        must_commit(&closing, commits);
        assert!(closing["state_us_p50"].is_null(), "{closing}");
    }
    Ok(())
}

#[test]
fn saga_tells_its_times_and_compares_one_at_a_time_with_single_commits() -> Outcome {
    let closing = closing("saga --tasks 3 --concurrency 1 --sagas 10")?;
    let names = [
        "seata_ratio",
        "state_us_p50",
        "state_us_p99",
        "saga_us_p50",
        "saga_us_p99",
    ];
    must_have(&closing, "saga", &names);
    assert_eq!(closing["shape"], "chain", "{closing}");
    assert_eq!(closing["commits"], 10 * 4, "{closing}");
    Ok(())
}

#[test]
fn saga_undoes_no_task_that_only_looks() -> Outcome {
    let closing = closing("saga --shape compensate --tasks 2 --read-only 3 --concurrency 4 --sagas 10")?;
    must_have(&closing, "saga", &["states_per_second", "state_us_p50"]);
    assert_eq!(closing["commits_per_saga"], f64::from(1 + 5 + 2), "{closing}");
    assert_eq!(closing["chain_commits_per_saga"], f64::from(1 + 2 + 2), "{closing}");
    Ok(())
}

#[test]
fn saga_tells_what_one_takes_at_rest_and_sends_all_forward() -> Outcome {
    let closing = closing("saga --shape rest --sagas 200")?;
    let names = [
        "states_per_second",
        "chain_ratio",
        "restart_ms",
        "plain_restart_ms",
        "restart_ratio",
    ];
    must_have(&closing, "saga", &names);
    assert_eq!(
        closing["commits_per_saga"],
        f64::from(2),
        "the decision and the task: {closing}"
    );
    for name in ["bytes_per_saga", "bytes_per_procedure"] {
        // So few may fit into what the process has already; where there is no /proc it is null.
        let bytes = closing.get(name).ok_or("it is not there")?;
        assert!(bytes.is_null() || bytes.as_f64() >= Some(0.0), "{closing}");
    }
    Ok(())
}

#[test]
fn saga_kills_an_engine_and_ends_what_was_half_done() -> Outcome {
    let closing = closing("saga --shape recovery --sagas 50")?;
    must_have(&closing, "saga", &["done_ms", "plain_done_ms", "restart_ratio"]);
    assert_eq!(closing["sagas"], 50, "{closing}");
    Ok(())
}

#[test]
fn without_json_a_table_names_machine_seed_and_sync() -> Outcome {
    let output = bench("submit --submissions 50 --rounds 1 --seed 9")?;
    let text = String::from_utf8(output.stdout)?;
    for part in [
        "machine: ",
        "sync: fdatasync",
        "seed: 9",
        "engine against store",
        "over all rounds",
        "until it is durable",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    Ok(())
}
