//! The mailbox of a procedure: bounds of its kind, signals sent together, the last of a name, signals from stages.

#![expect(
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects, and fails on all else"
)]

use procession_kernel::{
    Admission, AdmissionEffect, Answer, Birth, Blob, ClaimId, Commit, Effect, Epoch, Event, EventName, Hold, Kernel,
    Kind, KindRules, Lacking, LimitKey, LockNeed, Needs, NextStageNeeds, ProcedureId, Receipt, Refusal, RequestEffect,
    RequestId, Row, Rules, SIGNAL_KEYS, SentSignal, StageEffects, StageEnded, StageOutcome, Timestamp, WaitReason,
};

const KIND: &str = "k";
const FIRST: ProcedureId = ProcedureId::new(1, 0);
const SECOND: ProcedureId = ProcedureId::new(2, 0);

struct Engine {
    kernel: Kernel,
    records: usize,
    /// What the newest decision tells the limiter.
    told: Vec<AdmissionEffect>,
}

impl Engine {
    /// Begins with two families of one kind.
    fn new(kind: KindRules) -> Self {
        let rules = Rules {
            kinds: [(Kind::from(KIND), kind)].into(),
            ..Rules::default()
        };
        let kernel = Kernel::new(rules, Epoch(1), 0);
        let mut engine = Self {
            kernel,
            records: 0,
            told: Vec::new(),
        };
        let births = vec![birth().into(), birth().into()];
        engine.feed(Event::Submitted(RequestId(1), births));
        engine
    }

    fn feed(&mut self, event: Event) -> Vec<Effect> {
        let decision = self.kernel.decide(Timestamp(7), event);
        self.records = decision.records().len();
        let mut commit = Commit::new();
        self.told = self.kernel.fold(decision, &mut commit).admission;
        let receipt = Receipt::new(self.kernel.epoch(), self.kernel.seq());
        commit.release(&receipt).unwrap_or_default()
    }

    fn row(&self, id: ProcedureId) -> &Row {
        self.kernel.row(id).expect("it lives")
    }

    fn kept(&self, id: ProcedureId) -> usize {
        let family = self.kernel.families().get(&id.family).expect("it lives");
        family.signals.waiting(id.member)
    }

    fn send(&mut self, signals: Vec<SentSignal>) -> Answer {
        let effects = self.feed(Event::Signalled(RequestId(2), signals));
        let reply = effects.into_iter().find_map(|effect| match effect {
            Effect::Requests(RequestEffect::Reply(_, answer)) => Some(answer),
            _ => None,
        });
        reply.expect("it is answered")
    }

    fn report(&mut self, id: ProcedureId, outcome: StageOutcome, signals: Vec<SentSignal>) -> Vec<Effect> {
        let run = self.row(id).in_flight.expect("its stage is out").run;
        let report = StageEnded {
            effects: StageEffects {
                signals,
                ..StageEffects::default()
            }
            .boxed(),
            ..StageEnded::new(id, run, Epoch(1), Timestamp(7), outcome)
        };
        self.feed(Event::StageEnded(Box::new(report)))
    }

    fn waits(&mut self, id: ProcedureId) -> Vec<Effect> {
        self.report(id, wait("go"), Vec::new())
    }
}

fn blob(text: &str) -> Blob {
    Blob::from(text.as_bytes())
}

fn birth() -> Birth {
    Birth::new(Kind::from(KIND), 1, blob("first"), blob("value"))
}

fn wait(event: &str) -> StageOutcome {
    StageOutcome::Wait(EventName::from(event), None, blob("first"))
}

fn signal(to: ProcedureId, key: Option<&str>) -> SentSignal {
    SentSignal {
        to,
        name: EventName::from("go"),
        payload: blob("said"),
        key: key.map(Into::into),
        last: false,
    }
}

fn last(to: ProcedureId) -> SentSignal {
    SentSignal {
        last: true,
        ..signal(to, None)
    }
}

fn closed(id: ProcedureId) -> Answer {
    Answer::Refused(Refusal::Closed(id, EventName::from("go")))
}

