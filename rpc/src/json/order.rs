//! Transfers and orders.

use fastpay_core::{self as core, AccountId, Amount, Asset, EcdsaSignature, Ed25519Signature, SequenceNumber};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::text::{Account, Bytes20, Bytes32, Bytes64, Bytes65, Decimal, Hex, Uint64, Uint128};

/// The transfer that an order requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Transfer {
    /// To another account in FastPay.
    Payment {
        /// The account that pays.
        sender: Account,
        /// The account that is paid.
        recipient: Account,
        /// The address of an ERC-20, or zero for ETH.
        asset: Bytes20,
        /// In the asset's smallest unit, above 0.
        amount: Uint128,
        /// The sender's next number, from 0.
        sequence: Uint64,
        /// Free for the user.
        memo: Bytes32,
    },
    /// Out, to the Primary.
    Redemption {
        /// The account that redeems.
        sender: Account,
        /// The address that is paid on the Primary.
        recipient: Bytes20,
        /// The address of an ERC-20, or zero for ETH.
        asset: Bytes20,
        /// The amount debited, in the asset's smallest unit, above 0.
        amount: Uint128,
        /// The part of it that goes to the submitter of the certificate to the contract.
        fee: Uint128,
        /// The sender's next number, from 0.
        sequence: Uint64,
        /// Free for the user.
        memo: Bytes32,
    },
    /// To many accounts in FastPay, entirely or not at all.
    Payout {
        /// The account that pays.
        sender: Account,
        /// The address of an ERC-20, or zero for ETH.
        asset: Bytes20,
        /// The payments, 1 to 256.
        outputs: Outputs,
        /// The sender's next number, from 0.
        sequence: Uint64,
        /// Free for the user.
        memo: Bytes32,
    },
}

/// One payment of a payout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Output {
    /// The account that is paid.
    pub recipient: Account,
    /// In the asset's smallest unit, above 0.
    pub amount: Uint128,
    /// Free for the user.
    pub memo: Bytes32,
}

/// The payments of a payout, 1 to 256, of which the sum has no more than 128 bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "Vec<Output>", into = "Vec<Output>")]
#[schema(value_type = Vec<Output>, min_items = 1, max_items = 256)]
pub struct Outputs(core::Outputs);

impl Outputs {
    /// The number of entries.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl TryFrom<Vec<Output>> for Outputs {
    type Error = core::InvalidTransfer;
    fn try_from(outputs: Vec<Output>) -> Result<Self, core::InvalidTransfer> {
        let outputs = outputs.into_iter().map(|Output { recipient, amount, memo }| core::Output {
            recipient: recipient.0,
            amount: Amount(amount.0),
            memo: memo.0.into(),
        });
        core::Outputs::new(outputs.collect()).map(Self)
    }
}

impl From<Outputs> for Vec<Output> {
    fn from(Outputs(outputs): Outputs) -> Self {
        let output = |output: &core::Output| Output {
            recipient: Account(output.recipient),
            amount: Decimal(output.amount.0),
            memo: Hex(output.memo.0),
        };
        outputs.iter().map(output).collect()
    }
}

/// The proof that the sender ordered it: a signature over the EIP-712 digest of the transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Authorization {
    /// By the key whose hash is the account.
    Ed25519 {
        /// The verification key.
        key: Bytes32,
        /// R and s.
        signature: Bytes64,
    },
    /// By the key of an Ethereum account, as `eth_signTypedData_v4` returns it.
    Ethereum {
        /// r, s and v, which is 27 or 28.
        signature: Bytes65,
    },
}

/// A transfer and its sender's authorization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TransferOrder {
    /// The transfer.
    pub transfer: Transfer,
    /// The sender's signature on it.
    pub authorization: Authorization,
}

impl From<&core::Payment> for Transfer {
    fn from(payment: &core::Payment) -> Self {
        Self::Payment {
            sender: Account(payment.sender),
            recipient: Account(payment.recipient),
            asset: payment.asset.into(),
            amount: Decimal(payment.amount.0),
            sequence: Decimal(payment.sequence.0),
            memo: Hex(payment.memo.0),
        }
    }
}

impl From<&core::Transfer> for Transfer {
    fn from(transfer: &core::Transfer) -> Self {
        match transfer {
            core::Transfer::Payment(payment) => payment.into(),
            core::Transfer::Redemption(redemption) => Self::Redemption {
                sender: Account(redemption.sender),
                recipient: Hex(redemption.recipient.into_array()),
                asset: redemption.asset.into(),
                amount: Decimal(redemption.amount.0),
                fee: Decimal(redemption.fee.0),
                sequence: Decimal(redemption.sequence.0),
                memo: Hex(redemption.memo.0),
            },
            core::Transfer::Payout(payout) => Self::Payout {
                sender: Account(payout.sender),
                asset: payout.asset.into(),
                outputs: Outputs(payout.outputs.clone()),
                sequence: Decimal(payout.sequence.0),
                memo: Hex(payout.memo.0),
            },
        }
    }
}

impl From<Transfer> for core::Transfer {
    fn from(transfer: Transfer) -> Self {
        match transfer {
            Transfer::Payment { sender, recipient, asset, amount, sequence, memo } => Self::Payment(core::Payment {
                sender: sender.0,
                recipient: recipient.0,
                asset: asset.into(),
                amount: Amount(amount.0),
                sequence: SequenceNumber(sequence.0),
                memo: memo.0.into(),
            }),
            Transfer::Redemption { sender, recipient, asset, amount, fee, sequence, memo } => {
                Self::Redemption(core::Redemption {
                    sender: sender.0,
                    recipient: recipient.0.into(),
                    asset: asset.into(),
                    amount: Amount(amount.0),
                    fee: Amount(fee.0),
                    sequence: SequenceNumber(sequence.0),
                    memo: memo.0.into(),
                })
            }
            Transfer::Payout { sender, asset, outputs, sequence, memo } => Self::Payout(core::Payout {
                sender: sender.0,
                asset: asset.into(),
                outputs: outputs.0,
                sequence: SequenceNumber(sequence.0),
                memo: memo.0.into(),
            }),
        }
    }
}

impl From<&core::TransferOrder> for TransferOrder {
    fn from(order: &core::TransferOrder) -> Self {
        let authorization = match &order.authorization {
            core::Authorization::Ed25519 { key, signature } => {
                Authorization::Ed25519 { key: Hex(*key), signature: Hex(signature.0) }
            }
            core::Authorization::Ethereum { signature } => Authorization::Ethereum { signature: Hex(signature.0) },
        };
        Self { transfer: (&order.transfer).into(), authorization }
    }
}

impl From<TransferOrder> for core::TransferOrder {
    fn from(order: TransferOrder) -> Self {
        let authorization = match order.authorization {
            Authorization::Ed25519 { key, signature } => {
                core::Authorization::Ed25519 { key: key.0, signature: Ed25519Signature(signature.0) }
            }
            Authorization::Ethereum { signature } => {
                core::Authorization::Ethereum { signature: EcdsaSignature(signature.0) }
            }
        };
        Self { transfer: order.transfer.into(), authorization }
    }
}

impl From<Asset> for Bytes20 {
    fn from(asset: Asset) -> Self {
        Hex(asset.0.into_array())
    }
}

impl From<Bytes20> for Asset {
    fn from(address: Bytes20) -> Self {
        Self(address.0.into())
    }
}

impl From<AccountId> for Account {
    fn from(account: AccountId) -> Self {
        Self(account)
    }
}
