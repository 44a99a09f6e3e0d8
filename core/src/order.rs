//! Transfer orders: what a sender signs to move value [FP §4.2].

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::amount::{Amount, Asset, Memo, SequenceNumber};
use crate::identity::{AccountId, PrimaryAddress};
use crate::payout::{PAYOUT_OUTPUTS_MAX, Payout, Receipt};
use crate::signature::{BadSignature, EcdsaSignature, Ed25519Signature};
use crate::signature_check::{PendingVerification, SignatureCheck};
use crate::statement::Domain;

/// Moves `amount` to another FastPay account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
pub struct Payment {
    /// Who pays.
    pub sender: AccountId,
    /// Who is paid.
    pub recipient: AccountId,
    /// What is moved.
    pub asset: Asset,
    /// How much of it.
    pub amount: Amount,
    /// The sender's next number.
    pub sequence: SequenceNumber,
    /// Free for the user.
    pub memo: Memo,
}

/// Moves `amount` out, to the Primary: the recipient gets `amount − fee`, and whoever submits the
/// certificate to the contract gets `fee`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
pub struct Redemption {
    /// Who redeems.
    pub sender: AccountId,
    /// Who is paid on the Primary.
    pub recipient: PrimaryAddress,
    /// What is moved.
    pub asset: Asset,
    /// How much is debited.
    pub amount: Amount,
    /// The part of it that goes to the relayer.
    pub fee: Amount,
    /// The sender's next number.
    pub sequence: SequenceNumber,
    /// Free for the user.
    pub memo: Memo,
}

/// What an order asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Transfer {
    /// To FastPay.
    Payment(Payment),
    /// To the Primary.
    Redemption(Redemption),
    /// To many accounts of FastPay.
    Payout(Payout),
}

impl Transfer {
    /// Whose balance is debited.
    #[must_use]
    pub fn sender(&self) -> AccountId {
        match self {
            Self::Payment(payment) => payment.sender,
            Self::Redemption(redemption) => redemption.sender,
            Self::Payout(payout) => payout.sender,
        }
    }

    /// What is moved.
    #[must_use]
    pub fn asset(&self) -> Asset {
        match self {
            Self::Payment(payment) => payment.asset,
            Self::Redemption(redemption) => redemption.asset,
            Self::Payout(payout) => payout.asset,
        }
    }

    /// How much is debited.
    #[must_use]
    pub fn amount(&self) -> Amount {
        match self {
            Self::Payment(payment) => payment.amount,
            Self::Redemption(redemption) => redemption.amount,
            Self::Payout(payout) => payout.outputs.total(),
        }
    }

    /// Its number among the sender's.
    #[must_use]
    pub fn sequence(&self) -> SequenceNumber {
        match self {
            Self::Payment(payment) => payment.sequence,
            Self::Redemption(redemption) => redemption.sequence,
            Self::Payout(payout) => payout.sequence,
        }
    }

    /// The user's own bytes.
    #[must_use]
    pub fn memo(&self) -> Memo {
        match self {
            Self::Payment(payment) => payment.memo,
            Self::Redemption(redemption) => redemption.memo,
            Self::Payout(payout) => payout.memo,
        }
    }

    /// The rules that an order can break all by itself.
    fn check(&self, domain: &Domain) -> Result<(), InvalidTransfer> {
        if self.amount() == Amount::ZERO {
            return Err(InvalidTransfer::ZeroAmount);
        }
        if self.sequence().next().is_none() {
            return Err(InvalidTransfer::LastSequence);
        }
        match self {
            Self::Payment(payment) => check_recipient(payment.recipient, domain),
            Self::Redemption(redemption) => {
                check_recipient(AccountId::from_ethereum(redemption.recipient), domain)?;
                let Redemption { amount, fee, .. } = *redemption;
                if fee > amount { Err(InvalidTransfer::FeeAboveAmount { amount, fee }) } else { Ok(()) }
            }
            Self::Payout(payout) => payout.outputs.numbered().try_for_each(|(output, paid)| {
                if paid.amount == Amount::ZERO {
                    return Err(InvalidTransfer::ZeroOutput { output });
                }
                let refused = InvalidTransfer::OutputRecipient { output };
                if paid.recipient == AccountId::PRIVATE_POOL {
                    return Err(refused);
                }
                check_recipient(paid.recipient, domain).map_err(|_| refused)
            }),
        }
    }

