//! The master: what all procedures share, and how they are made known to an engine.

use std::path::Path;
use std::sync::Arc;

use super::error::DemoError;
use super::files::Files;
use super::input::Input;
use super::procedures::{
    CreateTable, DeleteTable, DisableTable, EnableTable, InspectTable, InspectTablet, LoadTablet, MergeTablet,
    MoveTablet, SetQuota, SplitTablet, SweepFiles, UnloadTablet, UpdateAuth, UpdateTable,
};
use procession::{Builder, Procedure};

/// How many of each run at once, roots only: Tera's figures, and our own for inspections.
pub const LIMITS: [(&str, u32); 6] = [
    (MergeTablet::KIND, 10),
    (SplitTablet::KIND, 10),
    (MoveTablet::KIND, 100),
    (LoadTablet::KIND, 300),
    (UnloadTablet::KIND, 100),
    (InspectTable::KIND, 4),
];

/// The environment of the tablet master's procedures. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Master(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    files: Files,
    input: Input,
}

impl Master {
    /// Makes the directories of a world, where they are missing.
    ///
    /// # Errors
    ///
    /// [`DemoError::File`] if one cannot be made.
    pub fn open(root: &Path, servers: u32, input: Input) -> Result<Self, DemoError> {
        let files = Files::open(root, servers)?;
        Ok(Self(Arc::new(Shared { files, input })))
    }

    /// Returns the tablets' files.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.0.files
    }

    /// Returns the rows that tables are filled with.
    #[must_use]
    pub fn input(&self) -> &Input {
        &self.0.input
    }

    /// Registers all procedures and their limits.
    #[must_use]
    pub fn register(&self, builder: Builder) -> Builder {
        let builder = builder
            .register::<CreateTable>(self.clone())
            .register::<DeleteTable>(self.clone())
            .register::<DisableTable>(self.clone())
            .register::<EnableTable>(self.clone())
            .register::<UpdateTable>(self.clone())
            .register::<LoadTablet>(self.clone())
            .register::<UnloadTablet>(self.clone())
            .register::<MoveTablet>(self.clone())
            .register::<MergeTablet>(self.clone())
            .register::<SplitTablet>(self.clone())
            .register::<SetQuota>(self.clone())
            .register::<UpdateAuth>(self.clone())
            .register::<SweepFiles>(self.clone())
            .register::<InspectTable>(self.clone())
            .register::<InspectTablet>(self.clone());
        LIMITS
            .into_iter()
            .fold(builder, |builder, (kind, limit)| builder.limit(kind, limit))
    }
}
