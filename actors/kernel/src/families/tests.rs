//! Rules of `families`: a thawed family equals the family that was frozen.

use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::id::{Blob, Key, LimitKey, Seq};
use crate::label::{Label, Labels, RowLabels};
use crate::lifecycle::ProcedureState;
use crate::row::{GraphNode, Hold, OnFailure, OnTimeout, PayloadSizeNote};
use crate::wait::{Question, WaitReason};

const NUMBER: u64 = 7;

fn wait() -> impl Strategy<Value = WaitReason> {
    prop_oneof![
        any::<u64>().prop_map(|at| WaitReason::Timer(Timestamp(at))),
        (".{0,9}", option::of(any::<u64>()))
            .prop_map(|(name, at)| WaitReason::Event(name.as_str().into(), at.map(Timestamp))),
        (".{0,9}", option::of(any::<u64>()), any::<bool>()).prop_map(|(text, at, keeps_place)| {
            WaitReason::Decision(Box::new(Question {
                text,
                until: at.map(Timestamp),
                keeps_place,
            }))
        }),
    ]
}

type Common = ((WaitReason, u64, u64), (u16, Vec<u8>, u64), [u32; 5], bool);
type Rare = (
    (Option<u64>, i16, Option<String>, Vec<String>),
    (Option<String>, Option<String>, Option<std::time::Duration>),
    [bool; 8],
    Option<String>,
    Vec<(String, String)>,
);

fn common() -> impl Strategy<Value = Common> {
    let counts = (
        0..STAGES_FROZEN,
        any::<u32>(),
        any::<u32>(),
        0..SAME_STAGE_FROZEN,
        any::<u32>(),
    );
    (
        (wait(), any::<u64>(), any::<u64>()),
        (any::<u16>(), any::<Vec<u8>>(), any::<u64>()),
        counts.prop_map(|(visit, history, standing, same, signals)| [visit, history, standing, same, signals]),
        any::<bool>(),
    )
}

fn rare() -> impl Strategy<Value = Rare> {
    let names = proptest::collection::vec(".{0,5}", 0..3);
    (
        (option::of(any::<u64>()), any::<i16>(), option::of(".{0,9}"), names),
        (
            option::of(".{0,5}"),
            option::of(".{0,5}"),
            option::of(any::<std::time::Duration>()),
        ),
        any::<[bool; 8]>(),
        option::of(".{0,9}"),
        proptest::collection::vec((".{0,5}", ".{0,5}"), 0..3),
    )
}

fn family(common: Common, rare: Rare) -> Family {
    let ((wait, since, submitted), (version, stage, revision), counts, is_other_kind) = common;
    let [visit, history, standing, same_stage, signals] = counts;
    let ((deadline, priority, key, limits), (next_is_no_return, past, expected), switches, name, labels) = rare;
    let [
        holds,
        active,
        execute,
        for_life,
        out_of_time,
        compensate,
        is_traced,
        is_pure,
    ] = switches;
    let mut row = at_rest(wait);
    row.since = Timestamp(since);
    row.submitted = Timestamp(submitted);
    row.kind = if is_other_kind { "other" } else { "kind" }.into();
    row.version = version;
    row.stage = Blob::from(stage);
    row.revision = Seq(revision);
    (row.visit, row.history, row.standing) = (visit, history, standing);
    (row.same_stage, row.signals) = (same_stage, signals);
    row.history_from = if active { history } else { 0 };
    row.deadline = deadline.map(Timestamp);
    row.priority = priority;
    row.key = key.map(Key::from);
    row.limits = limits.into_iter().map(LimitKey::from).collect();
    (row.next_is_no_return, row.expected) = (next_is_no_return.map(Into::into), expected);
    row.rare_mut().past_no_return = past.map(Into::into);
    row.as_submitted = active;
    row.holds = holds;
    row.hold = if active { Hold::WhileActive } else { Hold::ForLife };
    row.rare_mut().on_timeout = if execute { OnTimeout::Execute } else { OnTimeout::Fail };
    row.locks_for_life = for_life;
    row.out_of_time = out_of_time;
    row.is_pure = is_pure;
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    row.rare_mut().trace = is_traced.then(|| Box::new(parent.parse().unwrap()));
    row.on_failure = if compensate {
        OnFailure::Compensate
    } else {
        OnFailure::Keep
    };
    row.rare_mut().graph = name.map(|name| {
        let name = Some(name);
        Box::new(GraphNode {
            name,
            ..GraphNode::default()
        })
    });
    let labels = labels.into_iter().map(|(name, value)| Label::new(name, value));
    let labels: Labels = labels.collect();
    row.labels = if is_pure || labels.is_empty() {
        RowLabels::in_row(labels)
    } else {
        RowLabels::in_entry(history % 3, labels)
    };
    row.settle_rare();
    of(row, history.wrapping_add(1))
}

