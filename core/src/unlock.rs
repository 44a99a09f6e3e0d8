//! A sequence number that its owner asked the contract to unlock, as one authority knows it. The protocol is in
//! docs/PROTOCOL.md, "Unlocking".
//!
//! ```text
//!  request is final ──► frozen: no vote, no execution ──┬── upheld(digest) ──► that order alone is executed
//!                                                       └── voided ──► no order is; the next number is free
//! ```
//! The contract's order of events decides. An authority only signs what it knows: that it has a certificate, or that it
//! has none and will execute none that the contract does not uphold.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::amount::{Amount, Asset, Epoch, SequenceNumber, TransactionIndex};
use crate::certificate::Certificate;
use crate::committee::Committee;
use crate::contract_vote::ContractVote;
use crate::identity::AccountId;
use crate::keys::AuthorityKeys;
use crate::signature::{EcdsaSignature, Ed25519Signature};
use crate::signature_check::{Authorization, SignatureCheck};
use crate::statement::Domain;

/// In place of a digest: the contract spent the number on a redemption that it never pays.
pub const RELEASED: Digest = Digest::ZERO;

/// An authority's state of one sequence number that is void or not executed yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Unlock {
    /// Present once the owner's request is applied: from this chain time on, in seconds since 1970, this authority signs
    /// a void vote that needs a quorum only.
    pub voidable_at: Option<u64>,
    /// A valid certificate of the number that was submitted here and may not be executed yet.
    pub seen: Option<Arc<Certificate>>,
    /// The newest epoch in which this authority signed a void vote.
    pub void_voted: Option<Epoch>,
    /// The digest of the redemption that the contract paid or queued under the number; [`RELEASED`] where it pays none.
    pub spent: Option<Digest>,
    /// The contract's decision.
    pub outcome: Option<UnlockOutcome>,
    /// The epoch in which the contract spent the number. None where it did not, or keys of that epoch were out: then
    /// `spent` does not say which order may be executed.
    pub spent_in: Option<Epoch>,
    /// The epoch in which the contract upheld an order of the number.
    pub upheld_in: Option<Epoch>,
}

/// The contract's decision about a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum UnlockOutcome {
    /// The order with this digest alone may be executed.
    Upheld(Digest),
    /// No order of this number is ever executed.
    Voided,
}

impl Unlock {
    /// Whether nothing but an upheld order may be executed.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.voidable_at.is_some()
    }

    /// The digest of the only order that may be executed while the number is frozen. A redemption that the contract paid
    /// counts as upheld, unless keys of the epoch in which it did so were out.
    #[must_use]
    pub fn upheld(&self) -> Option<Digest> {
        match self.outcome {
            Some(UnlockOutcome::Upheld(digest)) => Some(digest),
            Some(UnlockOutcome::Voided) => None,
            None => self.spent.filter(|digest| self.spent_in.is_some() && *digest != RELEASED),
        }
    }

    /// Keys of the epochs from `since` on were out: what the contract spent or upheld in them upholds nothing, and what
    /// it did before stays. The window of the number begins anew, for while it was upheld nobody had a reason to bring a
    /// certificate of it to others.
    pub(crate) fn reopen(&mut self, since: Epoch, voidable_at: u64) {
        let is_out = |epoch: &mut Option<Epoch>| epoch.take_if(|epoch| *epoch >= since).is_some();
        let (was_spent, was_upheld) = (is_out(&mut self.spent_in), is_out(&mut self.upheld_in));
        if !was_spent && !was_upheld {
            return;
        }
        if was_upheld {
            self.outcome = self.outcome.filter(|outcome| *outcome == UnlockOutcome::Voided);
        }
        self.voidable_at = self.voidable_at.map(|before| before.max(voidable_at));
    }

    /// Whether the contract voided the number.
    #[must_use]
    pub fn is_voided(&self) -> bool {
        self.outcome == Some(UnlockOutcome::Voided)
    }
}

/// An event of the contract's order about one number of an account of this shard.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct UnlockEvent {
    /// Every event of the order from here (exclusive) to `index` concerns other shards.
    pub after: TransactionIndex,
    /// The event's place in the order.
    pub index: TransactionIndex,
    /// The account.
    pub account: AccountId,
    /// The number.
    pub sequence: SequenceNumber,
    /// The kind of event.
    pub kind: UnlockEventKind,
}

/// The installation of a committee, in the contract's order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Installation {
    /// Every event of the order from here (exclusive) to `index` concerns other shards.
    pub after: TransactionIndex,
    /// The event's place in the order.
    pub index: TransactionIndex,
    /// The epoch that begins.
    pub epoch: Epoch,
    /// The first epoch whose keys were out; `epoch` if none were.
    pub compromised_since: Epoch,
    /// This authority votes to void a number that is open again from this chain time on, in seconds since 1970.
    pub voidable_at: u64,
}

