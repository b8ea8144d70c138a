//! What each verb prints of a dashboard, compared with a file; and with what it prints of the same
//! journal when that is closed: the tables are the same.

use std::collections::BTreeSet;

use crate::Outcome;
use crate::golden::{made, must_have_said, steady};
use crate::journal::{in_a_circle, of_each, of_many, of_sets, of_two_pages, that_asks};
use crate::run::look;
use crate::site::{Site, Time, all};

/// Verbs, with the name of the file, the exit code, and whether a closed journal says the same.
const CASES: &[(&str, &str, i32, bool)] = &[
    // A dashboard explains five at most while its clock stands still.
    // How many permits there are stands in the program: a closed journal takes them all to be out.
    ("why", "why 4.0", 0, false),
    ("why_permit", "why 7.0", 0, false),
    ("why_parent", "why 5.0", 0, true),
    ("why_ended", "why 1.0", 0, true),
    ("show", "show 4.0", 0, true),
    ("show_failed", "show 2.0", 0, true),
    ("show_json", "show 3.0 --json", 0, false),
    ("ls", "ls", 0, true),
    ("ls_all_json", "ls --all --json", 0, false),
    ("ls_filtered", "ls reason:lock,timer req-", 0, true),
    ("ls_failed", "ls state:rolledback err:TIMEOUT", 0, true),
    ("ls_page", "ls --all --limit 2 --after 2.0", 0, true),
    ("ls_rule", "ls rule:S2,S5", 0, true),
    ("tree", "tree 5.0", 0, true),
    ("tree_below_json", "tree 5.3 --json", 0, false),
    ("history", "history 2.0", 0, true),
    ("history_family", "history 5.0 --family", 0, true),
    ("history_family_json", "history 5.0 --family --json --limit 2", 0, false),
    ("locks", "locks", 0, true),
    ("locks_json", "locks --json", 0, false),
    ("limits", "limits", 0, false),
    ("limits_json", "limits --json", 0, false),
    ("doctor", "doctor", 3, true),
    ("doctor_json", "doctor --json", 3, false),
    ("export", "export 2.0", 0, true),
    ("export_all", "export --all", 0, true),
];

#[test]
fn a_dashboard_says_what_its_closed_journal_says() -> Outcome {
    let place = made(of_each)?;
    let mut closed = Vec::new();
    for (_, arguments, _, is_same) in CASES {
        closed.push(if *is_same {
            Some(look(arguments, &place.journal)?.out)
        } else {
            None
        });
    }
    let site = Site::open(&place.journal, Time::Still, all)?;
    let mut differing = String::new();
    for ((name, arguments, code, _), closed) in CASES.iter().zip(closed) {
        let said = site.run(arguments)?;
        must_have_said(&said, &format!("online_{name}"), arguments, *code)?;
        if closed.is_some_and(|closed| steadied(&closed) != steadied(&said.out)) {
            differing.push_str(&format!("{arguments}: {}", said.out));
        }
    }
    assert_eq!(differing, "", "a closed journal says otherwise");
    Ok(())
}

fn steadied(text: &str) -> Vec<String> {
    text.lines().map(steady).collect()
}

#[test]
fn a_circle_has_its_exit_codes_online() -> Outcome {
    let place = made(in_a_circle)?;
    let cases = [
        ("circle_why", "why 1.0", 4),
        ("circle_why_json", "why 2.0 --json", 4),
        ("circle_locks", "locks", 0),
        ("circle_doctor", "doctor", 3),
        ("circle_ls", "ls rule:deadlock", 0),
        ("circle_show", "show 1.0", 0),
        ("circle_export", "export 1.0", 0),
    ];
    let closed: Vec<String> = cases
        .iter()
        .map(|(_, arguments, _)| Ok(look(arguments, &place.journal)?.out))
        .collect::<Outcome<_>>()?;
    let site = Site::open(&place.journal, Time::Still, all)?;
    for ((name, arguments, code), closed) in cases.iter().zip(closed) {
        let said = site.run(arguments)?;
        must_have_said(&said, &format!("online_{name}"), arguments, *code)?;
        if !arguments.contains("--json") {
            assert_eq!(steadied(&said.out), steadied(&closed), "{arguments}");
        }
    }
    Ok(())
}

