//! The watermark of a journal in a directory: it names the newest acknowledged commit soon after it was answered,
//! not only once the engine ends.

use std::future::IntoFuture;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use procession::Executor;
use procession::provider::JournalStore;
use procession::testkit::Trouble;
use procession_actors::journal::{EmbeddedStore, SyncMode};

use crate::support::{Lab, Planned, Tested, chain, kinds};

/// Returns the number of the commit that the watermark names.
fn named_in(place: &Path) -> Result<u64, Trouble> {
    let bytes = std::fs::read(place.join("watermark"))?;
    let number = bytes.get(8..16).ok_or("the watermark is cut short")?;
    Ok(u64::from_be_bytes(number.try_into()?))
}

/// Waits until the watermark names the newest commit.
async fn is_named(place: &Path, store: &EmbeddedStore) -> Result<u64, Trouble> {
    let waits = async {
        loop {
            let newest = store.head().await?.ok_or("nothing was committed")?.seq.0;
            if named_in(place)? == newest {
                return Ok(newest);
            }
            tokio::task::yield_now().await;
        }
    };
    actix_rt::time::timeout(Duration::from_mins(1), waits).await?
}

#[test]
fn it_names_the_newest_commit_while_the_engine_goes_on() -> Tested {
    let directory = tempfile::tempdir()?;
    let place = directory.path().join("journal");
    actix_rt::System::new().block_on(async {
        let store = Arc::new(EmbeddedStore::open(&place, SyncMode::Data)?);
        let lab = Lab::default();
        let executor = kinds(&lab, Executor::builder(Arc::clone(&store) as Arc<dyn JournalStore>))
            .start()
            .await?;
        // One at a time is committed on the supervisor's thread, many at once on the journal's.
        let one = executor.submit(Planned(chain("one", 3))).await?;
        one.into_future().await?;
        let first = is_named(&place, &store).await?;
        let many: Vec<_> = (0..64)
            .map(|number| executor.submit(Planned(chain(&number.to_string(), 3))))
            .collect();
        for handle in executor.submit_batch(many).await? {
            handle.into_future().await?;
        }
        assert!(is_named(&place, &store).await? > first);
        assert!(executor.shutdown().await.is_clean());
        Ok(())
    })
}
