//! One history: lives of engines on one disk, each with a fault of its own, and
//! a calm one in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::executor::block_on;
use procession::ProcedureId;
use procession::errors::StartError;
use procession::operate::OperatorRequest;
use procession::provider::Space;
use procession::status::{Cause, Outcome, ProcedureState, WaitReason};
use procession::testkit::{Ended, Fault, FaultPlan, MemoryStore, Run, Trouble, World};
use procession_actors::testkit::labels::index_agrees;
use procession_actors::testkit::reload;
use procession_kernel::Rules;

use super::again::Reruns;
use super::client::{Known, Told};
use super::draw::Draw;
use super::failures::Failures;
use super::operate::Ask;
use super::settings::Settings;
use super::shape::Shapes;
use super::support::{Lab, Plan, purely};

/// From this seed on, each of these has stages that run ahead of the disk. None of the seeds that have found a fault has.
pub(crate) const SPECULATION_FROM: u64 = 3_000_003;
pub(crate) const SPECULATION_EVERY: u64 = 4;

/// A submission that may be repeated.
#[derive(Clone, Debug)]
pub(crate) struct Keyed {
    pub(crate) key: String,
    pub(crate) plan: Plan,
    pub(crate) kind: u64,
}

/// What survives crashes: the world, and what everybody outside remembers.
pub(crate) struct Story {
    pub(crate) draw: Draw,
    pub(crate) world: World,
    pub(crate) lab: Lab,
    pub(crate) settings: Settings,
    pub(crate) shapes: Shapes,
    pub(crate) known: Known,
    pub(crate) keyed: Vec<Keyed>,
    /// What operators asked for with a key.
    pub(crate) asked: Vec<(Ask, OperatorRequest)>,
    /// The number that each such request was answered with, and what it was.
    pub(crate) numbers: BTreeMap<String, (u64, String)>,
    /// Operators submit, run again and acknowledge failures, if there are numbers to draw that with. Drawn apart, so that
    /// all else is as without.
    pub(crate) apart: Option<Draw>,
    pub(crate) reruns: Reruns,
    pub(crate) failures: Failures,
    /// Everybody who was on disk when nothing moved last.
    pub(crate) seen: Vec<(ProcedureId, Option<WaitReason>)>,
    /// How those ended that have.
    pub(crate) fates: BTreeMap<ProcedureId, (ProcedureState, Option<Cause>)>,
    /// Permits that were out when nothing moved last, and the widest capacity since.
    pub(crate) used: BTreeMap<String, (u32, Option<u32>)>,
    pub(crate) lives: u32,
    /// Crashes come one after the other, and meet the same stages again.
    is_stormy: bool,
    /// Operators end procedures whose stage is out, and so free locks that its body works under.
    pub(crate) is_rash: bool,
    /// Rows are damaged between two lives; drawn apart, so that all else is as without.
    pub(crate) is_damaged: bool,
    pub(crate) damages: Draw,
    /// What the engine of a life went by, as a start reads the disk.
    pub(crate) rules: Option<Rules>,
    /// Families of which a row was damaged.
    pub(crate) spoilt: BTreeSet<u64>,
    /// Those of them that were put aside when nothing moved last.
    pub(crate) aside: BTreeSet<u64>,
    /// Answers that say that the engine has stopped, of this life.
    pub(crate) stopped: usize,
    pub(crate) drained: bool,
    /// Stages run ahead of the disk where they may.
    pub(crate) speculates: bool,
    /// They do so in runs.
    pub(crate) runs: bool,
    /// The store may have its newest writes in memory; drawn apart, so that all else is as without.
    recent: Option<Draw>,
    /// The log names every call of a body.
    pub(crate) shows_calls: bool,
    pub(crate) shown: usize,
    /// Why procedures waited, and what else came to pass, in a word, and how often: what the histories cover.
    pub(crate) covered: BTreeMap<String, u64>,
    pub(crate) log: Vec<String>,
}

fn is_failed_start(trouble: &Trouble) -> bool {
    matches!(trouble.downcast_ref(), Some(StartError::Journal(_)))
}

