//! What the doctor finds, of either source.

use std::collections::BTreeMap;

use procession::offline::{OfflineState, Verified};
use procession::procedure::Kind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::document::Document;
use super::super::exit::Failure;
use super::super::print;
use super::super::site::Site;
use super::Journal;
use procession::views::VerdictView;

/// Bytes of a journal beyond which it is told that reading it through takes a while: some seconds on most disks.
const LARGE: u64 = 1024 * 1024 * 1024;

/// How many unfinished procedures there are of one version of a kind.
#[derive(Serialize)]
struct LiveKind {
    kind: String,
    version: u16,
    live: usize,
}

/// One kind, as a dashboard tells of it.
#[derive(Deserialize)]
struct RunningKind {
    kind: String,
    /// Unfinished ones by version.
    #[serde(default)]
    versions: BTreeMap<u16, usize>,
}

impl Journal {
    /// Unless it is to be quick, reads everything that it vouches for. What cannot be read is a finding like any other, and
    /// hides none of them.
    pub(super) async fn findings(&self, quick: bool) -> Result<Document, Failure> {
        let mut verified = if quick {
            Verified::default()
        } else {
            self.verified().await?
        };
        let mut unread = Vec::new();
        let state = match self.offline.state().await {
            Ok(state) => Some(state),
            Err(error) => {
                unread.push(format!(
                    "could not read the live families, so what is stuck among them is not known, and no engine starts: \
                     {error}"
                ));
                None
            }
        };
        let unreadable = self.unreadable(&mut unread).await;
        verified.damaged += unread.len();
        verified.damages.splice(0..0, unread);
        let state = state.as_ref();
        let kind = |((kind, version), live): ((Kind, u16), usize)| LiveKind {
            kind: kind.to_string(),
            version,
            live,
        };
        let recovered = state.map(OfflineState::recovered);
        let kinds = state.map(OfflineState::kinds).unwrap_or_default();
        let verdicts = state.map(OfflineState::verdicts).unwrap_or_default();
        let pauses = state.into_iter().flat_map(OfflineState::pauses);
        self.reply(json!({
            "bytes": self.offline.size_bytes(),
            "disk_free_bytes": self.offline.disk_room().map(|room| room.free),
            "families": recovered.map(|recovered| recovered.families),
            "procedures": recovered.map(|recovered| recovered.procedures),
            "kinds": kinds.into_iter().map(kind).collect::<Vec<_>>(),
            "verdicts": verdicts.iter().map(VerdictView::from).collect::<Vec<_>>(),
            "unreadable": unreadable,
            "damaged": verified.damages,
            "damages": verified.damaged,
            "quick": quick,
            "paused": pauses.map(ToString::to_string).collect::<Vec<_>>(),
        }))
    }

    async fn verified(&self) -> Result<Verified, Failure> {
        if let Some(bytes) = self.offline.size_bytes().filter(|bytes| *bytes > LARGE) {
            print::notice(&format!("reading {bytes} bytes through; --quick leaves that out"));
        }
        Ok(self.offline.verify().await?)
    }
}

impl Site {
    pub(super) async fn findings(&self) -> Result<Document, Failure> {
        let engine = self.get("engine", &[]).await?;
        let kinds = self.get("kinds", &[]).await?;
        let attention = self.get("attention", &[]).await?;
        let mut live: Vec<LiveKind> = Vec::new();
        for RunningKind { kind, versions } in kinds.read::<Kinds>()?.items {
            let of_versions = versions.into_iter().filter(|(_, live)| *live > 0);
            live.extend(of_versions.map(|(version, live)| LiveKind {
                kind: kind.clone(),
                version,
                live,
            }));
        }
        Ok(Document(json!({
            "now": attention.get("now"),
            "as_of": attention.get("as_of"),
            "bytes": engine.get("size_bytes"),
            "disk_free_bytes": engine.get("disk_free_bytes"),
            "families": engine.get("live_families"),
            "procedures": live.iter().map(|kind| kind.live).sum::<usize>(),
            "kinds": live,
            "verdicts": attention.get("verdicts"),
            // Of one that runs, what cannot be read is set aside, and a verdict.
            "unreadable": Vec::<Value>::new(),
            "paused": engine.get("paused"),
            "engine": engine.0,
        })))
    }
}

#[derive(Deserialize)]
struct Kinds {
    items: Vec<RunningKind>,
}
