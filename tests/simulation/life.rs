//! One life in the storm: who does what, and when it is looked at.

use std::time::Duration;

use actix::prelude::*;
use procession::ProcedureId;
use procession::errors::AskError;
use procession::messages::SendSignal;
use procession::status::ListFilter;
use procession::testkit::{Run, Trouble};

use super::client::{CIRCLING, KEPT, Requests, Told, conflict, ended, submit, submit_batch, told, verdicts};
use super::feed::{Subscriber, Watched};
use super::operate::operator;
use super::shape::EVENTS;
use super::story::{Keyed, Story};
use super::support::Plan;

/// Turns without any progress after which nothing is under way any more: more
/// than the latest answer of the store takes, and its way through all actors.
const QUIET_TURNS: usize = 64;
/// Turns after which something that always makes progress is taken for a loop.
const TURNS_MAX: usize = 200_000;
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// Families that live at once at most.
const FAMILIES: usize = 9;

impl Story {
    /// Things happen until the engine dies, fails or is left.
    pub(crate) async fn storm(&mut self, run: &Run) -> Result<(), Trouble> {
        let mut requests = Requests::default();
        let mut feeds = Vec::new();
        for _ in 0..12 + self.draw.below(70) {
            if !self.step(run, &mut requests, &mut feeds).await? {
                return Ok(());
            }
        }
        if self.draw.percent(20) {
            self.drain(run, &mut requests).await?;
        }
        Ok(())
    }

    /// Lets one thing happen; tells whether the engine lives on.
    async fn step(&mut self, run: &Run, requests: &mut Requests, feeds: &mut Vec<Watched>) -> Result<bool, Trouble> {
        match self.draw.below(100) {
            0..20 => self.submit(run, requests),
            20..30 => self.signal(run, requests),
            30..33 => self.broadcast(run, requests),
            33..52 => self.operate(run, requests),
            52..62 => {
                let by = Duration::from_millis(self.draw.below(3_000));
                self.advance(run, by);
            }
            62..68 => self.jump(run),
            68..69 => {
                let by = Duration::from_secs(3_600 * self.draw.below(30));
                self.advance(run, by);
            }
            69..79 => self.question(run, requests),
            79..81 => self.subscribe(run, requests, feeds),
            81..84 => self.acknowledge(run, requests),
            84..94 => return self.look(run, requests, feeds).await,
            _ if run.store.is_withholding() => run.store.release_receipts(),
            _ => {}
        }
        for _ in 0..self.draw.below(25) {
            self.turn(requests).await?;
        }
        Ok(true)
    }

    // Turns.

    /// Lets everybody have a turn; tells how many were answered.
    async fn turn(&mut self, requests: &mut Requests) -> Result<usize, Trouble> {
        tokio::task::yield_now().await;
        if self.shows_calls {
            self.show_calls();
        }
        let said = requests.poll(&mut self.draw);
        let answered = said.len();
        for (what, told) in said {
            self.hear(&what, told)?;
        }
        Ok(answered)
    }

    fn show_calls(&mut self) {
        let calls = self.lab.calls();
        for call in calls.iter().skip(self.shown) {
            self.log
                .push(format!("    > {}, attempt {}", call.short(), call.attempt));
        }
        self.shown = calls.len();
        for clash in self.lab.clashes() {
            self.log.push(format!("    > {clash}"));
        }
    }

    /// Lets everything run that can run without time passing.
    pub(crate) async fn settle(&mut self, run: &Run, requests: &mut Requests) -> Result<(), Trouble> {
        let progress = || (run.store.commits(), run.store.reads(), run.store.appended_bytes());
        let (mut before, mut quiet) = (progress(), 0);
        for _ in 0..TURNS_MAX {
            let answered = self.turn(requests).await?;
            let now = progress();
            quiet = if now == before && answered == 0 { quiet + 1 } else { 0 };
            before = now;
            if quiet > QUIET_TURNS {
                return Ok(());
            }
        }
        Err("it does not come to rest, though no time passes".into())
    }

    /// Waits until nothing moves, and looks at everything; tells whether the engine lives on.
    pub(crate) async fn look(
        &mut self,
        run: &Run,
        requests: &mut Requests,
        feeds: &[Watched],
    ) -> Result<bool, Trouble> {
        self.settle(run, requests).await?;
        self.no_clash()?;
        if run.store.is_withholding() {
            return Ok(true);
        }
        let unanswered = requests.unanswered();
        if !unanswered.is_empty() {
            return Err(format!("nothing moves, and nobody answers {unanswered:?}").into());
        }
        let snapshot = run.executor.snapshot().await?;
        if let Some(why) = &snapshot.poisoned {
            self.log.push(format!("--- failed: {why}"));
            self.cover("Failure");
            return Ok(false);
        }
        if self.stopped > 0 {
            return Err("somebody was told that the engine has stopped, and it has not".into());
        }
        for feed in feeds {
            feed.check(snapshot.durable)?;
        }
        self.invariants(run).await?;
        let ended = requests
            .watched()
            .find(|id| !self.aside.contains(&id.family) && !self.seen.iter().any(|(live, _)| live == id));
        if let Some(ended) = ended {
            return Err(format!("{ended} has ended, and somebody still waits for that").into());
        }
        self.dry_run(run, requests).await?;
        Ok(true)
    }

