//! One drawn saga, from its start to its end: through time, decisions, restarts and crashes.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use procession::operate::OperatorRequest;
use procession::saga::{SagaInstance, Sagas, Standing};
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};
use procession::{Builder, ProcedureId};
use procession_actors::clock::Clock;
use procession_actors::journal::codec;
use procession_actors::view::Status;
use procession_kernel::{Ending, ProcedureState, Seq, WaitReason};
use serde_json::{Map, Value, json};

use super::compare::{Both, Paths, shown};
use super::deaths::Death;
use super::draw::Draw;
use super::grow;
use super::member::Moment;
use super::model::{Decided, Decision, Facts, SkippedUndo, replay};
use super::outside::{Odds, Outside};
use super::shape::{Drawn, LONGEST};

/// How long ends are kept: longer than any saga.
const KEPT: Duration = Duration::from_hours(24 * 365);
/// What is due later than this is no part of a saga.
const FAR: Duration = Duration::from_hours(24);
/// Members of one saga at most.
const MEMBERS: usize = 1_000;
/// Looks at a saga from which on everything is healed, and after which it must have ended.
const HEALS: usize = 40;
const LAST: usize = 400;
/// Turns in which the engine answers.
const TURNS: usize = 100_000;

/// What was asked of the engine, and may have been lost with a crash.
enum Asked {
    Decision(Vec<(ProcedureId, Before, Decided)>),
    Abort(Moment),
}

/// What a member was before a decision.
struct Before {
    revision: Seq,
    /// How many stages it had run.
    stages: usize,
}

/// How a life ended that did not crash.
enum Lived {
    Over,
    Restarts,
}

pub(super) struct Story {
    draw: Draw,
    pub(super) drawn: Drawn,
    odds: Odds,
    crashes: u64,
    outside: Outside,
    facts: Facts,
    asked: Option<Asked>,
    /// When a person last asked to skip an undo.
    skips: Option<Moment>,
    /// A person has let go on what crashes had made look like their cause.
    is_released: bool,
    /// What could be seen before a restart.
    seen: Option<String>,
    looks: usize,
    /// What happened, for a person.
    pub(super) told: Vec<String>,
    /// What this seed has met.
    pub(super) met: Vec<&'static str>,
}

