//! Derives the ids of a transfer's trace from its digest.
//!
//! Every program derives the ids itself, so none are sent over the network, and a digest is enough to find its trace.

use fastpay_core::Digest;
use opentelemetry::{SpanId, TraceId};

/// The first 16 bytes of the digest.
#[must_use]
pub fn trace_id(digest: &Digest) -> TraceId {
    TraceId::from_bytes(valid(part(digest, 0)))
}

/// The next 8 bytes: the id of the wallet's span, which is the parent of all other spans of the trace in every program,
/// even if the wallet traces nothing.
#[must_use]
pub fn root_span_id(digest: &Digest) -> SpanId {
    SpanId::from_bytes(valid(part(digest, 16)))
}

fn part<const N: usize>(digest: &Digest, from: usize) -> [u8; N] {
    let bytes = digest.0.iter().skip(from).copied();
    let mut part = [0; N];
    part.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    part
}

/// OpenTelemetry treats zeros as an invalid id. No digest yields zeros by chance.
fn valid<const N: usize>(mut id: [u8; N]) -> [u8; N] {
    if id == [0; N]
        && let Some(last) = id.last_mut()
    {
        *last = 1;
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_digests_first_bytes() {
        let digest = Digest::from(std::array::from_fn(|index| index as u8 + 1));
        assert_eq!(trace_id(&digest).to_string(), "0102030405060708090a0b0c0d0e0f10");
        assert_eq!(root_span_id(&digest).to_string(), "1112131415161718");
    }

    #[test]
    fn zeros_are_ids_all_the_same() {
        let (trace, root) = (trace_id(&Digest::ZERO), root_span_id(&Digest::ZERO));
        assert!(trace != TraceId::INVALID && root != SpanId::INVALID);
        let other = Digest::with_last_byte(9);
        assert_eq!((trace_id(&other), root_span_id(&other)), (trace, root), "every program says the same");
        assert!(trace.to_string().ends_with("01") && root.to_string().ends_with("01"));
    }
}