#[test]
fn signals_of_one_message_are_numbered_in_order_and_refused_whole() {
    let mut engine = Engine::new(KindRules {
        signals: Some(3),
        ..KindRules::new(1)
    });
    let both = vec![signal(FIRST, None), signal(SECOND, None), signal(FIRST, None)];
    assert_eq!(engine.send(both), Answer::Signalled(vec![1, 1, 2]));
    let over = engine.send(vec![signal(FIRST, None), signal(FIRST, None)]);
    assert!(matches!(over, Answer::Refused(Refusal::NotNow(..))), "{over:?}");
    let unknown = ProcedureId::root(9);
    assert_eq!(
        engine.send(vec![signal(SECOND, None), signal(unknown, None)]),
        Answer::Refused(Refusal::NotLive(unknown))
    );
    assert_eq!((engine.kept(FIRST), engine.kept(SECOND), engine.records), (2, 1, 0));
    let repeated = vec![signal(FIRST, Some("k")), signal(FIRST, Some("k"))];
    assert_eq!(engine.send(repeated.clone()), Answer::Signalled(vec![3, 3]));
    assert_eq!(
        engine.send(repeated),
        Answer::Signalled(vec![3, 3]),
        "a full mailbox knows its keys"
    );
    assert_eq!(engine.records, 0);
}

#[test]
fn after_the_last_of_a_name_none_of_it_is_taken() {
    let mut engine = Engine::new(KindRules::new(1));
    assert_eq!(engine.send(vec![last(FIRST), signal(FIRST, None)]), closed(FIRST));
    assert_eq!(engine.row(FIRST).signals, 0);
    assert_eq!(
        engine.send(vec![signal(FIRST, None), last(FIRST)]),
        Answer::Signalled(vec![1, 2])
    );
    assert_eq!(engine.send(vec![signal(FIRST, None)]), closed(FIRST));
    assert_eq!(engine.send(vec![signal(SECOND, None)]), Answer::Signalled(vec![1]));
    let other = SentSignal {
        name: EventName::from("other"),
        ..signal(FIRST, None)
    };
    assert_eq!(engine.send(vec![other]), Answer::Signalled(vec![3]));
}

#[test]
fn a_stage_s_signals_are_part_of_its_commit() {
    let mut engine = Engine::new(KindRules::new(1));
    engine.waits(SECOND);
    let sent = vec![
        signal(SECOND, None),
        signal(SECOND, Some("k")),
        signal(SECOND, Some("k")),
    ];
    let effects = engine.report(FIRST, StageOutcome::Next(blob("next")), sent);
    let called: Vec<ProcedureId> = effects.iter().filter_map(Effect::call).map(|call| call.id).collect();
    assert_eq!(called, [FIRST, SECOND], "the receiver is woken by the same commit");
    assert_eq!((engine.row(SECOND).signals, engine.kept(SECOND)), (2, 2));
    engine.waits(SECOND);
    assert!(engine.row(SECOND).in_flight.is_some(), "it finds the second");
    engine.waits(SECOND);
    assert!(engine.row(SECOND).waits_for(&EventName::from("go")));
}

#[test]
fn a_refused_signal_of_a_stage_fails_its_attempt() {
    let mut engine = Engine::new(KindRules {
        signals: Some(1),
        ..KindRules::new(1)
    });
    let over = vec![signal(SECOND, None), signal(SECOND, None)];
    engine.report(FIRST, StageOutcome::Next(blob("next")), over);
    let row = engine.row(FIRST);
    assert!(matches!(row.wait, Some(WaitReason::Backoff(1, _))), "{row:?}");
    assert_eq!((row.visit, row.stage.clone()), (0, blob("first")));
    assert_eq!(engine.row(SECOND).signals, 0, "nothing of it is left");
}

/// The limiter may grant the locks of the step that the refusal overrules, and nobody would hear of it.
#[test]
fn a_refused_signal_takes_back_what_the_next_stage_asked_for() {
    let mut engine = Engine::new(KindRules::new(1));
    let run = engine.row(FIRST).in_flight.expect("its stage is out").run;
    let need = LockNeed::exclusive("b");
    let report = StageEnded {
        effects: StageEffects {
            signals: vec![signal(ProcedureId::root(9), None)],
            ..StageEffects::default()
        }
        .boxed(),
        next_needs: NextStageNeeds {
            locks: vec![need.clone()],
            ..NextStageNeeds::default()
        },
        admission: Some(Admission {
            limits: Vec::new(),
            asked: Some(ClaimId(7)),
            lacking: Some(Lacking::Lock(need.path)),
        }),
        ..StageEnded::new(FIRST, run, Epoch(1), Timestamp(7), StageOutcome::Next(blob("next")))
    };
    engine.feed(Event::StageEnded(Box::new(report)));
    let keep = AdmissionEffect::Keep(FIRST, Needs::default());
    assert!(engine.told.contains(&keep), "{:?}", engine.told);
}

