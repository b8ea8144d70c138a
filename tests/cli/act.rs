//! The verbs of operators: the plan changes nothing, the act is what was planned, and what is
//! refused says what to do.

use procession::ProcedureId;
use serde_json::json;

use crate::Outcome;
use crate::golden::must_have_said;
use crate::journal::{Does, rest};
use crate::remote::{Canned, problem};
use crate::run::procession;
use crate::site::{Site, Time, all, look};

fn waits() -> Does {
    Does::Waits("go".to_owned())
}

#[test]
fn each_act_prints_its_plan_and_what_it_did() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    site.submit(Does::Spawns(vec![waits(), waits()]), "a")?;
    site.submit(waits(), "b")?;
    site.submit(Does::Retries("no route".to_owned()), "c")?;
    for (name, arguments, code) in [
        ("act_plan", "abort 1.0 --dry-run", 0),
        ("act_plan_json", "abort 1.0 --dry-run --json", 0),
        ("act_pause", "pause 2.0 --yes --reason quiet", 0),
        ("act_resume", "resume 2.0 --yes --reason quiet", 0),
        ("act_pause_kind", "pause --kind job --yes --reason quiet", 0),
        ("act_resume_kind", "resume --kind job --yes --reason quiet", 0),
        ("act_pause_all", "pause --all --yes --reason quiet", 0),
        ("act_resume_all_json", "resume --all --yes --reason quiet --json", 0),
        ("act_retry", "retry 3.0 --yes --reason now", 0),
        ("act_bypass_plan", "bypass 1.0 --recursive --dry-run", 0),
        ("act_bypass", "bypass 2.0 --yes --reason stuck", 0),
        ("act_abort", "abort 1.0 --yes --reason wrong", 0),
        ("act_finished", "abort 2.0 --yes --reason wrong", 5),
        ("act_unknown", "retry 77.0 --yes --reason now", 1),
        ("act_ls", "ls --all state:live,ended", 0),
    ] {
        must_have_said(&site.run(arguments)?, name, arguments, code)?;
    }
    Ok(())
}

#[test]
fn failures_are_listed_by_what_they_say_and_closed_in_one_request() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    for (key, text) in [("a", "no space on rs-1"), ("b", "no space on rs-2"), ("c", "refused")] {
        site.submit(Does::Fails(text.to_owned()), key)?;
    }
    for (name, arguments, code) in [
        ("failures_online", "failures", 0),
        ("failures_plan", "acknowledge --filter failure:any --dry-run", 0),
        ("failures_one", "acknowledge 3.0 --yes", 0),
        ("failures_closed", "acknowledge --filter failure:any --yes", 0),
        ("failures_none", "failures", 0),
        ("failures_nothing", "acknowledge --filter failure:any --yes", 0),
        ("failures_again", "run-again 3 --yes --reason back", 0),
        ("failures_again_twice", "run-again 3.0 --yes --reason back", 0),
        ("failures_again_listed", "failures", 0),
    ] {
        must_have_said(&site.run(arguments)?, name, arguments, code)?;
    }
    let wrong = site.run("acknowledge --filter failure:soon --yes")?;
    assert!(
        wrong.code == Some(2) && wrong.err.contains("is no fingerprint of failures"),
        "{}",
        wrong.err
    );
    let both = site.run("acknowledge 1.0 --filter failure:any --yes")?;
    assert_eq!(both.code, Some(2), "{}", both.err);
    Ok(())
}

#[test]
fn a_question_is_shown_and_answered_without_a_reason() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    site.submit(Does::Asks("drop t?".to_owned()), "a")?;
    let shown = site.run("show 1.0")?.out;
    assert!(shown.contains("drop t?"), "{shown}");
    assert!(site.run("ls reason:decision")?.out.contains("1.0"));
    assert!(site.run("doctor")?.out.contains("asks: drop t?"));
    let plan = site.run("decide 1.0 true --dry-run")?;
    assert_eq!(plan.code, Some(0), "{}", plan.err);
    assert_eq!(site.run("show 1.0")?.out, shown, "a plan changes nothing");
    let wrong = site.run("decide 1.0 perhaps --yes")?;
    assert!(
        wrong.code == Some(2) && wrong.err.contains("it is no JSON"),
        "{}",
        wrong.err
    );
    let done = site.run("decide 1.0 true --yes")?;
    assert!(
        done.code == Some(0) && done.out.contains("1.0 has its answer"),
        "{}{}",
        done.out,
        done.err
    );
    let again = site.run("decide 1.0 true --yes")?;
    assert_ne!(again.code, Some(0), "nobody asks any more: {}", again.out);
    Ok(())
}

