//! Signed statements: EIP-712 typed structs under one domain (docs/PROTOCOL.md, formats).
//!
//! The structs below are the only definition of a digest in Rust; the contract has the same type
//! strings, and `vectors/` pins both.

use std::sync::LazyLock;

use alloy_primitives::{Address, B256, Keccak256, U256, keccak256};
use alloy_sol_types::{Eip712Domain, SolStruct};

use crate::Digest;
use crate::amount::{Epoch, SequenceNumber};
use crate::checkpoint::Checkpoint;
use crate::committee::Authority;
use crate::council_statement::{Announcement, CouncilStatement};
use crate::handover::Closing;
use crate::identity::AccountId;
use crate::member_endpoint::MemberEndpoint;
use crate::transfer::{Output, Payment, Payout, Redemption, Transfer};

mod typed {
    #![allow(missing_docs)]
    alloy_sol_types::sol! {
        struct Payment {
            bytes32 sender;
            bytes32 recipient;
            address asset;
            uint128 amount;
            uint64 sequence;
            bytes32 memo;
        }
        struct Redemption {
            bytes32 sender;
            address recipient;
            address asset;
            uint128 amount;
            uint128 fee;
            uint64 sequence;
            bytes32 memo;
        }
        struct Output {
            bytes32 recipient;
            uint128 amount;
            bytes32 memo;
        }
        struct Payout {
            bytes32 sender;
            address asset;
            Output[] outputs;
            uint64 sequence;
            bytes32 memo;
        }
        struct PaymentVote {
            uint64 epoch;
            bytes32 root;
        }
        struct RedemptionVote {
            uint64 epoch;
            Redemption redemption;
        }
        struct RedemptionBatchVote {
            uint64 epoch;
            bytes32 redemptionsHash;
        }
        struct Authority {
            bytes32 votingKey;
            address redemptionKey;
        }
        struct CommitteeAnnouncement {
            uint64 epoch;
            Authority[] authorities;
            address guardian;
            address recovery;
            uint64 compromisedSince;
            bytes32 checkpoint;
            uint64 deadline;
        }
        struct KeyPossession {
            bytes32 votingKey;
            address redemptionKey;
        }
        struct CommitteeAcceptance {
            uint64 epoch;
            bytes32 announcement;
            bytes32 blockHash;
        }
        struct CapRaise {
            uint64 epoch;
            address asset;
            uint128 cap;
            uint64 deadline;
        }
        struct Heartbeat {
            uint64 epoch;
            bytes32 blockHash;
        }
        struct CheckpointAdoption {
            uint64 epoch;
            bytes32 checkpoint;
        }
        struct ReleaseVote {
            uint64 epoch;
            Redemption redemption;
        }
        struct CheckpointVote {
            uint64 epoch;
            uint64 number;
            bytes32 previous;
            uint64 transactionIndex;
            bytes32 cut;
            bytes32 state;
            bytes32 segment;
        }
        struct Closing {
            uint64 epoch;
            uint64 transactionIndex;
            bytes32 checkpoint;
            bytes32 root;
            uint64 entries;
        }
        struct MemberEndpoint {
            uint64 number;
            string[] shards;
            string http;
            string tlsCa;
        }
        struct UnlockRequest {
            bytes32 account;
            uint64 sequence;
        }
        struct CertificateVote {
            uint64 epoch;
            bytes32 account;
            uint64 sequence;
            bytes32 digest;
        }
        struct VoidVote {
            uint64 epoch;
            bytes32 account;
            uint64 sequence;
            bool unanimous;
        }
    }
}

/// The deployment for which something is signed: `{name: "FastPay", version: "1", chainId,
/// verifyingContract}`. Nothing signed for one deployment is valid in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    chain_id: u64,
    contract: Address,
    separator: B256,
}

impl Domain {
    /// The domain of the contract at `contract` on the chain `chain_id`; zero and zero where there is
    /// no Primary.
    #[must_use]
    pub fn new(chain_id: u64, contract: Address) -> Self {
        let domain = Eip712Domain::new(
            Some("FastPay".into()),
            Some("1".into()),
            Some(U256::from(chain_id)),
            Some(contract),
            None,
        );
        Self { chain_id, contract, separator: domain.separator() }
    }