#[test]
fn a_full_mailbox_takes_the_signal_that_its_owner_waits_for() {
    let mut engine = Engine::new(KindRules {
        signals: Some(2),
        ..KindRules::new(1)
    });
    let other = |to| SentSignal {
        name: EventName::from("other"),
        ..signal(to, None)
    };
    engine.send(vec![other(FIRST), other(FIRST), other(SECOND), other(SECOND)]);
    let full = engine.send(vec![signal(FIRST, None)]);
    assert!(
        matches!(full, Answer::Refused(Refusal::NotNow(..))),
        "it does not wait yet: {full:?}"
    );
    engine.waits(FIRST);
    engine.waits(SECOND);
    for signals in [
        vec![other(FIRST)],
        vec![signal(FIRST, None), signal(FIRST, None)],
        vec![signal(FIRST, None), signal(SECOND, None), other(SECOND)],
    ] {
        let refused = engine.send(signals);
        assert!(matches!(refused, Answer::Refused(Refusal::NotNow(..))), "{refused:?}");
    }
    assert_eq!(engine.send(vec![signal(FIRST, None)]), Answer::Signalled(vec![3]));
    assert!(engine.row(FIRST).in_flight.is_some());
    let full = engine.send(vec![signal(FIRST, None)]);
    assert!(
        matches!(full, Answer::Refused(Refusal::NotNow(..))),
        "it waits no longer: {full:?}"
    );
    // The same from a stage, whose signals are checked before any of them is delivered.
    engine.report(
        FIRST,
        StageOutcome::Next(blob("next")),
        vec![signal(SECOND, None), signal(SECOND, None)],
    );
    assert!(matches!(engine.row(FIRST).wait, Some(WaitReason::Backoff(1, _))));
    assert_eq!(engine.kept(SECOND), 2);
    let mut engine = Engine::new(KindRules {
        signals: Some(1),
        ..KindRules::new(1)
    });
    engine.send(vec![other(SECOND)]);
    engine.waits(SECOND);
    engine.report(FIRST, StageOutcome::Next(blob("next")), vec![signal(SECOND, None)]);
    assert_eq!(engine.kept(SECOND), 2);
    assert!(engine.row(SECOND).in_flight.is_some());
}

#[test]
fn a_signal_to_itself_is_found_by_its_own_wait() {
    let mut engine = Engine::new(KindRules::new(1));
    engine.report(FIRST, wait("go"), vec![signal(FIRST, None), signal(SECOND, None)]);
    let row = engine.row(FIRST);
    assert!(row.in_flight.is_some() && row.wake.is_some(), "{row:?}");
    engine.waits(FIRST);
    assert!(engine.row(FIRST).waits_for(&EventName::from("go")));
    assert_eq!((engine.kept(FIRST), engine.kept(SECOND)), (0, 1));
}

#[test]
fn a_signal_begins_the_count_of_one_stage_anew() {
    let mut engine = Engine::new(KindRules {
        repeat_limit: Some(2),
        ..KindRules::new(1)
    });
    engine.waits(FIRST);
    for _ in 0..10 {
        engine.send(vec![signal(FIRST, None)]);
        engine.waits(FIRST);
        assert!(engine.row(FIRST).waits_for(&EventName::from("go")));
    }
}

#[test]
fn a_wait_that_finds_its_signal_gives_others_their_turn() {
    let mut engine = Engine::new(KindRules::new(1));
    let limit = LimitKey::from("room");
    let birth = Birth {
        hold: Hold::WhileActive,
        admission: Admission {
            limits: vec![limit],
            asked: Some(ClaimId(7)),
            lacking: None,
        },
        ..birth()
    };
    engine.feed(Event::Submitted(RequestId(1), vec![birth.into()]));
    let id = ProcedureId::root(3);
    assert!(engine.row(id).holds);
    engine.send(vec![signal(id, None)]);
    engine.waits(id);
    let told = &engine.told;
    assert!(
        matches!(told[..], [AdmissionEffect::GiveBack(..), AdmissionEffect::Ask(_)]),
        "{told:?}"
    );
    let row = engine.row(id);
    assert!(!row.holds && row.wake.is_some() && row.in_flight.is_none());
    engine.feed(Event::Granted(id));
    assert!(engine.row(id).in_flight.is_some(), "one commit more");
}

/// Counts instead of looking at the clock: no decision has more records than any other, and no more is kept.
#[test]
fn a_million_keyed_signals_cost_the_same_each() {
    let mut engine = Engine::new(KindRules::new(1));
    engine.waits(FIRST);
    for beat in 0..1_000_000 {
        assert_eq!(
            engine.send(vec![signal(FIRST, Some(&beat.to_string()))]),
            Answer::Signalled(vec![beat + 1])
        );
        assert!(engine.records <= 3, "{}", engine.records);
        engine.waits(FIRST);
        assert!(engine.records <= 5, "{}", engine.records);
        let family = engine.kernel.families().get(&1).expect("it lives");
        assert!(family.signals.consumed(0) <= SIGNAL_KEYS && family.signals.waiting(0) == 0);
    }
}
