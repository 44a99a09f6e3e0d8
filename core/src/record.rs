//! The outcomes of the rules. A shard is a fold over its journal of these records, live and after a
//! restart alike.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::amount::{Amount, Asset, TransactionIndex};
use crate::certificate::Certificate;
use crate::history::Link;
use crate::identity::{AccountId, ShardId};
use crate::order::{Payment, Transfer, TransferOrder};

/// A deposit as the contract numbered it [FP §4.3].
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Deposit {
    /// Its number among all deposits of the contract, from 1.
    pub index: TransactionIndex,
    /// The account that it funds.
    pub recipient: AccountId,
    /// What was deposited.
    pub asset: Asset,
    /// How much of it arrived.
    pub amount: Amount,
}

/// One step along the contract's deposits, from the authority's own follower.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SynchronizationOrder {
    /// Every deposit from here (exclusive) to `up_to` belongs to other shards, except `deposit`.
    pub after: TransactionIndex,
    /// The shard has all its deposits up to here (inclusive) once this is applied.
    pub up_to: TransactionIndex,
    /// The deposit with index `up_to`, where it belongs to this shard.
    pub deposit: Option<Deposit>,
}

/// The credit of a confirmed payment, on its way from the sender's shard to the recipient's.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CrossShardCredit {
    /// The shard that confirmed the payment.
    pub from: ShardId,
    /// Counts the credits from that shard to this one, from 1.
    pub number: u64,
    /// What was paid.
    pub payment: Payment,
}

/// Where the value of a confirmed certificate went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Effect {
    /// To an account of the same shard.
    Credited {
        /// In the recipient's history of received certificates.
        received: Link,
    },
    /// Into the outbox for another shard.
    Forwarded {
        /// The recipient's shard.
        to: ShardId,
        /// The number of the credit among those between the two shards.
        number: u64,
    },
    /// Out, to the Primary.
    Redeemed {
        /// In the shard's feed of redemptions.
        feed: Link,
    },
}

/// One outcome, as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Record {
    /// The authority votes for an order.
    Lock {
        /// The order.
        order: Arc<TransferOrder>,
        /// Its digest.
        digest: Digest,
    },
    /// A certificate is executed.
    Confirmation {
        /// The certificate, written here and nowhere else.
        certificate: Arc<Certificate>,
        /// In the sender's history of sent certificates.
        sent: Link,
        /// What became of the value.
        effect: Effect,
    },
    /// A payment confirmed by another shard arrives.
    Credit {
        /// The credit.
        credit: CrossShardCredit,
        /// In the recipient's history of received certificates.
        received: Link,
    },
    /// The shard follows the Primary one step further.
    Synchronization {
        /// The step.
        order: SynchronizationOrder,
        /// In the recipient's history of deposits; present exactly where there is a deposit.
        deposits: Option<Link>,
    },
}

impl Record {
    /// Where a confirmation's credit goes, and under which number, if that is another shard.
    #[must_use]
    pub fn forwarded(&self) -> Option<(ShardId, u64)> {
        match self {
            Self::Confirmation { effect: Effect::Forwarded { to, number }, .. } => Some((*to, *number)),
            _ => None,
        }
    }

    /// The accounts of this shard whose state the record changes.
    pub fn accounts(&self) -> impl Iterator<Item = AccountId> {
        let (first, second) = match self {
            Self::Lock { order, .. } => (Some(order.transfer.sender()), None),
            Self::Confirmation { certificate, effect, .. } => {
                let transfer = &certificate.order.transfer;
                let recipient = match (effect, transfer) {
                    (Effect::Credited { .. }, Transfer::Payment(payment)) => Some(payment.recipient),
                    _ => None,
                };
                (Some(transfer.sender()), recipient)
            }
            Self::Credit { credit, .. } => (Some(credit.payment.recipient), None),
            Self::Synchronization { order, .. } => (order.deposit.as_ref().map(|deposit| deposit.recipient), None),
        };
        first.into_iter().chain(second)
    }

    /// The link of this record in its sender's history, where it has one.
    #[must_use]
    pub fn sent_link(&self) -> Option<Link> {
        match self {
            Self::Confirmation { sent, .. } => Some(*sent),
            _ => None,
        }
    }

    /// The link of this record in its recipient's history of certificates, where it has one.
    #[must_use]
    pub fn received_link(&self) -> Option<Link> {
        match self {
            Self::Confirmation { effect: Effect::Credited { received }, .. } | Self::Credit { received, .. } => {
                Some(*received)
            }
            _ => None,
        }
    }

    /// The link of this record in its recipient's history of deposits, where it has one.
    #[must_use]
    pub fn deposit_link(&self) -> Option<Link> {
        match self {
            Self::Synchronization { deposits, .. } => *deposits,
            _ => None,
        }
    }

    /// The link of this record in the shard's feed of redemptions, where it has one.
    #[must_use]
    pub fn redemption_link(&self) -> Option<Link> {
        match self {
            Self::Confirmation { effect: Effect::Redeemed { feed }, .. } => Some(*feed),
            _ => None,
        }
    }

    /// The payment that the record credits to an account of this shard, where it does.
    #[must_use]
    pub fn received_payment(&self) -> Option<&Payment> {
        match self {
            Self::Confirmation { certificate, effect: Effect::Credited { .. }, .. } => {
                match &certificate.order.transfer {
                    Transfer::Payment(payment) => Some(payment),
                    Transfer::Redemption(_) => None,
                }
            }
            Self::Credit { credit, .. } => Some(&credit.payment),
            _ => None,
        }
    }
}
