//! Points in their one encoding: uncompressed, big-endian coordinates below the modulus, no flags.

use group::UncompressedEncoding;
use thiserror::Error;

/// The bits of a point's first byte that say how it is encoded.
const FLAGS: u8 = 0b1110_0000;

/// Bytes that are not a point of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MalformedPoint {
    /// Too few bytes, or too many.
    #[error("it has the wrong length")]
    Length,
    /// The point is compressed, or marked as infinite.
    #[error("it is compressed or infinite")]
    Flags,
    /// A coordinate is not below the modulus, or the point is not on the curve.
    #[error("it is not on the curve")]
    Curve,
    /// The point is on the curve and not in the group of prime order.
    #[error("it is outside of the group")]
    Group,
}

fn encoding<P: UncompressedEncoding>(bytes: &[u8]) -> Result<P::Uncompressed, MalformedPoint> {
    let mut encoding = P::Uncompressed::default();
    if encoding.as_ref().len() != bytes.len() {
        return Err(MalformedPoint::Length);
    }
    if bytes.first().is_none_or(|first| first & FLAGS != 0) {
        return Err(MalformedPoint::Flags);
    }
    encoding.as_mut().copy_from_slice(bytes);
    Ok(encoding)
}

/// A point of the group, which is never the neutral one: 96 bytes in G1, 192 in G2.
///
/// # Errors
/// [`MalformedPoint`]
pub fn decode_point<P: UncompressedEncoding>(bytes: &[u8]) -> Result<P, MalformedPoint> {
    decode_on_curve::<P>(bytes)?;
    Option::from(P::from_uncompressed(&encoding::<P>(bytes)?)).ok_or(MalformedPoint::Group)
}

/// A point of the curve, for bytes whose hash is known to be right: to check its group takes thirty times longer.
///
/// # Errors
/// [`MalformedPoint`], except [`MalformedPoint::Group`].
pub fn decode_on_curve<P: UncompressedEncoding>(bytes: &[u8]) -> Result<P, MalformedPoint> {
    Option::from(P::from_uncompressed_unchecked(&encoding::<P>(bytes)?)).ok_or(MalformedPoint::Curve)
}
