//! Proof that an authority voted for two orders of one account and number, which no honest one does. It contains the
//! two orders, signed by the account's owner, and the authority's valid vote for each. Anyone who knows the committees
//! can verify it without network access.

use borsh::BorshDeserialize;
use fastpay_core::{
    AccountId, AuthorityName, Certificate, Committees, Domain, Epoch, OrderError, PrimaryAddress, SequenceNumber,
    Transfer, TransferOrder, VerifiedOrder, Vote, VoteError,
};
use serde::{Deserialize, Serialize};

use crate::folder::encode_hex;

/// Two conflicting votes of an authority, with their orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Proof {
    /// The deployment's chain; 0 without a Primary.
    pub chain_id: u64,
    /// The deployment's contract, or its substitute.
    pub contract: PrimaryAddress,
    /// The authority that misbehaved.
    pub authority: AuthorityName,
    /// The sender's account.
    pub account: AccountId,
    /// The sequence number of both orders.
    pub sequence: SequenceNumber,
    /// One vote.
    pub first: SignedVote,
    /// The other.
    pub second: SignedVote,
}

/// A vote with its statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignedVote {
    /// The epoch of the committee.
    pub epoch: Epoch,
    /// The transfer in readable form; only `order` is verified.
    pub transfer: Transfer,
    /// The order with its owner's signature: borsh in hexadecimal digits.
    pub order: String,
    /// The vote: borsh in hexadecimal digits.
    pub vote: String,
}