    /// The chain's id (EIP-155).
    #[must_use]
    pub fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// The contract's address.
    #[must_use]
    pub fn contract(&self) -> Address {
        self.contract
    }

    /// The separator that is hashed into every digest.
    #[must_use]
    pub fn separator(&self) -> B256 {
        self.separator
    }

    /// The digest that a sender signs to order `transfer`.
    #[must_use]
    pub fn transfer_digest(&self, transfer: &Transfer) -> Digest {
        static PAYMENT: LazyLock<B256> = LazyLock::new(type_hash::<typed::Payment>);
        static REDEMPTION: LazyLock<B256> = LazyLock::new(type_hash::<typed::Redemption>);
        match transfer {
            Transfer::Payment(payment) => self.digest(*PAYMENT, &typed::Payment::from(payment)),
            Transfer::Redemption(redemption) => self.digest(*REDEMPTION, &typed::Redemption::from(redemption)),
            Transfer::Payout(payout) => self.digest_of(payout_hash(payout)),
        }
    }

    /// The digest that an authority's Ed25519 key signs to vote for all payments under a Merkle root.
    #[must_use]
    pub fn payment_vote_digest(&self, epoch: Epoch, root: Digest) -> Digest {
        static TYPE: LazyLock<B256> = LazyLock::new(type_hash::<typed::PaymentVote>);
        self.digest(*TYPE, &typed::PaymentVote { epoch: epoch.0, root })
    }

    /// The digest that an authority's secp256k1 key signs to vote for one redemption.
    #[must_use]
    pub fn redemption_vote_digest(&self, epoch: Epoch, redemption: &Redemption) -> Digest {
        static TYPE: LazyLock<B256> = LazyLock::new(type_hash::<typed::RedemptionVote>);
        self.digest(*TYPE, &typed::RedemptionVote { epoch: epoch.0, redemption: redemption.into() })
    }

    /// The digest that an authority's secp256k1 key signs to vote for many redemptions at once, in this
    /// order: all of them are under the hash that EIP-712 gives to an array of structs.
    #[must_use]
    pub fn redemption_batch_vote_digest(&self, epoch: Epoch, redemptions: &[Redemption]) -> Digest {
        static TYPE: LazyLock<B256> = LazyLock::new(type_hash::<typed::RedemptionBatchVote>);
        static ITEM: LazyLock<B256> = LazyLock::new(type_hash::<typed::Redemption>);
        let mut hashes = Keccak256::new();
        for redemption in redemptions {
            hashes.update(struct_hash(*ITEM, &typed::Redemption::from(redemption)));
        }
        let redemptions_hash = hashes.finalize();
        self.digest(*TYPE, &typed::RedemptionBatchVote { epoch: epoch.0, redemptionsHash: redemptions_hash })
    }

    /// The digest that members sign with their secp256k1 keys so that the contract counts a quorum for `statement`.
    /// The digest of an announcement or a raised cap is its id on the contract.
    #[must_use]
    pub fn council_digest(&self, statement: &CouncilStatement<'_>) -> Digest {
        match *statement {
            CouncilStatement::Announcement(announcement) => {
                self.rare_digest(&typed::CommitteeAnnouncement::from(announcement))
            }
            CouncilStatement::Acceptance { epoch, announcement, block_hash } => {
                self.rare_digest(&typed::CommitteeAcceptance { epoch: epoch.0, announcement, blockHash: block_hash })
            }
            CouncilStatement::CapRaise { epoch, asset, cap, deadline } => {
                self.rare_digest(&typed::CapRaise { epoch: epoch.0, asset: asset.0, cap: cap.0, deadline })
            }
            CouncilStatement::Heartbeat { epoch, block_hash } => {
                self.rare_digest(&typed::Heartbeat { epoch: epoch.0, blockHash: block_hash })
            }
            CouncilStatement::CheckpointAdoption { epoch, checkpoint } => {
                self.rare_digest(&typed::CheckpointAdoption { epoch: epoch.0, checkpoint })
            }
            CouncilStatement::Release { epoch, redemption } => {
                self.rare_digest(&typed::ReleaseVote { epoch: epoch.0, redemption: redemption.into() })
            }
        }
    }

