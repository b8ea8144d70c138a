//! One stream: it waits for what is next, and makes events of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, Fuse, FusedFuture};
use procession_actors::view::{Rule, Status};
use procession_kernel::{ProcedureId, Timestamp};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::reading::{ENGINE, Reading, engine, read};
use crate::dashboard::access::Grant;
use crate::dashboard::me;
use crate::dashboard::model::{Missed, Moment, Update};
use crate::dashboard::show::Show;
use crate::dashboard::state::State;
use crate::dashboard::streams::Place;
use crate::filter::{Filter, FilterContext};
use crate::views::time;

/// Shortest time between two events that tell of rows: a row is sent ten times a second at most.
const GAP: Duration = Duration::from_millis(100);
/// How often verdicts, limits and gauges are looked at.
const TICK: Duration = Duration::from_secs(1);
/// How often a stream says that it lives: a page that hears nothing longer than this asks.
const PING: Duration = Duration::from_secs(1);
/// How long the engine may take to answer before the stream says that it is silent. With [`TICK`] and the age of
/// an answer that others share, viewers know within three seconds.
const PATIENCE: Duration = Duration::from_millis(1_250);
/// Rows looked at for one event at most; if more have changed, reading anew is cheaper for both.
const ROWS_MAX: usize = 1_000;
/// Shortest time between two events that say to read anew.
const RESYNC_GAP: Duration = Duration::from_secs(1);
/// Ids of rows that the filter no longer admits, in one event at most.
const LEFT_MAX: usize = 200;
/// Updates taken from the ring at once: the lock is held for microseconds.
const AT_ONCE: usize = 256;

/// One stream.
pub(super) struct Follow {
    state: Arc<State>,
    grant: Grant,
    filter: Filter,
    /// The families that the filter names, if it names any: all others are nothing to it.
    families: Option<BTreeSet<u64>>,
    place: Place,
    /// Up to where it has told; none if that is nowhere in the ring.
    at: Result<Moment, ()>,
    published: watch::Receiver<Moment>,
    closed: watch::Receiver<bool>,
    next_rows: Timestamp,
    next_tick: Timestamp,
    next_ping: Timestamp,
    reading: Fuse<BoxFuture<'static, Reading>>,
    /// When the engine counts as silent, unless the reading has ended by then.
    patience_ends: Timestamp,
    /// What was told last, by the event's name.
    told: BTreeMap<&'static str, Value>,
    rules: BTreeMap<ProcedureId, BTreeSet<Rule>>,
    ready: VecDeque<Bytes>,
    is_over: bool,
}

/// What happened first.
enum First {
    Closed,
    Replaced,
    Rows,
    Read(Reading),
    Time,
}

impl Follow {
    pub(super) fn new(state: Arc<State>, grant: Grant, filter: Filter, place: Place, at: Result<Moment, ()>) -> Self {
        let now = state.now();
        Self {
            grant,
            families: filter.families(),
            filter,
            place,
            at,
            published: state.shared.follow(),
            closed: state.closed.subscribe(),
            next_rows: now,
            next_tick: now,
            next_ping: now,
            reading: Fuse::terminated(),
            patience_ends: now,
            told: BTreeMap::new(),
            rules: BTreeMap::new(),
            ready: VecDeque::new(),
            is_over: false,
            state,
        }
    }

