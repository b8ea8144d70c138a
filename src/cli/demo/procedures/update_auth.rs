//! `UpdateAuth`: says what a user may do, or forgets the user.

use serde::{Deserialize, Serialize};

use crate::demo::faults::Lot;
use crate::demo::master::Master;
use crate::demo::meta::{self, UserRow};
use crate::demo::stage;
use procession::limits::LockNeed;
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// Gives a user a role, or takes the user away.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UpdateAuth {
    lot: Lot,
    user: String,
    role: Option<String>,
    before: Option<UserRow>,
}

/// Its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Remembers how it was.
    Prepare,
    /// Changes it.
    Apply,
}

impl UpdateAuth {
    /// Gives a user this role; without one the user is forgotten.
    #[must_use]
    pub fn new(lot: Lot, user: &str, role: Option<&str>) -> Self {
        Self {
            lot,
            user: user.to_owned(),
            role: role.map(str::to_owned),
            before: None,
        }
    }

    async fn prepare(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        self.before = cx.get(meta::USERS, &self.user).await?;
        Ok(Step::Next(Stage::Apply))
    }

    async fn apply(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match &self.role {
            Some(role) => cx.put(
                meta::USERS,
                &self.user,
                &UserRow {
                    name: self.user.clone(),
                    role: role.clone(),
                },
            )?,
            None if self.before.is_none() => return Err(StageError::fail(format!("there is no user {}", self.user))),
            None => cx.delete(meta::USERS, &self.user),
        }
        Ok(Step::Done(()))
    }
}

impl Procedure for UpdateAuth {
    const KIND: &'static str = "update_auth";
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = Master;
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Prepare
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let strike = self.lot.at(Self::KIND, &stage);
        strike.before()?;
        let step = match stage {
            Stage::Prepare => self.prepare(cx).await?,
            Stage::Apply => self.apply(cx).await?,
        };
        strike.after()?;
        Ok(step)
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Prepare => Ok(()),
            Stage::Apply => {
                match &self.before {
                    Some(before) => cx.put(meta::USERS, &self.user, before)?,
                    None => cx.delete(meta::USERS, &self.user),
                }
                Ok(())
            }
        }
    }

    fn locks(&self, _: &Stage) -> Vec<LockNeed> {
        vec![LockNeed::exclusive(procession::limits::LockPath::of([
            "user", &self.user,
        ]))]
    }

    fn retry() -> RetryPolicy {
        stage::quick_retry()
    }
}
