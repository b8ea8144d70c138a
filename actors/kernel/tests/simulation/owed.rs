//! Who is owed a wake by a broadcast: everybody who waited at its commit, once, unless a failure stops it.

use std::collections::BTreeMap;

use procession_kernel::{Broadcast, ProcedureId, Record, Row, Seq, Wake};

/// Who is owed a wake, and by which broadcast.
#[derive(Clone, Default)]
pub(crate) struct Owed(BTreeMap<ProcedureId, (Seq, Broadcast)>);

impl Owed {
    /// A broadcast owes a wake to all who wait for it and are owed none yet.
    pub(crate) fn begin<'a>(&mut self, seq: Seq, broadcast: &Broadcast, live: impl Iterator<Item = &'a Row>) {
        for row in live.filter(|row| !row.is_ended() && row.waits_for(&broadcast.name)) {
            self.0.entry(row.id).or_insert_with(|| (seq, broadcast.clone()));
        }
    }

    /// A row changes: one that was owed a wake, and waits no more, was woken by the event, or runs no more.
    pub(crate) fn follow(&mut self, row: &Row, is_stopped: bool) -> Result<(), String> {
        let Some((seq, broadcast)) = self.0.get(&row.id) else {
            return Ok(());
        };
        if row.waits_for(&broadcast.name) {
            if row.waits_after < *seq {
                return Ok(());
            }
            let left_out = format!("{} is left out of the broadcast of {seq} that it waited for", row.id);
            is_stopped.then_some(()).ok_or(left_out)?;
        } else {
            let is_woken = matches!(&row.wake, Some(Wake::Signal(name, _)) if *name == broadcast.name);
            let lost = format!("{} goes on without the broadcast of {seq} that it waited for", row.id);
            (is_woken || is_stopped || row.is_ended()).then_some(()).ok_or(lost)?;
        }
        self.0.remove(&row.id);
        Ok(())
    }

    /// A broadcast is over: nobody is owed a wake by it, but for those that run no more.
    pub(crate) fn end(&mut self, seq: Seq, is_stopped: impl Fn(ProcedureId) -> bool) -> Result<(), String> {
        let owed: Vec<ProcedureId> = self.of(seq).collect();
        for id in owed {
            let why = format!("the broadcast of {seq} is over, and has not woken {id}");
            is_stopped(id).then_some(()).ok_or(why)?;
            self.0.remove(&id);
        }
        Ok(())
    }

    fn of(&self, seq: Seq) -> impl Iterator<Item = ProcedureId> {
        let owed = self.0.iter().filter(move |(_, (by, _))| *by == seq);
        owed.map(|(id, _)| *id)
    }

    /// What a broadcast wakes now is owed a wake by it.
    pub(crate) fn are_owed(&self, seq: Seq, records: &[Record]) -> Result<(), String> {
        for record in records {
            if let Record::Signal(id, ..) = record
                && self.0.get(id).is_none_or(|(by, _)| *by != seq)
            {
                return Err(format!("the broadcast of {seq} wakes {id}, to which it owes nothing"));
            }
        }
        Ok(())
    }
}