    /// Where nothing moves, asking what would be done leaves nothing on disk.
    async fn dry_run(&mut self, run: &Run, requests: &mut Requests) -> Result<(), Trouble> {
        let Some(ask) = self.ask() else { return Ok(()) };
        let before = run.store.commits();
        let what = format!("{ask:?}");
        self.send(run, requests, ask, operator().dry_run());
        self.settle(run, requests).await?;
        if run.store.commits() > before {
            return Err(format!("{what} was a dry run, and is on disk").into());
        }
        Ok(())
    }

    // What happens.

    fn submit(&mut self, run: &Run, requests: &mut Requests) {
        if self.draw.percent(15)
            && let Some(keyed) = self.draw.pick(&self.keyed)
        {
            return self.send_keyed(run, requests, &keyed);
        }
        if self.has_enough() {
            return;
        }
        match self.draw.below(20) {
            0 => return self.submit_batch(run, requests),
            1 => return self.submit_other(run, requests),
            _ => {}
        }
        let kind = match self.draw.below(24) {
            20.. if self.apart.is_some() => KEPT,
            kind => kind,
        };
        let plan = match kind {
            CIRCLING => self.shapes.circle(&mut self.draw),
            _ => self.shapes.root(&mut self.draw),
        };
        if self.draw.percent(60) {
            let key = format!("key {}", self.keyed.len());
            let keyed = Keyed { key, plan, kind };
            self.keyed.push(keyed.clone());
            for _ in 0..=u64::from(self.draw.percent(20)) {
                self.send_keyed(run, requests, &keyed);
            }
        } else {
            let what = format!("submit {} as {kind}", plan.name);
            self.log.push(format!("{what}: {plan:?}"));
            requests.add(what, submit(run, plan, kind, None));
        }
    }

    fn submit_batch(&mut self, run: &Run, requests: &mut Requests) {
        let plans: Vec<Plan> = (0..=self.draw.below(3))
            .map(|_| self.shapes.root(&mut self.draw))
            .collect();
        self.log.push(format!("submit {plans:?}"));
        requests.add("submit a batch".to_owned(), submit_batch(run, plans));
    }

    /// Another value with a key that was answered, if results are kept so long.
    fn submit_other(&mut self, run: &Run, requests: &mut Requests) {
        let answered: Vec<String> = self.known.keys.keys().cloned().collect();
        if let Some(key) = self.draw.pick(&answered).filter(|_| self.keeps()) {
            let plan = self.shapes.root(&mut self.draw);
            requests.add(format!("submit another with {key}"), conflict(run, plan, key));
        }
    }

    fn send_keyed(&mut self, run: &Run, requests: &mut Requests, keyed: &Keyed) {
        let what = format!("submit {} as {} with {}", keyed.plan.name, keyed.kind, keyed.key);
        self.log.push(format!("{what}: {:?}", keyed.plan));
        let (plan, key) = (keyed.plan.clone(), Some(keyed.key.clone()));
        requests.add(what, submit(run, plan, keyed.kind, key));
    }

    /// Returns `true` if as many families live as may at once.
    pub(crate) fn has_enough(&self) -> bool {
        let mut live: Vec<u64> = self.seen.iter().map(|(id, _)| id.family).collect();
        live.dedup();
        live.len() >= FAMILIES
    }

    fn signal(&mut self, run: &Run, requests: &mut Requests) {
        let Some(id) = self.anybody() else { return };
        let name = self.draw.pick(&EVENTS).unwrap_or("go");
        let key = self.draw.percent(30).then(|| format!("signal {}", self.draw.below(5)));
        let (executor, payload) = (run.executor.clone(), self.draw.small(100));
        if self.draw.percent(15) {
            self.signals(run, requests, id, name);
            return;
        }
        self.log.push(format!("signal {name} to {id} {key:?}"));
        requests.add(format!("signal {name} to {id}"), async move {
            let signal = executor.signal(id, name, &payload);
            told(match key {
                Some(key) => signal.key(key).await,
                None => signal.await,
            })
        });
    }

