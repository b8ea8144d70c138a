//! The actor that keeps the read model, on a thread of its own. It folds what has changed, fills
//! the model from the store at the start, and again when changes were left out.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use actix::prelude::*;
use procession_actors::messages::{PollLatest, TakeSnapshot};
use procession_actors::view::{LatestFeed, ListFilter, Page, Snapshot, Status};
use procession_actors::{AskError, Engine};
use procession_kernel::ProcedureId;
use tokio::sync::watch;

use super::flows::is_damage;
use super::model::{Filling, Model, Moment, Unread, Update};

/// How long after a change the next is asked for, for each of its rows: a thousand rows a second. A row costs the engine
/// and the model some 5 us, and about twice as much again by what it drives out of the processor's cache.
const A_ROW: Duration = Duration::from_millis(1);
/// Shorter pauses are none.
const PAUSE_MIN: Duration = Duration::from_millis(2);
/// The longest one.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Rows read at once.
const PAGE: usize = 1_000;
/// How long after a failed read the next is tried.
const AGAIN: Duration = Duration::from_secs(1);

/// The model as handlers and streams have it.
#[derive(Clone)]
pub(super) struct Shared {
    model: Arc<RwLock<Model>>,
    /// Counts what was published, for who waits for the next.
    published: watch::Sender<Moment>,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            model: Arc::default(),
            published: watch::Sender::new(Moment::default()),
        }
    }

    /// Reads the model; hold it for microseconds.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Model> {
        self.model.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Model> {
        self.model.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows what is published: the newest moment, not every one.
    pub(super) fn follow(&self) -> watch::Receiver<Moment> {
        self.published.subscribe()
    }

    /// Notes which families are quarantined.
    pub(super) fn set_aside(&self, families: &[(u64, String)]) {
        if self
            .read()
            .quarantined()
            .iter()
            .ne(families.iter().map(|(family, _)| family))
        {
            self.write().set_aside(families);
        }
    }

    fn publish(&self) {
        let moment = self.read().moment();
        self.published.send_replace(moment);
    }
}

/// Folds what the engine tells into the model.
pub(super) struct Folder {
    shared: Shared,
    engine: Engine,
    filling: Option<Filling>,
    /// Counts the fills: one that changes were left out of is given up for the next.
    fill: u64,
    /// The nodes of a set are being read.
    is_counting: bool,
}

impl Folder {
    pub(super) fn new(shared: Shared, engine: Engine) -> Self {
        Self {
            shared,
            engine,
            filling: None,
            fill: 0,
            is_counting: false,
        }
    }

    /// Begins to fill the model. The store is read after the newest commit is known that is on
    /// disk now, so it shows that one and all before, those that were left out among them.
    fn begin(&mut self, ctx: &mut Context<Self>) {
        self.fill += 1;
        self.is_counting = false;
        let fill = self.fill;
        self.filling = Some(Filling::default());
        let engine = self.engine.clone();
        let snapshot = async move { engine.ask(TakeSnapshot).await.map_err(|_| AskError::Stopped)? };
        let taken = snapshot.into_actor(self).map(move |snapshot, folder, ctx| {
            if folder.fill == fill {
                folder.open(snapshot, ctx);
            }
        });
        ctx.spawn(taken);
    }

    fn open(&mut self, snapshot: Result<Snapshot, AskError>, ctx: &mut Context<Self>) {
        let snapshot = match snapshot {
            Ok(snapshot) => snapshot,
            Err(error) => return self.again(&error, ctx),
        };
        self.shared.set_aside(&snapshot.quarantined);
        if let Some(filling) = &mut self.filling {
            filling.reach(Moment {
                epoch: snapshot.epoch,
                seq: snapshot.durable,
            });
        }
        self.read(None, ctx);
    }

    fn read(&self, cursor: Option<ProcedureId>, ctx: &mut Context<Self>) {
        let (committed, fill) = (self.engine.committed(), self.fill);
        let page = async move { committed.list(ListFilter::default(), cursor, PAGE).await };
        let taken = page.into_actor(self).map(move |page, folder, ctx| {
            if folder.fill == fill {
                folder.take(page, ctx);
            }
        });
        ctx.spawn(taken);
    }

    fn take(&mut self, page: Result<Page, AskError>, ctx: &mut Context<Self>) {
        let page = match page {
            Ok(page) => page,
            Err(error) => return self.again(&error, ctx),
        };
        let Some(filling) = &mut self.filling else { return };
        filling.take(page.items);
        match page.next {
            Some(next) => self.read(Some(next), ctx),
            None => self.finish(ctx),
        }
    }

    /// Tries to fill the model again, later.
    fn again(&self, error: &AskError, ctx: &mut Context<Self>) {
        tracing::warn!(%error, "the dashboard cannot read the engine's state; it tries again");
        self.later(ctx, Self::begin);
    }

