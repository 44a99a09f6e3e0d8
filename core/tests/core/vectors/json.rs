//! The shapes of the files, and their conversion to and from core's types.

use alloy_primitives::{Address, B256, Bytes};
use fastpay_core as core;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Domain {
    pub name: String,
    pub version: String,
    pub chain_id: u64,
    pub verifying_contract: Address,
}

impl From<core::Domain> for Domain {
    fn from(domain: core::Domain) -> Self {
        Self {
            name: "FastPay".into(),
            version: "1".into(),
            chain_id: domain.chain_id(),
            verifying_contract: domain.contract(),
        }
    }
}

impl Domain {
    pub fn read(&self) -> core::Domain {
        assert_eq!((self.name.as_str(), self.version.as_str()), ("FastPay", "1"));
        core::Domain::new(self.chain_id, self.verifying_contract)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payment {
    pub sender: B256,
    pub recipient: B256,
    pub asset: Address,
    pub amount: String,
    pub sequence: String,
    pub memo: B256,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redemption {
    pub sender: B256,
    pub recipient: Address,
    pub asset: Address,
    pub amount: String,
    pub fee: String,
    pub sequence: String,
    pub memo: B256,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    pub recipient: B256,
    pub amount: String,
    pub memo: B256,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payout {
    pub sender: B256,
    pub asset: Address,
    pub outputs: Vec<Output>,
    pub sequence: String,
    pub memo: B256,
}

impl From<&core::Output> for Output {
    fn from(output: &core::Output) -> Self {
        Self { recipient: output.recipient.0.into(), amount: output.amount.to_string(), memo: output.memo }
    }
}

impl Output {
    pub fn read(&self) -> core::Output {
        core::Output {
            recipient: core::AccountId(self.recipient.0),
            amount: self.amount.parse().unwrap(),
            memo: self.memo,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Transfer {
    Payment(Payment),
    Redemption(Redemption),
    Payout(Payout),
}

impl From<&core::Redemption> for Redemption {
    fn from(redemption: &core::Redemption) -> Self {
        Self {
            sender: redemption.sender.0.into(),
            recipient: redemption.recipient,
            asset: redemption.asset.0,
            amount: redemption.amount.to_string(),
            fee: redemption.fee.to_string(),
            sequence: redemption.sequence.to_string(),
            memo: redemption.memo,
        }
    }
}

impl Redemption {
    pub fn read(&self) -> core::Redemption {
        core::Redemption {
            sender: core::AccountId(self.sender.0),
            recipient: self.recipient,
            asset: core::Asset(self.asset),
            amount: self.amount.parse().unwrap(),
            fee: self.fee.parse().unwrap(),
            sequence: core::SequenceNumber(self.sequence.parse().unwrap()),
            memo: self.memo,
        }
    }
}

impl From<&core::Transfer> for Transfer {
    fn from(transfer: &core::Transfer) -> Self {
        match transfer {
            core::Transfer::Redemption(redemption) => Self::Redemption(redemption.into()),
            core::Transfer::Payment(payment) => Self::Payment(Payment {
                sender: payment.sender.0.into(),
                recipient: payment.recipient.0.into(),
                asset: payment.asset.0,
                amount: payment.amount.to_string(),
                sequence: payment.sequence.to_string(),
                memo: payment.memo,
            }),
            core::Transfer::Payout(payout) => Self::Payout(Payout {
                sender: payout.sender.0.into(),
                asset: payout.asset.0,
                outputs: payout.outputs.iter().map(Into::into).collect(),
                sequence: payout.sequence.to_string(),
                memo: payout.memo,
            }),
        }
    }
}

impl Transfer {
    pub fn read(&self) -> core::Transfer {
        match self {
            Self::Redemption(redemption) => redemption.read().into(),
            Self::Payment(payment) => core::Payment {
                sender: core::AccountId(payment.sender.0),
                recipient: core::AccountId(payment.recipient.0),
                asset: core::Asset(payment.asset),
                amount: payment.amount.parse().unwrap(),
                sequence: core::SequenceNumber(payment.sequence.parse().unwrap()),
                memo: payment.memo,
            }
            .into(),
            Self::Payout(payout) => core::Payout {
                sender: core::AccountId(payout.sender.0),
                asset: core::Asset(payout.asset),
                outputs: core::Outputs::new(payout.outputs.iter().map(Output::read).collect()).unwrap(),
                sequence: core::SequenceNumber(payout.sequence.parse().unwrap()),
                memo: payout.memo,
            }
            .into(),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Authorization {
    Ed25519 { key: B256, signature: Bytes },
    Ethereum { signature: Bytes },
}

impl From<&core::Authorization> for Authorization {
    fn from(authorization: &core::Authorization) -> Self {
        match authorization {
            core::Authorization::Ed25519 { key, signature } => {
                Self::Ed25519 { key: key.into(), signature: signature.0.into() }
            }
            core::Authorization::Ethereum { signature } => Self::Ethereum { signature: signature.0.into() },
        }
    }
}

impl Authorization {
    pub fn read(&self) -> core::Authorization {
        match self {
            Self::Ed25519 { key, signature } => {
                core::Authorization::Ed25519 { key: key.0, signature: read_ed25519(signature) }
            }
            Self::Ethereum { signature } => core::Authorization::Ethereum { signature: read_ecdsa(signature) },
        }
    }
}

/// A vote with all that is needed to check it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Vote {
    pub authority: B256,
    pub signature: Bytes,
    /// Of a payment's vote; none in that of a redemption.
    pub path: Option<Path>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    pub directions: u16,
    pub siblings: Vec<B256>,
}

impl From<&core::Vote> for Vote {
    fn from(vote: &core::Vote) -> Self {
        let (signature, path) = match &vote.signature {
            core::VoteSignature::Payment { signature, path } => {
                (signature.0.into(), Some(Path { directions: path.directions, siblings: path.siblings.clone() }))
            }
            core::VoteSignature::Redemption { signature } => (signature.0.into(), None),
        };
        Self { authority: vote.authority.0.into(), signature, path }
    }
}

impl Vote {
    pub fn read(&self) -> core::Vote {
        let signature = match &self.path {
            Some(path) => core::VoteSignature::Payment {
                signature: read_ed25519(&self.signature),
                path: core::MerklePath { directions: path.directions, siblings: path.siblings.clone() },
            },
            None => core::VoteSignature::Redemption { signature: read_ecdsa(&self.signature) },
        };
        core::Vote { authority: core::AuthorityName(self.authority.0), signature }
    }
}

pub fn read_ed25519(bytes: &Bytes) -> core::Ed25519Signature {
    core::Ed25519Signature(bytes.as_ref().try_into().unwrap())
}

pub fn read_ecdsa(bytes: &[u8]) -> core::EcdsaSignature {
    core::EcdsaSignature(bytes.try_into().unwrap())
}
