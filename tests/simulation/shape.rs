//! Random trees of procedures. Each procedure has a name of its own, and a
//! child is named after its parent, so that the log tells them apart.

use procession::limits::LockNeed;
use procession::procedure::{ChildPermits, JoinPolicy};

use super::draw::Draw;
use super::settings::ROOM;
use super::support::{Act, Plan, UndoAct, plan};

/// Names of events that are waited for and sent.
pub(crate) const EVENTS: [&str; 2] = ["go", "stop"];
/// The gate that is shut until the calm: faults of undos last until then.
pub(crate) const REPAIRED: &str = "repaired";
/// What is locked: few paths, so that they are met.
const PATHS: [&str; 4] = ["a", "a/1", "a/2", "b"];
/// Generations of one tree at most, the root's included.
const DEEPEST: usize = 3;

/// Draws plans, and remembers them all by name.
pub(crate) struct Shapes {
    drawn: u64,
    /// Gates and notes are drawn apart, so that all else is as without; and only if there are any.
    apart: Option<Draw>,
    /// Which children keep the values behind their stages. Roots may run again here, so what stages write goes by the
    /// id: the name is that of all runs.
    reruns: Option<Draw>,
}

impl Shapes {
    /// Lists have gates, and stages notes, if there are numbers to draw them with; roots may run again likewise.
    pub(crate) const fn new(apart: Option<Draw>, reruns: Option<Draw>) -> Self {
        Self {
            drawn: 0,
            apart,
            reruns,
        }
    }

    /// Draws the plan of a root.
    pub(crate) fn root(&mut self, draw: &mut Draw) -> Plan {
        self.drawn += 1;
        let name = format!("p{}", self.drawn);
        self.plan(draw, &name, 0)
    }

    /// Draws one that runs a stage again and again, now and then from beyond its point of no return.
    pub(crate) fn circle(&mut self, draw: &mut Draw) -> Plan {
        self.drawn += 1;
        let mut visits = vec![Act::SleepAgain(draw.below(200)); draw.place(9)];
        visits.push(Act::Next);
        let acts = [Act::Next, Act::Visits(visits), Act::Done(1)];
        let mut drawn = plan(&format!("p{}", self.drawn), acts);
        drawn.one_way = draw.percent(60).then_some(1);
        drawn
    }

    fn plan(&mut self, draw: &mut Draw, name: &str, depth: usize) -> Plan {
        let stages = 1 + draw.small(5);
        let mut acts: Vec<Act> = (1..stages).map(|stage| self.act(draw, name, stage, depth)).collect();
        acts.push(self.last(draw, name, stages, depth));
        let mut drawn = plan(name, acts);
        for stage in 1..=stages {
            if draw.percent(25) {
                drawn = drawn.undo(stage, self.undo(draw, name));
            }
        }
        if draw.percent(30) {
            drawn = drawn.locks(needs(draw));
            for stage in 1..=stages {
                if draw.percent(30) {
                    drawn.locks.insert(stage, needs(draw));
                }
            }
        }
        drawn.priority = i16::try_from(draw.below(3)).unwrap_or(0);
        drawn.limit = draw.percent(12).then(|| ROOM.to_owned());
        drawn.timeout = draw.percent(10).then(|| 1 + draw.below(30_000));
        drawn.told = draw.percent(40);
        drawn.one_way = draw.percent(6).then(|| 1 + draw.small(stages));
        drawn.holding = draw.percent(20);
        drawn.compensated = draw.percent(30);
        drawn.without_rollback = draw.percent(10);
        drawn.tidies = draw.percent(20);
        drawn
    }

    fn act(&mut self, draw: &mut Draw, name: &str, stage: u32, depth: usize) -> Act {
        let act = match draw.below(100) {
            0..40 => Act::Next,
            // Those of even stages ask a person.
            40..50 if stage.is_multiple_of(2) => Act::Ask("what now?".to_owned(), Some(draw.below(4_000))),
            40..50 => Act::Sleep(draw.below(4_000)),
            50..64 => {
                let event = draw.pick(&EVENTS).unwrap_or("go").to_owned();
                let timeout = draw.percent(60).then(|| draw.below(6_000));
                Act::Wait(event, timeout)
            }
            64..84 if depth + 1 < DEEPEST => self.spawn(draw, name, stage, depth),
            // Those of odd stages keep what they did.
            84..90 if stage % 2 == 1 => Act::GiveUp("boom".to_owned()),
            84..90 => Act::Fail("boom".to_owned()),
            90..94 => Act::Visits(vec![Act::SleepAgain(draw.below(500)), Act::Next]),
            _ => Act::Next,
        };
        self.wrapped(draw, act, name, stage, depth)
    }