#[test]
fn every_verb_of_the_interface_is_there() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    site.submit(waits(), "a")?;
    site.submit(Does::Retries("no route".to_owned()), "b")?;
    let ended = site.submit(Does::Ends, "c")?;
    let said = |name: &str, arguments: &str, code| must_have_said(&site.run(arguments)?, name, arguments, code);
    for (name, arguments, code) in [
        ("verb_priority", "priority 1 -5 --yes --reason later", 0),
        ("verb_limit", "limit job 2 --rate 10/1s --yes --reason less", 0),
        ("verb_limit_lifted", "limit job --unlimited --yes --reason more", 0),
        ("verb_retry_undo", "retry-undo 2 --yes --reason again", 5),
        ("verb_skip_undo", "skip-undo 2 --yes --reason again", 5),
        (
            "verb_override",
            "override-result c \"better\" --yes --reason checked",
            0,
        ),
        ("verb_override_wrong", "override-result c 7 --yes --reason checked", 2),
        ("verb_discharge", "discharge 2 --yes --reason gone", 5),
        ("verb_signal_plan", "signal a go --dry-run", 0),
        ("verb_reveal", "reveal c --reason look", 0),
        ("verb_pause_unknown", "pause --kind nosuch --yes --reason quiet", 2),
        ("ls_kind_unknown", "ls kind:jbo", 0),
        (
            "verb_bulk_kind_unknown",
            "pause --filter kind:drwa --dry-run --reason quiet",
            0,
        ),
        ("verb_audit", "audit", 0),
        (
            "verb_audit_filtered",
            "audit verb:priority who:ann --fields number,verb,why",
            0,
        ),
        ("verb_audit_wrong", "audit when:now", 2),
    ] {
        said(name, arguments, code)?;
    }
    let revealed = site.run("reveal c --reason look")?.out;
    assert!(revealed.contains("better"), "{ended}: {revealed}");
    said("verb_signal", "signal a go --yes", 0)?;
    let nothing = site.run("limit job --yes --reason more")?;
    assert_eq!(nothing.code, Some(2), "{}", nothing.err);
    Ok(())
}

#[test]
fn a_procedure_is_submitted_as_json() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    let said = |name: &str, arguments: &str, code| must_have_said(&site.run(arguments)?, name, arguments, code);
    let job = r#"{"lock":null,"does":{"Waits":"go"}}"#;
    said("submit_plan", &format!("submit job {job} --dry-run"), 0)?;
    let submit = format!("submit job {job} --key k --label customer=4711 --name nightly --priority 3");
    said("submit", &submit, 0)?;
    futures::executor::block_on(rest(site.executor(), ProcedureId::root(1)))?;
    for (name, arguments, code) in [
        ("submit_again", submit.as_str(), 0),
        (
            "submit_other",
            "submit job {\"lock\":null,\"does\":\"Ends\"} --key k",
            5,
        ),
        ("submit_wrong", "submit job 7", 2),
        ("submit_unknown", "submit jbo 7", 2),
        ("submit_label", "submit job 7 --label customer", 2),
        ("submit_shown", "show label:customer=4711", 0),
        ("submit_unlabelled", "show label:customer=1", 1),
        ("submit_audit", "audit verb:submit", 0),
    ] {
        said(name, arguments, code)?;
    }
    let file = root.path().join("job.json");
    std::fs::write(&file, job)?;
    let from_file = site.run(&format!("submit job @{}", file.display()))?;
    assert!(
        from_file.out.contains("submitted 2.0"),
        "{}{}",
        from_file.out,
        from_file.err
    );
    futures::executor::block_on(rest(site.executor(), ProcedureId::root(2)))?;
    site.run(&submit.replace("--key k", "--key l"))?;
    let two = site.run("show label:customer=4711")?;
    assert!(
        two.code == Some(2) && two.err.contains("is ambiguous: 3.0, 1.0"),
        "{}",
        two.err
    );
    Ok(())
}

#[test]
fn an_engine_drains() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    let arguments = "drain --deadline 5s --yes --reason upgrade";
    must_have_said(&site.run(arguments)?, "verb_drain", arguments, 0)
}

