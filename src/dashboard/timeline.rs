//! `procedures/{id}/timeline`: when each member of a family waited and ran, as bars. Where
//! there are more than were asked for, neighbours of one member become one bar.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, web};
use procession_kernel::{HistoryEntry, ProcedureId, Timestamp};
use serde_json::{Value, json};

use super::params::{Params, id_of};
use super::problem::{Answer, Problem};
use super::state::{State, viewer};
use crate::views::{ending_word, time};

/// Bars of one timeline at most, and unless another number is asked for.
const BARS_MAX: usize = 5_000;
const BARS: usize = 500;
/// Entries that one request looks at, at most.
const HISTORY_MAX: usize = 100_000;

/// One span of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bar {
    member: u32,
    what: &'static str,
    /// The stage; none of one that stands for several.
    stage: Option<String>,
    ending: Option<&'static str>,
    /// Which attempt of its stage it is. Of a stage that failed often the newest alone are kept.
    attempt: Option<u32>,
    from: Timestamp,
    to: Timestamp,
    /// How many spans it stands for.
    count: usize,
}

pub(super) async fn timeline(request: HttpRequest, state: web::Data<State>) -> Answer {
    let grant = viewer(&request)?;
    let id = id_of(&request)?;
    let params = Params::of(&request, &["from", "to", "bars"])?;
    let (from, to) = (instant(&params, "from")?, instant(&params, "to")?);
    let most = params.limit("bars", BARS, BARS_MAX)?;
    let moment = state.moment()?;
    let committed = state.engine().committed();
    if committed.status(ProcedureId::root(id.family)).await?.is_none() {
        return Err(Problem::unknown(id));
    }
    let _turn = state.turns.take(&grant).await?;
    let entries = committed.history_outline(id.family, HISTORY_MAX).await?;
    let truncated = entries.len() == HISTORY_MAX;
    let all: Vec<Bar> = entries.iter().flat_map(bars_of).collect();
    let within = all
        .into_iter()
        .filter(|bar| to.is_none_or(|to| bar.from <= to) && from.is_none_or(|from| bar.to >= from));
    let (bars, folded) = fold(within.collect(), most);
    let items: Vec<Value> = bars.iter().map(|bar| shown(id.family, bar)).collect();
    state.reply(
        moment,
        json!({ "items": items, "folded": folded, "truncated": truncated }),
    )
}

fn instant(params: &Params, name: &str) -> Result<Option<Timestamp>, Problem> {
    // Milliseconds since 1970, as pages count them.
    let millis: Option<u64> = params.number(name)?;
    Ok(millis.map(|millis| Timestamp(millis.saturating_mul(1_000))))
}

/// Waits in a queue, waits for admission, and runs; those that took no time are left out, but for the last.
fn bars_of(entry: &HistoryEntry) -> Vec<Bar> {
    let what = if entry.ending.is_stage() { "stage" } else { "undo" };
    let bar = |what, from, to| Bar {
        member: entry.member,
        what,
        stage: None,
        ending: None,
        attempt: None,
        from,
        to,
        count: 1,
    };
    let mut bars = Vec::new();
    let ready = match entry.admitted {
        Some(admitted) => {
            bars.push(bar("admission", entry.queued, admitted));
            admitted
        }
        None => entry.queued,
    };
    bars.push(bar("queue", ready, entry.begun));
    bars.retain(|bar| bar.to > bar.from);
    bars.push(Bar {
        stage: Some(procession_actors::ExportedStage::from(entry.clone()).stage),
        ending: Some(ending_word(entry.ending)),
        attempt: Some(entry.attempt),
        ..bar(what, entry.begun, entry.ended)
    });
    bars
}

/// Makes one bar of neighbours until no more are left than are wanted, if that can be; tells whether it did.
fn fold(bars: Vec<Bar>, most: usize) -> (Vec<Bar>, bool) {
    if bars.len() <= most {
        return (bars, false);
    }
    let mut members: BTreeMap<u32, Vec<Bar>> = BTreeMap::new();
    for bar in bars {
        members.entry(bar.member).or_default().push(bar);
    }
    // Each member has the same share; one bar a member is the least.
    let share = (most / members.len().max(1)).max(1);
    let folded = members.into_values().take(most).flat_map(|mut bars| {
        bars.sort_by_key(|bar| (bar.from, bar.to));
        let size = bars.len().div_ceil(share);
        bars.chunks(size).filter_map(merged).collect::<Vec<_>>()
    });
    (folded.collect(), true)
}

fn merged(bars: &[Bar]) -> Option<Bar> {
    let (first, rest) = bars.split_first()?;
    if rest.is_empty() {
        return Some(first.clone());
    }
    Some(Bar {
        what: "several",
        stage: None,
        ending: None,
        attempt: None,
        to: bars.iter().map(|bar| bar.to).max()?,
        count: bars.len(),
        ..first.clone()
    })
}

fn shown(family: u64, bar: &Bar) -> Value {
    json!({
        "id": ProcedureId::new(family, bar.member).to_string(),
        "what": bar.what,
        "stage": bar.stage,
        "ending": bar.ending,
        "attempt": bar.attempt,
        "from": time(bar.from),
        "to": time(bar.to),
        "ms": crate::views::millis(bar.to.since(bar.from)),
        "count": bar.count,
    })
}

#[cfg(test)]
mod tests;