    fn last(&mut self, draw: &mut Draw, name: &str, stage: u32, depth: usize) -> Act {
        let act = if draw.percent(15) {
            Act::Fail("in the end".to_owned())
        } else {
            Act::Done(i64::from(draw.small(100)))
        };
        self.wrapped(draw, act, name, stage, depth)
    }

    /// What a stage does before: take turns, write, fail for a while, give birth.
    fn wrapped(&mut self, draw: &mut Draw, act: Act, name: &str, stage: u32, depth: usize) -> Act {
        if matches!(act, Act::Visits(_)) {
            return act;
        }
        let mut act = act;
        match draw.below(100) {
            0..7 => act = Act::Retry(1 + draw.small(2), Box::new(act)),
            7..10 => act = Act::RetryAfter(delays(stage, 1 + draw.small(2)), Box::new(act)),
            10..13 => act = Act::Retry(9, Box::new(act)),
            13..16 => act = Act::Panic(1 + draw.small(2), Box::new(act)),
            // Without any time: a stage that is out while nothing moves would be a fault.
            16..18 => act = Act::Hang(1 + draw.small(2), 0, Box::new(act)),
            18..26 => act = Act::Yield(1 + draw.small(3), Box::new(act)),
            26..30 if depth + 1 < DEEPEST => {
                let child = self.plan(draw, &format!("{name}.{stage}x"), depth + 1);
                act = Act::AddChild(Box::new(child), Box::new(act));
            }
            30..33 if depth + 1 < DEEPEST => {
                let other = self.plan(draw, &format!("{name}-{stage}y"), depth + 1);
                act = Act::Submit(Box::new(other), Box::new(act));
            }
            33..39 => {
                let event = draw.pick(&EVENTS).unwrap_or("go").to_owned();
                act = Act::Signal(draw.small(3), event, Box::new(act));
            }
            _ => {}
        }
        if let Some(apart) = &mut self.apart
            && apart.percent(20)
        {
            let text = "n".repeat(apart.place(40));
            act = Act::Note(text, Box::new(act));
        }
        if draw.percent(40) {
            let amount = i64::from(1 + draw.small(9));
            act = match self.reruns {
                Some(_) => Act::AddOwn(amount, Box::new(act)),
                None => Act::Add(name.to_owned(), amount, Box::new(act)),
            };
        }
        if draw.percent(60) {
            act = Act::Turns(draw.small(12), Box::new(act));
        }
        act
    }

    fn spawn(&mut self, draw: &mut Draw, name: &str, stage: u32, depth: usize) -> Act {
        let count = draw.small(5);
        let mut children: Vec<Plan> = Vec::new();
        for place in 0..count {
            let detached = draw.percent(8);
            // One that is detached is of another family, and named like that.
            let mark = if detached { "-" } else { "." };
            let mut child = self.plan(draw, &format!("{name}{mark}{stage}{}", letter(place)), depth + 1);
            child.detached = detached;
            child.without_rollback &= !detached;
            child.compensated &= !detached;
            child.kept = self.reruns.as_mut().is_some_and(|reruns| reruns.percent(15));
            children.push(child);
        }
        if let Some(apart) = &mut self.apart {
            gates(apart, &mut children);
        }
        if draw.percent(25) {
            let permits = match draw.below(3) {
                0 => ChildPermits::Exempt,
                1 => ChildPermits::Inherited,
                _ => ChildPermits::Own,
            };
            return Act::SpawnOn(permits, children);
        }
        let own = children.iter().filter(|child| !child.detached).count();
        let own = u32::try_from(own).unwrap_or(0);
        let join = match draw.below(7) {
            0 => JoinPolicy::AllFinished,
            1 => JoinPolicy::AtLeast(1 + draw.small(own.max(1))),
            2 => JoinPolicy::Named(places(draw, &children)),
            3 => JoinPolicy::Custom,
            _ => JoinPolicy::AllSucceeded,
        };
        Act::Spawn(children, join, draw.small(3))
    }

    fn undo(&self, draw: &mut Draw, name: &str) -> UndoAct {
        match draw.below(10) {
            0..2 => UndoAct::Fail(1 + draw.small(2)),
            2..3 => {
                let times = 1 + draw.small(2);
                UndoAct::FailAfter(times, u64::from(times - 1) * 300)
            }
            3..4 => UndoAct::Fail(7),
            4..6 => UndoAct::Panic(1),
            6..8 => UndoAct::FailUntil(REPAIRED.to_owned()),
            _ if self.reruns.is_some() => UndoAct::AddOwn(-1),
            _ => UndoAct::Add(name.to_owned(), -1),
        }
    }
}