    /// The digest that both keys of an authority sign to prove that somebody has them.
    #[must_use]
    pub fn possession_digest(&self, authority: &Authority) -> Digest {
        let Authority { name, redemption_key } = authority;
        self.rare_digest(&typed::KeyPossession { votingKey: name.0.into(), redemptionKey: *redemption_key })
    }

    /// The digest that the owner of `account` signs to ask about the fate of the order `sequence`.
    #[must_use]
    pub fn unlock_request_digest(&self, account: AccountId, sequence: SequenceNumber) -> Digest {
        self.rare_digest(&typed::UnlockRequest { account: account.0.into(), sequence: sequence.0 })
    }

    /// The digest that an authority's secp256k1 key signs where it knows the certificate of the order with the digest
    /// `order` under that number.
    #[must_use]
    pub fn certificate_vote_digest(
        &self,
        epoch: Epoch,
        account: AccountId,
        sequence: SequenceNumber,
        order: Digest,
    ) -> Digest {
        let (account, sequence) = (account.0.into(), sequence.0);
        self.rare_digest(&typed::CertificateVote { epoch: epoch.0, account, sequence, digest: order })
    }

    /// The digest that an authority's secp256k1 key signs where it knows of no certificate under that number and will
    /// execute none that is not upheld. A vote with `unanimous` counts only together with those of all members.
    #[must_use]
    pub fn void_vote_digest(
        &self,
        epoch: Epoch,
        account: AccountId,
        sequence: SequenceNumber,
        unanimous: bool,
    ) -> Digest {
        let (account, sequence) = (account.0.into(), sequence.0);
        self.rare_digest(&typed::VoidVote { epoch: epoch.0, account, sequence, unanimous })
    }

    /// The digest that members sign with their Ed25519 keys to certify a checkpoint, and that identifies it.
    #[must_use]
    pub fn checkpoint_digest(&self, checkpoint: &Checkpoint) -> Digest {
        let Checkpoint { epoch, number, previous, up_to, cut, state, segment } = *checkpoint;
        let (epoch, transaction_index) = (epoch.0, up_to.0);
        self.rare_digest(&typed::CheckpointVote {
            epoch,
            number,
            previous,
            transactionIndex: transaction_index,
            cut,
            state,
            segment,
        })
    }

    /// The digest that a member signs with its Ed25519 key to close an epoch.
    #[must_use]
    pub fn closing_digest(&self, closing: &Closing) -> Digest {
        let Closing { epoch, up_to, checkpoint, root, entries } = *closing;
        self.rare_digest(&typed::Closing { epoch: epoch.0, transactionIndex: up_to.0, checkpoint, root, entries })
    }

    /// The digest that a member signs with its Ed25519 key to say where it can be reached.
    #[must_use]
    pub fn member_endpoint_digest(&self, endpoint: &MemberEndpoint) -> Digest {
        let MemberEndpoint { number, shards, http, tls_ca } = endpoint.clone();
        self.rare_digest(&typed::MemberEndpoint { number, shards, http, tlsCa: tls_ca })
    }

    /// The digest of a statement that is too rare for its type's hash to be kept.
    pub(crate) fn rare_digest<S: SolStruct>(&self, statement: &S) -> Digest {
        self.digest(type_hash::<S>(), statement)
    }

    pub(crate) fn digest<S: SolStruct>(&self, type_hash: B256, statement: &S) -> Digest {
        self.digest_of(struct_hash(type_hash, statement))
    }

    fn digest_of(&self, struct_hash: B256) -> Digest {
        let mut input = [0; 66];
        let (prefix, hashes) = input.split_at_mut(2);
        let (separator, hash) = hashes.split_at_mut(32);
        prefix.copy_from_slice(&[0x19, 0x01]);
        separator.copy_from_slice(self.separator.as_slice());
        hash.copy_from_slice(struct_hash.as_slice());
        keccak256(input)
    }
}

fn struct_hash<S: SolStruct>(type_hash: B256, statement: &S) -> B256 {
    let mut hasher = Keccak256::new();
    hasher.update(type_hash);
    hasher.update(statement.eip712_encode_data());
    hasher.finalize()
}

