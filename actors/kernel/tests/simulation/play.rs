//! What may happen next, drawn at random.

use std::time::Duration;

use procession_kernel::{
    Birth, Event, Key, KeyAsked, KeyEntry, OperatorRequest, ProcedureId, Row, Seq, Submission, Verb,
};

use super::WAVE;
use super::claims;
use super::draw::Draw;
use super::graph;
use super::shell::Shell;

/// Timers that may be due at once: two for each of some hundred members.
const TIMERS: usize = 512;

/// One simulated history of an engine and its crashes.
pub(crate) struct Play {
    pub(crate) shell: Shell,
    pub(crate) draw: Draw,
    /// Crashes come often, and meet the same stages again.
    stormy: bool,
    /// Wakes get lost.
    lossy: bool,
    /// What operators asked for with a key, and may ask for once more.
    pub(crate) asked: Vec<(Verb, OperatorRequest)>,
    /// How often some waited for each other, and nothing moved.
    pub(crate) deadlocks: usize,
    /// The broadcast that was served last.
    served: Seq,
    /// Many wait for events, and broadcasts come often.
    pub(crate) windy: bool,
    /// Stages spawn graphs. The seeds that have found a fault are of the others.
    pub(crate) graphs: bool,
    /// Gates have rules of their own.
    pub(crate) custom: bool,
    /// Roots are born with children.
    broods: bool,
    /// Operators submit, and run again what failed.
    reruns: bool,
}

impl Play {
    /// Begins with a seed.
    pub(crate) fn new(seed: u64) -> Result<Self, String> {
        let draw = Draw::new(seed);
        Ok(Self {
            shell: Shell::new(draw.speculates)?,
            draw,
            stormy: seed.is_multiple_of(4),
            lossy: seed.is_multiple_of(3),
            asked: Vec::new(),
            deadlocks: 0,
            served: Seq(0),
            windy: seed.is_multiple_of(5),
            graphs: !matches!(seed % 7, 2 | 4),
            // None of the seeds that have found a fault.
            custom: matches!(seed % 11, 1 | 3..=6),
            broods: matches!(seed % 7, 1 | 3 | 5),
            // None of the seeds that have found a fault.
            reruns: matches!(seed % 8, 0 | 7),
        })
    }

    /// Lets one thing happen.
    pub(crate) fn step(&mut self) -> Result<(), String> {
        if self.stormy && self.draw.percent(12) {
            return self.crash();
        }
        if self.windy && self.draw.percent(10) {
            return if self.draw.percent(40) {
                self.broadcast()
            } else {
                self.wake_some()
            };
        }
        if self.reruns && self.draw.percent(3) {
            self.submit_by()?;
        }
        match self.draw.below(100) {
            0..7 if self.shell.kernel.families().len() < 6 => self.submit(),
            7..35 => self.report_one(),
            35..42 => self.undo_one(),
            42..47 => self.load_one(),
            47..50 => self.rule_one(),
            50..54 if self.draw.percent(5) => self.time_flies(),
            50..54 => self.time_passes(),
            54..57 => self.signal(),
            57..58 => self.broadcast(),
            58..70 => self.shell.hear(),
            70..72 => self.old_again(),
            72..80 => self.operate(),
            80..81 => self.wake_some(),
            81..82 => self.clean_up_one(),
            82..83 => self.crash(),
            83..84 if self.draw.percent(20) => self.drain(),
            84..86 => self.check_health(),
            86..88 => self.acknowledge(),
            88..90 => self.evict(),
            90..91 if self.lossy => self.lose_word(),
            91..92 if self.lossy => self.lose_timer(),
            _ => {
                let commits = 1 + self.draw.place(self.shell.pending());
                self.shell.sync(commits)
            }
        }?;
        if self.shell.is_quiet() {
            claims::told(&self.shell.kernel, &self.shell.desk)?;
            self.shell.what_is_out()?;
            self.shell.all_are_answered()?;
        }
        self.nothing_found()
    }

    /// The health check looks for wakes that were lost; there are none.
    pub(crate) fn check_health(&mut self) -> Result<(), String> {
        let (granted, unknown) = if self.shell.is_quiet() {
            claims::lost(&self.shell.kernel, &self.shell.desk)
        } else {
            (Vec::new(), Vec::new())
        };
        self.shell.decide(Event::HealthCheckDue { granted, unknown })?;
        self.nothing_found()
    }

