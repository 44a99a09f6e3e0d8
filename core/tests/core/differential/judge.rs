//! Core's verdict on a case, and the verdict that the contract must then give.

use fastpay_core::{
    AuthorityName, BadSignature, Certificate, CertificateError, Committee, ContractVote, EcdsaSignature,
    InvalidTransfer, OrderError, Redemption, Signatory, Transfer, TransferOrder, VerifiedContractVote, Vote,
    VoteSignature,
};
use fastpay_testkit::TestAccount;

use super::case::{Case, Function, VOTES_VALIDITY};

/// Core's verdict on a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    Accepted,
    Refused(String),
    /// Both are right: core refuses or accepts for a reason that is not the contract's. These are all there are.
    ByDesign {
        core: Design,
        accepted_by_contract: bool,
    },
}

/// The intended differences between core and the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// An authority never votes for it, so no certificate of it can exist; the contract does not look.
    NeverVotedFor(InvalidTransfer),
    /// The sender's signature is part of a certificate; the contract relies on the committee for it.
    SenderNotSeen,
    /// A certificate is for ever to authorities. The contract counts votes of an ended epoch for a time only; then
    /// the current committee votes again.
    EpochEnded,
}

impl Expected {
    pub fn accepted_by_contract(&self) -> bool {
        match self {
            Self::Accepted => true,
            Self::Refused(_) => false,
            Self::ByDesign { accepted_by_contract, .. } => *accepted_by_contract,
        }
    }
}

pub fn judge(case: &Case) -> Expected {
    let Some(signers) = usize::try_from(case.call.epoch.0).ok().and_then(|epoch| case.epochs.get(epoch)) else {
        return Expected::Refused("no committee of this epoch".into());
    };
    let committee = &signers.committee;
    let votes = unpack(committee, &case.votes).filter(|votes| repacked(committee, votes) == case.votes);
    let Some(votes) = votes else { return Expected::Refused("these bytes are no votes".into()) };
    let expected = match case.call.function {
        Function::Redeem => redeem(case, committee, &votes),
        Function::RedeemBatch => redeem_batch(case, committee, &votes),
    };
    if expected.accepted_by_contract() && ended(case) {
        return Expected::ByDesign { core: Design::EpochEnded, accepted_by_contract: false };
    }
    expected
}

type Signature = (AuthorityName, EcdsaSignature);

/// Reads the packed votes: for each, the member's index in one byte, and 65 bytes of signature.
fn unpack(committee: &Committee, packed: &[u8]) -> Option<Vec<Signature>> {
    let (votes, rest) = packed.as_chunks::<66>();
    let signature = |bytes: &[u8; 66]| {
        let member = committee.members().get(usize::from(bytes[0]))?;
        Some((member.name, EcdsaSignature(bytes[1..].try_into().unwrap())))
    };
    if rest.is_empty() { votes.iter().map(signature).collect() } else { None }
}

fn repacked(committee: &Committee, votes: &[Signature]) -> Vec<u8> {
    let votes: Vec<Vote> = votes.iter().map(as_vote).collect();
    fastpay_core::encode_redemption_votes(committee, &votes).unwrap()
}

fn as_vote((authority, signature): &Signature) -> Vote {
    Vote { authority: *authority, signature: VoteSignature::Redemption { signature: *signature } }
}

fn redeem(case: &Case, committee: &Committee, votes: &[Signature]) -> Expected {
    let redemption = &case.call.redemptions[0];
    let certificate = Certificate {
        order: order(case, redemption),
        epoch: case.call.epoch,
        votes: votes.iter().map(as_vote).collect(),
    };
    let design = match certificate.verify(&case.call.domain, committee) {
        Ok(_) => return Expected::Accepted,
        Err(CertificateError::Order(error)) => design(error),
        Err(CertificateError::Signature(BadSignature(Signatory::Sender(_)))) => Some(Design::SenderNotSeen),
        Err(_) => None,
    };
    let Some(core) = design else { return Expected::Refused("no certificate".into()) };
    // Then the votes alone decide.
    let digest = case.call.domain.redemption_vote_digest(case.call.epoch, redemption);
    Expected::ByDesign { core, accepted_by_contract: is_quorum(committee, digest, votes, &case.votes) }
}

fn redeem_batch(case: &Case, committee: &Committee, votes: &[Signature]) -> Expected {
    let call = &case.call;
    let mut by_design = None;
    for redemption in &call.redemptions {
        match order(case, redemption).verify(&call.domain).map_err(design) {
            Ok(_) => {}
            Err(Some(core)) => by_design = Some(core),
            Err(None) => return Expected::Refused("nobody may order an item".into()),
        }
    }
    let digest = call.domain.redemption_batch_vote_digest(call.epoch, &call.redemptions);
    let accepted = is_quorum(committee, digest, votes, &case.votes);
    match by_design {
        Some(core) => Expected::ByDesign { core, accepted_by_contract: accepted },
        None if accepted => Expected::Accepted,
        None => Expected::Refused("no quorum for the batch".into()),
    }
}

/// Whether core would have made exactly these bytes of these votes: each is good, and all are a quorum.
fn is_quorum(committee: &Committee, digest: fastpay_core::Digest, votes: &[Signature], packed: &[u8]) -> bool {
    let verified: Option<Vec<VerifiedContractVote>> = votes
        .iter()
        .map(|(authority, signature)| ContractVote { authority: *authority, signature: *signature })
        .map(|vote| vote.verify(committee, digest).ok())
        .collect();
    let made = verified.and_then(|votes| VerifiedContractVote::quorum(committee, digest, &votes));
    made.as_deref() == Some(packed)
}

/// The redemption as its sender orders it, or as another account forges it.
fn order(case: &Case, redemption: &Redemption) -> TransferOrder {
    let mut accounts = (0..8).map(TestAccount::numbered);
    let owner = accounts.find(|account| account.id() == redemption.sender).unwrap();
    let mut order = owner.sign(&case.call.domain, Transfer::Redemption(redemption.clone()));
    if !case.ordered {
        order.authorization = TestAccount::numbered(9).sign(&case.call.domain, redemption.clone()).authorization;
    }
    order
}

fn design(error: OrderError) -> Option<Design> {
    use InvalidTransfer::{ContractRecipient, LastSequence, ZeroRecipient};
    match error {
        OrderError::Transfer(reason @ (ContractRecipient | LastSequence | ZeroRecipient)) => {
            Some(Design::NeverVotedFor(reason))
        }
        OrderError::Transfer(_) => None,
        OrderError::WrongKey { .. } | OrderError::Signature(_) => Some(Design::SenderNotSeen),
    }
}

/// Whether the contract does not count votes of the case's epoch any more.
fn ended(case: &Case) -> bool {
    let age = case.epochs.len() - 1 - usize::try_from(case.call.epoch.0).unwrap();
    age > 1 || (age == 1 && case.since_rotation > VOTES_VALIDITY)
}
