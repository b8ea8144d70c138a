//! Families drawn at random, with locks for a stage and for life, children
//! that lock, sleeps, failures, retries and undos, under crashes at random
//! commits: no two strangers ever have what excludes the other, and at the end
//! nothing is held and nothing is left.
//!
//! They are drawn so that no deadlock is among them: who holds a lock for life
//! and waits for children takes one of its own group, and its children take
//! locks below that one.

use std::collections::BTreeMap;

use procession::limits::{LockNeed, LockPath};
use procession::testkit::{Ended, Fault, FaultPlan, Run, World};

use super::kit::{nothing_is_left, submit};
use crate::rollback::helper::{Order, under_so_many_seeds};
use crate::support::{Act, Call, Holding, Lab, Patient, Plan, Tested, UndoAct, kinds, plan};

const FAMILIES: u64 = 12;
const CRASHES: u64 = 4;

/// One drawn root, and whether it holds its locks for life.
struct Root {
    plan: Plan,
    for_life: bool,
}

fn need(draw: &mut Order, path: String) -> LockNeed {
    match draw.below(3) {
        0 => LockNeed::shared(LockPath::parse(path)),
        _ => LockNeed::exclusive(LockPath::parse(path)),
    }
}

/// Draws what one stage does that is not the last.
fn step(draw: &mut Order) -> Act {
    let then = match draw.below(3) {
        0 => Act::Sleep(1 + draw.below(3_000)),
        _ => Act::Next,
    };
    match draw.below(4) {
        0 => Act::Retry(1, Box::new(then)),
        1 => Act::Turns(40, Box::new(then)),
        _ => then,
    }
}

/// Draws one that has no children, with these locks.
fn leaf(draw: &mut Order, name: &str, needs: Vec<LockNeed>, may_fail: bool) -> Plan {
    let mut acts: Vec<Act> = (0..draw.below(3)).map(|_| step(draw)).collect();
    acts.push(if may_fail && draw.below(4) == 0 {
        Act::Turns(40, Box::new(Act::Fail("drawn".to_owned())))
    } else {
        Act::Turns(40, Box::new(Act::Done(1)))
    });
    let mut leaf = plan(name, acts).locks(needs);
    if draw.below(3) == 0 {
        leaf = leaf.undo(1, UndoAct::Fail(1));
    }
    if draw.below(3) == 0 {
        leaf = leaf.compensated();
    }
    if draw.below(3) == 0 { leaf.holding() } else { leaf }
}

fn root(draw: &mut Order, number: u64) -> Root {
    let name = format!("f{number}");
    if draw.below(2) == 0 {
        let paths: std::collections::BTreeSet<_> = (0..=draw.below(2)).map(|_| draw.below(4)).collect();
        let needs = paths.into_iter().map(|path| need(draw, format!("m/{path}"))).collect();
        let plan = leaf(draw, &name, needs, true);
        let for_life = draw.below(2) == 0;
        return Root { plan, for_life };
    }
    let group = format!("h/{}", draw.below(3));
    let children = (0..1 + draw.below(3)).map(|child| {
        let below = format!("{group}/{}", draw.below(2));
        let needs = vec![need(draw, below)];
        leaf(draw, &format!("{name}.{child}"), needs, true)
    });
    let spawn = crate::support::spawn(children.collect::<Vec<_>>());
    let mut acts = vec![step(draw), spawn];
    acts.push(match draw.below(4) {
        0 => Act::Fail("drawn".to_owned()),
        _ => Act::Done(1),
    });
    let plan = plan(&name, acts).locks([LockNeed::exclusive(LockPath::parse(group))]);
    Root { plan, for_life: true }
}

async fn client(run: &Run, roots: &[Root]) -> Tested {
    let mut ids = Vec::new();
    for root in roots {
        let (name, plan) = (root.plan.name.as_str(), root.plan.clone());
        ids.push(if root.for_life {
            submit(run, Holding(plan), name).await?.id()
        } else {
            submit(run, Patient(plan), name).await?.id()
        });
    }
    for id in ids {
        run.wait(run.executor.outcome(id)).await??;
    }
    nothing_is_left(run).await
}

/// The locks of all members, by name, and whether they are held for life.
fn needs_of(roots: &[Root]) -> BTreeMap<String, (Vec<LockNeed>, bool)> {
    let mut needs = BTreeMap::new();
    let mut note = |plan: &Plan, for_life| {
        let own = plan.locks.get(&1).cloned().unwrap_or_default();
        needs.insert(plan.name.clone(), (own, for_life));
    };
    for root in roots {
        note(&root.plan, root.for_life);
        for act in &root.plan.acts {
            if let Act::Spawn(children, ..) = act {
                children.iter().for_each(|child| note(child, child.holding));
            }
        }
    }
    needs
}

fn family(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// From the first to the last call of one that holds for life no stranger is called that it excludes.
fn nobody_enters(calls: &[Call], roots: &[Root]) -> Tested {
    let needs = needs_of(roots);
    for (name, (locks, _)) in needs.iter().filter(|(_, (_, for_life))| *for_life) {
        let own = |call: &&Call| call.name == *name;
        let (Some(first), Some(last)) = (
            calls.iter().position(|call| own(&call)),
            calls.iter().rposition(|call| own(&call)),
        ) else {
            continue;
        };
        for call in calls.iter().take(last).skip(first) {
            let stranger = family(&call.name) != family(name);
            let wanted = needs.get(&call.name).map(|(needs, _)| needs);
            let mut wanted = wanted.into_iter().flatten();
            let excluded = wanted.any(|need| locks.iter().any(|held| held.conflicts(need)));
            if stranger && excluded {
                return Err(format!("{} was called while {name} held {locks:?}", call.short()).into());
            }
        }
    }
    Ok(())
}

fn mixture(seed: u64) -> Tested {
    let mut draw = Order::new(seed);
    let roots: Vec<Root> = (0..FAMILIES).map(|number| root(&mut draw, number)).collect();
    let (world, lab) = (World::new(), Lab::default());
    for life in 0.. {
        let fault = match life {
            0..CRASHES if draw.below(2) == 0 => FaultPlan::at(draw.below(40), Fault::CrashBefore),
            0..CRASHES => FaultPlan::at(draw.below(40), Fault::CrashAfter),
            _ => FaultPlan::none(),
        };
        match world.run(
            fault,
            |builder| kinds(&lab, builder),
            async |run| client(run, &roots).await,
        )? {
            Ended::Done(()) => break,
            Ended::Crashed => {}
        }
    }
    if let Some(clash) = lab.clashes().first() {
        return Err(clash.clone().into());
    }
    nobody_enters(&lab.calls(), &roots)
}

#[test]
fn families_with_locks_under_crashes_never_have_two_owners() -> Tested {
    under_so_many_seeds(20, mixture)
}
