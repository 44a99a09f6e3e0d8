//! Reading and writing bytes of a file.

use fastpay_private_prover::{MalformedPoint, decode_point};

use crate::flaw::{Flaw, Part};
use crate::group::Point;
use crate::parallel::{PIECE, in_parallel};

/// Bytes that are still to be read.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Flaw> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Flaw::CutOff)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Flaw> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Flaw::CutOff)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub fn byte(&mut self) -> Result<u8, Flaw> {
        self.array().map(|[byte]| byte)
    }

    /// One point; what is wrong with it is the inner error.
    pub fn point<P: Point>(&mut self) -> Result<Result<P, MalformedPoint>, Flaw> {
        self.take(P::BYTES).map(decode_point)
    }

    /// So many points, which are checked on all processors.
    pub fn points<P: Point>(&mut self, part: Part, count: usize) -> Result<Vec<P>, Flaw> {
        let bytes = self.take(count.checked_mul(P::BYTES).ok_or(Flaw::CutOff)?)?;
        let pieces: Vec<&[u8]> = bytes.chunks(PIECE * P::BYTES).collect();
        let read = in_parallel(pieces.into_iter().enumerate().collect(), |(piece, bytes)| {
            let points = bytes.chunks(P::BYTES).enumerate();
            let point = |(at, bytes)| {
                decode_point(bytes).map_err(|error| Flaw::Point { part, index: piece * PIECE + at, error })
            };
            points.map(point).collect::<Result<Vec<P>, Flaw>>()
        });
        Ok(read.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
    }

    pub fn end(self) -> Result<(), Flaw> {
        if self.0.is_empty() { Ok(()) } else { Err(Flaw::TrailingBytes(self.0.len())) }
    }
}

pub(crate) fn write_points<P: Point>(bytes: &mut Vec<u8>, points: &[P]) {
    for point in points {
        bytes.extend_from_slice(point.to_uncompressed().as_ref());
    }
}
