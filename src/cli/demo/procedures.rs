//! The twelve procedures of Tera's master, the sweeper of files that are no longer named, and the
//! inspection that goes on while somebody watches.
//!
//! They share three rules. Each holds the lock of what it works on to its end: a
//! table, or single tablets in it; its children enter. A stage's file work may have
//! been done before by an earlier run of it. An undo puts back the rows that its
//! procedure read before it changed them.

mod create_table;
mod delete_table;
mod disable_table;
mod enable_table;
mod inspect_table;
mod inspect_tablet;
mod load_tablet;
mod merge_tablet;
mod move_tablet;
mod reshape;
mod set_quota;
mod split_tablet;
mod sweep_files;
mod unload_tablet;
mod update_auth;
mod update_table;

pub use super::stage::Target;
pub use create_table::CreateTable;
pub use delete_table::DeleteTable;
pub use disable_table::DisableTable;
pub use enable_table::EnableTable;
pub use inspect_table::InspectTable;
pub use inspect_tablet::InspectTablet;
pub use load_tablet::LoadTablet;
pub use merge_tablet::MergeTablet;
pub use move_tablet::MoveTablet;
pub use set_quota::SetQuota;
pub use split_tablet::SplitTablet;
pub use sweep_files::SweepFiles;
pub use unload_tablet::UnloadTablet;
pub use update_auth::UpdateAuth;
pub use update_table::UpdateTable;