/// The struct hash of a payout. Its outputs are under the hash that EIP-712 gives to an array of structs.
fn payout_hash(payout: &Payout) -> B256 {
    static TYPE: LazyLock<B256> = LazyLock::new(type_hash::<typed::Payout>);
    let mut outputs = Keccak256::new();
    for output in payout.outputs.iter() {
        outputs.update(output_hash(output));
    }
    let mut words = [[0; 32]; 6];
    let [type_hash, sender, asset, of_outputs, sequence, memo] = &mut words;
    *type_hash = TYPE.0;
    *sender = payout.sender.0;
    *asset = payout.asset.0.into_word().0;
    *of_outputs = outputs.finalize().0;
    *sequence = U256::from(payout.sequence.0).to_be_bytes();
    *memo = payout.memo.0;
    keccak256(words.as_flattened())
}

/// The struct hash of an output.
fn output_hash(output: &Output) -> B256 {
    static TYPE: LazyLock<B256> = LazyLock::new(type_hash::<typed::Output>);
    let words = [TYPE.0, output.recipient.0, U256::from(output.amount.0).to_be_bytes(), output.memo.0];
    keccak256(words.as_flattened())
}

pub(crate) fn type_hash<S: SolStruct>() -> B256 {
    keccak256(S::eip712_encode_type().as_bytes())
}

impl From<&Authority> for typed::Authority {
    fn from(authority: &Authority) -> Self {
        Self { votingKey: authority.name.0.into(), redemptionKey: authority.redemption_key }
    }
}

impl From<&Announcement> for typed::CommitteeAnnouncement {
    fn from(announcement: &Announcement) -> Self {
        Self {
            epoch: announcement.committee.epoch().0,
            authorities: announcement.committee.members().iter().map(Into::into).collect(),
            guardian: announcement.guardian,
            recovery: announcement.recovery,
            compromisedSince: announcement.compromised_since.0,
            checkpoint: announcement.checkpoint,
            deadline: announcement.deadline,
        }
    }
}

impl From<&Payment> for typed::Payment {
    fn from(payment: &Payment) -> Self {
        Self {
            sender: payment.sender.0.into(),
            recipient: payment.recipient.0.into(),
            asset: payment.asset.0,
            amount: payment.amount.0,
            sequence: payment.sequence.0,
            memo: payment.memo,
        }
    }
}

