//! Everything that can be wrong about a call, one thing at a time.

use alloy_primitives::{B256, U256, uint};
use fastpay_core::{Amount, AuthorityKeys, Domain, Epoch, PrimaryAddress, SequenceNumber};
use fastpay_testkit::secret;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::case::{Function, Signers, Statement};

const SECP256K1_ORDER: U256 = uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);
const VOTE_BYTES: usize = 66;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Nothing is wrong.
    None,
    // An invalid transfer, validly signed.
    ZeroAmount,
    FeeAboveAmount,
    // A transfer that core refuses and the contract accepts.
    ZeroRecipient,
    ContractRecipient,
    LastSequence,
    NotOrdered,
    // Valid votes for something else.
    AlteredField,
    ReorderedBatch,
    OtherEpoch,
    UnknownEpoch,
    OtherChain,
    OtherContract,
    // No quorum.
    VoteMissing,
    VoteTooMany,
    VotesSwapped,
    VoteRepeated,
    ByteMissing,
    ByteTooMany,
    NoVotes,
    // A vote of another signer.
    Stranger,
    OtherMembersSignature,
    IndexBeyond,
    // An invalid signature.
    BitFlipped,
    HighS,
    OtherV,
    VIsZeroOrOne,
    AnyV,
    ZeroR,
    ZeroS,
    HugeRAndS,
    Compact,
}

impl Mutation {
    pub fn random(random: &mut StdRng, function: Function) -> Self {
        use Mutation as M;
        const ANY: [Mutation; 22] = [
            M::OtherEpoch,
            M::OtherChain,
            M::OtherContract,
            M::AlteredField,
            M::VoteMissing,
            M::VoteTooMany,
            M::VotesSwapped,
            M::VoteRepeated,
            M::ByteMissing,
            M::ByteTooMany,
            M::NoVotes,
            M::Stranger,
            M::OtherMembersSignature,
            M::IndexBeyond,
            M::BitFlipped,
            M::HighS,
            M::OtherV,
            M::VIsZeroOrOne,
            M::AnyV,
            M::ZeroR,
            M::ZeroS,
            M::HugeRAndS,
        ];
        const REDEMPTION: [Mutation; 7] = [
            M::ZeroAmount,
            M::FeeAboveAmount,
            M::ZeroRecipient,
            M::ContractRecipient,
            M::LastSequence,
            M::NotOrdered,
            M::UnknownEpoch,
        ];
        let own: &[Mutation] = match function {
            Function::Redeem => &REDEMPTION,
            Function::RedeemBatch => {
                &[M::ReorderedBatch, M::UnknownEpoch, M::ZeroAmount, M::FeeAboveAmount, M::NotOrdered]
            }
        };
        match random.random_range(0..10) {
            0..3 => M::None,
            3..6 => *own.choose(random).unwrap(),
            6 => M::Compact,
            _ => *ANY.choose(random).unwrap(),
        }
    }

    /// What is signed as it is called.
    pub fn before_signing(self, random: &mut StdRng, call: &mut Statement) {
        let place = random.random_range(0..call.redemptions.len());
        let redemption = &mut call.redemptions[place];
        match self {
            Self::ZeroAmount => (redemption.amount, redemption.fee) = (Amount::ZERO, Amount::ZERO),
            Self::FeeAboveAmount => redemption.fee = Amount(redemption.amount.0 + 1),
            Self::ZeroRecipient => redemption.recipient = PrimaryAddress::ZERO,
            Self::ContractRecipient => redemption.recipient = call.domain.contract(),
            Self::LastSequence => redemption.sequence = SequenceNumber(u64::MAX),
            Self::UnknownEpoch => call.epoch = Epoch(random.random_range(3..=u64::MAX)),
            _ => {}
        }
    }

