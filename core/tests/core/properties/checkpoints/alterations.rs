//! Segments that are not the true one. Each is refused: it does not follow the state, or leads to another checkpoint
//! than the one that is certified.

use fastpay_core::checkpoint::{Checkpoint, CheckpointState, PrimaryEventKind, Segment, SegmentEntry, SegmentError};
use fastpay_core::{Amount, Digest, Domain, Epoch, Transfer};
use fastpay_testkit::TestAccount;
use rand::prelude::*;
use rand::rngs::StdRng;

use crate::streamed;

/// At each cut.
const ALTERATIONS: usize = 6;

/// Alters entries one at a time, and returns how many alterations were refused.
pub fn try_all(
    state: &CheckpointState,
    segment: &Segment,
    before: &Checkpoint,
    certified: &Checkpoint,
    domain: &Domain,
    rng: &mut StdRng,
) -> usize {
    let mut refused = 0;
    for _ in 0..ALTERATIONS {
        let at = rng.random_range(0..segment.entries.len());
        let kind = rng.random_range(0..5);
        let Some(altered) = alter(segment, at, kind, rng) else { continue };
        assert_ne!(altered, *segment);
        let applied = state.clone().apply(altered.clone(), domain, rng);
        streamed::compare(state, &altered, &applied, domain);
        match applied {
            // A cut that ends earlier, or a false event: another checkpoint.
            Ok((other, root)) => {
                let other = before.next(domain, certified.epoch, &other.summary(), root).unwrap();
                other.check(certified).expect_err("an altered segment leads to the certified checkpoint");
            }
            Err(error) => is_fitting(&error, &segment.entries[at], kind),
        }
        refused += 1;
    }
    refused
}

fn alter(segment: &Segment, at: usize, kind: u8, rng: &mut StdRng) -> Option<Segment> {
    let mut entries = segment.entries.clone();
    match (kind, &mut entries[at]) {
        // Left out.
        (0, _) => drop(entries.remove(at)),
        // Twice.
        (1, _) => entries.insert(at, segment.entries[at].clone()),
        // In another place.
        (2, _) => {
            let other = rng.random_range(0..entries.len());
            entries.swap(at, other);
            (at != other).then_some(())?;
        }
        // Signed by another one.
        (3, SegmentEntry::Executed(order)) => {
            let stranger = TestAccount::numbered(rng.random_range(50..60));
            let domain = Domain::new(31337, [0xFA; 20].into());
            order.authorization = stranger.sign(&domain, order.transfer.clone()).authorization;
        }
        // With another content.
        (_, SegmentEntry::Executed(order)) => match &mut order.transfer {
            Transfer::Payment(payment) => payment.amount = Amount(payment.amount.0 + 1),
            Transfer::Redemption(redemption) => redemption.recipient = [9; 20].into(),
            Transfer::Payout(payout) => payout.memo.0[0] ^= 1,
        },
        (_, SegmentEntry::Void { sequence, .. }) => sequence.0 += 1,
        (_, SegmentEntry::Paid(redemption)) => redemption.amount.0 += 1,
        (_, SegmentEntry::Recovery | SegmentEntry::ExecutedPrivate(_)) => return None,
        (_, SegmentEntry::Event(event)) => match &mut event.kind {
            PrimaryEventKind::Deposit { amount, .. } => amount.0 += 1,
            PrimaryEventKind::Installed(installed) => installed.compromised_since = Epoch(u64::MAX),
            PrimaryEventKind::UnlockRequested { is_authorized, .. } => *is_authorized = !*is_authorized,
            PrimaryEventKind::Voided { sequence, .. } => sequence.0 += 1,
            PrimaryEventKind::Upheld { digest, .. }
            | PrimaryEventKind::Redeemed { digest, .. }
            | PrimaryEventKind::Queued { digest, .. }
            | PrimaryEventKind::Released { digest, .. } => *digest = Digest::repeat_byte(77),
        },
    }
    Some(Segment { entries })
}

/// An order that its owner did not sign is refused as such, and what was signed never is.
fn is_fitting(error: &SegmentError, altered: &SegmentEntry, kind: u8) {
    let is_unsigned = matches!(altered, SegmentEntry::Executed(_)) && kind > 2;
    assert_eq!(matches!(error, SegmentError::Order { .. }), is_unsigned, "{error} for {altered:?} in way {kind}");
}
