//! The outcomes of the rules. A shard is a fold over its journal of these records, live and after a
//! restart alike.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::amount::{Amount, Asset, Epoch, SequenceNumber, TransactionIndex};
use crate::base::{Base, Pruned};
use crate::certificate::Certificate;
use crate::history::{JournalPosition, Link};
use crate::identity::{AccountId, ShardId};
use crate::order::TransferOrder;
use crate::private::{PrivateConfirmation, PrivateLock, PrivateSeen};
use crate::transfer::{Output, Payment, Receipt};
use crate::unlock::{Installation, UnlockEvent};

/// A deposit as the contract numbered it [FP §4.3].
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Deposit {
    /// Its number among all deposits of the contract, from 1.
    pub index: TransactionIndex,
    /// The account that it funds.
    pub recipient: AccountId,
    /// The asset.
    pub asset: Asset,
    /// The amount that arrived, in the asset's smallest unit.
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

/// The credits that one confirmed certificate gives to accounts of another shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// A payment.
    Payment(Payment),
    /// The outputs of a payout that pay accounts of that shard.
    Outputs(Arc<ShardOutputs>),
}

/// The outputs of one payout that pay accounts of one shard.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ShardOutputs {
    /// The digest of the payout.
    pub digest: Digest,
    /// The account that pays.
    pub sender: AccountId,
    /// The asset.
    pub asset: Asset,
    /// The number of the payout among the sender's.
    pub sequence: SequenceNumber,
    /// The outputs, each with its number in the payout, ascending.
    pub outputs: Vec<(u16, Output)>,
}

/// The credit of a confirmed certificate, on its way from the sender's shard to the recipients'.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossShardCredit {
    /// The shard that confirmed the certificate.
    pub from: ShardId,
    /// Counts the credits from that shard to this one, from 1.
    pub number: u64,
    /// The payment.
    pub forwarded: Forwarded,
}

impl CrossShardCredit {
    /// The asset.
    #[must_use]
    pub fn asset(&self) -> Asset {
        match &self.forwarded {
            Forwarded::Payment(payment) => payment.asset,
            Forwarded::Outputs(part) => part.asset,
        }
    }

    /// The number of payments.
    fn len(&self) -> usize {
        match &self.forwarded {
            Forwarded::Payment(_) => 1,
            Forwarded::Outputs(part) => part.outputs.len(),
        }
    }

    /// Its payments, in order.
    pub fn receipts(&self) -> impl Iterator<Item = Receipt> + use<'_> {
        let (payment, part) = match &self.forwarded {
            Forwarded::Payment(payment) => (Some(payment), None),
            Forwarded::Outputs(part) => (None, Some(part)),
        };
        let payment = payment.map(|payment| Receipt { payment: payment.clone(), output: None });
        let outputs = part.into_iter().flat_map(|part| {
            let ShardOutputs { sender, asset, sequence, .. } = **part;
            part.outputs.iter().map(move |(number, output)| {
                let Output { recipient, amount, memo } = *output;
                let payment = Payment { sender, recipient, asset, amount, sequence, memo };
                Receipt { payment, output: Some(*number) }
            })
        });
        payment.into_iter().chain(outputs)
    }
}

/// Marks, in place of a credit's number, that outputs of a payout follow. No number gets that high.
const OUTPUTS_FOLLOW: u64 = 1 << 63;

impl BorshSerialize for CrossShardCredit {
    fn serialize<W: Write>(&self, writer: &mut W) -> std::io::Result<()> {
        self.from.serialize(writer)?;
        match &self.forwarded {
            Forwarded::Payment(payment) => {
                self.number.serialize(writer)?;
                payment.serialize(writer)
            }
            Forwarded::Outputs(part) => {
                (self.number | OUTPUTS_FOLLOW).serialize(writer)?;
                part.serialize(writer)
            }
        }
    }
}

impl BorshDeserialize for CrossShardCredit {
    fn deserialize_reader<R: Read>(reader: &mut R) -> std::io::Result<Self> {
        let (from, number) = (ShardId::deserialize_reader(reader)?, u64::deserialize_reader(reader)?);
        let forwarded = if number & OUTPUTS_FOLLOW == 0 {
            Forwarded::Payment(Payment::deserialize_reader(reader)?)
        } else {
            Forwarded::Outputs(Arc::deserialize_reader(reader)?)
        };
        Ok(Self { from, number: number & !OUTPUTS_FOLLOW, forwarded })
    }
}

