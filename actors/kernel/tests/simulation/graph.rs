//! Gates of children: drawn for the lists that stages spawn, and worked out anew from the rows whenever one opens.

use std::collections::BTreeMap;

use procession_kernel::{
    Birth, Blob, Brood, Event, Gate, GraphNode, JoinPolicy, JoinRuling, Kernel, ProcedureId, ProcedureState, Record,
    Row, StageOutcome, Verb, WaitReason,
};

use super::check;
use super::draw::Draw;

/// Puts gates and names on some children of a list. It has numbers of its own, so that all else is drawn as without.
/// Gates have rules of their own only if `custom` says so.
pub(crate) fn add(outcome: &mut StageOutcome, seed: u64, custom: bool) {
    let StageOutcome::Spawn { births, .. } = outcome else {
        return;
    };
    let mut draw = Draw::new(seed);
    let attached = births.iter_mut().filter(|birth| !birth.detached);
    for (place, birth) in (0_u32..).zip(attached) {
        let mut after: Vec<u32> = (0..place).filter(|_| draw.percent(50)).collect();
        if draw.percent(1) {
            // No such list is taken.
            after.push(place);
        }
        if draw.percent(30) {
            after.reverse();
        }
        let gate = (!after.is_empty() && draw.percent(70)).then(|| gate(&mut draw, after, custom));
        let node = GraphNode {
            name: draw.percent(20).then(|| format!("child {place}")),
            gate,
            vital: draw.percent(10),
        };
        birth.graph = (node != GraphNode::default()).then(|| Box::new(node));
    }
}

fn gate(draw: &mut Draw, after: Vec<u32>, custom: bool) -> Gate {
    let most = after.len() as u64;
    let some = u32::try_from(draw.below(most)).unwrap_or(0);
    let opens = match draw.below(6) {
        0 => JoinPolicy::AllFinished,
        1 => JoinPolicy::AtLeast(1 + some),
        2 => JoinPolicy::Named(vec![some, 0, some]),
        _ => JoinPolicy::AllSucceeded,
    };
    let or_wait = draw.percent(30);
    let is_custom = custom && draw.percent(50);
    Gate {
        after,
        opens: if is_custom { JoinPolicy::Custom } else { opens },
        or_wait,
    }
}

/// Lets a root be born with children, now and then. It has numbers of its own, too.
pub(crate) fn brood(birth: &mut Birth, seed: u64, custom: bool) {
    let mut draw = Draw::new(seed ^ 0x5EED);
    if !draw.percent(25) {
        return;
    }
    let mut births: Vec<Birth> = (0..draw.below(5)).map(|_| draw.birth()).collect();
    births.iter_mut().for_each(|birth| birth.detached = draw.percent(10));
    let join = match draw.below(4) {
        0 => JoinPolicy::AllFinished,
        1 => JoinPolicy::AtLeast(1),
        2 => JoinPolicy::Custom,
        _ => JoinPolicy::AllSucceeded,
    };
    let mut outcome = StageOutcome::Spawn {
        births,
        join: join.clone(),
        width: 0,
        then: Blob::default(),
    };
    add(&mut outcome, seed, custom);
    let StageOutcome::Spawn { births, .. } = outcome else {
        return;
    };
    birth.brood = Some(Box::new(Brood {
        children: births,
        join,
        width: u32::try_from(draw.below(3)).unwrap_or(0),
        keep_places: draw.percent(20),
        output: draw.percent(40).then(Blob::default),
    }));
}

/// What an event itself says of one gate.
pub(crate) enum Told {
    /// Nothing.
    Nothing,
    /// An operator opens it.
    Retried(ProcedureId),
    /// Its own rule has ruled, and saw this many siblings ended.
    Ruled(ProcedureId, u32, JoinRuling),
}

impl Told {
    /// Reads an event.
    pub(crate) fn by(event: &Event) -> Self {
        if let Event::Requested(_, verb, ..) = event
            && let Verb::RetryNow(id) = **verb
        {
            Self::Retried(id)
        } else if let Event::GateRuled { id, seen, ruling } = event {
            Self::Ruled(*id, *seen, ruling.clone())
        } else {
            Self::Nothing
        }
    }
}