fn of(row: Row, history: u32) -> Family {
    Family {
        members: vec![Box::new(row)],
        history,
        live: 1,
        ..Family::default()
    }
}

/// The row of a waiting root with nothing else.
fn at_rest(wait: WaitReason) -> Row {
    let (id, stage) = (ProcedureId::root(NUMBER), Blob::from(&b"stage"[..]));
    Row {
        revision: Seq(3),
        state: super::rest::state_at_rest(Some(&wait)),
        wait: Some(wait),
        since: Timestamp(5),
        visit: 1,
        history: 1,
        standing: 1,
        ..Row::new(id, "kind".into(), 1, stage, Timestamp(3))
    }
}

fn put(families: &mut Families, family: Family) {
    *families.get_or_begin(NUMBER) = family;
}

proptest! {
    #[test]
    fn frozen_and_thawed_a_family_is_what_it_was(common in common(), rare in rare()) {
        let family = family(common, rare);
        let mut families = Families::default();
        put(&mut families, family.clone());
        let awake = families.clone();
        families.freeze(NUMBER);
        prop_assert_eq!(families.frozen(), 1);
        prop_assert_eq!(&families, &awake);
        prop_assert_eq!(families.get(&NUMBER), Some(&family));
        families.cool();
        prop_assert_eq!(families.remove(NUMBER), Some(Box::new(family)));
        prop_assert!(families.is_empty() && families.timers == 0);
    }
}

#[test]
fn a_family_that_does_anything_else_stays_awake() {
    let changes: [fn(&mut Row); 10] = [
        |row| row.wait = Some(WaitReason::Children),
        |row| row.attempt = 1,
        |row| row.same_stage = SAME_STAGE_FROZEN,
        |row| row.visit = STAGES_FROZEN,
        |row| row.rare_mut().payload_size = Some(Box::new(PayloadSizeNote { bytes: 1, stage: None })),
        |row| row.note_failure("boom", Timestamp(1)),
        |row| row.rare_mut().paused = true,
        |row| row.state = ProcedureState::Failed,
        |row| row.rare_mut().cleaning = true,
        |row| row.ready = Some(Timestamp(1)),
    ];
    for change in changes {
        let mut row = at_rest(WaitReason::Timer(Timestamp(9)));
        change(&mut row);
        let mut families = Families::default();
        put(&mut families, of(row, 0));
        families.freeze(NUMBER);
        assert_eq!(families.frozen(), 0);
    }
}

#[test]
fn a_look_leaves_nothing_behind() {
    let mut families = Families::default();
    put(&mut families, of(at_rest(WaitReason::Timer(Timestamp(9))), 0));
    families.freeze(NUMBER);
    assert!(families.get(&NUMBER).is_some());
    let thawed = |families: &Families| {
        let mut frozen = families.frozen.values();
        frozen.any(|frozen| frozen.thawed.get().is_some())
    };
    assert!(thawed(&families));
    families.cool();
    assert!(!thawed(&families) && families.asked.get_mut().is_empty());
    assert_eq!(families.frozen(), 1);
}

#[test]
fn a_missing_timer_of_a_frozen_family_is_found() {
    let id = ProcedureId::root(NUMBER);
    let mut families = Families::default();
    put(&mut families, of(at_rest(WaitReason::Timer(Timestamp(9))), 0));
    families.freeze(NUMBER);
    let mut timers = BTreeSet::from([(Timestamp(9), id), (Timestamp(1), ProcedureId::root(1))]);
    let found = |timers: &BTreeSet<_>| families.frozen_without_timer(timers, 1).collect::<Vec<_>>();
    assert!(found(&timers).is_empty());
    timers.remove(&(Timestamp(9), id));
    assert_eq!(found(&timers), [id]);
}
