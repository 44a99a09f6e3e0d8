//! The secret side of voting.

use std::sync::Arc;

use fastpay_core::{Digest, Domain, MERKLE_LEAVES_MAX, sign_payment_votes, sign_redemption_vote};
use fastpay_rpc::Refusal;

use super::batch::Batch;
use super::verification::Verification;
use crate::standing::{Standing, StandingSeen};

/// Signs an authority's votes.
pub(super) struct Signer {
    domain: Domain,
    seen: StandingSeen,
    /// As it was when the batch was begun: all its votes are for one epoch.
    standing: Arc<Standing>,
}

impl Signer {
    pub fn new(domain: Domain, mut seen: StandingSeen) -> Self {
        let standing = seen.borrow_and_update().clone();
        Self { domain, seen, standing }
    }

    /// Takes the newest standing.
    pub fn look(&mut self) {
        if self.seen.has_changed().unwrap_or(false) {
            self.standing = self.seen.borrow_and_update().clone();
        }
    }

    /// The standing of the batch.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Why this authority gives no votes now: then it locks nothing, either.
    pub fn refusal(&self) -> Option<Refusal> {
        self.standing.voter().is_none().then(|| Refusal::NotVoting(self.standing.epoch()))
    }

    /// Signs the batch's votes: one signature for all its payments, one for each redemption, which
    /// Ethereum checks on its own.
    pub fn vote(&self, batch: &mut Batch, verification: &mut Verification) {
        let Some(keys) = self.standing.voter() else { return };
        let epoch = self.standing.epoch();
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
