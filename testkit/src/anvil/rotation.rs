//! Replaces a committee, all of whose keys the test has, with the next one: announced, endorsed, matured and installed.

use alloy::primitives::{Address, B256, Bytes, U256};
use alloy::sol_types::SolCall;
use fastpay_core::{
    Announcement, AuthorityKeys, Committee, CouncilStatement, Domain, Epoch, PossessionProof, VerifiedContractVote,
    sign_council_vote,
};
use fastpay_ethereum::{Call, ContractAnnouncement, ICouncil};

use super::{CHAIN_ID, GUARDIAN, council_of};

/// `Council`'s short delay, which follows the guardian's endorsement.
const DELAY_S: u64 = 86_400;

/// A committee and the keys of all its members, in the committee's order.
#[derive(Clone, Copy, Debug)]
pub struct Signers<'a> {
    /// The committee with the members' public keys.
    pub committee: &'a Committee,
    /// Their keys.
    pub keys: &'a [AuthorityKeys],
}

impl Signers<'_> {
    fn votes(&self, domain: &Domain, statement: &CouncilStatement<'_>) -> Bytes {
        let digest = domain.council_digest(statement);
        let vote = |keys| sign_council_vote(keys, domain, statement).verify(self.committee, digest).unwrap();
        let votes: Vec<_> = self.keys.iter().map(vote).collect();
        VerifiedContractVote::quorum(self.committee, digest, &votes).unwrap().into()
    }
}

/// The calls that install a committee, in order. The guardian's key is that of [`GUARDIAN`], before and after.
#[derive(Clone, Debug)]
pub struct Rotation {
    domain: Domain,
    announcement: Announcement,
    proofs: Bytes,
    votes: Bytes,
    next_keys: Vec<AuthorityKeys>,
}

impl Rotation {
    /// The silence after which a committee can be recovered.
    pub const RECOVERY_SILENCE_S: u64 = 120 * DELAY_S;
    /// The time from the announcement of a recovery until it can be installed.
    pub const RECOVERY_NOTICE_S: u64 = 30 * DELAY_S;

    /// A rotation from one committee to the next, to be announced by `deadline_s`.
    #[must_use]
    pub fn new(contract: Address, now: Signers<'_>, next: Signers<'_>, deadline_s: u64) -> Self {
        Self::since(next.committee.epoch(), contract, now, next, deadline_s)
    }

    /// As [`Rotation::new`], for a rotation after the keys of all epochs from the given one on were compromised.
    #[must_use]
    pub fn since(
        compromised_since: Epoch,
        contract: Address,
        now: Signers<'_>,
        next: Signers<'_>,
        deadline_s: u64,
    ) -> Self {
        let domain = Domain::new(CHAIN_ID, contract);
        let announcement = Announcement {
            committee: next.committee.clone(),
            guardian: GUARDIAN,
            recovery: Address::ZERO,
            compromised_since,
            checkpoint: B256::ZERO,
            deadline: deadline_s,
        };
        let proof = |keys: &AuthorityKeys| {
            let proof = PossessionProof::new(keys, &domain);
            [proof.redemption_signature.0.as_slice(), &proof.voting_signature.0].concat()
        };
        let proofs = next.keys.iter().flat_map(proof).collect::<Vec<_>>().into();
        let votes = now.votes(&domain, &CouncilStatement::Announcement(&announcement));
        Self { domain, announcement, proofs, votes, next_keys: next.keys.to_vec() }
    }

    /// The name by which the contract knows the announcement.
    #[must_use]
    pub fn id(&self) -> B256 {
        self.domain.council_digest(&CouncilStatement::Announcement(&self.announcement))
    }

    /// The delay between the endorsement and the maturity.
    #[must_use]
    pub fn delay_s(&self) -> u64 {
        DELAY_S
    }

    /// The address of `Council`.
    #[must_use]
    pub fn council(&self) -> Address {
        council_of(self.domain.contract())
    }

    fn call(&self, call: &impl SolCall) -> Call {
        Call { to: self.council(), value: U256::ZERO, data: call.abi_encode().into() }
    }

    /// The call that announces the next committee.
    #[must_use]
    pub fn announce(&self) -> Call {
        let announcement = ContractAnnouncement::from(&self.announcement);
        self.call(&ICouncil::announceCall { announcement, proofs: self.proofs.clone(), votes: self.votes.clone() })
    }

    /// The call that announces the next committee as a recovery, of which keys were compromised since epoch 0.
    #[must_use]
    pub fn announce_recovery(&self) -> Call {
        let announcement = ContractAnnouncement::from(&self.announcement);
        self.call(&ICouncil::announceRecoveryCall { announcement, proofs: self.proofs.clone() })
    }

    /// The call by which the next committee adopts a checkpoint with these votes.
    #[must_use]
    pub fn adopt(&self, checkpoint: B256, votes: &[VerifiedContractVote]) -> Call {
        let epoch = self.announcement.committee.epoch();
        let digest = self.domain.council_digest(&CouncilStatement::CheckpointAdoption { epoch, checkpoint });
        let votes = VerifiedContractVote::quorum(&self.announcement.committee, digest, votes).unwrap().into();
        self.call(&ICouncil::adoptCall { checkpoint, votes })
    }

    /// The call by which the guardian endorses the next committee.
    #[must_use]
    pub fn endorse(&self) -> Call {
        self.call(&ICouncil::endorseCall { id: self.id() })
    }

    /// The call that matures the announcement.
    #[must_use]
    pub fn mature(&self) -> Call {
        self.call(&ICouncil::matureCall { id: self.id() })
    }

    /// The call that installs the next committee, with an acceptance that names this block.
    #[must_use]
    pub fn install(&self, block_number: u64, block_hash: B256) -> Call {
        let (announcement, epoch) = (self.id(), self.announcement.committee.epoch());
        let next = Signers { committee: &self.announcement.committee, keys: &self.next_keys };
        let votes = next.votes(&self.domain, &CouncilStatement::Acceptance { epoch, announcement, block_hash });
        let (announcement, block_number) = ((&self.announcement).into(), U256::from(block_number));
        self.call(&ICouncil::installCall { announcement, blockNumber: block_number, votes })
    }
}