    /// Returns the next event; none if the stream is over.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            self.act();
            if self.ready.is_empty() && !self.is_over {
                match self.first().await {
                    First::Closed => self.end(),
                    First::Replaced => self.is_over = true,
                    First::Read(reading) => self.tell(reading),
                    First::Rows | First::Time => {}
                }
            }
        }
    }

    /// Does what is due now.
    fn act(&mut self) {
        let now = self.state.now();
        if self.next_ping <= now {
            self.next_ping = now.after(PING);
            self.push("ping", None, &json!({ "now": time(now) }));
        }
        if self.is_behind() && self.next_rows <= now {
            self.next_rows = now.after(GAP);
            self.tell_rows(now);
        }
        if self.is_patient() && self.patience_ends <= now {
            self.tell_news(ENGINE, engine(me::SILENT));
        }
        if self.next_tick <= now {
            self.next_tick = now.after(TICK);
            if !self.reading.is_terminated() {
                // The engine is slow to answer: one question at a time.
                return;
            }
            self.patience_ends = now.after(PATIENCE);
            self.reading = read(Arc::clone(&self.state), self.grant.clone()).boxed().fuse();
        }
    }

    /// Returns `true` while the engine is asked, and was not told to be silent.
    fn is_patient(&self) -> bool {
        !self.reading.is_terminated() && self.told.get(ENGINE) != Some(&engine(me::SILENT))
    }

    fn is_behind(&self) -> bool {
        self.at != Ok(*self.published.borrow())
    }

    async fn first(&mut self) -> First {
        let clock = Arc::clone(self.state.clock());
        let is_behind = self.is_behind();
        let mut next = self.next_tick.min(self.next_ping);
        if is_behind {
            next = next.min(self.next_rows);
        }
        if self.is_patient() {
            next = next.min(self.patience_ends);
        }
        tokio::select! {
            biased;
            _ = self.closed.wait_for(|closed| *closed) => First::Closed,
            _ = &mut self.place.replaced, if !self.is_over => First::Replaced,
            reading = &mut self.reading => First::Read(reading),
            _ = self.published.changed(), if !is_behind => First::Rows,
            () = clock.sleep_until(next) => First::Time,
        }
    }

    fn end(&mut self) {
        let now = time(self.state.now());
        self.push("bye", None, &json!({ "now": now }));
        self.is_over = true;
    }

    fn tell(&mut self, reading: Reading) {
        self.rules = reading.rules;
        for (name, value) in reading.events {
            self.tell_news(name, value);
        }
        if reading.is_over {
            self.end();
        }
    }

    /// Sends an event, unless this stream has already sent the same.
    fn tell_news(&mut self, name: &'static str, value: Value) {
        if self.told.get(name) != Some(&value) {
            self.push(name, None, &value);
            self.told.insert(name, value);
        }
    }

    /// Tells of all rows that changed since it told last, the newest of each.
    fn tell_rows(&mut self, now: Timestamp) {
        let told = self.at.map_err(|()| Missed).and_then(|at| self.changed(at));
        match told {
            Ok((updates, newest)) => {
                self.at = Ok(newest);
                self.tell_updates(&updates, newest, now);
            }
            Err(Missed) => self.resync(now),
        }
    }

    /// Returns all updates since a moment, and the moment up to which these lead.
    fn changed(&self, at: Moment) -> Result<(Vec<Arc<Update>>, Moment), Missed> {
        let (mut all, mut newest) = (Vec::new(), at);
        loop {
            let updates = self.state.shared.read().updates(newest, AT_ONCE)?;
            let Some(last) = updates.last() else {
                return Ok((all, newest));
            };
            newest = last.moment;
            all.extend(updates);
        }
    }

    fn resync(&mut self, now: Timestamp) {
        self.place.resynced();
        let newest = self.state.shared.read().moment();
        self.at = Ok(newest);
        self.push(
            "resync",
            Some(newest),
            &json!({ "now": time(now), "as_of": newest.to_string() }),
        );
        self.next_rows = now.after(RESYNC_GAP);
    }

    fn is_named(&self, family: u64) -> bool {
        self.families.as_ref().is_none_or(|families| families.contains(&family))
    }

    fn tell_updates(&mut self, updates: &[Arc<Update>], newest: Moment, now: Timestamp) {
        let mut rows: BTreeMap<ProcedureId, &Status> = BTreeMap::new();
        let mut untold: BTreeSet<ProcedureId> = BTreeSet::new();
        for update in updates {
            // No two of its rows are of one procedure.
            if self.families.is_none() && update.len() > ROWS_MAX {
                return self.resync(now);
            }
            let named = update.rows.iter().filter(|row| self.is_named(row.id.family));
            rows.extend(named.map(|row| (row.id, &**row)));
            untold.extend(update.untold.iter().filter(|id| self.is_named(id.family)));
            if rows.len() + untold.len() > ROWS_MAX {
                return self.resync(now);
            }
        }
        let gone = updates.iter().flat_map(|update| &update.gone);
        let gone: BTreeSet<u64> = gone.copied().filter(|family| self.is_named(*family)).collect();
        rows.retain(|id, _| !gone.contains(&id.family));
        let show = Show::new(&self.state, &self.grant);
        let (mut shown, mut left) = (Vec::new(), Vec::new());
        left.extend(untold.iter().take(LEFT_MAX + 1).map(ToString::to_string));
        for (id, row) in &rows {
            let status = show.as_it_stands(row);
            let rules = self.rules.get(id).cloned().unwrap_or_default();
            if show.admits(&self.filter, &status, &FilterContext { now, rules }) {
                shown.push(show.procedure(&status));
            } else if left.len() <= LEFT_MAX {
                left.push(id.to_string());
            }
        }
        if shown.is_empty() && left.is_empty() && gone.is_empty() {
            return;
        }
        let is_cut = left.len() > LEFT_MAX || gone.len() > LEFT_MAX;
        left.truncate(LEFT_MAX);
        let gone: Vec<String> = gone.iter().take(LEFT_MAX).map(ToString::to_string).collect();
        let body = json!({
            "now": time(now),
            "as_of": newest.to_string(),
            "rows": shown,
            "left": left,
            "gone": gone,
            "cut": is_cut,
        });
        self.push("change", Some(newest), &body);
    }

    /// Makes an event. JSON has no line breaks outside of texts, and none inside: one line is enough.
    fn push(&mut self, name: &str, id: Option<Moment>, body: &Value) {
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        self.ready
            .push_back(Bytes::from(format!("event: {name}\n{id}data: {body}\n\n")));
    }
}
