//! Transfer orders: what a sender signs to move value [FP §4.2].

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::amount::{Amount, Asset, Memo, SequenceNumber};
use crate::demand::{Deferred, Demand};
use crate::fault::{Fault, is_planted};
use crate::identity::{AccountId, PrimaryAddress};
use crate::signature::{BadSignature, EcdsaSignature, Ed25519Signature};
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
}

impl Transfer {
    /// Whose balance is debited.
    #[must_use]
    pub fn sender(&self) -> AccountId {
        match self {
            Self::Payment(payment) => payment.sender,
            Self::Redemption(redemption) => redemption.sender,
        }
    }

    /// What is moved.
    #[must_use]
    pub fn asset(&self) -> Asset {
        match self {
            Self::Payment(payment) => payment.asset,
            Self::Redemption(redemption) => redemption.asset,
        }
    }

    /// How much is debited.
    #[must_use]
    pub fn amount(&self) -> Amount {
        match self {
            Self::Payment(payment) => payment.amount,
            Self::Redemption(redemption) => redemption.amount,
        }
    }

    /// Its number among the sender's.
    #[must_use]
    pub fn sequence(&self) -> SequenceNumber {
        match self {
            Self::Payment(payment) => payment.sequence,
            Self::Redemption(redemption) => redemption.sequence,
        }
    }

    /// The user's own bytes.
    #[must_use]
    pub fn memo(&self) -> Memo {
        match self {
            Self::Payment(payment) => payment.memo,
            Self::Redemption(redemption) => redemption.memo,
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
        let recipient = match self {
            Self::Payment(payment) => payment.recipient,
            Self::Redemption(redemption) => AccountId::from_ethereum(redemption.recipient),
        };
        if recipient == AccountId::ZERO {
            return Err(InvalidTransfer::ZeroRecipient);
        }
        if recipient == AccountId::from_ethereum(domain.contract()) {
            return Err(InvalidTransfer::ContractRecipient);
        }
        match self {
            Self::Redemption(redemption) if redemption.fee > redemption.amount => {
                Err(InvalidTransfer::FeeAboveAmount { amount: redemption.amount, fee: redemption.fee })
            }
            _ => Ok(()),
        }
    }
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
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct TransferOrder {
    /// What is ordered.
    pub transfer: Transfer,
    /// That the owner ordered it.
    pub authorization: Authorization,
}

/// By the signature alone, which hardly two orders share.
impl Hash for TransferOrder {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.authorization {
            Authorization::Ed25519 { signature, .. } => signature.hash(state),
            Authorization::Ethereum { signature } => signature.hash(state),
        }
    }
}

impl TransferOrder {
    /// Checks all but the signature. Gives the digest and what is left to check: nothing where this very order is
    /// `known` to stand up, under that digest.
    pub(crate) fn demand(
        &self,
        domain: &Domain,
        known: Option<Digest>,
    ) -> Result<(Digest, Option<Demand>), OrderError> {
        if let Some(digest) = known {
            return Ok((digest, None));
        }
        self.transfer.check(domain)?;
        if is_planted(Fault::OrderUnsigned) {
            return Ok((domain.transfer_digest(&self.transfer), None));
        }
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
        Ok((digest, Some(Demand::Order { sender, digest, authorization: self.authorization })))
    }

    /// As [`TransferOrder::demand`], for the order by itself.
    pub(crate) fn prepare(self, domain: &Domain, known: Option<Digest>) -> Result<Deferred<VerifiedOrder>, OrderError> {
        let (digest, demand) = self.demand(domain, known)?;
        Ok(Deferred { value: VerifiedOrder { order: Arc::new(self), digest }, demands: demand.into_iter().collect() })
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