/// A credit from another shard, and where its payments stand in the histories of their recipients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedCredit {
    /// The credit.
    pub credit: CrossShardCredit,
    /// For each of its payments, the link in the recipient's history of received payments.
    pub received: Vec<Link>,
}

/// The credit, and as many links as it has payments.
impl BorshSerialize for AppliedCredit {
    fn serialize<W: Write>(&self, writer: &mut W) -> std::io::Result<()> {
        self.credit.serialize(writer)?;
        self.received.iter().try_for_each(|link| link.serialize(writer))
    }
}

impl BorshDeserialize for AppliedCredit {
    fn deserialize_reader<R: Read>(reader: &mut R) -> std::io::Result<Self> {
        let credit = CrossShardCredit::deserialize_reader(reader)?;
        let received: std::io::Result<_> = (0..credit.len()).map(|_| Link::deserialize_reader(reader)).collect();
        Ok(Self { credit, received: received? })
    }
}

/// The destination of a confirmed certificate's value.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Effect {
    /// To an account of the same shard.
    Credited {
        /// The link in the recipient's history of received certificates.
        received: Link,
    },
    /// Into the outbox for another shard.
    Forwarded {
        /// The recipient's shard.
        to: ShardId,
        /// The number of the credit among those between the two shards.
        number: u64,
    },
    /// Redeemed to the Primary.
    Redeemed {
        /// The link in the shard's redemption log.
        link: Link,
    },
    /// To the recipients of a payout.
    PaidOut {
        /// The payout's digest.
        digest: Digest,
        /// For each output, where it went.
        outputs: Vec<Destination>,
    },
    /// Nowhere: a redemption whose number the contract spent otherwise stays in the account.
    Kept,
    /// Nowhere: the base of the journal includes it.
    Included,
}

/// The destination of one output of a payout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Destination {
    /// To an account of the same shard.
    Credited {
        /// The link in the recipient's history of received payments.
        received: Link,
    },
    /// Into the outbox for another shard, with all outputs that go there.
    Forwarded {
        /// The recipient's shard.
        to: ShardId,
        /// The number of the credit among those between the two shards.
        number: u64,
    },
}

/// A history that records are entries of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// The number that an account sent.
    Sent,
    /// The number that this account received.
    Received(AccountId),
    /// The deposits of an account.
    Deposits,
    /// The shard's redemption log.
    Redemptions,
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
        /// The link in the sender's history of sent certificates.
        sent: Link,
        /// The destination of the value.
        effect: Effect,
    },
    /// A credit from another shard arrives.
    Credit(AppliedCredit),
    /// The shard follows the Primary one step further.
    Synchronization {
        /// The step.
        order: SynchronizationOrder,
        /// The link in the recipient's history of deposits; present exactly if there is a deposit.
        deposits: Option<Link>,
    },
    /// The shard follows the Primary over an event about one number.
    Unlock(UnlockEvent),
    /// A certificate of a number that may not be executed now is kept, to be attested.
    Seen {
        /// The certificate, written here; again where it is executed later.
        certificate: Arc<Certificate>,
    },
    /// The authority votes to void a frozen number.
    VoidVoted {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The epoch that the vote is for.
        epoch: Epoch,
    },
    /// The account steps over its next number, which the contract voided.
    Void {
        /// The account.
        account: AccountId,
        /// In the account's history of sent certificates.
        sent: Link,
    },
    /// The shard follows the Primary over the installation of a committee.
    Installation(Installation),
    /// What the journal begins with, in place of records that a checkpoint of the committee includes.
    Base(Box<Base>),
    /// The shard gives no vote under the epoch any more, nor under an earlier one.
    Closed {
        /// The epoch.
        epoch: Epoch,
    },
    /// A Closing of the epoch before the one that is joined reports this order of a number that is not taken here: no
    /// other one gets a vote. With a second one of the same number, none does.
    Inherited {
        /// The order.
        order: Arc<TransferOrder>,
        /// Its digest.
        digest: Digest,
    },
    /// The shard has taken over what a quorum's Closings of the epoch before report.
    Joined {
        /// The epoch in which it votes from now on.
        epoch: Epoch,
    },
    /// The authority votes for a private order.
    PrivateLock(Arc<PrivateLock>),
    /// A private certificate is executed.
    PrivateConfirmation(Box<PrivateConfirmation>),
    /// A private certificate that may not be executed now is kept, to be attested.
    PrivateSeen(PrivateSeen),
    /// A Closing of the epoch before the one that is joined reports this private order: none that takes one of its numbers
    /// gets a vote beside it.
    PrivateInherited(Arc<PrivateLock>),
}