    /// Sends several at once, to two receivers now and then; rarely the last of their name.
    fn signals(&mut self, run: &Run, requests: &mut Requests, id: ProcedureId, name: &'static str) {
        let other = self.anybody().filter(|_| self.draw.percent(40)).unwrap_or(id);
        let last = self.draw.percent(20);
        let count = 1 + self.draw.small(4);
        self.log
            .push(format!("{count} signals {name} to {id} and {other}, last: {last}"));
        let executor = run.executor.clone();
        requests.add(format!("signals {name} to {id} and {other}"), async move {
            let to = |number: u32| if number.is_multiple_of(2) { id } else { other };
            let sent = (0..count).map(|number| SendSignal::new(to(number), name, &number));
            let sent = sent.chain(last.then(|| Ok(SendSignal::new(id, name, &count)?.last())));
            match sent.collect() {
                Ok(signals) => told(executor.signal_all(signals).await),
                Err(error) => told(Err::<(), _>(AskError::from(error))),
            }
        });
    }

    fn broadcast(&mut self, run: &Run, requests: &mut Requests) {
        let name = self.draw.pick(&EVENTS).unwrap_or("go");
        let executor = run.executor.clone();
        self.log.push(format!("broadcast {name}"));
        requests.add(format!("broadcast {name}"), async move {
            told(executor.broadcast(name, &5).await)
        });
    }

    fn acknowledge(&mut self, run: &Run, requests: &mut Requests) {
        let Some(id) = self.draw.pick(&self.known.ids) else {
            return;
        };
        let executor = run.executor.clone();
        self.failures.may_go(id.family);
        requests.add(format!("acknowledge {id}"), async move {
            match executor.acknowledge(id).await {
                Ok(()) => Told::Acknowledged(id.family),
                Err(error) => told(Err::<(), _>(error)),
            }
        });
    }

    fn subscribe(&mut self, run: &Run, requests: &mut Requests, feeds: &mut Vec<Watched>) {
        let watched = Watched::default();
        let to = Subscriber(watched.clone()).start().recipient();
        let executor = run.executor.clone();
        requests.add(
            "subscribe".to_owned(),
            async move { told(executor.subscribe(to).await) },
        );
        feeds.push(watched);
    }

    fn question(&mut self, run: &Run, requests: &mut Requests) {
        let Some(id) = self.anybody() else { return };
        let live = self.seen.iter().any(|(live, _)| *live == id);
        if live && self.draw.percent(30) {
            let executor = run.executor.clone();
            return requests.watch(id, async move { ended(executor.outcome(id).await) });
        }
        let (executor, which) = (run.executor.clone(), self.draw.below(10));
        requests.add(format!("question {which} of {id}"), async move {
            match which {
                0..2 => told(executor.explain(id).await),
                2 => verdicts(executor.verdicts().await),
                3 => told(executor.list(ListFilter::default(), None, 7).await),
                4 => told(executor.tree(id).await),
                5 => told(executor.history(id).await),
                6 => told(executor.locks().await),
                7 => told(executor.limits().await),
                8 => told(executor.audit(None, 5).await),
                _ => told(executor.export(id).await.map(|_| ())),
            }
        });
    }

    // Time.

    fn advance(&mut self, run: &Run, by: Duration) {
        run.world.clock.advance(by);
        self.log.push(format!("time: {}", run.now().0));
    }

    /// Jumps to the next deadline, but not over the time that results are kept.
    fn jump(&mut self, run: &Run) {
        let near = run.now().after(DAY);
        let next = run.world.clock.next_deadline();
        if next.is_some_and(|next| next < near) && run.world.clock.jump() {
            self.log.push(format!("time: {}", run.now().0));
        }
    }

    // The end.

    async fn drain(&mut self, run: &Run, requests: &mut Requests) -> Result<(), Trouble> {
        if run.store.is_withholding() {
            run.store.release_receipts();
        }
        self.log.push("drain".to_owned());
        self.drained = true;
        let (executor, deadline) = (run.executor.clone(), Duration::from_secs(self.draw.below(3)));
        requests.add("drain".to_owned(), async move {
            match executor.drain(deadline).await {
                Ok(report) => Told::Said(format!("{report:?}")),
                Err(error) => told(Err::<(), _>(error)),
            }
        });
        self.settle(run, requests).await?;
        run.world.clock.advance(deadline);
        self.settle(run, requests).await?;
        if run.store.is_withholding() {
            run.store.release_receipts();
            self.settle(run, requests).await?;
        }
        let unanswered = requests.unanswered();
        if unanswered.is_empty() {
            return Ok(());
        }
        Err(format!("the engine has drained, and nobody answers {unanswered:?}").into())
    }
}