#[test]
fn a_schedule_is_asked_for_a_run_and_nothing_else_is() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    let id = site.schedule()?;
    let shown = site.run(&format!("show {id}"))?.out;
    assert!(shown.contains("at the latest at"), "{shown}");
    let done = site.run(&format!("run-now {id} --yes"))?;
    let said = format!("{id} is asked for a run");
    assert!(
        done.code == Some(0) && done.out.contains(&said),
        "{}{}",
        done.out,
        done.err
    );
    let job = site.submit(waits(), "a")?;
    let listed = site.run("ls kind:job")?.out;
    assert_eq!(listed.matches("waiting · event").count(), 2, "{listed}");
    let refused = site.run(&format!("run-now {job} --yes"))?;
    assert!(
        refused.code == Some(2) && refused.err.contains("no schedule"),
        "{}",
        refused.err
    );
    Ok(())
}

#[test]
fn a_plan_changes_nothing() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    site.submit(waits(), "a")?;
    let before = site.run("show 1.0")?.out;
    for verb in [
        "pause 1.0",
        "resume --all",
        "retry 1.0",
        "abort 1.0",
        "bypass 1.0",
        "pause --kind job",
    ] {
        let said = site.run(&format!("{verb} --dry-run"))?;
        assert!(matches!(said.code, Some(0 | 5)), "{verb}: {}", said.err);
        assert_eq!(site.run("show 1.0")?.out, before, "{verb}");
    }
    Ok(())
}

#[test]
fn without_a_terminal_it_must_be_told_to_go_on_and_why() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    site.submit(waits(), "a")?;
    for (arguments, expected) in [
        ("abort 1.0 --reason wrong", "give --yes"),
        ("abort 1.0 --yes", "say why with --reason"),
        ("abort 1.0 --json --reason wrong", "give --yes"),
        ("abort", "<ID|--filter <FILTER>>"),
        ("pause", "<ID|--kind <KIND>|--all|--filter <FILTER>>"),
        ("pause 1.0 --all", "cannot be used with"),
    ] {
        let said = site.run(arguments)?;
        assert_eq!(said.code, Some(2), "{arguments}: {}", said.err);
        assert!(said.err.contains(expected), "{arguments}: {}", said.err);
    }
    let said = procession(["abort", "1.0", "--yes", "--reason", "x"])?;
    assert!(said.code == Some(2) && said.err.contains("--url"), "{}", said.err);
    assert!(site.run("show 1.0")?.out.contains("waiting · event"));
    Ok(())
}

#[test]
fn who_may_look_alone_is_refused() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, look)?;
    site.submit(waits(), "a")?;
    for arguments in [
        "abort 1.0 --yes --reason x",
        "pause --all --dry-run",
        "bypass 1.0 --dry-run",
    ] {
        let said = site.run(arguments)?;
        assert_eq!(said.code, Some(5), "{arguments}: {}", said.err);
        assert!(said.err.contains("This needs the right"), "{}", said.err);
    }
    assert_eq!(site.run("ls")?.code, Some(0));
    Ok(())
}

#[test]
fn what_has_changed_since_the_plan_is_left_alone() -> Outcome {
    let plan = json!({ "dry_run": true, "revision": "7", "changes": [], "changed": 1 });
    let mut revised = problem(409, "revised", "It has changed.");
    revised["revision"] = json!("9");
    revised["state"] = json!("Waiting");
    let canned = Canned::open(vec![Canned::json(200, &plan), Canned::json(409, &revised)])?;
    let said = canned.run("abort 1.0 --yes --reason wrong")?;
    assert_eq!(said.code, Some(5), "{}", said.err);
    assert!(said.err.contains("has changed since the plan was made"), "{}", said.err);
    assert!(
        said.err.contains("(it is waiting by now, at revision 9)"),
        "{}",
        said.err
    );
    let asked = canned.asked()?;
    assert!(
        asked[0].starts_with("POST /api/v1/procedures/1.0/abort?dry_run=true "),
        "{}",
        asked[0]
    );
    assert!(asked[1].contains("\"expected\":\"7\""), "{}", asked[1]);
    Ok(())
}

#[test]
fn an_act_whose_answer_was_lost_is_sent_again_with_its_key() -> Outcome {
    let plan = json!({ "dry_run": true, "revision": "7", "changes": [], "changed": 1 });
    let done = json!({ "dry_run": false, "number": "3", "changes": [], "changed": 1 });
    let replies = vec![Canned::json(200, &plan), String::new(), Canned::json(200, &done)];
    let canned = Canned::open(replies)?;
    let said = canned.run("pause 1.0 --yes --reason quiet")?;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("sending it again"), "{}", said.err);
    assert_eq!(said.out, "1.0 is paused; 1 procedure changed; entry 3 of the audit\n");
    let asked = canned.asked()?;
    let body = |request: &str| request.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    assert_eq!(body(&asked[1]), body(&asked[2]));
    assert!(
        asked[1].contains("\"key\":\"cli-") && asked[1].contains("x-procession: 1"),
        "{}",
        asked[1]
    );
    Ok(())
}

