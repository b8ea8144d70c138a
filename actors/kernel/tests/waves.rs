//! Broadcasts with more waiters than one commit wakes: everybody who waited at its commit is woken, once.

use std::time::Duration;

use procession_kernel::{
    Answer, Birth, Blob, Commit, Decision, Effect, Epoch, Event, EventName, Kernel, Kind, KindRules, OperatorRequest,
    PauseScope, ProcedureId, Receipt, Record, RequestEffect, RequestId, Rules, SentSignal, Seq, StageEnded,
    StageOutcome, StoredTarget, Timestamp, Verb, WaitReason, Wake,
};

type Tested = Result<(), Box<dyn std::error::Error>>;

const ASKER: RequestId = RequestId(7);

fn blob(text: &str) -> Blob {
    Blob::from(text.as_bytes().to_vec())
}

fn at(second: u64) -> Timestamp {
    Timestamp(second * 1_000_000)
}

/// Rules by which one commit wakes so many.
fn rules(wave: usize) -> Rules {
    let mut rules = Rules {
        kinds: [(Kind::from("k"), KindRules::new(1))].into(),
        ..Rules::default()
    };
    rules.bounds.wave = wave;
    rules
}

/// An engine, and what it has put on disk.
struct Engine {
    kernel: Kernel,
    disk: Vec<Record>,
    now: Timestamp,
}

impl Engine {
    fn new(wave: usize) -> Self {
        Self {
            kernel: Kernel::new(rules(wave), Epoch(1), 0),
            disk: Vec::new(),
            now: at(0),
        }
    }

    /// Decides and applies; gives what would be done.
    fn feed(&mut self, event: Event) -> Result<Vec<Effect>, String> {
        let decision: Decision = self.kernel.decide(self.now, event);
        let mut commit = Commit::new();
        self.disk.extend(self.kernel.apply(decision, &mut commit).0);
        self.kernel.validate()?;
        let receipt = Receipt::new(self.kernel.epoch(), self.kernel.seq());
        commit
            .release(&receipt)
            .map_err(|_| "a proved commit is not released".to_owned())
    }

    /// Has one wait for the event, from this second on.
    fn wait(&mut self, second: u64, timeout: Option<Duration>) -> Result<ProcedureId, String> {
        self.now = at(second);
        let family = self.kernel.families().keys().last().map_or(1, |last| last + 1);
        let birth = Birth::new(Kind::from("k"), 1, blob("1"), blob("value"));
        self.feed(Event::Submitted(RequestId(1), vec![birth.into()]))?;
        let id = ProcedureId::root(family);
        self.waits(id, timeout)?;
        Ok(id)
    }

    /// The stage of one that is out asks to wait.
    fn waits(&mut self, id: ProcedureId, timeout: Option<Duration>) -> Result<(), String> {
        let outcome = StageOutcome::Wait(EventName::from("go"), timeout, blob("2"));
        self.report(id, outcome)
    }

    fn report(&mut self, id: ProcedureId, outcome: StageOutcome) -> Result<(), String> {
        let in_flight = self.kernel.row(id).and_then(|row| row.in_flight);
        let run = in_flight.ok_or_else(|| format!("{id} is not out"))?.run;
        let report = StageEnded::new(id, run, self.kernel.epoch(), self.now, outcome);
        self.feed(Event::StageEnded(Box::new(report))).map(drop)
    }

    /// Broadcasts; gives how many are said to be woken.
    fn broadcast(&mut self) -> Result<u32, String> {
        let effects = self.feed(Event::Broadcast {
            request: ASKER,
            name: EventName::from("go"),
            payload: blob("said"),
            key: None,
        })?;
        let answer = effects.iter().find_map(|effect| {
            let Effect::Requests(RequestEffect::Reply(ASKER, Answer::Broadcast(woken))) = effect else {
                return None;
            };
            Some(*woken)
        });
        answer.ok_or_else(|| "it is not answered".to_owned())
    }

    /// Wakes the next of those who wait; gives whom, in order. None if no broadcast is under way.
    fn chunk(&mut self) -> Result<Option<Vec<ProcedureId>>, String> {
        let Some(seq) = self.kernel.next_wave(Seq(0)) else {
            return Ok(None);
        };
        let from = self.disk.len();
        self.feed(Event::WaveDue(seq))?;
        let new = self.disk.get(from..).unwrap_or_default();
        let woken = new.iter().filter_map(|record| {
            let Record::Signal(id, _, _, payload) = record else {
                return None;
            };
            assert_eq!(*payload, blob("said"));
            Some(*id)
        });
        Ok(Some(woken.collect()))
    }

