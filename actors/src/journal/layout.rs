//! What every store keeps under the same names, whatever its technology: the rows of `meta` that name the newest
//! commit, its owner and the format. A reader of one store can therefore read rows exported from another.

/// The newest format of the journal that this release reads, and the one it writes.
///
/// 2 since rows name locks: a release that knows 1 would drop them silently.
/// 3 since the newest commits have a keyspace of their own: a release that knows 2 would not see them.
/// 4 since a broadcast may be stored before all of its waiters are woken: a release that knows 3 would leave them
/// asleep.
/// 5 since the entry of a stage stays as it is when the stage is undone: a release that knows 4 would count it, and set the
/// family aside.
/// 6 since the row of the newest commit names its predecessor, too: a release that knows 5 would find no number in it.
/// 7 since the labels of a row have an entry of their own, and the index of labels shorter keys: a release that knows 6
/// would not find them.
/// The first commit of an engine upgrades a store of an older format to 7.
pub const FORMAT: u32 = 7;

/// Key in `meta` of the format, a big-endian `u32`.
pub const FORMAT_KEY: &[u8] = b"format";
/// Key in `meta` of the newest epoch, a big-endian `u64`.
pub const EPOCH_KEY: &[u8] = b"epoch";
/// Key in `meta` of the newest batch: it begins with epoch and `Seq`, big-endian, 16 bytes. What follows is the store's.
pub const SEQ_KEY: &[u8] = b"seq";
/// Prefix of the keys in `meta` that name the keyspaces in use, so that a missing keyspace is noticed.
pub const SPACE_PREFIX: &[u8] = b"space/";
/// Prefix of the keys in `meta` that name keyspaces of user data; the rest of the key is the name.
pub const USER_SPACE_PREFIX: &[u8] = b"space/user.";

/// The reason in every answer of a closed store.
pub(super) const CLOSED: &str = "the journal was closed";