#[test]
fn what_moves_can_be_paused() -> Outcome {
    let plan = json!({ "dry_run": true, "revision": "7", "changes": [], "changed": 1 });
    let done = json!({ "dry_run": false, "number": "3", "changes": [], "changed": 1 });
    let canned = Canned::open(vec![Canned::json(200, &plan), Canned::json(200, &done)])?;
    let said = canned.run("pause 1.0 --yes --reason quiet")?;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(!canned.asked()?[1].contains("expected"));
    Ok(())
}

#[test]
fn an_abort_that_comes_too_late_is_not_sent() -> Outcome {
    let abort = json!({ "outcome": "too_late", "why": "it has passed its point of no return" });
    let plan = json!({ "dry_run": true, "revision": "7", "changes": [], "changed": 0, "abort": abort });
    let canned = Canned::open(vec![Canned::json(200, &plan)])?;
    let said = canned.run("abort 1.0 --yes --reason wrong")?;
    assert_eq!(said.code, Some(5), "{}", said.err);
    assert!(
        said.err.contains("too late to abort 1.0: it has passed"),
        "{}",
        said.err
    );
    Ok(())
}

#[test]
fn a_bulk_that_could_not_be_counted_is_not_asked_for() -> Outcome {
    let plan = json!({ "dry_run": true, "revision": "1", "count": 1, "over": false, "truncated": true, "items": [] });
    for more in ["--dry-run", "--yes --reason quiet"] {
        let canned = Canned::open(vec![Canned::json(200, &plan)])?;
        let said = canned.run(&format!("pause --filter kind:job {more}"))?;
        assert_eq!(said.code, Some(1), "{more}: {}", said.err);
        for expected in [
            "at least 1 procedure: counting took too long",
            "the filter admits at least 1 procedure, and nothing was done",
            "try again when the engine is less busy",
        ] {
            assert!(said.err.contains(expected), "{more}: {}", said.err);
        }
        assert!(!said.err.contains("5000"), "{more}: {}", said.err);
        assert_eq!(canned.asked()?.len(), 1);
    }
    Ok(())
}

#[test]
fn an_abort_tells_what_it_concerned_beyond_its_plan() -> Outcome {
    let reply = |dry_run: bool, undone: u64, stays: u64| {
        json!({
            "dry_run": dry_run, "revision": "5", "number": null, "changes": [], "changed": 1, "submitted": null,
            "abort": { "outcome": "will_roll_back", "why": null }, "reach": { "undone": undone, "stays": stays },
            "plan": null,
        })
    };
    for (done, told) in [
        ((4, 0), ""),
        ((7, 0), "are undone: 3"),
        ((3, 2), "are left as they are: 2"),
    ] {
        let canned = Canned::open(vec![
            Canned::json(200, &reply(true, 4, 0)),
            Canned::json(200, &reply(false, done.0, done.1)),
        ])?;
        let said = canned.run("abort 1.0 --yes --reason quiet")?;
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.err.contains(told), "{}", said.err);
        assert_eq!(said.err.contains("did not show"), !told.is_empty(), "{}", said.err);
    }
    Ok(())
}

#[test]
fn a_bulk_that_has_grown_is_told_as_a_count() -> Outcome {
    let plan = json!({ "dry_run": true, "revision": "2", "count": 2, "over": false, "truncated": false, "items": [] });
    let mut revised = problem(409, "revised", "It has grown.");
    for (name, value) in [
        ("revision", json!("2599-0123")),
        ("count", json!(2599)),
        ("came", json!(2598)),
        ("went", json!(1)),
    ] {
        revised[name] = value;
    }
    let canned = Canned::open(vec![Canned::json(200, &plan), Canned::json(409, &revised)])?;
    let said = canned.run("pause --filter kind:job --yes --reason quiet")?;
    assert_eq!(said.code, Some(5), "{}", said.err);
    assert!(
        said.err.contains("(2599 procedures by now: 2598 came and 1 went)") && !said.err.contains("revision"),
        "{}",
        said.err
    );
    Ok(())
}

