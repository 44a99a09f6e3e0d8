//! Votes and certificates.

use fastpay_core::{
    self as core, AuthorityName, EcdsaSignature, Ed25519Signature, Epoch, MerklePath, SequenceNumber, VoteSignature,
};
use fastpay_core::{COMMITTEE_SIZE_MAX, MERKLE_PATH_LENGTH_MAX};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::order::TransferOrder;
use super::text::{Account, Bytes32, Bytes64, Bytes65, Decimal, Hex, Uint64};
use crate::convert::{Malformed, attestation_of};
use crate::{PAGE_ENTRIES_MAX, REDEMPTION_BATCH_MAX, UnlockAnswer, answers};

/// One authority's vote for an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Vote {
    /// On a payment: its signature is on the root of a Merkle tree, the payment a leaf of it.
    Payment {
        /// The Ed25519 key of the authority.
        authority: Bytes32,
        /// Over the EIP-712 digest of `PaymentVote(epoch, root)`.
        signature: Bytes64,
        /// Bit k is set where sibling k is on the left.
        #[schema(maximum = 65535)]
        directions: u16,
        /// The hashes from the leaf up.
        #[schema(max_items = 10)]
        siblings: Vec<Bytes32>,
    },
    /// On a redemption, as the contract checks it.
    Redemption {
        /// The Ed25519 key of the authority.
        authority: Bytes32,
        /// r, s and v by its redemption key over the EIP-712 digest of `RedemptionVote(epoch, redemption)`.
        signature: Bytes65,
    },
}

/// An order and the votes of a quorum for it: the order is certified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Certificate {
    /// The order.
    pub order: TransferOrder,
    /// The committee that voted.
    pub epoch: Uint64,
    /// Exactly a quorum, in the order of the authorities' keys, none twice.
    #[schema(max_items = 255)]
    pub votes: Vec<Vote>,
}

/// A certificate with the votes that it exists: it counts at any age.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttestedCertificate {
    /// The certificate.
    pub certificate: Certificate,
    /// Of exactly f + 1 members of the current committee, in the order of their keys: see `/v1/unlocks/votes`.
    #[schema(min_items = 1, max_items = 255)]
    pub votes: Vec<CertificateVote>,
}

/// An authority's vote that the certificate of a number exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CertificateVote {
    /// The epoch that the vote is for; the same in all votes.
    pub epoch: Uint64,
    /// The Ed25519 key of the authority.
    pub authority: Bytes32,
    /// r, s and v by its redemption key over the EIP-712 digest of `CertificateVote(epoch, account, sequence, digest)`,
    /// where `digest` is that of the certificate's order.
    pub signature: Bytes65,
}

/// A transfer by its sender and number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TransferName {
    /// The sender.
    pub sender: Account,
    /// Its number among the sender's.
    pub sequence: Uint64,
}

/// Redemptions that are to be voted for together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RedemptionBatch {
    /// The redemptions in the order in which they will be submitted to the contract.
    #[schema(min_items = 1, max_items = 256)]
    pub redemptions: Vec<TransferName>,
}

/// Transfers whose certificates are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CertificateNames {
    /// The names, in any order. Consecutive numbers of one sender are read fastest.
    #[schema(min_items = 1, max_items = 100)]
    pub names: Vec<TransferName>,
}

/// The certificates of the transfers that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Certificates {
    /// The certificates in the order of the names, without those that are not confirmed here.
    #[schema(max_items = 100)]
    pub certificates: Vec<Certificate>,
    /// The number of names, from the first, that were looked up. Ask again for the others.
    #[schema(minimum = 1, maximum = 100)]
    pub looked_up: u32,
}

/// An authority's vote for a batch of redemptions, as the contract checks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RedemptionBatchVote {
    /// The epoch that the vote is for.
    pub epoch: Uint64,
    /// The Ed25519 key of the authority.
    pub authority: Bytes32,
    /// r, s and v by its redemption key over the EIP-712 digest of `RedemptionBatchVote(epoch, redemptionsHash)`.
    pub signature: Bytes65,
}

/// A number that its owner asked the contract to unlock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UnlockVoteRequest {
    /// The account.
    pub account: Account,
    /// The number among the account's.
    pub sequence: Uint64,
    /// Whether a vote to void the number is to count only together with those of all members. Such a vote needs no window.
    pub unanimous: bool,
}

/// An authority's vote about a number that its owner asked the contract to unlock. The contract verifies the signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum UnlockVote {
    /// It knows no certificate of the number, and votes to void it.
    Void {
        /// The epoch that the vote is for.
        epoch: Uint64,
        /// The Ed25519 key of the authority.
        authority: Bytes32,
        /// r, s and v by its redemption key over the EIP-712 digest of `VoidVote(epoch, account, sequence, unanimous)`.
        signature: Bytes65,
    },
    /// It knows the certificate of the number.
    Certificate {
        /// The certificate.
        certificate: Box<Certificate>,
        /// The epoch that the vote is for.
        epoch: Uint64,
        /// The Ed25519 key of the authority.
        authority: Bytes32,
        /// r, s and v by its redemption key over the EIP-712 digest of `CertificateVote(epoch, account, sequence, digest)`,
        /// where `digest` is that of the certificate's order.
        signature: Bytes65,
    },
}