#[test]
fn one_that_asks_those_behind_it_and_a_closed_name_are_shown() -> Outcome {
    let place = made(that_asks)?;
    let cases = [
        ("asks_show", "show 1.1", 0),
        ("asks_why", "why 1.1", 0),
        ("asks_why_gated", "why 1.2", 0),
        ("asks_show_gated", "show 1.3", 0),
        ("asks_ls_decision", "ls reason:decision", 0),
        ("asks_ls_gate", "ls reason:gate", 0),
        ("asks_doctor", "doctor", 3),
        ("asks_closed_name", "show 2.0", 0),
    ];
    let mut closed = Vec::new();
    for (name, arguments, code) in cases {
        let said = look(arguments, &place.journal)?;
        must_have_said(&said, name, arguments, code)?;
        closed.push(said.out);
    }
    let site = Site::open(&place.journal, Time::Still, all)?;
    for ((name, arguments, code), closed) in cases.into_iter().zip(closed) {
        let said = site.run(arguments)?;
        must_have_said(&said, &format!("online_{name}"), arguments, code)?;
        assert_eq!(steadied(&said.out), steadied(&closed), "{arguments}");
    }
    let plan = site.run("bypass 1.1 --dry-run")?;
    assert!(plan.out.contains("lets 1.2 go on"), "{}{}", plan.out, plan.err);
    Ok(())
}

#[test]
fn sets_streams_and_graphs_are_shown_alike_of_an_engine_and_of_its_closed_journal() -> Outcome {
    let place = made(of_sets)?;
    let cases = [
        ("flows", "flows", 0),
        ("flows_json", "flows --json", 0),
        ("flows_ended", "flows state:ended", 0),
        ("flows_none", "flows name:film", 0),
        ("flows_ls_name", "ls name:publish", 0),
        ("graph", "graph album-7", 0),
        ("graph_json", "graph 1.3 --json", 0),
        ("graph_dot", "graph 1.0 --dot", 0),
        ("graph_family", "graph 3.0", 0),
        ("graph_none", "graph 3.1 --dot", 0),
        ("graph_unknown", "graph 9.0", 1),
        ("queue", "queue procession.stream/invoices:customer-17", 0),
        ("queue_json", "queue invoices:customer-17 --json", 0),
        ("queue_none", "queue 1.0", 1),
        ("set_why_gated", "why 1.4", 0),
        ("set_tree", "tree 1.0", 0),
        ("set_doctor", "doctor", 3),
    ];
    let mut closed = Vec::new();
    for (name, arguments, code) in cases {
        let said = look(arguments, &place.journal)?;
        must_have_said(&said, name, arguments, code)?;
        closed.push(said.out);
    }
    let site = Site::open(&place.journal, Time::Still, all)?;
    // The nodes of sets that were there before are counted behind the start.
    while site.run("flows")?.out.contains("not counted") {}
    for ((name, arguments, code), closed) in cases.into_iter().zip(closed) {
        let said = site.run(arguments)?;
        must_have_said(&said, &format!("online_{name}"), arguments, code)?;
        // How many nodes end in a minute is known of an engine that runs.
        let closed = closed.replacen(" done,", " done, 1 a minute,", usize::from(name == "queue"));
        if !arguments.contains("--json") {
            assert_eq!(steadied(&said.out), steadied(&closed), "{arguments}");
        }
    }
    let plan = site.run("bypass 1.3 --failed --dry-run")?;
    assert!(plan.out.contains("failed"), "{}{}", plan.out, plan.err);
    Ok(())
}

#[test]
fn a_graph_of_many_nodes_is_grouped_of_either_source() -> Outcome {
    let place = made(of_many)?;
    let closed: serde_json::Value = serde_json::from_str(&look("graph 1.0 --json", &place.journal)?.out)?;
    assert_eq!(
        (&closed["groups"][0]["count"], &closed["total"]),
        (&301.into(), &301.into())
    );
    let site = Site::open(&place.journal, Time::Still, all)?;
    let open: serde_json::Value = serde_json::from_str(&site.run("graph 1.0 --json")?.out)?;
    assert_eq!(open["groups"], closed["groups"]);
    Ok(())
}

#[test]
fn payloads_of_an_engine_that_runs_are_disclosed_for_a_reason() -> Outcome {
    let place = made(of_each)?;
    let site = Site::open(&place.journal, Time::Still, all)?;
    let said = site.run("export 5.0 --payload --reason report")?;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let last = said.out.lines().last().ok_or("nothing was said")?;
    let export: procession::offline::FamilyExport = serde_json::from_str(last)?;
    assert!(export.whole && export.family == 5 && export.unreadable.is_empty());
    drop(site);
    let site = Site::open(&place.journal, Time::Still, crate::site::look)?;
    let said = site.run("export 5.0 --payload --reason report")?;
    assert!(
        said.code == Some(5) && said.err.contains("the right \"payload\""),
        "{}",
        said.err
    );
    Ok(())
}

#[test]
fn all_families_of_an_engine_are_exported_though_they_fill_more_than_a_page() -> Outcome {
    let place = made(of_two_pages)?;
    let site = Site::open(&place.journal, Time::Real, all)?;
    let said = site.run("export --all")?;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let ids = said
        .out
        .lines()
        .filter_map(|line| line.split("\"id\":\"").nth(1)?.split('"').next());
    let families: BTreeSet<&str> = ids.filter_map(|id| id.split('.').next()).collect();
    assert_eq!(families, BTreeSet::from(["1", "2", "3", "4"]));
    Ok(())
}