impl Story {
    pub(super) fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let drawn = grow::grow(&mut draw);
        let mut params = Map::new();
        for length in 0..=LONGEST {
            let elements: Vec<Value> = (0..length).map(|element| json!(format!("e{element}"))).collect();
            params.insert(format!("l{length}"), elements.into());
        }
        params.insert("at".to_owned(), "".into());
        params.insert("p".to_owned(), draw.below(3).into());
        let of = |draw: &mut Draw, odds: [u64; 4]| odds[draw.place(4)];
        let odds = Odds {
            seed,
            fault: of(&mut draw, [3, 15, 30, 60]),
            undo_fault: of(&mut draw, [0, 10, 30, 80]),
            slow: of(&mut draw, [0, 30, 60, 90]),
        };
        Self {
            crashes: of(&mut draw, [0, 0, 40, 80]),
            draw,
            drawn,
            odds,
            outside: Outside::default(),
            facts: Facts {
                params,
                ..Facts::default()
            },
            asked: None,
            skips: None,
            is_released: false,
            seen: None,
            looks: 0,
            told: Vec::new(),
            met: Vec::new(),
        }
    }

    pub(super) fn live(&mut self) -> Result<(), Trouble> {
        let world = World::new();
        self.outside.get().clock = world.clock.clone();
        let sagas = self.outside.sagas(&self.drawn, self.odds)?;
        self.facts.started = world.clock.now();
        for life in 0.. {
            self.outside.get().life = life;
            self.facts.life = life;
            let plan = self.plan();
            let set_up = |builder: Builder| builder.sagas(sagas.clone()).retention(KEPT, KEPT);
            match world.run(plan, set_up, async |run| self.one_life(run, &sagas).await)? {
                Ended::Done(Lived::Over) => return Ok(()),
                Ended::Done(Lived::Restarts) => {
                    self.died(false);
                    self.tell("restart");
                }
                Ended::Crashed => {
                    self.died(true);
                    self.meet("crash");
                    self.tell("crash");
                    self.seen = None;
                }
            }
        }
        Ok(())
    }

    fn died(&mut self, is_crash: bool) {
        let event = self.outside.get().event();
        self.facts.deaths.push(Death { event, is_crash });
    }

    fn tell(&mut self, what: impl Into<String>) {
        let now = self.outside.get().clock.now();
        self.told.push(format!("{} us: {}", now.0, what.into()));
    }

    fn meet(&mut self, what: &'static str) {
        if !self.met.contains(&what) {
            self.met.push(what);
        }
    }

    fn plan(&mut self) -> FaultPlan {
        let is_late = self.draw.percent(30);
        let plan = match self.draw.percent(self.crashes) && self.looks < HEALS {
            true => {
                let fault = match self.draw.below(3) {
                    0 => Fault::CrashBefore,
                    1 => Fault::CrashAfter,
                    _ => Fault::Torn {
                        cut: 1 + self.draw.place(12),
                    },
                };
                FaultPlan::at(2 + self.draw.below(24), fault)
            }
            false => FaultPlan::none(),
        };
        match is_late {
            true => plan.late(self.draw.next(), 8),
            false => plan,
        }
    }

    async fn one_life(&mut self, run: &Run, sagas: &Sagas) -> Result<Lived, Trouble> {
        let machine = sagas.machine("m0")?.params(&self.facts.params)?;
        let handle = ask(run, run.executor.submit(machine).key("the saga").into_future()).await??;
        let id = handle.id();
        self.facts.root = Some(id);
        run.settle().await;
        self.release(run, id).await?;
        self.resolve(run, id).await?;
        loop {
            let (instance, paths) = self.look(run, id).await?;
            if instance.standing == Standing::Ended {
                return Ok(Lived::Over);
            }
            self.looks += 1;
            if self.looks > LAST {
                return Err(format!("it does not come to an end: {}", instance.sentence()).into());
            }
            if self.looks < HEALS && self.draw.percent(6) {
                self.seen = Some(shown(&instance));
                return Ok(Lived::Restarts);
            }
            self.act(run, id, &instance, &paths).await?;
            run.settle().await;
        }
    }

    /// Compares what the engine says with what the model does.
    async fn look(&mut self, run: &Run, id: ProcedureId) -> Result<(SagaInstance, Paths), Trouble> {
        let instance = run.executor.saga(id).instance().await?;
        {
            let world = self.outside.get();
            self.facts.log.clone_from(&world.log);
        }
        self.facts.now = run.now();
        if let Some(seen) = self.seen.take()
            && self.facts.log.iter().all(|called| called.life < self.facts.life)
            // What was out and is not called again is undone, or waits for its turn.
            && !self.facts.was_out()
        {
            let now = shown(&instance);
            if seen != now {
                return Err(format!("a restart has changed what is read:\n{seen}\n{now}").into());
            }
        }
        // What a person let go on is no repetition, so a window that is over stops it. The model does not know that.
        if self.is_released && self.drawn.has_windows() {
            let paths = instance
                .rests
                .iter()
                .map(|rest| (rest.id, rest.id.to_string()))
                .collect();
            return Ok((instance, paths));
        }
        // The engine lets those run one after another that were out when a process ended. Meanwhile nothing is known.
        if self.has_suspects(run, id).await? {
            return Ok((instance, Paths::new()));
        }
        let quiet = self.moment(run);
        self.facts.quiet.push(quiet);
        let members = run.executor.members(id, 0, MEMBERS).await?.items;
        self.facts.children = children_of(&members);
        let found = replay(&self.drawn, &self.facts);
        let both = Both {
            is_stuck: stuck_of(&members).is_some(),
            facts: &self.facts,
            found: &found,
            instance: &instance,
        };
        let paths = match both.compare() {
            Ok(paths) => paths,
            Err(why) => {
                let members = run.executor.members(id, 0, MEMBERS).await?.items;
                let lines = members.iter().filter(|member| member.ended.is_none()).map(|member| {
                    format!(
                        "{} {} {:?} {:?} {:?}",
                        member.id, member.stage, member.state, member.wait, member.question
                    )
                });
                for line in lines.collect::<Vec<_>>() {
                    self.tell(line);
                }
                for called in self.facts.log.clone() {
                    self.tell(format!(
                        "  {} {:?} {:?} {} {:?} {:?} at \"{}\" by {}",
                        called.state,
                        called.index,
                        called.attempt,
                        called.life,
                        called.begun,
                        called.ended,
                        called.at,
                        called.member
                    ));
                }
                return Err(why.into());
            }
        };
        if instance.standing == Standing::Ended {
            both.compare_compensated()?;
            self.meet(match instance.compensation {
                None if instance.status.word() == "SU" => "succeeded",
                None => "failed",
                Some(_) => "undone",
            });
        }
        Ok((instance, paths))
    }

    async fn has_suspects(&self, run: &Run, id: ProcedureId) -> Result<bool, Trouble> {
        let members = run.executor.members(id, 0, MEMBERS).await?.items;
        Ok(members.iter().any(|member| member.wait == Some(WaitReason::Suspect)))
    }

    /// A process that died twice while a saga ran suspects it, and a person lets it go on.
    async fn release(&mut self, run: &Run, id: ProcedureId) -> Result<(), Trouble> {
        let suspected = run.executor.members(id, 0, MEMBERS).await?.items;
        let failing = failing(&suspected);
        // What fails counts as executed, and is not called again.
        let poisoned = suspected
            .iter()
            .filter(|member| member.wait == Some(WaitReason::Poison) && !failing.contains(&member.id));
        for member in poisoned {
            self.is_released = true;
            self.facts.release(member.id);
            // A person has changed something since.
            self.seen = None;
            ask(run, run.executor.retry_now(member.id, by())).await??;
            run.settle().await;
        }
        Ok(())
    }

    /// Finds out whether what was asked when the engine crashed was done.
    async fn resolve(&mut self, run: &Run, id: ProcedureId) -> Result<(), Trouble> {
        match self.asked.take() {
            None => {}
            Some(Asked::Decision(asked)) => {
                for (member, before, decided) in asked {
                    let status = run.executor.status(member).await?;
                    // Its saga may have failed since. Then it still asks, and has run no other stage.
                    let asks = status.question.is_some() && stages_of(run, member).await? == before.stages;
                    if status.revision != before.revision && !asks {
                        self.facts.decided.push(decided);
                    }
                }
            }
            Some(Asked::Abort(when)) => {
                let status = run.executor.status(id).await?;
                let is_aborted = status
                    .cause
                    .as_ref()
                    .is_some_and(|cause| cause.kind == procession_kernel::CauseKind::Aborted);
                if is_aborted {
                    self.facts.aborted = Some(when);
                }
            }
        }
        self.read_skipped(run, id).await
    }

    async fn act(&mut self, run: &Run, id: ProcedureId, instance: &SagaInstance, paths: &Paths) -> Result<(), Trouble> {
        let members = run.executor.members(id, 0, MEMBERS).await?.items;
        let stuck = stuck_of(&members);
        if let Some(stuck) = stuck.filter(|_| self.draw.percent(70)) {
            return self.unstick(run, id, stuck).await;
        }
        let can_abort = members
            .iter()
            .any(|member| member.id == id && member.state != ProcedureState::Failed);
        if can_abort && self.draw.percent(if self.looks > 200 { 50 } else { 5 }) {
            return self.abort(run, id).await;
        }
        // The engine forgets old ends at a time that no saga sees.
        let horizon = run.now().after(FAR);
        let has_deadline = run.world.clock.next_deadline().is_some_and(|at| at < horizon);
        if !paths.is_empty() && (!has_deadline || self.draw.percent(50)) {
            return self.decide(run, id, instance, paths).await;
        }
        if has_deadline {
            run.world.clock.jump();
        } else if stuck.is_none() {
            return Err(format!("nothing is left that could go on: {}", instance.sentence()).into());
        }
        Ok(())
    }

    fn moment(&self, run: &Run) -> Moment {
        Moment {
            at: run.now(),
            event: self.outside.get().event(),
        }
    }

    async fn abort(&mut self, run: &Run, id: ProcedureId) -> Result<(), Trouble> {
        self.tell("abort");
        self.meet("abort");
        let when = self.moment(run);
        self.asked = Some(Asked::Abort(when));
        ask(run, run.executor.saga(id).compensate(by())).await??;
        self.asked = None;
        self.facts.aborted = Some(when);
        Ok(())
    }

    /// A compensator has failed as often as it may.
    async fn unstick(&mut self, run: &Run, id: ProcedureId, stuck: ProcedureId) -> Result<(), Trouble> {
        self.meet("stuck");
        let saga = run.executor.saga(stuck);
        if self.draw.percent(40) {
            self.tell(format!("retry the undo of {stuck}"));
            self.outside.get().undos_succeed = true;
            ask(run, saga.compensate(by())).await??;
        } else {
            self.tell(format!("skip the undo of {stuck}"));
            self.skips = Some(self.moment(run));
            ask(run, saga.skip_compensation(by())).await??;
        }
        run.settle().await;
        self.read_skipped(run, id).await
    }

    async fn read_skipped(&mut self, run: &Run, id: ProcedureId) -> Result<(), Trouble> {
        let history = ask(run, run.executor.history(id)).await??;
        let skipped: Vec<_> = history
            .iter()
            .filter(|entry| entry.ending == Ending::UndoSkipped)
            .collect();
        for entry in skipped.iter().skip(self.facts.skipped.len()) {
            // What followed from it may have happened since.
            let asked = self.skips.take().map(|asked| asked.event);
            let event = asked.unwrap_or_else(|| self.outside.get().event());
            self.facts.skipped.push(SkippedUndo {
                member: ProcedureId::new(id.family, entry.member),
                state: codec::describe(entry.stage.as_slice()),
                when: Moment { at: entry.ended, event },
            });
        }
        Ok(())
    }

    fn drawn_decision(&mut self, can_skip: bool) -> Decision {
        let draw = &mut self.draw;
        let mut values = Map::new();
        if draw.percent(40) {
            values.insert("x".to_owned(), "decided".into());
        }
        if can_skip && draw.percent(30) {
            return Decision::Skip(values);
        }
        if self.looks > HEALS || draw.percent(60) {
            values.insert("heal".to_owned(), "yes".into());
        }
        if draw.percent(30) {
            values.insert("p".to_owned(), draw.below(3).into());
        }
        Decision::Forward(values)
    }

    async fn decide(
        &mut self,
        run: &Run,
        id: ProcedureId,
        instance: &SagaInstance,
        paths: &Paths,
    ) -> Result<(), Trouble> {
        self.meet("decision");
        let mut rests: Vec<_> = instance.rests.iter().collect();
        let mut of = id;
        if self.draw.percent(40) {
            let chosen = self.draw.place(rests.len());
            rests = rests.into_iter().skip(chosen).take(1).collect();
            of = rests.first().map_or(id, |rest| rest.id);
        }
        let decision = self.drawn_decision(rests.iter().all(|rest| rest.can_skip));
        let when = self.moment(run);
        let mut asked = Vec::new();
        for rest in &rests {
            let Some(path) = paths.get(&rest.id) else { continue };
            let status = run.executor.status(rest.id).await?;
            let decided = Decided {
                path: path.clone(),
                when,
                decision: decision.clone(),
            };
            let before = Before {
                revision: status.revision,
                stages: stages_of(run, rest.id).await?,
            };
            asked.push((rest.id, before, decided));
        }
        let names: Vec<&str> = rests.iter().map(|rest| rest.state.as_str()).collect();
        self.tell(format!("{decision:?} of {names:?}"));
        let all: Vec<Decided> = asked.iter().map(|(.., decided)| decided.clone()).collect();
        self.asked = Some(Asked::Decision(asked));
        let saga = run.executor.saga(of);
        let decided = match &decision {
            Decision::Forward(params) => ask(run, saga.forward(params, by())).await?,
            Decision::Skip(results) => {
                self.meet("skip");
                ask(run, saga.skip(results, by())).await?
            }
        };
        let decided = decided.map_err(|error| format!("{names:?} rest, and a decision is refused: {error}"))?;
        self.asked = None;
        if decided.members.len() != all.len() {
            return Err(format!("a decision of {names:?} reached {:?}", decided.members).into());
        }
        self.facts.decided.extend(all);
        Ok(())
    }
}