    /// The payment that it makes to an account of FastPay under this name: itself, or one output of a payout.
    #[must_use]
    pub fn payment(&self, output: Option<u16>) -> Option<Payment> {
        match (self, output) {
            (Self::Payment(payment), None) => Some(payment.clone()),
            (Self::Payout(payout), Some(output)) => payout.payment(output),
            _ => None,
        }
    }

    /// All payments that it makes to accounts of FastPay, in order.
    pub fn receipts(&self) -> impl Iterator<Item = Receipt> + use<'_> {
        let (payment, payout) = match self {
            Self::Payment(payment) => (Some(payment), None),
            Self::Redemption(_) => (None, None),
            Self::Payout(payout) => (None, Some(payout)),
        };
        let payment = payment.map(|payment| Receipt { payment: payment.clone(), output: None });
        let outputs = payout.into_iter().flat_map(|payout| {
            let numbers = payout.outputs.numbered().map(|(number, _)| number);
            numbers.filter_map(|number| Some(Receipt { payment: payout.payment(number)?, output: Some(number) }))
        });
        payment.into_iter().chain(outputs)
    }
}

/// Nobody may pay an account that cannot spend.
fn check_recipient(recipient: AccountId, domain: &Domain) -> Result<(), InvalidTransfer> {
    if recipient == AccountId::ZERO {
        return Err(InvalidTransfer::ZeroRecipient);
    }
    if recipient == AccountId::from_ethereum(domain.contract()) {
        return Err(InvalidTransfer::ContractRecipient);
    }
    Ok(())
}

impl From<Payment> for Transfer {
    fn from(payment: Payment) -> Self {
        Self::Payment(payment)
    }
}

impl From<Redemption> for Transfer {
    fn from(redemption: Redemption) -> Self {
        Self::Redemption(redemption)
    }
}

impl From<Payout> for Transfer {
    fn from(payout: Payout) -> Self {
        Self::Payout(payout)
    }
}

/// Why nobody may order this, whoever signs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTransfer {
    /// Nothing is moved.
    #[error("the amount is zero; order at least one of the asset's smallest unit")]
    ZeroAmount,
    /// The relayer would get more than is debited.
    #[error("the fee {fee} is above the amount {amount}; lower the fee")]
    FeeAboveAmount {
        /// What is debited.
        amount: Amount,
        /// What the relayer would get of it.
        fee: Amount,
    },
    /// Nobody can hold the key of the zero address: the value would be lost.
    #[error("the recipient is the zero address, which nobody owns; give the recipient's account")]
    ZeroRecipient,
    /// The contract cannot sign, and cannot collect what it would be paid: the value would be lost.
    #[error("the recipient is the FastPay contract itself, which cannot spend; give the recipient's account")]
    ContractRecipient,
    /// No number could follow it.
    #[error("sequence number 2^64 - 1 cannot be used")]
    LastSequence,
    /// A payout that pays nobody.
    #[error("the payout has no output; give at least one")]
    NoOutputs,
    /// A payout of too many outputs.
    #[error("the payout has {found} outputs; at most {PAYOUT_OUTPUTS_MAX} fit into one order, so split it")]
    TooManyOutputs {
        /// How many it has.
        found: usize,
    },
    /// The amounts of a payout do not add up to an amount.
    #[error("the sum of the outputs has more than 128 bits; split the payout")]
    SumTooLarge,
    /// An output moves nothing.
    #[error("the amount of output {output} is zero; order at least one of the asset's smallest unit")]
    ZeroOutput {
        /// Its number, from 0.
        output: u16,
    },
    /// An output pays the zero address, the contract or the pool of private payments. None can spend it: it would be lost.
    #[error("the recipient of output {output} cannot spend; give the recipient's account")]
    OutputRecipient {
        /// Its number, from 0.
        output: u16,
    },
}