#[test]
fn a_limit_is_not_made_by_a_slip() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    for more in ["--dry-run", "--yes --reason x"] {
        let slip = site.run(&format!("limit jbo 3 {more}"))?;
        assert!(
            slip.code == Some(2)
                && slip
                    .err
                    .contains("no limit jbo; is job meant? To make a new one, give --new"),
            "{}",
            slip.err
        );
    }
    assert!(!site.run("limits")?.out.contains("jbo"));
    let plan = site.run("limit jbo 3 --new --dry-run")?;
    assert!(
        plan.code == Some(0) && plan.out.contains("there is no limit jbo yet: it is made"),
        "{}{}",
        plan.out,
        plan.err
    );
    assert_eq!(site.run("limit jbo 3 --new --yes --reason x")?.code, Some(0));
    assert_eq!(
        site.run("limit jbo --unlimited --yes --reason x")?.code,
        Some(0),
        "it is there by now"
    );
    Ok(())
}

#[test]
fn a_plan_says_what_is_set() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    site.submit(waits(), "a")?;
    for (arguments, expected) in [
        ("priority 1 9 --dry-run", "priority of 1.0  0    9"),
        ("pause 1 --dry-run", "pause of 1.0  not paused  paused"),
        ("limit job 0 --dry-run", "limit job  4 at once  0 at once"),
    ] {
        let said = site.run(arguments)?;
        assert!(said.out.contains(expected), "{arguments}: {}", said.out);
    }
    Ok(())
}

#[test]
fn a_pause_of_everything_is_seen() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    site.submit(Does::Retries("no route".to_owned()), "a")?;
    assert_eq!(site.run("pause --all --yes --reason restart")?.code, Some(0));
    for (arguments, expected) in [
        ("doctor", "everything is paused"),
        ("show 1.0", "paused     everything, by ann: restart"),
        ("show 1.0", "but not before an operator resumes it"),
        ("why 1.0", "paused: everything, by ann: restart"),
        ("why 1.0", "1.0 continues once an operator acts: paused"),
    ] {
        let said = site.run(arguments)?;
        assert!(said.out.contains(expected), "{arguments}: {}", said.out);
    }
    drop(site);
    for (arguments, expected) in [
        ("doctor", "everything is paused"),
        ("show 1.0", "paused     everything, by an operator"),
        ("why 1.0", "paused: everything, by an operator"),
    ] {
        let said = crate::run::look(arguments, root.path())?;
        assert!(said.out.contains(expected), "{arguments}: {}", said.out);
    }
    Ok(())
}

#[test]
fn what_makes_no_sense_is_usage() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    let name = "n".repeat(300);
    for arguments in [
        "limit job --rate 10/0s --yes --reason x".to_owned(),
        format!("submit job {{\"lock\":null,\"does\":\"Ends\"}} --name {name}"),
    ] {
        let said = site.run(&arguments)?;
        assert_eq!(said.code, Some(2), "{arguments}: {}", said.err);
        assert!(!said.err.contains("ask again"), "{}", said.err);
    }
    Ok(())
}

#[test]
fn the_audit_before_a_number_above_the_newest_is_the_newest() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    assert_eq!(site.run("limit job 3 --yes --reason less")?.code, Some(0));
    let online = site.run("audit --before 99999")?;
    assert!(
        online.out.contains("less") && online.err.contains("1 entry"),
        "{}",
        online.out
    );
    Ok(())
}

#[test]
fn a_field_that_may_be_there_is_not_called_unknown() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    site.submit(waits(), "a")?;
    let shown = site.run("show 1.0 --fields id,state,cause.text")?;
    assert!(shown.code == Some(0) && shown.err.is_empty(), "{}", shown.err);
    let slip = site.run("show 1.0 --fields id,casue.text")?;
    assert!(slip.err.contains("no entry has a field casue.text"), "{}", slip.err);
    Ok(())
}

#[test]
fn names_are_shown() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    let job = r#"{"lock":null,"does":{"Waits":"go"}}"#;
    assert_eq!(site.run(&format!("submit job {job} --name nightly"))?.code, Some(0));
    futures::executor::block_on(rest(site.executor(), ProcedureId::root(1)))?;
    assert!(site.run("show 1.0")?.out.contains("name       nightly"));
    let listed = site.run("ls")?.out;
    let heading = listed.lines().next().unwrap_or_default();
    assert!(heading.contains("KIND  NAME") && listed.contains("nightly"), "{listed}");
    Ok(())
}
