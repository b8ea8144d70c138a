//! The feed of committed changes: in order, from a known place on, and never a
//! burden to anybody.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex, PoisonError};

use actix::prelude::*;
use procession::status::{Change, ChangeFeed, ListFilter, ProcedureState, Seq};
use procession::testkit::{Fault, FaultPlan, Run, Trouble, World};

use super::crash::compensated;
use crate::support::{
    Act, Lab, Plan, Planned, Tested, at_every_commit, chain, end, live, live_through, plan, rows, spawn,
};

/// What one subscriber got.
#[derive(Clone, Default)]
struct Got(Arc<Mutex<Vec<ChangeFeed>>>);

impl Got {
    fn all(&self) -> Vec<ChangeFeed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// As text: `from 1`, `2`, `lagged 3`.
    fn line(&self) -> Vec<String> {
        let text = |feed: &ChangeFeed| match feed {
            ChangeFeed::From(seq) => format!("from {seq}"),
            ChangeFeed::Change(change) => change.seq.to_string(),
            ChangeFeed::Lagged(seq) => format!("lagged {seq}"),
        };
        self.all().iter().map(text).collect()
    }
}

/// Reads what it gets, or nothing while the lab's gate is shut.
struct Subscriber {
    got: Got,
    lab: Lab,
    gate: Option<&'static str>,
}

impl Actor for Subscriber {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if self.gate.is_some() {
            ctx.set_mailbox_capacity(2);
        }
    }
}

impl Handler<ChangeFeed> for Subscriber {
    type Result = ();

    fn handle(&mut self, feed: ChangeFeed, ctx: &mut Self::Context) {
        self.got.0.lock().unwrap_or_else(PoisonError::into_inner).push(feed);
        if let Some(gate) = self.gate {
            let lab = self.lab.clone();
            let shut = async move {
                while !lab.is_open(gate) {
                    tokio::task::yield_now().await;
                }
            };
            ctx.wait(shut.into_actor(self));
        }
    }
}

/// Makes a subscriber end.
#[derive(Message)]
#[rtype(result = "()")]
struct Leave;

impl Handler<Leave> for Subscriber {
    type Result = ();

    fn handle(&mut self, _: Leave, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

async fn subscribe(run: &Run, lab: &Lab, gate: Option<&'static str>) -> Result<Got, Trouble> {
    let got = Got::default();
    let subscriber = Subscriber {
        got: got.clone(),
        lab: lab.clone(),
        gate,
    }
    .start();
    run.executor.subscribe(subscriber.recipient()).await?;
    Ok(got)
}

fn numbers(first: u64, last: u64) -> Vec<String> {
    (first..=last).map(|seq| seq.to_string()).collect()
}

#[test]
fn e_113_three_subscribers() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        // The start's own commit is number 1, so commit n of the scenario is n + 1.
        let first = subscribe(run, &lab, None).await?;
        let third = subscribe(run, &lab, Some("read")).await?;
        let mut family = compensated();
        if let Some(last) = family.acts.pop() {
            family.acts.push(Act::Held("commit 7".to_owned(), Box::new(last)));
        }
        let handle = run.wait(run.executor.submit(Planned(family)).into_future()).await??;
        run.until("stage 2 of the root runs", || lab.has("r2")).await?;
        assert_eq!(run.store.commits(), 1 + 6);
        let second = subscribe(run, &lab, None).await?;
        let from = second_begins(run, &second).await?;
        lab.open("commit 7");
        run.wait(handle.outcome()).await?.ok();
        run.settle().await;
        assert_eq!(
            run.store.commits(),
            13,
            "nobody was slowed, and nothing was written for them"
        );

        let everything = [vec!["from 1".to_owned()], numbers(2, 13)].concat();
        assert_eq!(first.line(), everything);
        let rest = [vec![format!("from {from}")], numbers(from.0 + 1, 13)].concat();
        assert_eq!(second.line(), rest);
        check_rows(run, &first).await?;

        // It held the first message, and its mailbox two or three more.
        lab.open("read");
        run.settle().await;
        let got = third.line();
        let read = got.len() - 2;
        let lagged = format!("lagged {}", 1 + read);
        let expected = [vec!["from 1".to_owned()], numbers(2, 1 + read as u64), vec![lagged]].concat();
        assert_eq!(got, expected, "told without waiting for another commit");
        assert!(read <= 4, "its mailbox is the bound");
        // From there on it sees all again.
        end(run, Planned(chain("b", 1)), "b").await??;
        run.settle().await;
        assert_eq!(third.line().split_off(got.len()), numbers(14, 15));
        Ok(())
    })
}