    fn all_chunks(&mut self) -> Result<Vec<Vec<ProcedureId>>, String> {
        std::iter::from_fn(|| self.chunk().transpose()).collect()
    }

    /// The engine dies, and the next one reads what is on disk.
    fn restart(&mut self) -> Result<(), String> {
        let epoch = Epoch(self.kernel.epoch().0 + 1);
        let mut kernel = Kernel::new(self.kernel.rules().clone(), epoch, 0);
        kernel.continue_after(self.kernel.seq());
        // Broadcasts first, as a start reads them; of a row the newest.
        let broadcasts = self
            .disk
            .iter()
            .filter(|record| matches!(record, Record::Broadcast(..)));
        broadcasts.for_each(|record| kernel.evolve(record));
        let over = self
            .disk
            .iter()
            .filter(|record| matches!(record, Record::BroadcastOver(_)));
        over.for_each(|record| kernel.evolve(record));
        let mut rows = std::collections::BTreeMap::new();
        for record in &self.disk {
            if let Record::Row(row) = record {
                rows.insert(row.id, row.clone());
            }
        }
        for row in rows.into_values().filter(|row| !row.is_ended()) {
            kernel.evolve(&Record::FamilyBegan(row.id.family));
            let family = row.id.family;
            kernel.evolve(&Record::Row(row));
            kernel.freeze(family);
        }
        kernel.continue_from(self.disk.len() as u64 + 10);
        self.kernel = kernel;
        self.feed(Event::Recovered).map(drop)
    }

    fn is_woken(&self, id: ProcedureId) -> bool {
        let wake = self.kernel.row(id).and_then(|row| row.wake.as_ref());
        matches!(wake, Some(Wake::Signal(name, 1)) if name.as_str() == "go")
    }

    fn still_waits(&self, id: ProcedureId) -> bool {
        let wait = self.kernel.row(id).and_then(|row| row.wait.as_ref());
        matches!(wait, Some(WaitReason::Event(..)))
    }
}

fn five(wave: usize) -> Result<(Engine, Vec<ProcedureId>), String> {
    let mut engine = Engine::new(wave);
    let ids = (1..=5)
        .map(|second| engine.wait(second, None))
        .collect::<Result<_, _>>()?;
    Ok((engine, ids))
}

#[test]
fn as_many_as_one_commit_wakes_are_woken_by_the_broadcasts_own() -> Tested {
    let (mut engine, ids) = five(5)?;
    assert_eq!(engine.broadcast()?, 5);
    assert!(ids.iter().all(|id| engine.is_woken(*id)));
    assert_eq!(engine.chunk()?, None);
    Ok(())
}

#[test]
fn more_are_woken_by_commits_after_it_first_waiter_first() -> Tested {
    let (mut engine, ids) = five(2)?;
    assert_eq!(engine.broadcast()?, 5);
    assert!(ids.iter().all(|id| engine.still_waits(*id)));
    let chunks: Vec<Vec<ProcedureId>> = ids.chunks(2).map(<[ProcedureId]>::to_vec).collect();
    assert_eq!(engine.all_chunks()?, chunks);
    assert!(ids.iter().all(|id| engine.is_woken(*id)));
    assert!(
        engine
            .disk
            .iter()
            .any(|record| matches!(record, Record::BroadcastOver(_)))
    );
    Ok(())
}

#[test]
fn a_start_between_any_two_goes_on() -> Tested {
    for restarts_after in 0..3 {
        let (mut engine, ids) = five(2)?;
        assert_eq!(engine.broadcast()?, 5);
        let mut woken = Vec::new();
        for _ in 0..restarts_after {
            woken.extend(engine.chunk()?.unwrap_or_default());
        }
        engine.restart()?;
        woken.extend(engine.all_chunks()?.into_iter().flatten());
        assert_eq!(woken, ids, "a start after {restarts_after}");
    }
    Ok(())
}

