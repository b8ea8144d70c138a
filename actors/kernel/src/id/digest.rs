//! Digests of bytes. They are on disk, so the algorithm must not change.

/// Returns the 64-bit FNV-1a digest of the bytes.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    bytes.iter().fold(OFFSET, fold)
}
