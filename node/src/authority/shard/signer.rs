//! Signs the shard's votes with the authority's secret keys.

use std::sync::Arc;

use fastpay_core::{Digest, Domain, MERKLE_LEAVES_MAX, sign_payment_votes, sign_redemption_vote};
use fastpay_rpc::Refusal;

use super::batch::Batch;
use super::verification::Verification;
use crate::authority::voter_status::{VoterStatus, VoterStatusWatch};

/// Signs an authority's votes.
pub(super) struct Signer {
    domain: Domain,
    seen: VoterStatusWatch,
    /// The voter status when the batch began: all its votes are for one epoch.
    voter_status: Arc<VoterStatus>,
}

impl Signer {
    pub fn new(domain: Domain, mut seen: VoterStatusWatch) -> Self {
        let voter_status = seen.borrow_and_update().clone();
        Self { domain, seen, voter_status }
    }

    /// Adopts the newest voter status.
    pub fn refresh(&mut self) {
        if self.seen.has_changed().unwrap_or(false) {
            self.voter_status = self.seen.borrow_and_update().clone();
        }
    }

    /// The voter status of the batch.
    pub fn voter_status(&self) -> &VoterStatus {
        &self.voter_status
    }

    /// Why this authority does not vote now, if so. Then it locks nothing, either.
    pub fn refusal(&self) -> Option<Refusal> {
        self.voter_status.votes().err()
    }

    /// Signs the batch's votes: one signature for all its payments, and one for each redemption, which Ethereum checks
    /// on its own.
    pub fn vote(&self, batch: &mut Batch, verification: &mut Verification) {
        let Some(keys) = self.voter_status.voter() else { return };
        let epoch = self.voter_status.epoch();
        let votes = std::mem::take(&mut batch.votes).into_iter();
        let (payments, redemptions): (Vec<_>, Vec<_>) = votes.partition(|vote| vote.redemption.is_none());
        for payments in payments.chunks(MERKLE_LEAVES_MAX) {
            let digests: Vec<Digest> = payments.iter().map(|vote| vote.digest).collect();
            let Some((signed, own)) = sign_payment_votes(keys, &self.domain, epoch, &digests) else { continue };
            verification.remember(own);
            for (vote, signed) in payments.iter().zip(signed) {
                batch.signed(vote, epoch, signed);
            }
        }
        for vote in redemptions {
            if let Some(redemption) = &vote.redemption {
                let (signed, own) = sign_redemption_vote(keys, &self.domain, epoch, redemption);
                verification.remember(own);
                batch.signed(&vote, epoch, signed);
            }
        }
    }
}
