//! A store of format 1 in the real store: it opens, runs on, and is of today's format from its first commit on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use procession::provider::{Batch, JournalStore, Space};
use procession::status::ProcedureState;
use procession::store::SyncMode;
use procession::testkit::TestClock;
use procession::{Executor, ProcedureId};
use procession_actors::journal::EmbeddedStore;

use crate::store::{set_up, spaces};
use crate::{Tested, golden};

type Trouble = Box<dyn std::error::Error>;

/// Makes the golden world of version 1 in a directory, as the release of that time left it.
fn install(place: &Path) -> Tested {
    // Releases of that time put each commit into tables at once.
    let store = EmbeddedStore::open(place, SyncMode::Data)?.checkpoint_at(1);
    let epoch = block_on(store.acquire())?;
    // The first batch of an owner writes today's format; the second takes it back.
    block_on(store.append(Batch::new(epoch)))?;
    let mut batch = Batch::new(epoch);
    for line in golden("v1/store.hex", || Err("it was made long ago".into()))? {
        let space = spaces().into_iter().find(|space| space.name() == line.space);
        let space = space.ok_or("an unknown keyspace")?;
        batch.put(space, &line.key, line.value.as_deref().unwrap_or_default());
    }
    batch.put(Space::Meta, b"format", &1_u32.to_be_bytes());
    for later in ["audit", "archive", "recent"] {
        batch.delete(Space::Meta, format!("space/{later}").as_bytes());
    }
    block_on(store.append(batch))?;
    Ok(())
}

fn format_of(place: &Path) -> Result<Option<Vec<u8>>, Trouble> {
    let store = EmbeddedStore::open(place, SyncMode::Data)?;
    Ok(block_on(store.get(Space::Meta, b"format".to_vec()))?)
}

#[test]
fn a_store_of_version_1_runs_on_and_is_of_version_7_afterwards() -> Tested {
    let place = tempfile::tempdir()?;
    install(place.path())?;
    assert_eq!(
        format_of(place.path())?,
        Some(1_u32.to_be_bytes().to_vec()),
        "opening it is not enough"
    );
    actix_rt::System::new().block_on(async {
        let builder = Executor::builder(place.path()).clock(Arc::new(TestClock::default()));
        let executor = set_up(builder, true).strict(true).start().await?;
        executor.signal(ProcedureId::root(2), "go", &()).await?;
        let outcome = executor.outcome(ProcedureId::root(2)).await?;
        assert_eq!(outcome.state, ProcedureState::Success);
        // What came with version 2 has its place.
        let by = procession::operate::OperatorRequest::new("ann", "a test");
        executor.pause(procession::operate::PauseScope::All, by).await?;
        assert_eq!(executor.audit(None, 10).await?.len(), 1);
        executor.drain(Duration::from_secs(10)).await?;
        Ok::<_, Trouble>(())
    })?;
    assert_eq!(format_of(place.path())?, Some(7_u32.to_be_bytes().to_vec()));
    Ok(())
}
