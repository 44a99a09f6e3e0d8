//! Transfer orders: what a sender signs to move value [FP §4.2].

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::amount::Amount;
use crate::identity::AccountId;
use crate::signature::BadSignature;
use crate::signature_check::{Authorization, PendingVerification, SignatureCheck};
use crate::statement::Domain;
use crate::transfer::{InvalidTransfer, Redemption, Transfer};

/// The rules that an order can break all by itself.
fn check(transfer: &Transfer, domain: &Domain) -> Result<(), InvalidTransfer> {
    if transfer.amount() == Amount::ZERO {
        return Err(InvalidTransfer::ZeroAmount);
    }
    if transfer.sequence().next().is_none() {
        return Err(InvalidTransfer::LastSequence);
    }
    match transfer {
        Transfer::Payment(payment) => check_recipient(payment.recipient, domain),
        Transfer::Redemption(redemption) => {
            check_recipient(AccountId::from_ethereum(redemption.recipient), domain)?;
            let Redemption { amount, fee, .. } = *redemption;
            if fee > amount { Err(InvalidTransfer::FeeAboveAmount { amount, fee }) } else { Ok(()) }
        }
        Transfer::Payout(payout) => payout.outputs.numbered().try_for_each(|(output, paid)| {
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

/// A transfer and its owner's authorization, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct TransferOrder {
    /// The transfer.
    pub transfer: Transfer,
    /// The owner's authorization.
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
        check(&self.transfer, domain)?;
        let sender = self.transfer.sender();
        let key_may_sign = match &self.authorization {
            Authorization::Ed25519 { key, .. } => AccountId::from_ed25519(key) == sender,
            // Checking the signature recovers the signer.
            Authorization::Ethereum { .. } => sender.ethereum_address().is_some(),
        };
        if !key_may_sign {
            return Err(OrderError::WrongKey { sender });
        }
        let digest = domain.transfer_digest(&self.transfer);
        Ok((digest, Some(SignatureCheck::Order { sender, digest, authorization: self.authorization })))
    }

    /// As [`TransferOrder::signature_check`], for the order alone.
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
    /// If the transfer is invalid, the key does not own the account, or the signature is bad.
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

    /// The transfer.
    #[must_use]
    pub fn transfer(&self) -> &Transfer {
        &self.order.transfer
    }

    /// The digest that the sender signed; it names the order.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
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
        /// The account whose key must have signed.
        sender: AccountId,
    },
    /// Altered, or signed for another deployment.
    #[error(transparent)]
    Signature(#[from] BadSignature),
}