/// Puts gates on some children of a list. Those that hold their locks for life are listed without.
fn gates(draw: &mut Draw, children: &mut [Plan]) {
    let attached = children.iter_mut().filter(|child| !child.detached);
    for (place, child) in (0_u32..).zip(attached) {
        let after: Vec<u32> = (0..place).filter(|_| draw.percent(60)).collect();
        if after.is_empty() || child.holding || draw.percent(30) {
            continue;
        }
        let some = draw.small(u32::try_from(after.len()).unwrap_or(1));
        let mut gated = child.clone().after(after);
        gated = match draw.below(7) {
            0 => gated.opens(JoinPolicy::AllFinished),
            1 => gated.opens(JoinPolicy::AtLeast(1 + some)),
            2 => gated.opens(JoinPolicy::Named(vec![some, 0])),
            3 | 4 => gated.opens(JoinPolicy::Custom),
            _ => gated,
        };
        if draw.percent(40) {
            gated = gated.or_wait();
        }
        if draw.percent(10) {
            gated = gated.vital();
        }
        *child = gated;
    }
}

/// Draws places of a list, one of them twice; rarely one that nobody waits for.
fn places(draw: &mut Draw, children: &[Plan]) -> Vec<u32> {
    let any = draw.percent(5);
    let named = (0_u32..).zip(children).filter(|(_, child)| any || !child.detached);
    let mut places: Vec<u32> = named.map(|(place, _)| place).filter(|_| draw.percent(60)).collect();
    places.extend(places.first().copied());
    places
}

/// Chooses delays by the stage alone, so that nothing else is drawn otherwise: none, some ms, or the kind's own.
fn delays(stage: u32, times: u32) -> Vec<Option<u64>> {
    let delay = |number: u32| match number % 3 {
        0 => None,
        1 => Some(0),
        _ => Some(700),
    };
    (stage..stage + times).map(delay).collect()
}

fn letter(place: u32) -> char {
    char::from_u32('a' as u32 + place % 26).unwrap_or('z')
}

fn needs(draw: &mut Draw) -> Vec<LockNeed> {
    let mut needs: Vec<LockNeed> = Vec::new();
    for _ in 0..=draw.below(2) {
        let path = draw.pick(&PATHS).unwrap_or("a");
        let need = if draw.percent(60) {
            LockNeed::exclusive(path)
        } else {
            LockNeed::shared(path)
        };
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    needs
}

impl Act {
    /// Returns what this stage adds to rows of the user, if it is committed.
    pub(crate) fn adds(&self) -> i64 {
        match self {
            Self::Add(_, amount, then) | Self::AddOwn(amount, then) => amount + then.adds(),
            Self::Note(_, then)
            | Self::Retry(_, then)
            | Self::RetryAfter(_, then)
            | Self::Hang(_, _, then)
            | Self::Panic(_, then)
            | Self::Yield(_, then)
            | Self::AddChild(_, then)
            | Self::Submit(_, then)
            | Self::Signal(_, _, then)
            | Self::Turns(_, then) => then.adds(),
            _ => 0,
        }
    }

    /// Returns `true` if its failure keeps what the stage did. With a child added it is refused, and keeps nothing.
    pub(crate) fn gives_up(&self) -> bool {
        match self {
            Self::GiveUp(_) => true,
            Self::Add(_, _, then)
            | Self::AddOwn(_, then)
            | Self::Note(_, then)
            | Self::Retry(_, then)
            | Self::RetryAfter(_, then)
            | Self::Hang(_, _, then)
            | Self::Panic(_, then)
            | Self::Yield(_, then)
            | Self::Submit(_, then)
            | Self::Signal(_, _, then)
            | Self::Turns(_, then) => then.gives_up(),
            _ => false,
        }
    }

    /// Tells whether calls of it may leave no entry.
    pub(crate) fn yields(&self) -> bool {
        match self {
            Self::Yield(..) => true,
            Self::Add(_, _, then)
            | Self::AddOwn(_, then)
            | Self::Note(_, then)
            | Self::Retry(_, then)
            | Self::RetryAfter(_, then)
            | Self::Hang(_, _, then)
            | Self::Panic(_, then)
            | Self::AddChild(_, then)
            | Self::Submit(_, then)
            | Self::Signal(_, _, then)
            | Self::Turns(_, then) => then.yields(),
            _ => false,
        }
    }

    /// Returns `true` if a pure stage that does this makes the engine ask the store, so that it runs again behind the disk.
    pub(crate) fn asks_the_store(&self) -> bool {
        match self {
            Self::Signal(..) => true,
            Self::Note(_, then)
            | Self::NothingToUndo(then)
            | Self::Retry(_, then)
            | Self::Panic(_, then)
            | Self::Yield(_, then)
            | Self::Submit(_, then)
            | Self::AddChild(_, then)
            | Self::Turns(_, then) => then.asks_the_store(),
            _ => false,
        }
    }
}