    /// The votes of `members` for `call`, which is altered where it is not what was signed.
    pub fn vote(self, random: &mut StdRng, call: &mut Statement, signers: &Signers, members: Vec<usize>) -> Vec<u8> {
        let signed = self.signed(random, call);
        let pack = |member: usize| {
            let mut vote = vec![u8::try_from(member).unwrap()];
            vote.extend(signed.sign(&signers.keys[member]));
            vote
        };
        let mut votes: Vec<Vec<u8>> = members.iter().map(|member| pack(*member)).collect();
        let some = random.random_range(0..votes.len());
        let outside = (0..signers.keys.len()).find(|member| !members.contains(member)).unwrap();
        let byte = random.random_range(1..VOTE_BYTES);
        match self {
            Self::VoteMissing => drop(votes.remove(some)),
            Self::VoteTooMany => {
                votes.push(pack(outside));
                votes.sort();
            }
            Self::VotesSwapped => votes.swap(some, (some + 1) % members.len()),
            Self::VoteRepeated => votes[some] = votes[(some + 1) % members.len()].clone(),
            Self::NoVotes => votes.clear(),
            Self::Stranger => {
                let stranger = AuthorityKeys::from_secrets(secret(5, random.random()), secret(6, random.random()));
                votes[some].splice(1.., signed.sign(&stranger.unwrap()));
            }
            Self::OtherMembersSignature => {
                let other = pack(outside);
                votes[some].splice(1.., other[1..].to_vec());
            }
            Self::IndexBeyond => {
                let last = votes.last_mut().unwrap();
                last[0] = u8::try_from(random.random_range(signers.keys.len()..=255)).unwrap();
            }
            Self::BitFlipped => votes[some][byte] ^= 1 << random.random_range(0..8),
            Self::HighS => negate_s(&mut votes[some]),
            Self::OtherV => votes[some][65] = 27 + 28 - votes[some][65],
            Self::VIsZeroOrOne => votes[some][65] -= 27,
            Self::AnyV => votes[some][65] = random.random(),
            Self::ZeroR => votes[some][1..33].fill(0),
            Self::ZeroS => votes[some][33..65].fill(0),
            Self::HugeRAndS => votes[some][1..65].fill(0xff),
            Self::Compact => votes.iter_mut().for_each(make_compact),
            _ => {}
        }
        let mut bytes = votes.concat();
        match self {
            Self::ByteMissing => drop(bytes.pop()),
            Self::ByteTooMany => bytes.push(random.random()),
            _ => {}
        }
        bytes
    }

    /// What the members sign, if it is not the call; or alters the call where that is simpler.
    fn signed(self, random: &mut StdRng, call: &mut Statement) -> Statement {
        let mut signed = call.clone();
        match self {
            Self::OtherEpoch => signed.epoch = Epoch(signed.epoch.0 + 1 - 2 * u64::from(signed.epoch.0 > 0)),
            Self::OtherChain => signed.domain = Domain::new(signed.domain.chain_id() + 1, signed.domain.contract()),
            Self::OtherContract => {
                signed.domain =
                    Domain::new(signed.domain.chain_id(), PrimaryAddress::from(random.random::<[u8; 20]>()));
            }
            Self::AlteredField => alter(random, call),
            Self::ReorderedBatch => call.redemptions.reverse(),
            _ => {}
        }
        signed
    }
}

/// Changes one field of what is called, so that it stays something that could be ordered.
fn alter(random: &mut StdRng, call: &mut Statement) {
    let place = random.random_range(0..call.redemptions.len());
    let redemption = &mut call.redemptions[place];
    match random.random_range(0..6) {
        0 => redemption.recipient = PrimaryAddress::from(random.random::<[u8; 20]>()),
        1 => redemption.asset.0 = PrimaryAddress::from(random.random::<[u8; 20]>()),
        2 => redemption.amount.0 += 1,
        3 => redemption.fee.0 = if redemption.fee.0 > 0 { redemption.fee.0 - 1 } else { 1 },
        4 => redemption.sequence = SequenceNumber(redemption.sequence.0 ^ 1),
        _ => redemption.memo = B256::from(random.random::<[u8; 32]>()),
    }
}

/// The same signature in its malleable form.
fn negate_s(vote: &mut [u8]) {
    let s = U256::from_be_slice(&vote[33..65]);
    vote[33..65].copy_from_slice(&(SECP256K1_ORDER - s).to_be_bytes::<32>());
    vote[65] = 27 + 28 - vote[65];
}

/// EIP-2098: 64 bytes of signature, the parity of v in the highest bit of s.
fn make_compact(vote: &mut Vec<u8>) {
    let v = vote.pop().unwrap();
    vote[33] |= (v - 27) << 7;
}