/// The proof that the owner of the sender's account ordered a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub enum Authorization {
    /// By the key whose hash is the account.
    Ed25519 {
        /// The verification key.
        key: [u8; 32],
        /// Over the order's digest.
        signature: Ed25519Signature,
    },
    /// By the key of an Ethereum account, as `eth_signTypedData_v4` returns it.
    Ethereum {
        /// Over the order's digest.
        signature: EcdsaSignature,
    },
}

/// A transfer and its owner's authorization, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct TransferOrder {
    /// What is ordered.
    pub transfer: Transfer,
    /// That the owner ordered it.
    pub authorization: Authorization,
}

impl TransferOrder {
    /// Checks all but the signature. Gives the digest and what is left to check: nothing where this very order is
    /// `known` to be valid, under that digest.
    pub(crate) fn signature_check(
        &self,
        domain: &Domain,
        known: Option<Digest>,
    ) -> Result<(Digest, Option<SignatureCheck>), OrderError> {
        if let Some(digest) = known {
            return Ok((digest, None));
        }
        self.transfer.check(domain)?;
        let sender = self.transfer.sender();
        let key_may_sign = match &self.authorization {
            Authorization::Ed25519 { key, .. } => AccountId::from_ed25519(key) == sender,
            // Whose signature it is comes out when it is checked.
            Authorization::Ethereum { .. } => sender.ethereum_address().is_some(),
        };
        if !key_may_sign {
            return Err(OrderError::WrongKey { sender });
        }
        let digest = domain.transfer_digest(&self.transfer);
        Ok((digest, Some(SignatureCheck::Order { sender, digest, authorization: self.authorization })))
    }

    /// As [`TransferOrder::demand`], for the order by itself.
    pub(crate) fn prepare(
        self,
        domain: &Domain,
        known: Option<Digest>,
    ) -> Result<PendingVerification<VerifiedOrder>, OrderError> {
        let (digest, check) = self.signature_check(domain, known)?;
        Ok(PendingVerification {
            value: VerifiedOrder { order: Arc::new(self), digest },
            checks: check.into_iter().collect(),
        })
    }

    /// Checks everything about the order that needs no account.
    ///
    /// # Errors
    /// Where the transfer is invalid, the key does not own the account, or the signature is bad.
    pub fn verify(self, domain: &Domain) -> Result<VerifiedOrder, OrderError> {
        Ok(self.prepare(domain, None)?.check(domain)?)
    }
}

/// A transfer order whose owner did sign it. Cannot be deserialised: only checking makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedOrder {
    order: Arc<TransferOrder>,
    digest: Digest,
}

impl VerifiedOrder {
    /// The order.
    #[must_use]
    pub fn order(&self) -> &TransferOrder {
        &self.order
    }

    /// The order, shared: an authority keeps it in several places.
    pub(crate) fn shared(&self) -> Arc<TransferOrder> {
        self.order.clone()
    }

    /// What is ordered.
    #[must_use]
    pub fn transfer(&self) -> &Transfer {
        &self.order.transfer
    }

    /// What the sender signed; names the order.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The order, no longer marked as verified.
    #[must_use]
    pub fn into_order(self) -> TransferOrder {
        Arc::unwrap_or_clone(self.order)
    }
}

/// Why an order is not one that its sender signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Not to be ordered by anyone.
    #[error(transparent)]
    Transfer(#[from] InvalidTransfer),
    /// The key is not the one that owns the account.
    #[error("the key does not own account {sender}; sign with the key of the sending account")]
    WrongKey {
        /// Whose key is needed.
        sender: AccountId,
    },
    /// Altered, or signed for another deployment.
    #[error(transparent)]
    Signature(#[from] BadSignature),
}
