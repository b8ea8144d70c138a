//! What must hold of a journal after whatever befell it, by a ledger of what was
//! told: the engine starts, and nothing that was acknowledged is gone or done twice.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::time::Duration;

use procession::health::Rule;
use procession::status::ListFilter;
use procession::{Executor, ProcedureId};

use super::world::{
    COUNTS, Call, GO, ORDER, Piece, Role, Seen, UNDONE, end_of, engine, role_of, stages_of, told, undos_of,
};
use crate::check::resume_poison;

/// How long an end may take at most.
const DEADLINE: Duration = Duration::from_secs(15);
/// Number of the submission that shows that new work is done: a chain.
const FRESH: u64 = 5_000_000_000;

type Judged<T = ()> = Result<T, String>;

/// What a ledger says.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    acknowledged: BTreeMap<u64, ProcedureId>,
    signalled: BTreeSet<u64>,
    ended: BTreeMap<u64, String>,
    calls: Vec<Call>,
}

impl Ledger {
    pub(crate) fn read(text: &str) -> Judged<Self> {
        let mut ledger = Self::default();
        for line in text.lines() {
            ledger.take(line).ok_or_else(|| format!("the ledger says \"{line}\""))?;
        }
        Ok(ledger)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "acknowledged" => {
                let (number, id) = rest.split_once(' ')?;
                self.acknowledged.insert(number.parse().ok()?, id.parse().ok()?);
            }
            "signalled" => {
                self.signalled.insert(rest.parse().ok()?);
            }
            "ended" => {
                let (number, end) = rest.split_once(' ')?;
                self.ended.insert(number.parse().ok()?, end.to_owned());
            }
            "begun" => self.calls.push(Call::read(rest, false)?),
            "undoing" => self.calls.push(Call::read(rest, true)?),
            _ => return None,
        }
        Some(())
    }
}

/// Starts the engine on a journal, and compares it with what was told.
pub(crate) fn judge(journal: &Path, ledger: &Ledger, filler: usize) -> Judged {
    let judged = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let judged = || actix_rt::System::new().block_on(async { judge_here(journal, ledger, filler).await });
            std::panic::catch_unwind(AssertUnwindSafe(judged))
        });
        thread.join()
    });
    match judged {
        Ok(Ok(judged)) => judged,
        Ok(Err(panic)) | Err(panic) => Err(format!("it panicked: {}", text_of(&*panic))),
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "without a text".to_owned())
}

async fn judge_here(journal: &Path, ledger: &Ledger, filler: usize) -> Judged {
    let seen = Seen::default();
    let executor = engine(journal, seen.clone()).start().await;
    let executor = executor.map_err(|error| format!("refused: {error}"))?;
    let judged = Judge {
        executor: &executor,
        ledger,
        filler,
    }
    .all(&seen)
    .await;
    let drained = executor.drain(Duration::from_secs(5)).await;
    judged?;
    drained.map_err(|error| format!("not drained: {error}"))?;
    Ok(())
}

struct Judge<'a> {
    executor: &'a Executor,
    ledger: &'a Ledger,
    filler: usize,
}