impl From<&Redemption> for typed::Redemption {
    fn from(redemption: &Redemption) -> Self {
        Self {
            sender: redemption.sender.0.into(),
            recipient: redemption.recipient,
            asset: redemption.asset.0,
            amount: redemption.amount.0,
            fee: redemption.fee.0,
            sequence: redemption.sequence.0,
            memo: redemption.memo,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AccountId, Amount, Asset, AuthorityName, Committee, SequenceNumber};

    #[test]
    fn type_strings_are_those_of_the_design() {
        assert_eq!(
            typed::Payment::eip712_encode_type(),
            "Payment(bytes32 sender,bytes32 recipient,address asset,uint128 amount,uint64 sequence,bytes32 memo)"
        );
        assert_eq!(
            typed::RedemptionVote::eip712_encode_type(),
            "RedemptionVote(uint64 epoch,Redemption redemption)Redemption(bytes32 sender,address recipient,\
             address asset,uint128 amount,uint128 fee,uint64 sequence,bytes32 memo)"
        );
        assert_eq!(
            typed::Payout::eip712_encode_type(),
            "Payout(bytes32 sender,address asset,Output[] outputs,uint64 sequence,bytes32 memo)\
             Output(bytes32 recipient,uint128 amount,bytes32 memo)"
        );
        assert_eq!(typed::PaymentVote::eip712_encode_type(), "PaymentVote(uint64 epoch,bytes32 root)");
        assert_eq!(
            typed::RedemptionBatchVote::eip712_encode_type(),
            "RedemptionBatchVote(uint64 epoch,bytes32 redemptionsHash)"
        );
    }

    #[test]
    fn type_strings_of_the_council_are_those_of_the_contract() {
        let authority = "Authority(bytes32 votingKey,address redemptionKey)";
        let redemption = "Redemption(bytes32 sender,address recipient,address asset,uint128 amount,uint128 fee,\
                          uint64 sequence,bytes32 memo)";
        assert_eq!(
            typed::CommitteeAnnouncement::eip712_encode_type(),
            format!(
                "CommitteeAnnouncement(uint64 epoch,Authority[] authorities,address guardian,address recovery,\
                 uint64 compromisedSince,bytes32 checkpoint,uint64 deadline){authority}"
            )
        );
        assert_eq!(
            typed::KeyPossession::eip712_encode_type(),
            "KeyPossession(bytes32 votingKey,address redemptionKey)"
        );
        assert_eq!(
            typed::CommitteeAcceptance::eip712_encode_type(),
            "CommitteeAcceptance(uint64 epoch,bytes32 announcement,bytes32 blockHash)"
        );
        assert_eq!(
            typed::CapRaise::eip712_encode_type(),
            "CapRaise(uint64 epoch,address asset,uint128 cap,uint64 deadline)"
        );
        assert_eq!(typed::Heartbeat::eip712_encode_type(), "Heartbeat(uint64 epoch,bytes32 blockHash)");
        assert_eq!(
            typed::CheckpointAdoption::eip712_encode_type(),
            "CheckpointAdoption(uint64 epoch,bytes32 checkpoint)"
        );
        assert_eq!(
            typed::ReleaseVote::eip712_encode_type(),
            format!("ReleaseVote(uint64 epoch,Redemption redemption){redemption}")
        );
        assert_eq!(
            typed::CheckpointVote::eip712_encode_type(),
            "CheckpointVote(uint64 epoch,uint64 number,bytes32 previous,uint64 transactionIndex,bytes32 cut,\
             bytes32 state,bytes32 segment)"
        );
        assert_eq!(
            typed::Closing::eip712_encode_type(),
            "Closing(uint64 epoch,uint64 transactionIndex,bytes32 checkpoint,bytes32 root,uint64 entries)"
        );
        assert_eq!(
            typed::MemberEndpoint::eip712_encode_type(),
            "MemberEndpoint(uint64 number,string[] shards,string http,string tlsCa)"
        );
        assert_eq!(typed::UnlockRequest::eip712_encode_type(), "UnlockRequest(bytes32 account,uint64 sequence)");
        assert_eq!(
            typed::CertificateVote::eip712_encode_type(),
            "CertificateVote(uint64 epoch,bytes32 account,uint64 sequence,bytes32 digest)"
        );
        assert_eq!(
            typed::VoidVote::eip712_encode_type(),
            "VoidVote(uint64 epoch,bytes32 account,uint64 sequence,bool unanimous)"
        );
    }

    #[test]
    fn an_announcement_has_the_digest_that_the_library_computes() {
        let contract = Address::repeat_byte(7);
        let library =
            Eip712Domain::new(Some("FastPay".into()), Some("1".into()), Some(U256::from(31337)), Some(contract), None);
        let members = (1..=4)
            .map(|byte| Authority { name: AuthorityName([byte; 32]), redemption_key: Address::repeat_byte(byte) });
        let announcement = Announcement {
            committee: Committee::new(Epoch(6), members.collect()).unwrap(),
            guardian: Address::repeat_byte(9),
            recovery: Address::repeat_byte(10),
            compromised_since: Epoch(5),
            checkpoint: B256::repeat_byte(11),
            deadline: 12,
        };
        let authorities = (1..=4).map(|byte| typed::Authority {
            votingKey: B256::repeat_byte(byte),
            redemptionKey: Address::repeat_byte(byte),
        });
        let expected = typed::CommitteeAnnouncement {
            epoch: 6,
            authorities: authorities.collect(),
            guardian: Address::repeat_byte(9),
            recovery: Address::repeat_byte(10),
            compromisedSince: 5,
            checkpoint: B256::repeat_byte(11),
            deadline: 12,
        };
        let digest = Domain::new(31337, contract).council_digest(&CouncilStatement::Announcement(&announcement));
        assert_eq!(digest, expected.eip712_signing_hash(&library));
    }

    #[test]
    fn cached_hashes_give_the_digest_that_the_library_computes() {
        let contract = Address::repeat_byte(7);
        let library =
            Eip712Domain::new(Some("FastPay".into()), Some("1".into()), Some(U256::from(31337)), Some(contract), None);
        let domain = Domain::new(31337, contract);
        let payment = Payment {
            sender: AccountId([1; 32]),
            recipient: AccountId([2; 32]),
            asset: Asset::ETHER,
            amount: Amount(3),
            sequence: SequenceNumber(4),
            memo: B256::repeat_byte(5),
        };
        let expected = typed::Payment::from(&payment).eip712_signing_hash(&library);
        assert_eq!(domain.transfer_digest(&Transfer::Payment(payment)), expected);
        let vote = typed::PaymentVote { epoch: 9, root: B256::repeat_byte(1) };
        assert_eq!(domain.payment_vote_digest(Epoch(9), B256::repeat_byte(1)), vote.eip712_signing_hash(&library));
    }

    #[test]
    fn a_payout_has_the_digest_that_the_library_computes() {
        let contract = Address::repeat_byte(7);
        let library =
            Eip712Domain::new(Some("FastPay".into()), Some("1".into()), Some(U256::from(31337)), Some(contract), None);
        for count in [1, 2, 3, 256_u16] {
            let output = |number: u16| Output {
                recipient: AccountId([number.to_be_bytes()[1]; 32]),
                amount: Amount(u128::from(number) << 100 | 1),
                memo: B256::repeat_byte(number.to_be_bytes()[1]),
            };
            let outputs: Vec<Output> = (0..count).map(output).collect();
            let typed = typed::Payout {
                sender: B256::repeat_byte(1),
                asset: Address::repeat_byte(2),
                outputs: outputs
                    .iter()
                    .map(|output| typed::Output {
                        recipient: output.recipient.0.into(),
                        amount: output.amount.0,
                        memo: output.memo,
                    })
                    .collect(),
                sequence: 3,
                memo: B256::repeat_byte(4),
            };
            let payout = Payout {
                sender: AccountId([1; 32]),
                asset: Asset(Address::repeat_byte(2)),
                outputs: outputs.try_into().unwrap(),
                sequence: SequenceNumber(3),
                memo: B256::repeat_byte(4),
            };
            let digest = Domain::new(31337, contract).transfer_digest(&payout.into());
            assert_eq!(digest, typed.eip712_signing_hash(&library), "{count}");
        }
    }

    /// What a vote on the array itself would be: EIP-712 hashes it to what the batch vote carries.
    mod whole {
        alloy_sol_types::sol! {
            struct Redemption {
                bytes32 sender;
                address recipient;
                address asset;
                uint128 amount;
                uint128 fee;
                uint64 sequence;
                bytes32 memo;
            }
            struct Batch {
                Redemption[] redemptions;
            }
        }
    }

    #[test]
    fn votes_for_the_contract_have_the_digests_that_the_library_computes() {
        let contract = Address::repeat_byte(7);
        let library =
            Eip712Domain::new(Some("FastPay".into()), Some("1".into()), Some(U256::from(31337)), Some(contract), None);
        let domain = Domain::new(31337, contract);
        for count in 0..4_u8 {
            let redemptions: Vec<Redemption> = (0..count)
                .map(|number| Redemption {
                    sender: AccountId([number; 32]),
                    recipient: Address::repeat_byte(number),
                    asset: Asset::ETHER,
                    amount: Amount(u128::from(number) + 9),
                    fee: Amount(1),
                    sequence: SequenceNumber(u64::from(number)),
                    memo: B256::repeat_byte(number),
                })
                .collect();
            let whole = whole::Batch {
                redemptions: redemptions
                    .iter()
                    .map(|redemption| {
                        let typed::Redemption { sender, recipient, asset, amount, fee, sequence, memo } =
                            redemption.into();
                        whole::Redemption { sender, recipient, asset, amount, fee, sequence, memo }
                    })
                    .collect(),
            };
            let redemptions_hash = B256::from_slice(&whole.eip712_encode_data());
            let vote = typed::RedemptionBatchVote { epoch: 5, redemptionsHash: redemptions_hash };
            let expected = vote.eip712_signing_hash(&library);
            assert_eq!(domain.redemption_batch_vote_digest(Epoch(5), &redemptions), expected, "{count}");
        }
    }
}