/// From 1 to `max` names.
fn into_names(field: &'static str, names: &[TransferName], max: usize) -> Result<Vec<crate::TransferName>, Malformed> {
    if !(1..=max).contains(&names.len()) {
        return Err(Malformed::OutOfRange(field));
    }
    Ok(names.iter().map(|name| (name.sender.0, SequenceNumber(name.sequence.0))).collect())
}

impl TryFrom<RedemptionBatch> for Vec<crate::TransferName> {
    type Error = Malformed;
    fn try_from(batch: RedemptionBatch) -> Result<Self, Malformed> {
        into_names("redemptions", &batch.redemptions, REDEMPTION_BATCH_MAX)
    }
}

impl From<(Epoch, &core::ContractVote)> for RedemptionBatchVote {
    fn from((epoch, vote): (Epoch, &core::ContractVote)) -> Self {
        Self { epoch: Decimal(epoch.0), authority: Hex(vote.authority.0), signature: Hex(vote.signature.0) }
    }
}

impl From<&UnlockAnswer> for UnlockVote {
    fn from(answer: &UnlockAnswer) -> Self {
        let (epoch, vote) = match answer {
            UnlockAnswer::Void { epoch, vote } | UnlockAnswer::Certificate { epoch, vote, .. } => (*epoch, vote),
        };
        let (epoch, authority, signature) = (Decimal(epoch.0), Hex(vote.authority.0), Hex(vote.signature.0));
        match answer {
            UnlockAnswer::Void { .. } => Self::Void { epoch, authority, signature },
            UnlockAnswer::Certificate { certificate, .. } => {
                let certificate = Box::new(certificate.as_ref().into());
                Self::Certificate { certificate, epoch, authority, signature }
            }
        }
    }
}

impl From<&core::Vote> for Vote {
    fn from(vote: &core::Vote) -> Self {
        let authority = Hex(vote.authority.0);
        match &vote.signature {
            VoteSignature::Payment { signature, path } => Self::Payment {
                authority,
                signature: Hex(signature.0),
                directions: path.directions,
                siblings: path.siblings.iter().map(|sibling| Hex(sibling.0)).collect(),
            },
            VoteSignature::Redemption { signature } => Self::Redemption { authority, signature: Hex(signature.0) },
        }
    }
}

impl TryFrom<Vote> for core::Vote {
    type Error = Malformed;
    fn try_from(vote: Vote) -> Result<Self, Malformed> {
        Ok(match vote {
            Vote::Payment { authority, signature, directions, siblings } => {
                if siblings.len() > MERKLE_PATH_LENGTH_MAX {
                    return Err(Malformed::OutOfRange("siblings"));
                }
                let siblings = siblings.into_iter().map(|sibling| sibling.0.into()).collect();
                let path = MerklePath { directions, siblings };
                let signature = VoteSignature::Payment { signature: Ed25519Signature(signature.0), path };
                Self { authority: AuthorityName(authority.0), signature }
            }
            Vote::Redemption { authority, signature } => Self {
                authority: AuthorityName(authority.0),
                signature: VoteSignature::Redemption { signature: EcdsaSignature(signature.0) },
            },
        })
    }
}

impl From<&core::Certificate> for Certificate {
    fn from(certificate: &core::Certificate) -> Self {
        Self {
            order: (&certificate.order).into(),
            epoch: Decimal(certificate.epoch.0),
            votes: certificate.votes.iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<Certificate> for core::Certificate {
    type Error = Malformed;
    fn try_from(certificate: Certificate) -> Result<Self, Malformed> {
        if certificate.votes.len() > COMMITTEE_SIZE_MAX {
            return Err(Malformed::OutOfRange("votes"));
        }
        Ok(Self {
            order: certificate.order.into(),
            epoch: Epoch(certificate.epoch.0),
            votes: certificate.votes.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
        })
    }
}

impl TryFrom<AttestedCertificate> for core::AttestedCertificate {
    type Error = Malformed;
    fn try_from(attested: AttestedCertificate) -> Result<Self, Malformed> {
        if attested.votes.len() > COMMITTEE_SIZE_MAX {
            return Err(Malformed::OutOfRange("votes"));
        }
        let votes = attested.votes.into_iter().map(|CertificateVote { epoch, authority, signature }| {
            let (authority, signature) = (AuthorityName(authority.0), EcdsaSignature(signature.0));
            (Epoch(epoch.0), core::ContractVote { authority, signature })
        });
        let attestation = attestation_of(votes.collect())?;
        Ok(Self { certificate: attested.certificate.try_into()?, attestation })
    }
}

impl<C: AsRef<core::Certificate>> From<&answers::Certificates<C>> for Certificates {
    fn from(answer: &answers::Certificates<C>) -> Self {
        let certificates = answer.found.iter().map(|certificate| certificate.as_ref().into());
        let looked_up = u32::try_from(answer.looked_up).unwrap_or(u32::MAX);
        Self { certificates: certificates.collect(), looked_up }
    }
}

impl TryFrom<CertificateNames> for Vec<crate::TransferName> {
    type Error = Malformed;
    fn try_from(of: CertificateNames) -> Result<Self, Malformed> {
        into_names("names", &of.names, PAGE_ENTRIES_MAX as usize)
    }
}
