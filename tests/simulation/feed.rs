//! A subscriber, and what must hold of all that it is told.

use std::sync::{Arc, Mutex, PoisonError};

use actix::prelude::*;
use procession::status::{ChangeFeed, Seq};

/// What one subscriber has seen.
#[derive(Clone, Default)]
pub(crate) struct Watched(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    from: Option<Seq>,
    newest: Seq,
    wrong: Option<String>,
}

impl Watched {
    /// Says what was wrong with what it was told, given what is on disk by now.
    pub(crate) fn check(&self, durable: Seq) -> Result<(), String> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.wrong {
            Some(wrong) => Err(wrong.clone()),
            None if state.newest > durable => Err(format!(
                "a subscriber knows of commit {}, and {durable} is on disk",
                state.newest
            )),
            None => Ok(()),
        }
    }
}

/// Reads what it gets.
pub(crate) struct Subscriber(pub(crate) Watched);

impl Actor for Subscriber {
    type Context = Context<Self>;
}

impl Handler<ChangeFeed> for Subscriber {
    type Result = ();

    fn handle(&mut self, feed: ChangeFeed, _: &mut Self::Context) {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        match feed {
            ChangeFeed::From(seq) => {
                if state.from.replace(seq).is_some() {
                    state.wrong = Some("a feed begins twice".to_owned());
                }
                state.newest = seq;
            }
            ChangeFeed::Change(change) => {
                if state.from.is_none() || change.seq <= state.newest {
                    state.wrong = Some(format!("change {} comes after {}", change.seq, state.newest));
                }
                let foreign = change.rows.iter().find(|row| row.revision != change.seq);
                if let Some(row) = foreign {
                    state.wrong = Some(format!("change {} brings {row:?}", change.seq));
                }
                state.newest = change.seq;
            }
            ChangeFeed::Lagged(seq) => state.newest = state.newest.max(seq),
        }
    }
}
