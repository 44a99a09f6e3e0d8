//! FastPay committees on the ledger: what the genesis fixes for each, what is announced and requested, and what the
//! settlement cluster keeps of it. The rules are those of the contract (docs/CONTRACT.md).

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{
    AccountId, Amount, Announcement, Asset, Authorization, Committee, ContractVote, CouncilStatement, Digest, Domain,
    EcdsaSignature, Ed25519Signature, Epoch, PossessionProof, PrimaryAddress, SequenceNumber,
};
use serde::{Deserialize, Serialize};

use crate::identity::{CommitteeNumber, Time};

/// The shortest unlock window, in milliseconds: two minutes. Authorities vote while their view of the ledger is younger
/// than half of the window, and they hear of the ledger every ten seconds.
pub const UNLOCK_WINDOW_MS_MIN: u64 = 120_000;

/// A FastPay committee, as the genesis founds it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FoundedCommittee {
    /// The members in epoch 0.
    pub first: Committee,
    /// The guardian in epoch 0: its key endorses announcements. Zero for nobody.
    pub guardian: PrimaryAddress,
    /// Fixed from then on.
    pub parameters: SafetyParameters,
}

/// The windows and delays of a FastPay committee, in milliseconds, and the bond of a request to unlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SafetyParameters {
    /// How long redemption votes of an epoch count after the next one has begun: at least two unlock windows. A
    /// contract's is 14 to 90 days.
    pub votes_validity_ms: u64,
    /// How long after its request a quorum can void a number: at least [`UNLOCK_WINDOW_MS_MIN`]. A contract's is 3 to
    /// 30 days.
    pub unlock_window_ms: u64,
    /// The delay of an announcement from the guardian's endorsement on. A contract's is a day.
    pub endorsed_delay_ms: u64,
    /// The delay of an announcement without an endorsement; not shorter. A contract's is 14 days.
    pub announced_delay_ms: u64,
    /// An announcement lapses this long after its delay without an endorsement. A contract's is 14 days.
    pub lapse_ms: u64,
    /// What a request to unlock a number costs until it is decided.
    pub unlock_bond: Bond,
}

/// An amount of an asset that whoever requests an unlock leaves with the settlement cluster. It goes to whoever has an
/// order upheld, and back when the number is voided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bond {
    /// The asset.
    pub asset: Asset,
    /// The amount, not zero.
    pub amount: Amount,
}

/// The next committee, as a quorum of the current one announces it. The ledger has no recovery, so nobody is named for
/// it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct NextCommittee {
    /// The members, with the epoch that they would begin.
    pub committee: Committee,
    /// The guardian from then on; zero for nobody.
    pub guardian: PrimaryAddress,
    /// The first epoch whose keys were compromised; the committee's own epoch if none were.
    pub compromised_since: Epoch,
    /// The digest of a certified checkpoint; zero for none.
    pub checkpoint: Digest,
    /// The time, in seconds since 1970, by which the announcement must be on the ledger.
    pub deadline: u64,
}

impl NextCommittee {
    /// The statement that members of the current committee sign.
    #[must_use]
    pub fn announcement(&self) -> Announcement {
        let Self { committee, guardian, compromised_since, checkpoint, deadline } = self.clone();
        Announcement { committee, guardian, recovery: PrimaryAddress::ZERO, compromised_since, checkpoint, deadline }
    }

    /// The digest of that statement, by which the ledger names the announcement.
    #[must_use]
    pub fn id(&self, domain: &Domain) -> Digest {
        domain.council_digest(&CouncilStatement::Announcement(&self.announcement()))
    }
}

/// A member's proof that it has both of its keys: the two signatures of a [`PossessionProof`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Possession {
    /// By the secp256k1 key.
    pub redemption_signature: EcdsaSignature,
    /// By the Ed25519 key.
    pub voting_signature: Ed25519Signature,
}

impl From<PossessionProof> for Possession {
    fn from(proof: PossessionProof) -> Self {
        let PossessionProof { redemption_signature, voting_signature, .. } = proof;
        Self { redemption_signature, voting_signature }
    }
}

/// An announcement with everything that it needs.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Announcing {
    /// The FastPay committee that rotates.
    pub committee: CommitteeNumber,
    /// What is announced.
    pub next: NextCommittee,
    /// One for each member of the next committee, in their order.
    pub proofs: Vec<Possession>,
    /// A quorum of the current committee, on [`NextCommittee::announcement`], in the order of names.
    pub votes: Vec<ContractVote>,
}

