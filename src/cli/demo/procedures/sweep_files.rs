//! `SweepFiles`: removes files that the meta table no longer names. It is born in
//! the commit that ends their last user, as a family of its own: so a file goes
//! only once nothing can want it back.

use serde::{Deserialize, Serialize};

use crate::demo::master::Master;
use crate::demo::stage;
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// Removes files of the shared directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SweepFiles {
    files: Vec<String>,
}

impl SweepFiles {
    /// Lists the files.
    #[must_use]
    pub fn new(files: Vec<String>) -> Self {
        Self { files }
    }
}

impl Procedure for SweepFiles {
    const KIND: &'static str = "sweep_files";
    type Stage = ();
    type Env = Master;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let files = self.files.clone();
        stage::on_files(cx, move |master| {
            let removed = files.iter().try_for_each(|file| master.files().remove_shared(file));
            removed.map_err(|error| stage::of_system(&error))
        })
        .await?;
        Ok(Step::Done(()))
    }

    /// What it removes is named nowhere else: if it gave up, the files would stay for ever.
    fn rollback_supported(&self, (): &()) -> bool {
        false
    }

    fn retry() -> RetryPolicy {
        stage::quick_retry()
    }
}