impl Story {
    pub(crate) fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let settings = Settings::draw(&mut draw);
        let is_stormy = draw.percent(15);
        let is_rash = draw.percent(40);
        let mut damages = Draw::new(!seed);
        let is_damaged = damages.percent(20);
        // None of the seeds that have found a fault has these.
        let reruns = |turn: u32| (seed % 3 == 2).then(|| Draw::new(seed.rotate_left(turn)));
        let log = vec![format!("{settings:?}")];
        Self {
            draw,
            world: World::new(),
            lab: Lab::default(),
            settings,
            // None of the seeds that have found a fault has these.
            shapes: Shapes::new(
                matches!(seed % 5, 0 | 2).then(|| Draw::new(seed.rotate_left(32))),
                reruns(16),
            ),
            known: Known::default(),
            keyed: Vec::new(),
            asked: Vec::new(),
            numbers: BTreeMap::new(),
            apart: reruns(48),
            reruns: Reruns::default(),
            failures: Failures::default(),
            seen: Vec::new(),
            fates: BTreeMap::new(),
            used: BTreeMap::new(),
            lives: 0,
            is_stormy,
            is_rash,
            is_damaged,
            damages,
            rules: None,
            spoilt: BTreeSet::new(),
            aside: BTreeSet::new(),
            stopped: 0,
            drained: false,
            speculates: seed >= SPECULATION_FROM && (seed - SPECULATION_FROM).is_multiple_of(SPECULATION_EVERY),
            runs: seed >= SPECULATION_FROM && (seed - SPECULATION_FROM).is_multiple_of(2 * SPECULATION_EVERY),
            // None of the seeds that have found a fault has it.
            recent: matches!(seed % 11, 2 | 4 | 5 | 7..=9).then(|| Draw::new(seed.rotate_left(24))),
            shows_calls: false,
            shown: 0,
            covered: BTreeMap::new(),
            log,
        }
    }

    /// Tells whether results stay until the end of the history: those of a family that is discharged do not.
    pub(crate) fn keeps(&self) -> bool {
        self.settings.keeps() && self.spoilt.is_empty()
    }

    /// Lives it to its end.
    pub(crate) fn live(&mut self) -> Result<(), Trouble> {
        match self.speculates {
            true => purely(|| self.all_lives()),
            false => self.all_lives(),
        }
    }

    fn all_lives(&mut self) -> Result<(), Trouble> {
        let lives = if self.is_stormy { 8 } else { self.draw.below(4) };
        for _ in 0..=lives {
            let fault = self.fault();
            self.one(fault, async |story: &mut Self, run: &Run| story.storm(run).await)?;
        }
        self.one(None, async |story: &mut Self, run: &Run| story.calm(run).await)
    }

    /// Wherever a life was cut off, the history of what rolls back is what its rows count.
    fn no_rollback_lacks_an_entry(&self) -> Result<(), Trouble> {
        let Some(rules) = &self.rules else { return Ok(()) };
        let store = Arc::new(MemoryStore::open(&self.world.disk, FaultPlan::none())?);
        let clock = Arc::new(self.world.clock.clone());
        block_on(reload(store, rules.clone(), clock))?;
        Ok(())
    }

    fn one(
        &mut self,
        fault: Option<(u64, Fault)>,
        drive: impl AsyncFnOnce(&mut Self, &Run) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        self.lives += 1;
        self.log.push(format!("--- life {}, {fault:?}", self.lives));
        (self.stopped, self.drained) = (0, false);
        let mut plan = FaultPlan::none().late(self.draw.next(), self.settings.late);
        if let Some((commit, fault)) = fault {
            plan = plan.and(commit, fault);
        }
        if let Some(draw) = &mut self.recent {
            plan = plan.recent(draw.next());
        }
        let (world, settings, lab) = (self.world.clone(), self.settings.clone(), self.lab.clone());
        let length = if self.runs { 64 } else { 1 };
        let ended = world.run(
            plan,
            |builder| settings.build(&lab, builder).run_length(length),
            async |run: &Run| {
                let stood = drive(self, run).await;
                self.log.push(format!("--- left after {} commits", run.store.commits()));
                stood
            },
        );
        match ended {
            Ok(Ended::Crashed) => {
                self.log.push("--- crashed".to_owned());
                self.cover("Crash");
            }
            Ok(Ended::Done(())) => {}
            // A start may commit more than its own beginning, and its disk may fail then.
            Err(trouble) if fault.is_some() && is_failed_start(&trouble) => {
                self.log.push(format!("--- not started: {trouble}"));
            }
            Err(trouble) => return Err(trouble),
        }
        self.lab.begin_life();
        self.no_clash()?;
        let disk = &self.world.disk;
        index_agrees(&disk.dump(&Space::Procedures), &disk.dump(&Space::Live))?;
        self.no_rollback_lacks_an_entry()?;
        self.damage()
    }

    /// No two bodies ran at once under locks that exclude each other.
    pub(crate) fn no_clash(&self) -> Result<(), Trouble> {
        if self.is_rash {
            return Ok(());
        }
        match self.lab.clashes().first() {
            Some(clash) => Err(clash.clone().into()),
            None => Ok(()),
        }
    }

    fn fault(&mut self) -> Option<(u64, Fault)> {
        let commit = 1 + self.draw.below(if self.is_stormy { 5 } else { 90 });
        let fault = match self.draw.below(100) {
            0..20 => return None,
            20..42 => Fault::CrashBefore,
            42..60 => Fault::CrashAfter,
            60..76 => Fault::Torn {
                cut: self.draw.place(1_500),
            },
            76..84 => Fault::FailSync,
            84..87 => Fault::FailWrite,
            87..90 => Fault::FailNoSpace,
            _ => Fault::Withhold,
        };
        Some((commit, fault))
    }

    /// Takes note of what has come to pass.
    pub(crate) fn cover(&mut self, what: &str) {
        if let Some(times) = self.covered.get_mut(what) {
            *times += 1;
        } else {
            self.covered.insert(what.to_owned(), 1);
        }
    }

    /// Tells whether a request names a family of which a row was damaged.
    fn names_spoilt(&self, what: &str) -> bool {
        let numbers = what.split(|letter: char| !letter.is_ascii_digit());
        numbers
            .filter_map(|number| number.parse().ok())
            .any(|number| self.spoilt.contains(&number))
    }

    /// Takes note of what somebody was told.
    pub(crate) fn hear(&mut self, what: &str, told: Told) -> Result<(), Trouble> {
        self.log.push(format!("  {what}: {}", told.words()));
        match told {
            Told::Submitted(key, id) => {
                let (keeps, spoilt) = (self.settings.keeps(), &self.spoilt);
                let keeps = |id: &ProcedureId| keeps && !spoilt.contains(&id.family);
                Ok(self.known.note(key, id, keeps)?)
            }
            Told::Batch(ids) => {
                let keeps = self.settings.keeps();
                for id in ids {
                    self.known.note(None, id, |_| keeps)?;
                }
                Ok(())
            }
            Told::Ended(outcome) => self.told_end(&outcome),
            Told::Operated(Some(key), Some(number), _) => self.numbered(what, key, number),
            Told::Operated(..) | Told::Said(_) => Ok(()),
            Told::Asked(asked) => self.answered(what, *asked),
            Told::Acknowledged(family) => {
                self.acknowledged(family);
                Ok(())
            }
            Told::Stopped(_) => {
                self.stopped += 1;
                Ok(())
            }
            Told::Unreadable(_) if self.names_spoilt(what) => Ok(()),
            Told::Unreadable(why) | Told::Wrong(why) => Err(format!("{what}: {why}").into()),
        }
    }

    /// A request with a key is done once, and no other is taken for it.
    pub(crate) fn numbered(&mut self, what: &str, key: String, number: u64) -> Result<(), Trouble> {
        match self.numbers.insert(key, (number, what.to_owned())) {
            Some((before, _)) if before != number => {
                Err(format!("{what} was number {before}, and is done again as {number}").into())
            }
            Some((_, before)) if before != what => {
                Err(format!("{what} is answered as what was done with the same key, {before}").into())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whoever is told of an end is told the same, in this life and in every other.
    fn told_end(&mut self, outcome: &Outcome) -> Result<(), Trouble> {
        let fate = (outcome.state, outcome.cause.clone());
        match self.fates.insert(outcome.id, fate.clone()) {
            // A child that succeeded may be compensated since, as `promises` has it.
            Some((ProcedureState::Success, None)) if !outcome.id.is_root() && fate.0 == ProcedureState::RolledBack => {
                Ok(())
            }
            Some(before) if before != fate => {
                Err(format!("{} had ended as {before:?}, and is told as {fate:?}", outcome.id).into())
            }
            Some(_) | None => Ok(()),
        }
    }
}