/// Returns how many stages a member has run.
async fn stages_of(run: &Run, of: ProcedureId) -> Result<usize, Trouble> {
    let history = ask(run, run.executor.history(ProcedureId::root(of.family))).await??;
    let own = history.iter().filter(|entry| entry.member == of.member);
    Ok(own.filter(|entry| entry.ending.is_stage()).count())
}

/// Returns the children of each member, in the order of their births.
fn children_of(members: &[Status]) -> BTreeMap<ProcedureId, Vec<ProcedureId>> {
    let mut children = BTreeMap::<_, Vec<_>>::new();
    for member in members {
        if let Some(parent) = member.parent {
            children.entry(parent).or_default().push(member.id);
        }
    }
    children.values_mut().for_each(|children| children.sort_unstable());
    children
}

/// Returns the members that fail, or lie in what fails.
fn failing(members: &[Status]) -> Vec<ProcedureId> {
    let mut failing: Vec<ProcedureId> = Vec::new();
    for member in members {
        let is_below = member.parent.is_some_and(|parent| failing.contains(&parent));
        if is_below || member.state == ProcedureState::Failed {
            failing.push(member.id);
        }
    }
    failing
}

/// Returns the member whose rollback rests, unless it has become a part of a larger one.
fn stuck_of(members: &[Status]) -> Option<ProcedureId> {
    let undone = failing(members);
    let is_part = |member: &Status| member.parent.is_some_and(|parent| undone.contains(&parent));
    let mut rests = members
        .iter()
        .filter(|member| member.wait == Some(WaitReason::RollbackFailed));
    let stuck = rests.find(|member| !is_part(member));
    stuck.map(|member| member.id)
}

fn by() -> OperatorRequest {
    OperatorRequest::new("ann", "a drawn decision")
}

/// Awaits an answer of the engine without time passing. The future is polled at every turn, which is faster than to let all
/// come to rest between its steps.
async fn ask<F: Future>(run: &Run, future: F) -> Result<F::Output, Trouble> {
    let mut future = pin!(future);
    for _ in 0..TURNS {
        if let Poll::Ready(value) = futures::poll!(future.as_mut()) {
            return Ok(value);
        }
        tokio::task::yield_now().await;
    }
    Err(format!("the engine does not answer at {:?}", run.now()).into())
}