async fn second_begins(run: &Run, second: &Got) -> Result<Seq, Trouble> {
    run.until("it was told where it begins", || !second.all().is_empty())
        .await?;
    let Some(ChangeFeed::From(seq)) = second.all().first().cloned() else {
        return Err("the first message is another".into());
    };
    assert_eq!(seq, Seq(7), "what came before is read, and not told");
    // The beginning is consistent: what is read now has at least that commit.
    assert!(run.executor.snapshot().await?.durable >= seq);
    Ok(seq)
}

/// The rows that the feed showed last are those that are there.
async fn check_rows(run: &Run, feed: &Got) -> Tested {
    let mut last = BTreeMap::new();
    for feed in feed.all() {
        if let ChangeFeed::Change(change) = feed {
            for row in &change.rows {
                assert_eq!(row.revision, change.seq);
                last.insert(row.id, row.clone());
            }
        }
    }
    let root = *last.keys().next().ok_or("no row was shown")?;
    let tree = run.executor.tree(root).await?;
    assert_eq!(last.into_values().collect::<Vec<_>>(), tree);
    assert_eq!(tree.first().map(|row| row.state), Some(ProcedureState::RolledBack));
    Ok(())
}

#[test]
fn e_113_nothing_is_told_before_its_receipt() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let plan = FaultPlan::at(2, Fault::Withhold);
    world
        .run(
            plan,
            |builder| crate::support::kinds(&lab, builder),
            async |run| {
                let first = subscribe(run, &lab, None).await?;
                run.executor.submit(Planned(chain("a", 2))).await?;
                run.until("commit 2 is on disk", || run.store.is_withholding()).await?;
                let late = Got::default();
                let subscriber = Subscriber {
                    got: late.clone(),
                    lab: lab.clone(),
                    gate: None,
                }
                .start();
                let executor = run.executor.clone();
                let subscribed = actix_rt::spawn(async move { executor.subscribe(subscriber.recipient()).await });
                run.settle().await;
                assert_eq!(first.line(), ["from 1", "2"]);
                assert!(late.line().is_empty(), "it rests on commit 3: {:?}", late.line());
                run.store.release_receipts();
                subscribed.await??;
                run.settle().await;
                assert_eq!(first.line(), ["from 1", "2", "3", "4"]);
                assert_eq!(late.line(), ["from 3", "4"]);
                Ok(())
            },
        )?
        .done()?;
    Ok(())
}

/// What the subscribers of one life were told.
struct OfLife {
    /// One that reads all.
    reads: Got,
    /// One that reads nothing before the end.
    lags: Got,
}

/// The lives of one world, and what outlives them.
struct Watched {
    lab: Lab,
    world: World,
    family: Plan,
    lives: RefCell<Vec<OfLife>>,
}

/// The changes that a subscriber got, behind the place from which on it got them; without gap, and no word too many.
fn in_order(got: &Got) -> Result<(Seq, Vec<Arc<Change>>), Trouble> {
    let all = got.all();
    let Some((ChangeFeed::From(from), rest)) = all.split_first() else {
        return Err("the first word is where it begins".into());
    };
    let (mut last, mut changes) = (*from, Vec::new());
    for feed in rest {
        match feed {
            ChangeFeed::Change(change) => {
                assert!(change.seq > last, "{} after {last}", change.seq);
                last = change.seq;
                changes.push(Arc::clone(change));
            }
            ChangeFeed::Lagged(place) => assert_eq!(*place, last, "the place is the last that it got"),
            ChangeFeed::From(_) => return Err("it begins twice".into()),
        }
    }
    Ok((*from, changes))
}