/// The kinds of contract events about a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum UnlockEventKind {
    /// The owner requested to unlock it. This authority votes to void it from this chain time on, in seconds since 1970.
    Requested(u64),
    /// One order holds.
    Upheld(Digest),
    /// No order holds.
    Voided,
    /// The redemption with this digest was paid, or waits in the queue.
    Spent(Digest),
    /// The redemption with this digest left the queue unpaid.
    Released(Digest),
    /// The redemption that is executed here under the number is never paid: another one was, or it was released. So much
    /// goes back to the account.
    CreditedBack(Asset, Amount),
}

/// The redemption executed here under a number that the contract reports as spent or released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutedRedemption {
    /// Its digest.
    pub digest: Digest,
    /// The asset.
    pub asset: Asset,
    /// The amount.
    pub amount: Amount,
}

impl UnlockEventKind {
    /// The event's effect if this redemption is executed under its number; `None` if the contract paid that redemption.
    #[must_use]
    pub fn after(self, executed: ExecutedRedemption) -> Option<Self> {
        let is_paid = match self {
            Self::Spent(digest) => digest == executed.digest,
            Self::Released(digest) => digest != executed.digest,
            _ => return Some(self),
        };
        (!is_paid).then_some(Self::CreditedBack(executed.asset, executed.amount))
    }
}

/// Whether `authorization`, as the contract passes it on, counts as the signature of the owner of `account` on its request
/// to unlock `sequence`. The contract has checked the requests of Ethereum accounts itself.
#[must_use]
pub fn is_unlock_authorized(
    domain: &Domain,
    account: AccountId,
    sequence: SequenceNumber,
    authorization: &[u8],
) -> bool {
    account.ethereum_address().is_some() || is_unlock_signed(domain, account, sequence, authorization)
}

/// Whether `authorization` is the signature of the owner of `account` on its request to unlock `sequence`: 32 bytes of an
/// Ed25519 key and 64 of its signature, or the 65 bytes of an Ethereum signature.
#[must_use]
pub fn is_unlock_signed(domain: &Domain, account: AccountId, sequence: SequenceNumber, authorization: &[u8]) -> bool {
    let digest = domain.unlock_request_digest(account, sequence);
    let authorization = match account.ethereum_address() {
        Some(_) => authorization
            .try_into()
            .ok()
            .map(|signature| Authorization::Ethereum { signature: EcdsaSignature(signature) }),
        None => authorization.split_first_chunk().and_then(|(key, signature)| {
            let signature = Ed25519Signature(signature.try_into().ok()?);
            (AccountId::from_ed25519(key) == account).then_some(Authorization::Ed25519 { key: *key, signature })
        }),
    };
    authorization.is_some_and(|authorization| {
        SignatureCheck::Order { sender: account, digest, authorization }.check(domain).is_ok()
    })
}

/// A statement about a frozen number that an authority signs for the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnlockVote {
    /// It executed the order with this digest, or keeps its certificate.
    Certificate(Digest),
    /// It has no certificate of the number, and will execute none that the contract does not uphold.
    Void {
        /// The vote counts only together with those of all members, and needs no window.
        unanimous: bool,
    },
}

impl UnlockVote {
    /// The digest that an authority signs.
    #[must_use]
    pub fn digest(&self, domain: &Domain, epoch: Epoch, account: AccountId, sequence: SequenceNumber) -> Digest {
        match self {
            Self::Certificate(order) => domain.certificate_vote_digest(epoch, account, sequence, *order),
            Self::Void { unanimous } => domain.void_vote_digest(epoch, account, sequence, *unanimous),
        }
    }

    /// Signs the vote. The caller has on disk that it may: the certificate, or [`crate::Record::VoidVoted`].
    #[must_use]
    pub fn sign(
        &self,
        keys: &AuthorityKeys,
        domain: &Domain,
        epoch: Epoch,
        account: AccountId,
        sequence: SequenceNumber,
    ) -> ContractVote {
        let signature = keys.sign_ecdsa(self.digest(domain, epoch, account, sequence));
        ContractVote { authority: keys.public().name, signature }
    }

    /// How many of these votes the contract asks for.
    #[must_use]
    pub fn needed(&self, committee: &Committee) -> usize {
        match self {
            Self::Void { unanimous: true } => committee.members().len(),
            Self::Certificate(_) | Self::Void { unanimous: false } => committee.quorum(),
        }
    }
}