impl Judge<'_> {
    async fn all(&self, seen: &Seen) -> Judged {
        let resumed = resume_poison(self.executor).await;
        resumed.map_err(|error| format!("what rests as poison: {error}"))?;
        self.let_waiters_go().await?;
        self.ends().await?;
        self.counts().await?;
        self.undos().await?;
        self.again(seen)?;
        self.is_open().await?;
        self.nothing_is_set_aside().await
    }

    /// A signal that was acknowledged is not sent again: it must be there.
    async fn let_waiters_go(&self) -> Judged {
        let known: BTreeSet<ProcedureId> = self.ledger.acknowledged.values().copied().collect();
        for (number, id) in &self.ledger.acknowledged {
            if role_of(*number) == Role::Waiter && !self.ledger.signalled.contains(number) {
                // It may have come, and even have ended it, before anybody was told; how it ends shows what is lost.
                self.executor.signal(*id, GO, number).key("first").await.ok();
            }
        }
        for id in self.live().await?.difference(&known) {
            // Which of them are waiters nobody can tell; one that has ended meanwhile takes none.
            self.executor.signal(*id, GO, &0).key("first").await.ok();
        }
        Ok(())
    }

    /// Every root that has not ended.
    async fn live(&self) -> Judged<BTreeSet<ProcedureId>> {
        let (mut found, mut cursor) = (BTreeSet::new(), None);
        loop {
            let filter = ListFilter {
                live_only: true,
                ..ListFilter::default()
            };
            let page = self.executor.list(filter, cursor, 1_000).await;
            let page = page.map_err(|error| format!("no list: {error}"))?;
            found.extend(page.items.iter().filter(|one| one.parent.is_none()).map(|one| one.id));
            cursor = page.next;
            if cursor.is_none() {
                return Ok(found);
            }
        }
    }

    async fn ends(&self) -> Judged {
        for (number, id) in &self.ledger.acknowledged {
            let end = told(self.executor.handle::<Piece>(*id).wait_for(DEADLINE).await);
            let end = end.map_err(|error| format!("lost: {number}, acknowledged as {id}: {error}"))?;
            if end != end_of(*number) {
                return Err(format!("{number}, acknowledged as {id}, ended otherwise: {end}"));
            }
            if let Some(before) = self.ledger.ended.get(number).filter(|before| **before != end) {
                return Err(format!(
                    "{number} was told to have ended as \"{before}\", and now \"{end}\""
                ));
            }
        }
        for id in self.live().await? {
            let end = told(self.executor.handle::<Piece>(id).wait_for(DEADLINE).await);
            end.map_err(|error| format!("{id}, of which nobody was told, did not end: {error}"))?;
        }
        Ok(())
    }

    async fn scan(&self, space: &str) -> Judged<BTreeMap<String, u32>> {
        let rows: Result<Vec<(Vec<u8>, u32)>, _> = self.executor.scan(space, "").await;
        let rows = rows.map_err(|error| format!("keyspace {space}: {error}"))?;
        let text = |(key, value): (Vec<u8>, u32)| (String::from_utf8_lossy(&key).into_owned(), value);
        Ok(rows.into_iter().map(text).collect())
    }

    async fn counts(&self) -> Judged {
        let counts = self.scan(COUNTS).await?;
        if let Some((stage, count)) = counts.iter().find(|(_, count)| **count != 1) {
            return Err(format!("stage {stage} was committed {count} times"));
        }
        for number in self.ledger.acknowledged.keys() {
            if let Some(stage) = stages_of(*number).into_iter().find(|stage| !counts.contains_key(stage)) {
                return Err(format!("lost: what stage {stage} wrote"));
            }
        }
        Ok(())
    }

    async fn undos(&self) -> Judged {
        let (undone, order) = (self.scan(UNDONE).await?, self.scan(ORDER).await?);
        let numbers: BTreeSet<u32> = undone.values().copied().collect();
        let most = order.values().max().copied().unwrap_or(0);
        if order.values().sum::<u32>() as usize != undone.len() || numbers.len() != most as usize {
            return Err(format!(
                "undos were committed more than once, or not: {order:?} {undone:?}"
            ));
        }
        for number in self.ledger.acknowledged.keys() {
            for chain in undos_of(*number) {
                let places: Option<Vec<u32>> = chain.iter().map(|undo| undone.get(undo).copied()).collect();
                if !places.is_some_and(|places| places.is_sorted()) {
                    return Err(format!("undone in another order than {chain:?}: {undone:?}"));
                }
            }
        }
        Ok(())
    }

    /// A stage begins only when the one before it is committed: that one may not run again.
    fn again(&self, seen: &Seen) -> Judged {
        let mut reached: BTreeMap<(&str, bool), u32> = BTreeMap::new();
        for call in &self.ledger.calls {
            let newest = reached.entry((&call.name, call.undo)).or_insert(call.stage);
            *newest = if call.undo {
                (*newest).min(call.stage)
            } else {
                (*newest).max(call.stage)
            };
        }
        for call in seen.calls() {
            let undone = reached.get(&(call.name.as_str(), true)).copied();
            let done = reached.get(&(call.name.as_str(), false)).copied();
            let is_again = if call.undo {
                undone.is_some_and(|stage| call.stage > stage)
            } else {
                undone.is_some() || done.is_some_and(|stage| call.stage < stage)
            };
            if is_again {
                return Err(format!("{call:?} ran again, and what came behind it had begun"));
            }
        }
        Ok(())
    }

    /// New work is done, and a key gives what it gave.
    async fn is_open(&self) -> Judged {
        let submit = async |number: u64, filler| {
            let submitted = self.executor.submit(Piece::new(number, filler)).key(number.to_string());
            submitted
                .await
                .map_err(|error| format!("{number} was refused: {error}"))
        };
        let end = told(submit(FRESH, 0).await?.wait_for(DEADLINE).await);
        if end.as_deref() != Ok(end_of(FRESH).as_str()) {
            return Err(format!("new work ended as {end:?}"));
        }
        if let Some((number, id)) = self.ledger.acknowledged.last_key_value() {
            let found = submit(*number, self.filler).await?.id();
            if found != *id {
                return Err(format!(
                    "lost: the key of {number}, which stood for {id}, now for {found}"
                ));
            }
        }
        Ok(())
    }

    async fn nothing_is_set_aside(&self) -> Judged {
        let verdicts = self.executor.verdicts().await;
        let verdicts = verdicts.map_err(|error| format!("no verdicts: {error}"))?;
        let aside = verdicts.iter().find(|verdict| verdict.rule == Rule::Quarantined);
        aside.map_or(Ok(()), |verdict| Err(format!("set aside: {}", verdict.text)))
    }
}
