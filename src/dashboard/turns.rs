//! Turns: whoever looks through much does so one after another, and no more of the time than their share.
//!
//! A list that admits nothing looks at 100,000 rows, on a processor that the engine could use. However many
//! callers ask however often, looking through takes a small share of the machine, and one caller half of that
//! at most. Whoever has had theirs waits, and is told when to ask again if the wait is long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::{Either, select};
use procession_actors::clock::Clock;
use procession_kernel::Timestamp;

use super::access::Grant;
use super::problem::Problem;

/// How much longer than it took work is paid for, on a machine with one processor: a fortieth of the time may be
/// spent on looking through rows. A scan costs the engine caches and turns at the store as well, so it may lose
/// twice that; it is not to lose a tenth, rounds of which the first list of each caller is free included.
const SPREAD: u32 = 40;
/// Processors that are counted. Of more, the share would be larger than what the engine's one supervisor bears.
const PROCESSORS_MAX: u32 = 4;
/// How much longer one caller's work is spread: two such callers take all.
const OF_ONE: u32 = 2;
/// How far ahead of its share one that has rested may be: on two processors 0.2 s of work in all, which is one list
/// that looks at all it may, and half of it of one caller. Whoever asks now and then never waits.
const BURST: Duration = Duration::from_secs(4);
/// The longest time that work is paid for, whatever it took: a clock that was set back does not shut anybody out.
const DEBT_MAX: Duration = Duration::from_secs(20);
/// What each turn costs at least: reading the request and writing a page of rows, which no turn is held for.
const LEAST: Duration = Duration::from_micros(500);
/// How long one waits for its turn: a caller of lists that look at all they may waits eight seconds for each.
const PATIENCE: Duration = Duration::from_secs(10);
/// Who waits at once, and those of one caller: a browser has six connections to a host.
const WAITING_MAX: usize = 32;
const WAITING_OF_ONE_MAX: usize = 8;

/// Whose turn it is, and who has had how much.
pub(super) struct Turns {
    clock: Arc<dyn Clock>,
    spread: Spread,
    /// Held by whose turn it is; others get it in the order in which they came.
    turn: tokio::sync::Mutex<()>,
    had: Mutex<Had>,
}

/// Over how much time a unit of work is spread.
#[derive(Clone, Copy)]
struct Spread {
    work: u32,
    over: u32,
}

/// When each will have rested from what was had. Until [`BURST`] before that it must wait.
#[derive(Default)]
struct Had {
    whole: Timestamp,
    callers: BTreeMap<String, Timestamp>,
    waiting: BTreeMap<String, usize>,
}

/// The turn of one caller, who pays for it when this is dropped.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    who: String,
    begun: Timestamp,
    /// The same, by a clock that nobody sets.
    since: Instant,
    _turn: tokio::sync::MutexGuard<'a, ()>,
}

/// A place among those who wait, free again when this is dropped.
struct Place<'a> {
    turns: &'a Turns,
    who: &'a str,
}

impl Turns {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let work = u32::try_from(processors).unwrap_or(u32::MAX).min(PROCESSORS_MAX);
        Self {
            clock,
            spread: Spread { work, over: SPREAD },
            turn: tokio::sync::Mutex::default(),
            had: Mutex::default(),
        }
    }

    /// Waits for the turn of a caller. Take it when all else that is waited for is there: whoever comes after
    /// waits for its end.
    pub(super) async fn take(&self, grant: &Grant) -> Result<Turn<'_>, Problem> {
        let who = grant.who().unwrap_or_default();
        let _place = self.enter(who)?;
        let late = self.clock.sleep_until(self.clock.now().after(PATIENCE));
        match select(Box::pin(self.wait(who)), late).await {
            Either::Left((turn, _)) => Ok(turn),
            Either::Right(_) => Err(self.busy(who)),
        }
    }

    async fn wait(&self, who: &str) -> Turn<'_> {
        // One that has had too much waits aside, where it holds up nobody.
        self.pay(|had| due(had.of(who))).await;
        let turn = self.turn.lock().await;
        self.pay(|had| due(had.whole)).await;
        Turn {
            turns: self,
            who: who.to_owned(),
            begun: self.clock.now(),
            since: machine_now(),
            _turn: turn,
        }
    }

    /// Waits until what was had is paid for; others may add to it meanwhile.
    async fn pay(&self, until: impl Fn(&Had) -> Timestamp) {
        loop {
            let due = until(&self.had());
            let now = self.clock.now();
            if due <= now {
                return;
            }
            self.clock.sleep_until(due.min(now.after(DEBT_MAX))).await;
        }
    }

    fn enter<'a>(&'a self, who: &'a str) -> Result<Place<'a>, Problem> {
        let mut had = self.had();
        let all: usize = had.waiting.values().sum();
        let own = had.waiting.get(who).copied().unwrap_or_default();
        if own >= WAITING_OF_ONE_MAX || all >= WAITING_MAX {
            drop(had);
            return Err(self.busy(who));
        }
        had.waiting.insert(who.to_owned(), own + 1);
        Ok(Place { turns: self, who })
    }

    fn busy(&self, who: &str) -> Problem {
        let had = self.had();
        let wait = due(had.whole.max(had.of(who)));
        let wait = wait.since(self.clock.now()).clamp(Duration::from_secs(1), DEBT_MAX);
        let text = "Too many lists are asked for: the engine comes first.";
        Problem::too_many(text, "Ask again later, and narrow the filter.", wait)
    }

    fn had(&self) -> MutexGuard<'_, Had> {
        self.had.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spread {
    /// Adds work to what was had.
    fn add(self, had: Timestamp, work: Duration, now: Timestamp) -> Timestamp {
        let rested = had.max(now).after(work * self.over / self.work.max(1));
        rested.min(now.after(BURST + DEBT_MAX))
    }
}

/// Returns when one may have more that has rested at this time.
fn due(rested: Timestamp) -> Timestamp {
    Timestamp(rested.0.saturating_sub(Timestamp::default().after(BURST).0))
}

impl Had {
    fn of(&self, who: &str) -> Timestamp {
        self.callers.get(who).copied().unwrap_or_default()
    }

    fn add(&mut self, who: &str, work: Duration, now: Timestamp, spread: Spread) {
        self.whole = spread.add(self.whole, work, now);
        let of_one = spread.add(self.of(who), work * OF_ONE, now);
        self.callers.insert(who.to_owned(), of_one);
        // One that has rested is as one that never asked.
        self.callers.retain(|_, rested| *rested > now);
    }
}

/// Returns the machine's time, which no host sets: work takes that.
#[expect(
    clippy::disallowed_methods,
    reason = "it counts what processors do, which no engine's clock is about"
)]
fn machine_now() -> Instant {
    Instant::now()
}

impl Turn<'_> {
    /// Forgives the time until now: the engine did not answer, and nothing was looked through meanwhile.
    pub(super) fn waited(&mut self) {
        self.begun = self.turns.clock.now();
        self.since = machine_now();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let now = self.turns.clock.now();
        // A wall clock that was set forward meanwhile is no work.
        let took = now.since(self.begun).min(self.since.elapsed()).clamp(LEAST, DEBT_MAX);
        self.turns.had().add(&self.who, took, now, self.turns.spread);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut had = self.turns.had();
        if let Some(own) = had.waiting.get_mut(self.who) {
            *own -= 1;
            if *own == 0 {
                had.waiting.remove(self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests;
