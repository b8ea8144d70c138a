//! Labels: written with the row, indexed in the same commit, inherited where a birth says so, and refused out of bounds.

#![expect(clippy::expect_used, reason = "a test names what it expects, and fails on all else")]

use procession_kernel::{
    Answer, Birth, Blob, Brood, Effect, Epoch, Event, JoinPolicy, Kernel, Kind, LABELS_MAX, Label, LabelError, Labels,
    ProcedureId, ProcedureState, Record, Refusal, RequestEffect, RequestId, RowLabels, StageEnded, StageOutcome,
    Timestamp,
};

use crate::shell::{KIND, ROOT, Shell};

fn birth() -> Birth {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    Birth::new(Kind::from(KIND), 1, stage, payload)
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(name, value)| Label::new(*name, *value)).collect()
}

fn labelled(pairs: &[(&str, &str)]) -> Birth {
    Birth {
        labels: labels(pairs),
        ..birth()
    }
}

fn inheriting(birth: Birth) -> Birth {
    Birth {
        inherits_labels: true,
        ..birth
    }
}

/// Decides on a submission; gives what goes to disk.
fn records(birth: Birth) -> Vec<Record> {
    let shell = Shell::empty(Epoch(1));
    let event = Event::Submitted(RequestId(7), vec![birth.into()]);
    let decision = shell.kernel.decide(Timestamp(0), event);
    decision.records().to_vec()
}

fn of(kernel: &Kernel, id: ProcedureId) -> Labels {
    kernel.row(id).map(|row| Labels::clone(&row.labels)).unwrap_or_default()
}

fn report(kernel: &Kernel, outcome: StageOutcome) -> StageEnded {
    let run = kernel.row(ROOT).and_then(|row| row.in_flight).expect("it is out").run;
    StageEnded::new(ROOT, run, Epoch(1), Timestamp(1), outcome)
}

fn spawn(births: Vec<Birth>) -> StageOutcome {
    StageOutcome::Spawn {
        births,
        join: JoinPolicy::AllSucceeded,
        width: 0,
        then: Blob::from(&b"then"[..]),
    }
}

#[test]
fn labels_go_to_disk_with_the_submission_and_none_cost_nothing() {
    let with = records(labelled(&[("customer", "4711")]));
    let indexed = with
        .iter()
        .position(|record| matches!(record, Record::Labelled(1, own) if own.len() == 1));
    let row = with
        .iter()
        .position(|record| matches!(record, Record::Row(row) if row.labels.len() == 1));
    assert!(indexed.is_some() && indexed < row, "{with:?}");
    let stored = with
        .iter()
        .position(|record| matches!(record, Record::Labels(ROOT, own) if own.len() == 1));
    assert!(stored.is_some() && stored < row, "{with:?}");
    assert_eq!(with.len(), records(birth()).len() + 2);
}

/// A stage writes the row again, and no label with it.
#[test]
fn only_the_birth_writes_labels() {
    let shell = Shell::new(labelled(&[("customer", "4711")]));
    let next = report(&shell.kernel, StageOutcome::Wait("go".into(), None, Blob::default()));
    let decision = shell.kernel.decide(Timestamp(1), Event::StageEnded(Box::new(next)));
    let is_labels = |record: &Record| matches!(record, Record::Labels(..) | Record::Labelled(..));
    assert!(!decision.records().is_empty() && !decision.records().iter().any(is_labels));
}

/// The entry that each member names, in the order of members.
fn entries(kernel: &Kernel, members: u32) -> Vec<Option<u32>> {
    let row = |member| kernel.row(ProcedureId::new(1, member));
    (0..members)
        .map(|member| row(member).and_then(|row| row.labels.entry()))
        .collect()
}

#[test]
fn a_child_that_adds_no_label_names_the_entry_of_its_parent() {
    let mut shell = Shell::new(labelled(&[("customer", "4711")]));
    let births = vec![
        inheriting(birth()),
        inheriting(labelled(&[("line", "2")])),
        birth(),
        labelled(&[("customer", "4711")]),
    ];
    let ended = report(&shell.kernel, spawn(births));
    shell.feed(1, Event::StageEnded(Box::new(ended)));
    assert_eq!(entries(&shell.kernel, 5), [Some(0), Some(0), Some(2), None, Some(4)]);
}

/// A family of a release before format 7: its root has its labels inside, and the index has them in the older form.
#[test]
fn a_child_of_a_row_with_labels_inside_gets_an_entry_and_all_of_the_index() {
    let mut shell = Shell::new(labelled(&[("customer", "4711")]));
    let inside = RowLabels::in_row(labels(&[("customer", "4711")]));
    let mut row = shell.kernel.row(ROOT).expect("it is there").clone();
    row.labels = inside.clone();
    shell.kernel.evolve(&Record::Row(Box::new(row)));
    let ended = report(
        &shell.kernel,
        spawn(vec![inheriting(birth()), inheriting(labelled(&[("line", "2")]))]),
    );
    let event = Event::StageEnded(Box::new(ended));
    let decision = shell.kernel.decide(Timestamp(1), event.clone());
    let is_indexed = |own: &Labels| decision.records().contains(&Record::Labelled(1, own.clone()));
    assert!(is_indexed(&inside) && is_indexed(&inside.with(&labels(&[("line", "2")]))));
    shell.feed(1, event);
    assert_eq!(entries(&shell.kernel, 3), [None, Some(1), Some(2)]);
    assert_eq!(of(&shell.kernel, ProcedureId::new(1, 1)), *inside);
}