/// Looks at a decision before it is applied: no gate opens before its time, ends its child before its time, or stays
/// closed when it should have done either.
pub(crate) fn gates(kernel: &Kernel, records: &[Record], told: &Told) -> Result<(), String> {
    let rows = records
        .iter()
        .filter_map(|record| if let Record::Row(row) = record { Some(row) } else { None });
    let changed: BTreeMap<ProcedureId, &Row> = rows.map(|row| (row.id, &**row)).collect();
    let row_of = |id: ProcedureId| changed.get(&id).copied().or_else(|| kernel.row(id));
    for family in kernel.families().values() {
        for before in family.members.iter().filter(|row| row.closed_gate().is_some()) {
            let Some(after) = row_of(before.id) else { continue };
            let Some(gate) = before.closed_gate() else { continue };
            let siblings = gate
                .after
                .iter()
                .map(|member| ProcedureId::new(before.id.family, *member));
            let siblings: Vec<&Row> = siblings.filter_map(row_of).collect();
            let (met, shut) = says(gate, &siblings);
            let (told_to_go, told_to_end) = match told {
                Told::Retried(id) if *id == before.id => (true, false),
                // A ruling may end siblings, too; it did not see that.
                Told::Ruled(id, seen, ruling) if *id == before.id => {
                    let ids = siblings.iter().map(|row| row.id);
                    let known: Vec<&Row> = ids.filter_map(|id| kernel.row(id)).collect();
                    rules(*seen, ruling, &known)
                }
                Told::Retried(_) | Told::Ruled(..) | Told::Nothing => (false, false),
            };
            let is_ruled = matches!(told, Told::Ruled(..));
            let must_leave = is_ruled && told_to_go && !check::is_stopped(kernel, before);
            let ends = (shut || told_to_end) && !gate.or_wait;
            check_one(after, met || told_to_go, ends, must_leave).map_err(|why| {
                let states: Vec<_> = siblings.iter().map(|row| (row.id, row.state)).collect();
                format!("{} {why}: {gate:?} {states:?}", before.id)
            })?;
        }
    }
    Ok(())
}

fn check_one(after: &Row, may_go: bool, ends: bool, must_leave: bool) -> Result<(), String> {
    let stays = after.wait == Some(WaitReason::Gate);
    let goes = !after.is_ended() && !after.is_failing() && !stays;
    if goes && !may_go {
        return Err("leaves its gate too early".to_owned());
    }
    if stays && must_leave {
        return Err("stays at its gate, although its rule lets it go".to_owned());
    }
    if after.visit > 0 || after.history > 0 || (stays && after.in_flight.is_some()) {
        return Err("ran behind its gate".to_owned());
    }
    let by_gate = |row: &Row| {
        row.rare()
            .cause
            .as_ref()
            .is_some_and(|cause| cause.kind == procession_kernel::CauseKind::GateShut)
    };
    if after.is_ended() && by_gate(after) && !ends {
        return Err("ended at its gate too early".to_owned());
    }
    Ok(())
}

/// Says whether the own rule of a gate opens it, or ends its child: only a rule that saw all that have ended does.
fn rules(seen: u32, ruling: &JoinRuling, siblings: &[&Row]) -> (bool, bool) {
    let ended = siblings.iter().filter(|row| row.is_ended()).count();
    if (seen as usize) < ended {
        return (false, false);
    }
    match ruling {
        JoinRuling::Met => (true, false),
        JoinRuling::Unmeetable(_) => (false, true),
        JoinRuling::Pending => (false, ended == siblings.len()),
    }
}

/// Says whether a gate is open, and whether it can no longer open, by what its siblings are.
fn says(gate: &Gate, siblings: &[&Row]) -> (bool, bool) {
    let succeeded = |row: &&&Row| row.state == ProcedureState::Success;
    let lost = |row: &&&Row| matches!(row.state, ProcedureState::Failed | ProcedureState::RolledBack);
    let all = siblings.len();
    match &gate.opens {
        JoinPolicy::AllSucceeded => (
            siblings.iter().all(|row| succeeded(&row)),
            siblings.iter().any(|row| lost(&row)),
        ),
        JoinPolicy::AllFinished => (siblings.iter().all(|row| row.is_ended()), false),
        JoinPolicy::AtLeast(least) => {
            let least = *least as usize;
            let open = siblings.iter().filter(succeeded).count() >= least;
            (open, all - siblings.iter().filter(lost).count() < least)
        }
        JoinPolicy::Named(places) => {
            let named = || places.iter().filter_map(|place| siblings.get(*place as usize));
            (named().all(|row| succeeded(&row)), named().any(|row| lost(&row)))
        }
        JoinPolicy::Custom => (false, false),
        _ => (false, false),
    }
}