impl Record {
    /// The credits that a confirmation puts into outboxes: for which shard each is, and its number.
    #[must_use]
    pub fn forwarded(&self) -> Vec<(ShardId, u64)> {
        match self {
            Self::Confirmation { effect: Effect::Forwarded { to, number }, .. } => vec![(*to, *number)],
            Self::PrivateConfirmation(confirmation) => match &confirmation.effect {
                Some(Effect::Forwarded { to, number }) => vec![(*to, *number)],
                _ => Vec::new(),
            },
            Self::Confirmation { effect: Effect::PaidOut { outputs, .. }, .. } => {
                let forwarded = outputs.iter().filter_map(|output| match output {
                    Destination::Forwarded { to, number } => Some((*to, *number)),
                    Destination::Credited { .. } => None,
                });
                forwarded.collect::<BTreeMap<_, _>>().into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The accounts of this shard whose state the record changes. One that is paid several times may be repeated.
    #[must_use]
    pub fn accounts(&self) -> Vec<AccountId> {
        match self {
            Self::Lock { order, .. } => vec![order.transfer.sender()],
            Self::Confirmation { certificate, .. } => {
                let sender = certificate.order.transfer.sender();
                std::iter::once(sender).chain(self.received().map(|(paid, _)| paid.payment.recipient)).collect()
            }
            Self::Credit(_) => self.received().map(|(paid, _)| paid.payment.recipient).collect(),
            Self::Synchronization { order, .. } => order.deposit.iter().map(|deposit| deposit.recipient).collect(),
            Self::Unlock(event) => vec![event.account],
            Self::Seen { certificate } => vec![certificate.order.transfer.sender()],
            Self::VoidVoted { account, .. } | Self::Void { account, .. } => vec![*account],
            Self::Installation(_) | Self::Closed { .. } | Self::Inherited { .. } | Self::Joined { .. } => Vec::new(),
            // A ledger has them.
            Self::PrivateLock(_) | Self::PrivateSeen(_) | Self::PrivateInherited(_) => Vec::new(),
            Self::PrivateConfirmation(confirmation) => {
                let PrivateConfirmation { certificate, effect, .. } = &**confirmation;
                let taken = certificate.order.transfer.taken().into_iter().map(|(account, _)| account);
                let moves = matches!(effect, Some(Effect::Credited { .. } | Effect::Forwarded { .. }));
                let pool = moves.then_some(AccountId::PRIVATE_POOL);
                taken.chain(pool).chain(self.received().map(|(paid, _)| paid.payment.recipient)).collect()
            }
            Self::Base(base) => match &**base {
                Base::Account(base) => vec![base.account],
                Base::Balances { account, .. } => vec![*account],
                Base::Received { receipt, .. } => vec![receipt.payment.recipient],
                Base::Checkpoint(_) | Base::Totals(_) | Base::Unpaid { .. } | Base::Number { .. } => Vec::new(),
            },
        }
    }

    /// The payments that the record credits to accounts of this shard, in order, each with its link in the recipient's
    /// history.
    pub fn received(&self) -> impl Iterator<Item = (Receipt, Link)> + use<'_> {
        let (confirmed, credited) = match self {
            Self::Confirmation { certificate, effect, .. } => (Some((certificate, effect)), None),
            Self::Credit(applied) => (None, Some(applied)),
            _ => (None, None),
        };
        let kept = match self {
            Self::Base(base) => match &**base {
                Base::Received { receipt, link, .. } => Some((receipt.clone(), *link)),
                _ => None,
            },
            Self::PrivateConfirmation(confirmation) => match confirmation.effect {
                Some(Effect::Credited { received }) => {
                    confirmation.certificate.order.transfer.withdrawal().map(|receipt| (receipt, received))
                }
                _ => None,
            },
            _ => None,
        };
        let confirmed = confirmed.into_iter().flat_map(|(certificate, effect)| {
            let link = |at: usize| match effect {
                Effect::Credited { received } => Some(*received),
                Effect::PaidOut { outputs, .. } => match outputs.get(at) {
                    Some(Destination::Credited { received }) => Some(*received),
                    _ => None,
                },
                _ => None,
            };
            let receipts = certificate.order.transfer.receipts().enumerate();
            receipts.filter_map(move |(at, receipt)| Some((receipt, link(at)?)))
        });
        let credited = credited
            .into_iter()
            .flat_map(|AppliedCredit { credit, received }| credit.receipts().zip(received.iter().copied()));
        confirmed.chain(credited).chain(kept)
    }

    /// The payment that is entry `number` in what `account` received, with its link.
    fn entry_received(&self, account: AccountId, number: u64) -> Option<(Receipt, Link)> {
        self.received().find(|(paid, link)| paid.payment.recipient == account && link.number == number)
    }

    /// The payment that is entry `number` in what `account` received, if it is in this record.
    #[must_use]
    pub fn received_by(&self, account: AccountId, number: u64) -> Option<Receipt> {
        self.entry_received(account, number).map(|(receipt, _)| receipt)
    }

    /// The link of entry `number` of a history, where that entry is in this record, which stands at `position`.
    #[must_use]
    pub fn link(&self, chain: Chain, number: u64, position: JournalPosition) -> Option<Link> {
        let link = match (chain, self) {
            (Chain::Sent, Self::Confirmation { sent, .. } | Self::Void { sent, .. }) => Some(*sent),
            // Of two accounts; number 0 has the same link in both.
            (Chain::Sent, Self::PrivateConfirmation(confirmation)) => {
                confirmation.sent.into_iter().find(|link| link.number == number)
            }
            (Chain::Received(account), _) => self.entry_received(account, number).map(|(_, link)| link),
            (Chain::Deposits, Self::Synchronization { deposits, .. }) => *deposits,
            (Chain::Redemptions, Self::Confirmation { effect: Effect::Redeemed { link }, .. }) => Some(*link),
            (Chain::Redemptions, Self::Base(base)) => match &**base {
                Base::Unpaid { logged: Some((_, link)), .. } => Some(*link),
                _ => None,
            },
            _ => None,
        };
        link.filter(|link| link.number == number).map(|link| link.standing_at(position))
    }

    /// The digest of the payout that the record executes or credits, if it is one. A withdrawal of private payments has the
    /// form of one.
    #[must_use]
    pub fn payout_digest(&self) -> Option<Digest> {
        match self {
            Self::Confirmation { effect: Effect::PaidOut { digest, .. }, .. } => Some(*digest),
            Self::PrivateConfirmation(confirmation) if confirmation.effect.is_some() => Some(confirmation.digest),
            Self::Credit(AppliedCredit { credit, .. }) => match &credit.forwarded {
                Forwarded::Outputs(part) => Some(part.digest),
                Forwarded::Payment(_) => None,
            },
            Self::Base(base) => match &**base {
                Base::Received { payout, .. } => *payout,
                _ => None,
            },
            _ => None,
        }
    }

    /// The certificate that stands in the record, of an executed order.
    #[must_use]
    pub fn certificate(&self) -> Option<&Arc<Certificate>> {
        match self {
            Self::Confirmation { certificate, .. } => Some(certificate),
            Self::Base(base) => match &**base {
                Base::Unpaid { logged: Some((certificate, _)), .. } => Some(certificate),
                _ => None,
            },
            _ => None,
        }
    }

    /// What is pruned of a history, if its pruned entries point to this record.
    #[must_use]
    pub fn pruned(&self, chain: Chain) -> Option<Pruned> {
        match self {
            Self::Base(base) => base.pruned(chain),
            _ => None,
        }
    }
}