#[test]
fn they_keep_nobody_awake_and_are_there_after_a_start() {
    let own = labels(&[("customer", "4711"), ("region", "")]);
    let mut shell = Shell::new(Birth {
        labels: own.clone(),
        ..birth()
    });
    let waits = report(&shell.kernel, StageOutcome::Wait("go".into(), None, Blob::default()));
    shell.feed(1, Event::StageEnded(Box::new(waits)));
    assert_eq!(shell.kernel.families().frozen(), 1);
    assert_eq!(of(&shell.kernel, ROOT), own);
}

#[test]
fn children_and_detached_families_inherit_where_their_birth_says_so() {
    let mut shell = Shell::new(labelled(&[("customer", "4711"), ("line", "0")]));
    let detached = Birth {
        detached: true,
        ..inheriting(birth())
    };
    let births = vec![
        birth(),
        inheriting(labelled(&[("line", "2")])),
        labelled(&[("line", "3")]),
        detached,
    ];
    let event = Event::StageEnded(Box::new(report(&shell.kernel, spawn(births))));
    let decision = shell.kernel.decide(Timestamp(1), event.clone());
    let indexed: Vec<(u64, Labels)> = decision
        .records()
        .iter()
        .filter_map(|record| {
            if let Record::Labelled(family, own) = record {
                Some((*family, own.clone()))
            } else {
                None
            }
        })
        .collect();
    let all = labels(&[("customer", "4711"), ("line", "0")]);
    // What a child inherits leads to its family already.
    let expected = [
        (2, all.clone()),
        (1, labels(&[("line", "2")])),
        (1, labels(&[("line", "3")])),
    ];
    assert_eq!(indexed, expected);
    shell.feed(1, event);
    let member = |member| of(&shell.kernel, ProcedureId::new(1, member));
    assert_eq!(member(1), Labels::default());
    assert_eq!(member(2), labels(&[("customer", "4711"), ("line", "2")]));
    assert_eq!(member(3), labels(&[("line", "3")]));
    assert_eq!(of(&shell.kernel, ProcedureId::root(2)), all);
}

#[test]
fn a_root_that_is_born_with_children_hands_its_labels_down() {
    let brood = Brood {
        children: vec![inheriting(birth())],
        ..Brood::default()
    };
    let shell = Shell::new(Birth {
        brood: Some(Box::new(brood)),
        ..labelled(&[("customer", "4711")])
    });
    assert_eq!(
        of(&shell.kernel, ProcedureId::new(1, 1)),
        labels(&[("customer", "4711")])
    );
}

#[test]
fn labels_out_of_bounds_are_refused_where_they_are_set() {
    let refusal = |birth: Birth| {
        let mut shell = Shell::empty(Epoch(1));
        let effects = shell.feed(0, Event::Submitted(RequestId(7), vec![birth.into()]));
        assert!(shell.kernel.families().is_empty(), "nothing is there");
        let refused = effects.into_iter().find_map(|effect| {
            if let Effect::Requests(RequestEffect::Reply(_, Answer::Refused(refusal))) = effect {
                Some(refusal)
            } else {
                None
            }
        });
        refused.expect("it is refused")
    };
    let bad_name = Refusal::BadLabels(LabelError::Name("a b".to_owned()));
    assert_eq!(refusal(labelled(&[("a b", "")])), bad_name);
    let many: Vec<String> = (0..LABELS_MAX).map(|at| format!("l{at}")).collect();
    let full: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "")).collect();
    // With what it inherits, the child has one too many.
    let brood = Brood {
        children: vec![inheriting(labelled(&[("own", "")]))],
        ..Brood::default()
    };
    let too_many = Birth {
        brood: Some(Box::new(brood)),
        ..labelled(&full)
    };
    assert_eq!(
        refusal(too_many),
        Refusal::BadLabels(LabelError::TooMany(LABELS_MAX + 1))
    );
    Shell::new(labelled(&full));
}

#[test]
fn a_stage_whose_child_has_bad_labels_fails_for_good_and_says_which() {
    let mut shell = Shell::new(birth());
    let event = Event::StageEnded(Box::new(report(&shell.kernel, spawn(vec![labelled(&[("", "1")])]))));
    shell.feed(1, event);
    let row = shell.kernel.row(ROOT).expect("it rolls back, or has");
    assert_eq!(row.state, ProcedureState::Failed);
    let cause = row.rare().cause.as_ref().expect("it failed").text.clone();
    assert!(cause.contains("is no name of a label"), "{cause}");
}