/// Why a proof is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The proof is for another chain or contract.
    #[error("it belongs to contract {contract} on chain {chain_id}, which is not this wallet's")]
    OtherDeployment {
        /// The chain that it names.
        chain_id: u64,
        /// The contract that it names.
        contract: PrimaryAddress,
    },
    /// The proof is malformed.
    #[error("its {0} cannot be read")]
    Malformed(&'static str),
    /// This wallet does not know the committee of the epoch.
    #[error("this wallet does not know of epoch {0}")]
    UnknownEpoch(Epoch),
    /// An order is not valid.
    #[error("an order in it is not valid: {0}")]
    Order(#[from] OrderError),
    /// A vote is not valid.
    #[error("a vote in it is not valid: {0}")]
    Vote(#[from] VoteError),
    /// A vote is not of the accused authority.
    #[error("a vote in it is by {0}, not by the authority that it accuses")]
    OtherAuthority(AuthorityName),
    /// The orders do not conflict.
    #[error("its orders are not two different ones of account {account} with sequence number {sequence}")]
    NoConflict {
        /// The account that it names.
        account: AccountId,
        /// The number that it names.
        sequence: SequenceNumber,
    },
}

impl Proof {
    /// The proofs in two certificates for one number: one for every authority that voted in both.
    pub(super) fn find(domain: &Domain, first: &Certificate, second: &Certificate) -> Vec<Self> {
        let (chain_id, contract) = (domain.chain_id(), domain.contract());
        let (account, sequence) = (first.order.transfer.sender(), first.order.transfer.sequence());
        let both = first.votes.iter().filter_map(|vote| {
            let other = second.votes.iter().find(|other| other.authority == vote.authority)?;
            let (first, second) = (SignedVote::new(first, vote), SignedVote::new(second, other));
            Some(Self { chain_id, contract, authority: vote.authority, account, sequence, first, second })
        });
        both.collect()
    }

    /// Verifies the whole proof. Nothing in it is trusted: the caller supplies the committees.
    ///
    /// # Errors
    /// If it does not prove that its authority voted for two orders of its account and number.
    pub fn verify(&self, domain: &Domain, committees: &Committees) -> Result<(), ProofError> {
        let Self { chain_id, contract, authority, account, sequence, first, second } = self;
        if (*chain_id, *contract) != (domain.chain_id(), domain.contract()) {
            return Err(ProofError::OtherDeployment { chain_id: *chain_id, contract: *contract });
        }
        let (first, second) =
            (first.verify(domain, committees, *authority)?, second.verify(domain, committees, *authority)?);
        let is_named =
            |order: &VerifiedOrder| (order.transfer().sender(), order.transfer().sequence()) == (*account, *sequence);
        if first.digest() == second.digest() || !is_named(&first) || !is_named(&second) {
            return Err(ProofError::NoConflict { account: *account, sequence: *sequence });
        }
        Ok(())
    }
}

impl SignedVote {
    fn new(certificate: &Certificate, vote: &Vote) -> Self {
        let (order, vote) = (encode_hex(&certificate.order), encode_hex(vote));
        Self { epoch: certificate.epoch, transfer: certificate.order.transfer.clone(), order, vote }
    }

    fn verify(
        &self,
        domain: &Domain,
        committees: &Committees,
        authority: AuthorityName,
    ) -> Result<VerifiedOrder, ProofError> {
        let committee = committees.get(self.epoch).ok_or(ProofError::UnknownEpoch(self.epoch))?;
        let order: TransferOrder = decode("order", &self.order)?;
        if order.transfer != self.transfer {
            return Err(ProofError::Malformed("transfer"));
        }
        let order = order.verify(domain)?;
        let vote: Vote = decode("vote", &self.vote)?;
        if vote.authority != authority {
            return Err(ProofError::OtherAuthority(vote.authority));
        }
        vote.verify(domain, committee, &order)?;
        Ok(order)
    }
}

fn decode<T: BorshDeserialize>(what: &'static str, encoded: &str) -> Result<T, ProofError> {
    let bytes = hex::decode(encoded).map_err(|_| ProofError::Malformed(what))?;
    borsh::from_slice(&bytes).map_err(|_| ProofError::Malformed(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption};

    struct Case {
        committee: TestCommittee,
        committees: Committees,
    }

    impl Case {
        fn new() -> Self {
            let committee = TestCommittee::new(4);
            Self { committees: Committees::new(committee.committee.clone()).unwrap(), committee }
        }

        fn certificate(&self, transfer: Transfer, members: &[usize]) -> Certificate {
            let order = TestAccount::numbered(0).sign(&self.committee.domain, transfer);
            self.committee.certificate_by(&order, members)
        }

        /// The proofs from a payment and a redemption with one number, for both of which authorities 1 and 2 voted.
        fn proofs(&self) -> Vec<Proof> {
            let (alice, bob) = (TestAccount::numbered(0).id(), TestAccount::numbered(1).id());
            let pays = Transfer::Payment(payment(alice, bob, 5, 3));
            let redeems = Transfer::Redemption(redemption(alice, PrimaryAddress::repeat_byte(9), 6, 3));
            let (first, second) = (self.certificate(pays, &[0, 1, 2]), self.certificate(redeems, &[1, 2, 3]));
            Proof::find(&self.committee.domain, &first, &second)
        }

        fn check(&self, proof: &Proof) -> Result<(), ProofError> {
            proof.verify(&self.committee.domain, &self.committees)
        }
    }

    #[test]
    fn an_equivocation_is_proven_by_a_file_that_anyone_can_check() {
        let case = Case::new();
        let proofs = case.proofs();
        let members = case.committee.committee.members();
        assert_eq!(proofs.iter().map(|proof| proof.authority).collect::<Vec<_>>(), [members[1].name, members[2].name]);
        for proof in proofs {
            let text = serde_json::to_string_pretty(&proof).unwrap();
            let read: Proof = serde_json::from_str(&text).unwrap();
            assert_eq!(read, proof);
            assert_eq!(case.check(&read), Ok(()));
        }
    }

    #[test]
    fn an_invalid_proof_is_distinguished_from_a_valid_one() {
        let case = Case::new();
        let proof = case.proofs().remove(0);
        let refused = |change: &dyn Fn(&mut Proof)| {
            let mut changed = proof.clone();
            change(&mut changed);
            case.check(&changed).unwrap_err()
        };
        let no_conflict = ProofError::NoConflict { account: proof.account, sequence: proof.sequence };
        assert_eq!(refused(&|proof| proof.second = proof.first.clone()), no_conflict, "one vote, twice");
        assert!(matches!(refused(&|p| p.sequence = SequenceNumber(4)), ProofError::NoConflict { .. }));
        assert!(matches!(refused(&|p| p.account = AccountId([1; 32])), ProofError::NoConflict { .. }));
        assert!(matches!(refused(&|p| p.chain_id = 5), ProofError::OtherDeployment { chain_id: 5, .. }));
        let elsewhere = PrimaryAddress::repeat_byte(1);
        assert!(matches!(refused(&|p| p.contract = elsewhere), ProofError::OtherDeployment { .. }));
        assert_eq!(refused(&|p| p.first.epoch = Epoch(1)), ProofError::UnknownEpoch(Epoch(1)));
        let innocent = case.committee.committee.members()[0].name;
        assert_eq!(refused(&|p| p.authority = innocent), ProofError::OtherAuthority(proof.authority));
        assert_eq!(refused(&|p| p.first.order.clear()), ProofError::Malformed("order"));
        assert_eq!(refused(&|p| p.second.vote.push('x')), ProofError::Malformed("vote"));
        assert_eq!(refused(&|p| p.first.transfer = p.second.transfer.clone()), ProofError::Malformed("transfer"));
        // A vote for one order is not accepted for another.
        let (alice, bob) = (TestAccount::numbered(0).id(), TestAccount::numbered(1).id());
        let other = case.certificate(Transfer::Payment(payment(alice, bob, 9, 3)), &[1]).order;
        let moved = |p: &mut Proof| (p.first.transfer, p.first.order) = (other.transfer.clone(), encode_hex(&other));
        assert!(matches!(refused(&moved), ProofError::Vote(_)));
        // An order that its owner did not sign proves nothing.
        let mut forged = other.clone();
        if let Transfer::Payment(payment) = &mut forged.transfer {
            payment.amount = fastpay_core::Amount(1);
        }
        let forged = |p: &mut Proof| (p.first.transfer, p.first.order) = (forged.transfer.clone(), encode_hex(&forged));
        assert!(matches!(refused(&forged), ProofError::Order(_)));
    }
}
