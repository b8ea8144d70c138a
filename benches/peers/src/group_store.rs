//! A store for steno: entries are appended to one file, and one fdatasync serves
//! all that wait. What an owner who wants throughput would give it.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;

use anyhow::Context;
use steno::{SagaCachedState, SagaCreateParams, SagaId, SagaNodeEvent, SecStore};
use tokio::sync::oneshot;

/// Entries that may wait for the writer.
const WAITING: usize = 100_000;

/// One entry, and who waits for it.
struct Entry {
    line: Vec<u8>,
    done: oneshot::Sender<()>,
}

/// A file, and the thread that writes it.
#[derive(Debug)]
pub struct GroupStore(mpsc::SyncSender<Entry>);

impl GroupStore {
    /// Makes the file.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        let file = File::create_new(path)?;
        let (entries, waiting) = mpsc::sync_channel(WAITING);
        std::thread::Builder::new()
            .name("group-store".to_owned())
            .spawn(move || write(file, &waiting))?;
        Ok(Self(entries))
    }

    /// Waits until this is on disk.
    async fn append(&self, entry: &impl serde::Serialize) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let (done, written) = oneshot::channel();
        self.0
            .try_send(Entry { line, done })
            .ok()
            .context("the writer is behind, or gone")?;
        written.await.context("the entry was not written")
    }
}

/// Writes all that waits, syncs once, and answers all; ends when nobody is left, or at the first failure.
fn write(mut file: File, waiting: &mpsc::Receiver<Entry>) {
    let (mut bytes, mut answers) = (Vec::new(), Vec::new());
    while let Ok(first) = waiting.recv() {
        for entry in std::iter::once(first).chain(waiting.try_iter()) {
            bytes.extend_from_slice(&entry.line);
            answers.push(entry.done);
        }
        if file.write_all(&bytes).and_then(|()| file.sync_data()).is_err() {
            return;
        }
        bytes.clear();
        for answer in answers.drain(..) {
            // Whoever waited may have gone, and needs no answer.
            answer.send(()).ok();
        }
    }
}

#[async_trait::async_trait]
impl SecStore for GroupStore {
    async fn saga_create(&self, create_params: SagaCreateParams) -> anyhow::Result<()> {
        self.append(&create_params).await
    }

    async fn record_event(&self, event: SagaNodeEvent) {
        self.append(&event)
            .await
            .expect("an entry of the log that is lost ends the measurement");
    }

    async fn saga_update(&self, id: SagaId, update: SagaCachedState) {
        let entry = (id, update);
        self.append(&entry)
            .await
            .expect("a state that is lost ends the measurement");
    }
}
