//! The feed of committed changes: in order, from a known place on, and never a
//! burden to anybody.

use std::sync::{Arc, Mutex, PoisonError};

use actix::prelude::*;
use procession::testkit::{Run, Trouble};
use procession::{Feed, ProcedureState, Seq};
use std::future::IntoFuture;

use super::crash::compensated;
use crate::support::{Act, Lab, Planned, Tested, chain, end, live};

/// What one subscriber got.
#[derive(Clone, Default)]
struct Got(Arc<Mutex<Vec<Feed>>>);

impl Got {
    fn all(&self) -> Vec<Feed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// As text: `from 1`, `2`, `lagged 3`.
    fn line(&self) -> Vec<String> {
        let text = |feed: &Feed| match feed {
            Feed::From(seq) => format!("from {seq}"),
            Feed::Change(change) => change.seq.to_string(),
            Feed::Lagged(seq) => format!("lagged {seq}"),
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

impl Handler<Feed> for Subscriber {
    type Result = ();

    fn handle(&mut self, feed: Feed, ctx: &mut Self::Context) {
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
    let Some(Feed::From(seq)) = second.all().first().cloned() else {
        return Err("the first message is another".into());
    };
    assert_eq!(seq, Seq(7), "what came before is read, and not told");
    // The beginning is consistent: what is read now has at least that commit.
    assert!(run.executor.snapshot().await?.durable >= seq);
    Ok(seq)
}

/// The rows that the feed showed last are those that are there.
async fn check_rows(run: &Run, feed: &Got) -> Tested {
    let mut last = std::collections::BTreeMap::new();
    for feed in feed.all() {
        if let Feed::Change(change) = feed {
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
    use procession::testkit::{Fault, FaultPlan, World};
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