    /// Does something after a while, unless the model is filled anew before.
    fn later(&self, ctx: &mut Context<Self>, act: impl FnOnce(&mut Self, &mut Context<Self>) + 'static) {
        let (clock, fill) = (Arc::clone(self.engine.clock()), self.fill);
        let later = async move { clock.sleep_until(clock.now().after(AGAIN)).await };
        let done = later.into_actor(self).map(move |(), folder, ctx| {
            if folder.fill == fill {
                act(folder, ctx);
            }
        });
        ctx.spawn(done);
    }

    fn finish(&mut self, ctx: &mut Context<Self>) {
        let Some(filled) = self.filling.take() else { return };
        let old = self.shared.write().refill(filled);
        self.shared.publish();
        // Many rows take a while to drop: here only the next change waits for it.
        drop(old);
        self.count(ctx);
    }

    /// Reads the nodes of the next set that was there before the model, a page at a time. Nobody waits for it.
    fn count(&mut self, ctx: &mut Context<Self>) {
        if self.is_counting || self.filling.is_some() {
            return;
        }
        let unread = self.shared.read().unread();
        if let Some(unread) = unread {
            self.is_counting = true;
            self.count_from(unread, 1, ctx);
        }
    }

    fn count_from(&self, unread: Unread, from: u32, ctx: &mut Context<Self>) {
        let (committed, fill) = (self.engine.committed(), self.fill);
        let page = async move { committed.family(unread.family, from, PAGE).await };
        let taken = page.into_actor(self).map(move |page, folder, ctx| {
            if folder.fill == fill {
                folder.counted(unread, page, ctx);
            }
        });
        ctx.spawn(taken);
    }

    fn counted(&mut self, unread: Unread, page: Result<Vec<Status>, AskError>, ctx: &mut Context<Self>) {
        if let Some(error) = page.as_ref().err().filter(|error| !is_damage(error)) {
            return self.count_again(error, ctx);
        }
        let rows = page.as_deref().unwrap_or_default();
        self.shared.write().take_nodes(unread, rows);
        // Behind the nodes stand the children of procedures among them.
        let root = ProcedureId::root(unread.family);
        let last = rows
            .last()
            .filter(|last| rows.len() == PAGE && last.parent == Some(root));
        if let Some(last) = last {
            return self.count_from(unread, last.id.member + 1, ctx);
        }
        self.shared.write().end_reading(unread, page.is_ok());
        self.is_counting = false;
        self.count(ctx);
    }

    /// Tries to count again, later. Other sets wait as well: what failed is the store, and no row of this set.
    fn count_again(&self, error: &AskError, ctx: &mut Context<Self>) {
        tracing::warn!(%error, "the dashboard cannot read the nodes of a set; it tries again");
        self.later(ctx, |folder, ctx| {
            folder.is_counting = false;
            folder.count(ctx);
        });
    }

    /// Asks for the next change: at once after a small one, and later the more rows there were, so that
    /// who looks costs a busy engine a small share of a processor, however much happens.
    #[expect(
        clippy::disallowed_methods,
        reason = "it spares processors, which no engine's clock is about"
    )]
    fn ask_next(&self, rows: usize, ctx: &mut Context<Self>) {
        let ask = PollLatest(ctx.address().recipient());
        let engine = self.engine.clone();
        let pause = u32::try_from(rows).map_or(PAUSE_MAX, |rows| (A_ROW * rows).min(PAUSE_MAX));
        let asked = async move {
            if pause > PAUSE_MIN {
                tokio::time::sleep(pause).await;
            }
            engine.ask(ask).await.ok(); // an engine that has stopped has nothing more to tell
        };
        ctx.spawn(asked.into_actor(self));
    }

    fn fold(&mut self, update: Update, ctx: &mut Context<Self>) {
        if let Some(filling) = &mut self.filling {
            filling.fold(&update);
            return;
        }
        let now = self.engine.clock().now();
        self.shared.write().fold(update, now);
        self.shared.publish();
        self.count(ctx);
    }
}

impl Actor for Folder {
    type Context = Context<Self>;
}

impl Handler<LatestFeed> for Folder {
    type Result = ();

    fn handle(&mut self, newest: LatestFeed, ctx: &mut Self::Context) {
        let rows = match newest {
            LatestFeed::Rows(rows) => {
                let update = Update::from(*rows);
                let count = update.rows.len();
                self.fold(update, ctx);
                count
            }
            // Streams learn of what was left out when the model is whole again; until then it stands still.
            LatestFeed::From(_) | LatestFeed::Lagged(_) => {
                self.begin(ctx);
                0
            }
        };
        self.ask_next(rows, ctx);
    }
}
