//! The key of a replicated journal's frames.

use std::fmt;

use zeroize::Zeroizing;

use crate::identity::{Start, StartId, Tag};

/// Authenticates the frames of one start. Each machine of the authority derives it; the stream's servers do not know it.
pub struct FrameKey {
    key: Zeroizing<[u8; 32]>,
    start: StartId,
}

impl fmt::Debug for FrameKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameKey").field("start", &self.start).finish_non_exhaustive()
    }
}

impl FrameKey {
    /// Derives the key from the authority's secret key, for one start. The frames of another shard, or of an earlier
    /// stream, are therefore forgeries here.
    #[must_use]
    pub fn derive(authority_secret: &[u8; 32], start: &Start) -> Self {
        let start = start.id();
        let mut hasher = blake3::Hasher::new_derive_key("FastPay 2026-11 frames of a replicated journal");
        hasher.update(authority_secret).update(&start.0);
        Self { key: Zeroizing::new(*hasher.finalize().as_bytes()), start }
    }

    /// The start that the key is for.
    #[must_use]
    pub fn start(&self) -> StartId {
        self.start
    }

    /// The tag of a frame's bytes.
    pub(crate) fn tag(&self, bytes: &[u8]) -> Tag {
        Tag(*blake3::keyed_hash(&self.key, bytes).as_bytes())
    }

    /// Whether a tag is that of the bytes, compared in constant time.
    pub(crate) fn holds(&self, bytes: &[u8], tag: Tag) -> bool {
        // Compared by `blake3::Hash`, whose comparison takes the same time for all values.
        blake3::keyed_hash(&self.key, bytes) == blake3::Hash::from_bytes(tag.0)
    }
}
