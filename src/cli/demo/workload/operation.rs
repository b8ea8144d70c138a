//! One operation: its number, and the procedure that carries it out.

use crate::demo::procedures::{
    CreateTable, DeleteTable, DisableTable, EnableTable, LoadTablet, MergeTablet, MoveTablet, SetQuota, SplitTablet,
    UnloadTablet, UpdateAuth, UpdateTable,
};
use procession::errors::SubmitError;
use procession::{Executor, Procedure, ProcedureId};

/// An operation of the workload.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Its number; its idempotency key is made of it.
    pub number: u64,
    /// What it does.
    pub action: Action,
}

impl Operation {
    /// Returns its idempotency key: the same in every run of the workload.
    #[must_use]
    pub fn key(&self) -> String {
        format!("op-{}", self.number)
    }
}

macro_rules! actions {
    ($($kind:ident: $doc:literal),* $(,)?) => {
        /// What an operation does: the procedure itself.
        #[derive(Debug, Clone)]
        pub enum Action {
            $(#[doc = $doc] $kind($kind),)*
        }

        $(impl From<$kind> for Action {
            fn from(procedure: $kind) -> Self {
                Self::$kind(procedure)
            }
        })*

        impl Action {
            /// Returns the kind of its procedure.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $kind::KIND,)*
                }
            }

            /// Submits its procedure under this key.
            ///
            /// # Errors
            ///
            /// [`SubmitError`] as the engine gives it.
            pub async fn submit(&self, executor: &Executor, key: &str) -> Result<ProcedureId, SubmitError> {
                match self {
                    $(Self::$kind(procedure) => executor.submit(procedure.clone()).key(key).await.map(|handle| handle.id()),)*
                }
            }
        }
    };
}

actions! {
    CreateTable: "Creates a table.",
    DeleteTable: "Deletes a table.",
    DisableTable: "Disables a table.",
    EnableTable: "Enables a table.",
    UpdateTable: "Updates a table.",
    LoadTablet: "Loads a tablet.",
    UnloadTablet: "Unloads a tablet.",
    MoveTablet: "Moves a tablet.",
    MergeTablet: "Merges two tablets.",
    SplitTablet: "Splits a tablet.",
    SetQuota: "Sets a quota.",
    UpdateAuth: "Changes a user.",
}