/// What the settlement cluster keeps of an announcement.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Announced {
    /// What was announced.
    pub next: NextCommittee,
    /// When.
    pub announced_at: Time,
    /// When the guardian endorsed it, if it did.
    pub endorsed_at: Option<Time>,
    /// Once it has matured: the digest of the committee's group of that height, which acceptances name in place of a
    /// block's hash.
    pub matured: Option<Digest>,
}

impl Announced {
    /// From when on it can be installed: a short delay after the endorsement, and a long one after the announcement at
    /// the latest.
    #[must_use]
    pub fn installable_at(&self, parameters: &SafetyParameters) -> Time {
        let after = |time: Time, delay: u64| Time(time.0.saturating_add(delay));
        let unendorsed = after(self.announced_at, parameters.announced_delay_ms);
        let endorsed = self.endorsed_at.map(|time| after(time, parameters.endorsed_delay_ms));
        endorsed.map_or(unendorsed, |endorsed| endorsed.min(unendorsed))
    }

    /// Until when it can be installed. An endorsement does not change it, so a stolen guardian's key takes no time from
    /// those who replace it.
    #[must_use]
    pub fn lapses_at(&self, parameters: &SafetyParameters) -> Time {
        let delay = parameters.announced_delay_ms.saturating_add(parameters.lapse_ms);
        Time(self.announced_at.0.saturating_add(delay))
    }

    /// The statement that a quorum of the next committee signs; `None` before it has matured. `id` is the
    /// announcement's.
    #[must_use]
    pub fn acceptance(&self, id: Digest) -> Option<CouncilStatement<'static>> {
        let (epoch, block_hash) = (self.next.committee.epoch(), self.matured?);
        Some(CouncilStatement::Acceptance { epoch, announcement: id, block_hash })
    }
}

/// The current epoch of a FastPay committee, and what its installation fixed.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CurrentEpoch {
    /// The epoch.
    pub epoch: Epoch,
    /// When it began; zero for epoch 0.
    pub began: Time,
    /// Until when, inclusive, redemption votes of the epoch before count; `None` if they do not.
    pub previous_counts_until: Option<Time>,
    /// The guardian; zero for nobody.
    pub guardian: PrimaryAddress,
    /// Epochs whose keys were compromised: from the first one of each pair to before the second.
    pub compromised: Vec<(Epoch, Epoch)>,
}

impl CurrentEpoch {
    /// Whether an installation said that keys of this epoch were out.
    #[must_use]
    pub fn is_compromised(&self, epoch: Epoch) -> bool {
        self.compromised.iter().any(|(first, end)| (*first..*end).contains(&epoch))
    }
}

/// The request of an account's owner to unlock one of its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct UnlockRequest {
    /// The FastPay committee.
    pub committee: CommitteeNumber,
    /// The account.
    pub account: AccountId,
    /// The number.
    pub sequence: SequenceNumber,
    /// By the key of the account, of either kind, on [`Domain::unlock_request_digest`].
    pub authorization: Authorization,
}

impl UnlockRequest {
    /// Whether the account's owner signed it under this domain, which is the committee's.
    #[must_use]
    pub fn is_authorized(&self, domain: &Domain) -> bool {
        self.authorization.is_by(self.account, domain.unlock_request_digest(self.account, self.sequence))
    }
}

/// What the settlement cluster keeps of a number whose owner requested to unlock it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct UnlockEntry {
    /// From when on a quorum can void it.
    pub voidable_from: Time,
    /// The owner of the reserve that paid the bond; `None` once the bond is paid out.
    pub payer: Option<AccountId>,
    /// The decision about it, and the epoch of the committee that made it.
    pub decision: Option<(UnlockDecision, Epoch)>,
}

/// The decision about a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum UnlockDecision {
    /// One order holds.
    Upheld,
    /// No order does.
    Voided,
}

impl UnlockEntry {
    /// The decision, if it holds. An order that a compromised epoch upheld may not exist, so the number is open again.
    /// A number that such an epoch voided stays void, because it is spent.
    #[must_use]
    pub fn decision(&self, current: &CurrentEpoch) -> Option<UnlockDecision> {
        let (decision, epoch) = self.decision?;
        let is_open_again = decision == UnlockDecision::Upheld && current.is_compromised(epoch);
        (!is_open_again).then_some(decision)
    }
}
