//! Encodings: a version byte, then borsh, which has one encoding for each value of these types. Reading is bounded by
//! the length of the whole, before anything is allocated.

use std::io;

use blake3::hazmat::{ContextKey, HasherExt as _};
use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::Digest;

/// The version of every encoding in this crate.
const VERSION: u8 = 1;

/// A statement that is sent or stored on its own.
pub trait Wire: BorshSerialize + BorshDeserialize {
    /// No encoding is longer.
    const BYTES_MAX: usize;

    /// The encoding.
    #[must_use]
    fn encode(&self) -> Vec<u8> {
        borsh::to_vec(&(VERSION, self)).expect("memory takes every write")
    }

    /// The inverse of [`Wire::encode`], for exactly the bytes that it gives.
    ///
    /// # Errors
    /// See [`DecodeError`].
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > Self::BYTES_MAX {
            return Err(DecodeError::TooLong { found: bytes.len(), max: Self::BYTES_MAX });
        }
        let (version, body) = bytes.split_first().ok_or(DecodeError::Malformed)?;
        if *version != VERSION {
            return Err(DecodeError::Version(*version));
        }
        borsh::from_slice(body).map_err(|_| DecodeError::Malformed)
    }
}

/// Why bytes are not the encoding of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// More bytes than any statement of this kind has.
    #[error("the statement has {found} bytes; this kind has at most {max}")]
    TooLong {
        /// The number of bytes.
        found: usize,
        /// The bound.
        max: usize,
    },
    /// Made by another version of the software.
    #[error("the statement has encoding version {0}; this software reads version {VERSION}")]
    Version(u8),
    /// Not the one encoding of any statement.
    #[error("the bytes are not a statement of this kind, whole and without a rest")]
    Malformed,
}

/// The hash of a value, in the domain of a context, which no other kind of statement has. The context is hashed once.
macro_rules! digest {
    ($context:literal, $value:expr $(,)?) => {{
        static KEY: std::sync::LazyLock<blake3::hazmat::ContextKey> =
            std::sync::LazyLock::new(|| blake3::hazmat::hash_derive_key_context($context));
        $crate::encoding::digest_in(&KEY, $value)
    }};
}
pub(crate) use digest;

/// The hash of a value in the domain of a context with this key.
pub(crate) fn digest_in(context: &ContextKey, value: &impl BorshSerialize) -> Digest {
    let mut writer = Writer { hasher: blake3::Hasher::new_from_context_key(context), short: [0; 256], used: 0 };
    value.serialize(&mut writer).expect("a hasher takes every write");
    let Writer { hasher, short, used } = &mut writer;
    hasher.update(short.get(..*used).unwrap_or_default());
    Digest::new(*hasher.finalize().as_bytes())
}

/// Collects the many short writes of an encoding: the hasher is called once for most values.
struct Writer {
    hasher: blake3::Hasher,
    short: [u8; 256],
    used: usize,
}

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = self.used.saturating_add(bytes.len());
        if let Some(room) = self.short.get_mut(self.used..end) {
            room.copy_from_slice(bytes);
            self.used = end;
        } else {
            self.hasher.update(self.short.get(..self.used).unwrap_or_default());
            self.hasher.update(bytes);
            self.used = 0;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
