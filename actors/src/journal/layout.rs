//! What every store keeps under the same names, whatever it is made of: the rows of `meta` that say whose the newest
//! commit is, and in which format. An export of one store's rows can be read by a reader of another's.

/// The newest format of the journal that this release reads, and the one it writes.
///
/// 2 since rows name locks: a release that knows 1 would drop them without a word.
/// 3 since the newest commits are in a keyspace of their own: one that knows 2 would not see them.
/// 4 since a broadcast may be stored before all of its waiters are woken: one that knows 3 would leave them asleep.
/// A store of an older format becomes one of 4 with the first commit of an engine.
pub const FORMAT: u32 = 4;

/// Key in `meta` of the format, a big-endian `u32`.
pub const FORMAT_KEY: &[u8] = b"format";
/// Key in `meta` of the newest epoch, a big-endian `u64`.
pub const EPOCH_KEY: &[u8] = b"epoch";
/// Key in `meta` of the newest batch: epoch and `Seq`, big-endian, 16 bytes.
pub const SEQ_KEY: &[u8] = b"seq";
/// Prefix of the keys in `meta` that name the keyspaces in use, so that a missing keyspace is noticed.
pub const SPACE_PREFIX: &[u8] = b"space/";
/// What stands behind [`SPACE_PREFIX`] and before the name of a keyspace of user data.
pub const USER_SPACE_PREFIX: &[u8] = b"space/user.";

/// What every call is told once its store was closed.
pub(super) const CLOSED: &str = "the journal was closed";