    /// The health check has found what was lost on purpose, and nothing else.
    pub(crate) fn nothing_found(&self) -> Result<(), String> {
        let (found, lost) = (self.shell.kernel.found(), self.shell.lost);
        if found == lost {
            return Ok(());
        }
        Err(format!("{lost} wakes were lost, and the health check found {found}"))
    }

    // Requests.

    fn submit(&mut self) -> Result<(), String> {
        let mut births: Vec<Birth> = (0..=self.draw.below(2)).map(|_| self.draw.birth()).collect();
        if self.broods {
            let seed = self.shell.kernel.seq().0 << 8;
            (1..)
                .zip(&mut births)
                .for_each(|(place, birth)| graph::brood(birth, seed + place, self.custom));
        }
        let submissions = births.into_iter().map(|birth| self.submission(birth));
        let submissions = submissions.collect();
        self.shell.submit(submissions)
    }

    pub(crate) fn submission(&mut self, birth: Birth) -> Submission {
        if !self.draw.percent(30) {
            return birth.into();
        }
        let key = Key::from(format!("key {}", self.draw.below(20)));
        let digest = u128::from(self.draw.below(2));
        let known: Option<KeyEntry> = self.shell.ahead.keys.get(&key).cloned();
        let keep = None;
        Submission {
            birth,
            key: Some(KeyAsked { key, digest, keep }),
            known,
        }
    }

    fn signal(&mut self) -> Result<(), String> {
        let mut signals = Vec::new();
        for _ in 0..=self.draw.below(3) {
            let Some(to) = self.member(|_| true) else { return Ok(()) };
            signals.push(self.draw.signal(to));
        }
        let request = self.shell.request_id();
        self.shell.decide(Event::Signalled(request, signals)).map(drop)
    }

    /// Some who wait for a broadcast are woken. Tells whether there was one.
    pub(crate) fn wake_some(&mut self) -> Result<(), String> {
        match self.shell.kernel.next_wave(self.served) {
            Some(seq) => {
                self.served = seq;
                self.shell.waits.insert(WAVE.to_owned());
                self.shell.decide(Event::WaveDue(seq)).map(drop)
            }
            None => Ok(()),
        }
    }

    /// Draws a live member of which this holds.
    pub(crate) fn member(&mut self, holds: impl Fn(&Row) -> bool) -> Option<ProcedureId> {
        let rows = self.shell.kernel.families().values().flat_map(|family| &family.members);
        let ids: Vec<ProcedureId> = rows
            .filter(|row| (!row.is_ended() || row.rare().paused) && holds(row))
            .map(|row| row.id)
            .collect();
        self.draw.pick(&ids)
    }

    pub(crate) fn time_passes(&mut self) -> Result<(), String> {
        if let Some(next) = self.shell.kernel.next_deadline() {
            self.shell.move_to(self.shell.now.max(next))?;
        }
        self.timers()
    }

    /// The clock jumps far beyond what anybody waits for.
    fn time_flies(&mut self) -> Result<(), String> {
        let later = self.shell.now.after(Duration::from_secs(self.draw.below(2_000)));
        self.shell.move_to(later)?;
        self.timers()
    }

    fn timers(&mut self) -> Result<(), String> {
        for _ in 0..TIMERS {
            let Some(id) = self.shell.kernel.due(self.shell.now) else {
                return Ok(());
            };
            self.shell.decide(Event::TimerDue(id))?;
        }
        Err(format!("{TIMERS} timers are due at one instant: one fires on and on"))
    }

    // Ends of engines.

    fn crash(&mut self) -> Result<(), String> {
        let reached = self.draw.place(self.shell.pending() + 1);
        self.shell.crash(reached)
    }

    /// An orderly stop: what reports within the deadline is taken, the rest is left.
    fn drain(&mut self) -> Result<(), String> {
        if self.draw.percent(50) {
            self.ask_to_drain()?;
        } else {
            self.shell.decide(Event::DrainBegan)?;
        }
        if !self.shell.kernel.is_draining() {
            return Ok(());
        }
        for _ in 0..self.draw.below(20) {
            match self.draw.below(8) {
                0 => self.undo_one()?,
                1 => self.time_passes()?,
                2 => self.signal()?,
                3 => self.shell.hear()?,
                4 => self.operate()?,
                5 => self.ask_to_drain()?,
                _ => self.report_one()?,
            }
            self.shell.sync(1)?;
        }
        let request = self.shell.request_id();
        self.shell.decide(Event::DrainEnded(request))?;
        self.shell.sync(usize::MAX)?;
        self.shell.crash(0)
    }
}