#[test]
fn who_begins_to_wait_later_is_not_woken_and_one_behind_it_wakes_no_other() -> Tested {
    let (mut engine, ids) = five(2)?;
    assert_eq!(engine.broadcast()?, 5);
    let later = engine.wait(6, None)?;
    assert_eq!(engine.broadcast()?, 1, "the others are woken already");
    engine.chunk()?;
    // One of the first waits again: neither of the two is for it.
    engine.waits(ids[0], None)?;
    let last = engine.wait(7, None)?;
    engine.restart()?;
    let woken: Vec<ProcedureId> = engine.all_chunks()?.into_iter().flatten().collect();
    assert_eq!(woken, [ids[2], ids[3], ids[4], later]);
    assert!(engine.still_waits(ids[0]) && engine.still_waits(last));
    assert_eq!(engine.broadcast()?, 2, "it waits as any other");
    Ok(())
}

#[test]
fn what_comes_before_its_turn_finds_it_woken() -> Tested {
    let mut engine = Engine::new(1);
    engine.wait(1, None)?;
    let timed = engine.wait(2, Some(Duration::from_secs(1)))?;
    let told = engine.wait(3, None)?;
    assert_eq!(engine.broadcast()?, 3);
    engine.now = at(9);
    engine.feed(Event::TimerDue(timed))?;
    assert!(engine.is_woken(timed), "its time is up later");
    let signal = SentSignal {
        to: told,
        name: EventName::from("go"),
        payload: blob("to it alone"),
        key: None,
        last: false,
    };
    engine.feed(Event::Signalled(RequestId(9), vec![signal]))?;
    assert!(engine.is_woken(told));
    let kept = |engine: &Engine| {
        engine
            .kernel
            .families()
            .get(&told.family)
            .map(|family| family.signals.waiting(told.member))
    };
    assert_eq!(kept(&engine), Some(2), "the second is kept for later");
    assert_eq!(engine.all_chunks()?.concat(), [ProcedureId::root(1)]);
    Ok(())
}

#[test]
fn an_abort_a_pause_and_a_drain_within_it() -> Tested {
    let (mut engine, ids) = five(2)?;
    assert_eq!(engine.broadcast()?, 5);
    let ask = |verb| {
        Event::Requested(
            RequestId(3),
            Box::new(verb),
            Box::new(OperatorRequest::new("ann", "a test")),
            StoredTarget::None,
        )
    };
    engine.feed(ask(Verb::Abort(ids[0])))?;
    engine.feed(ask(Verb::Pause(PauseScope::One(ids[1]))))?;
    let woken = engine.all_chunks()?.concat();
    assert_eq!(woken, ids[1..], "who fails runs no more");
    let wait = |engine: &Engine| engine.kernel.row(ids[1]).and_then(|row| row.wait.clone());
    assert_eq!(wait(&engine), Some(WaitReason::Paused), "it is woken, and held back");

    let (mut engine, ids) = five(2)?;
    assert_eq!(engine.broadcast()?, 5);
    engine.chunk()?;
    engine.feed(Event::DrainBegan)?;
    assert_eq!(engine.chunk()?, None, "a drain waits for none of them");
    engine.restart()?;
    assert_eq!(engine.all_chunks()?.concat(), ids[2..]);
    Ok(())
}

#[test]
fn a_large_payload_is_copied_into_few_rows_by_one_commit() -> Tested {
    let mut engine = Engine::new(512);
    for second in 1..=10 {
        engine.wait(second, None)?;
    }
    let payload = Blob::from(vec![0; 1 << 20]);
    engine.feed(Event::Broadcast {
        request: ASKER,
        name: EventName::from("go"),
        payload,
        key: None,
    })?;
    let seq = engine
        .kernel
        .next_wave(Seq(0))
        .ok_or("ten are too many for one commit")?;
    let from = engine.disk.len();
    engine.feed(Event::WaveDue(seq))?;
    let new = engine.disk.get(from..).unwrap_or_default();
    let copies = new.iter().filter(|record| matches!(record, Record::Signal(..)));
    assert_eq!(copies.count(), 4, "4 MiB of copies");
    Ok(())
}

#[test]
fn a_family_that_is_set_aside_is_woken_by_the_start_that_can_load_it() -> Tested {
    let (mut engine, ids) = five(1)?;
    assert_eq!(engine.broadcast()?, 5);
    engine.kernel.forget(ids[4].family);
    assert_eq!(engine.all_chunks()?.concat(), ids[..4]);
    assert!(
        !engine
            .disk
            .iter()
            .any(|record| matches!(record, Record::BroadcastOver(_)))
    );
    engine.restart()?;
    assert_eq!(engine.all_chunks()?.concat(), ids[4..]);
    assert!(
        engine
            .disk
            .iter()
            .any(|record| matches!(record, Record::BroadcastOver(_)))
    );
    Ok(())
}
