//! Digests of bytes. They are on disk, so the algorithm must not change.

/// Returns the 64-bit FNV-1a digest of these bytes, one part behind the other.
pub(crate) fn fnv<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    parts.into_iter().flatten().fold(OFFSET, fold)
}