impl Watched {
    /// Between two lives: whatever was told in the last one is on the disk.
    fn is_durable(&self) -> Tested {
        let rows = rows(&self.world.disk)?;
        let Some(life) = self.lives.borrow().last().map(|life| life.reads.clone()) else {
            return Ok(());
        };
        if life.all().is_empty() {
            return Ok(());
        }
        let (from, changes) = in_order(&life)?;
        let numbers: Vec<u64> = changes.iter().map(|change| change.seq.0).collect();
        let without_gap: Vec<u64> = (from.0 + 1..).take(numbers.len()).collect();
        assert_eq!(numbers, without_gap, "every commit, and each once");
        for told in changes.iter().flat_map(|change| &change.rows) {
            let row = rows
                .iter()
                .find(|row| row.id == told.id)
                .ok_or("a told row is not there")?;
            assert!(row.revision >= told.revision, "{} is older on the disk", told.id);
            assert!(row.revision > told.revision || row.state == told.state, "{}", told.id);
        }
        Ok(())
    }

    async fn live(&self, run: &Run) -> Tested {
        let (reads, lags) = (
            subscribe(run, &self.lab, None).await?,
            subscribe(run, &self.lab, Some("read")).await?,
        );
        let before = self.lives.borrow().last().and_then(|life| in_order(&life.reads).ok());
        let told = before.map(|(from, changes)| changes.last().map_or(from, |change| change.seq));
        self.lives.borrow_mut().push(OfLife {
            reads: reads.clone(),
            lags: lags.clone(),
        });
        let first = run.executor.list(ListFilter::default(), None, 100).await?.items;
        end(run, Planned(self.family.clone()), "the plan").await?.ok();
        run.settle().await;
        self.lab.open("read");
        run.settle().await;
        // A consistent beginning, and all after it, is what there is at the end.
        let (from, changes) = in_order(&reads)?;
        assert!(told.is_none_or(|told| from > told), "{from} after {told:?}");
        let mut last: BTreeMap<_, _> = first.into_iter().map(|row| (row.id, row)).collect();
        for row in changes.iter().flat_map(|change| change.rows.clone()) {
            if last.get(&row.id).is_none_or(|known| known.revision <= row.revision) {
                last.insert(row.id, row);
            }
        }
        let rows = run.executor.list(ListFilter::default(), None, 100).await?.items;
        assert_eq!(last.into_values().collect::<Vec<_>>(), rows);
        let (_, of_late) = in_order(&lags)?;
        assert!(of_late.len() <= changes.len());
        Ok(())
    }
}

/// E-030 whole, and a smaller family that is crashed once more at every commit of the next life.
#[test]
fn e_113_nobody_is_told_what_a_crash_takes_away() -> Tested {
    let small = plan(
        "r",
        [spawn([chain("c", 1).compensated()]), Act::Fail("boom".to_owned())],
    );
    for (family, twice, commits) in [(compensated(), false, 12), (small, true, 7)] {
        let fresh = |world: &World| Watched {
            lab: Lab::default(),
            world: world.clone(),
            family: family.clone(),
            lives: RefCell::default(),
        };
        let set_up = |watched: &Watched, builder| {
            let checked = watched.is_durable();
            assert!(checked.is_ok(), "{checked:?}");
            crate::support::kinds(&watched.lab, builder)
        };
        let drive = async |watched: &Watched, run: &Run| watched.live(run).await;
        let check = |watched: &Watched, came: &[(u64, Fault)]| {
            let lags = |life: &OfLife| life.lags.all().iter().any(|feed| matches!(feed, ChangeFeed::Lagged(_)));
            assert!(
                !came.is_empty() || watched.lives.borrow().iter().any(lags),
                "one lags behind"
            );
            watched.is_durable()
        };
        let done = at_every_commit(twice, |faults| live_through(faults, fresh, set_up, drive, check))?;
        assert_eq!(done.commits, commits);
    }
    Ok(())
}

/// Somebody who looks and leaves takes no place, though nothing is committed meanwhile.
#[test]
fn those_who_have_left_take_no_place() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        for _ in 0..200 {
            let subscriber = Subscriber {
                got: Got::default(),
                lab: lab.clone(),
                gate: None,
            };
            let subscriber = subscriber.start();
            run.executor.subscribe(subscriber.clone().recipient()).await?;
            subscriber.send(Leave).await?;
        }
        Ok(())
    })
}
