//! What a rebuilt checkpoint is made of, and what is missing. Everybody reads it before the checkpoint counts.

use std::collections::BTreeSet;
use std::fmt;

use fastpay_core::checkpoint::{Leaf, LeftOut, SegmentEntry};
use fastpay_core::{AccountId, Amount, Asset, Balance, Digest, Domain, Epoch, Redemption, SequenceNumber};
use serde::Serialize;

use super::certificates::Invalid;
use crate::authority::certification::{ArchiveError, Base, Computed};

/// A redemption that is debited without its owner's order, because the contract paid or queued it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PaidOrder {
    /// The account.
    pub account: AccountId,
    /// The number, which is taken.
    pub sequence: SequenceNumber,
    /// The asset.
    pub asset: Asset,
    /// The amount.
    pub amount: Amount,
}

/// A redemption that the contract queued with keys that were out, and that is not debited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedOrder {
    /// The account.
    pub account: AccountId,
    /// The number, which is open unless another order has it.
    pub sequence: SequenceNumber,
    /// The redemption's digest.
    pub digest: Digest,
}

/// An account for which the contract paid more than is known that it held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Debt {
    /// The account.
    pub account: AccountId,
    /// The asset.
    pub asset: Asset,
    /// Below zero.
    pub balance: Balance,
}

/// A valid certificate that does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOutOrder {
    /// The sender.
    pub account: AccountId,
    /// Its number.
    pub sequence: SequenceNumber,
    /// The order's digest.
    pub digest: Digest,
    /// Why.
    pub reason: String,
}

/// The data folders of different members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Folders {
    /// How many were read that have all that their members executed since the base.
    pub read: u64,
    /// The quorum of the newest committee that ended: with so many, all that was settled in its epoch is known.
    pub quorum: u64,
}

/// See the module header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The digest that the new committee adopts.
    pub checkpoint: Digest,
    /// The checkpoint's number.
    pub number: u64,
    /// The number of the certified checkpoint from which it is made; 0 for the first committee alone.
    pub base: u64,
    /// The epoch of the new committee.
    pub epoch: Epoch,
    /// The index of the installation, the newest event of the contract that is included.
    pub up_to: u64,
    /// What the contract says that this epoch has adopted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopted: Option<Digest>,
    /// The accounts of which numbers are included.
    pub accounts: u64,
    /// The members whose data folders were read.
    pub folders: Folders,
    /// The valid certificates beyond the base.
    pub certificates: u64,
    /// The orders beyond the base that count.
    pub orders: u64,
    /// What is debited without an order.
    pub paid: Vec<PaidOrder>,
    /// What the contract has queued and pays only with votes of the new committee, which has no order of it.
    pub queued: Vec<QueuedOrder>,
    /// The accounts that owe.
    pub owing: Vec<Debt>,
    /// The valid certificates that do not count.
    pub left_out: Vec<LeftOutOrder>,
    /// The number of certificates that are not valid.
    pub invalid: u64,
    /// The place and defect of the first of them.
    pub invalid_named: Vec<String>,
}

/// What a report says beside the computed checkpoint.
pub(super) struct Made {
    /// The valid certificates beyond the base.
    pub certificates: u64,
    pub paid: Vec<Redemption>,
    pub queued: Vec<(AccountId, SequenceNumber, Digest)>,
    pub left_out: BTreeSet<LeftOut>,
    pub invalid: Invalid,
}

impl Report {
    pub(super) fn new(
        computed: &Computed,
        domain: &Domain,
        (base, adopted, folders): (&Base, Option<Digest>, Folders),
        Made { certificates, paid, queued, left_out, invalid }: Made,
    ) -> Result<Self, ArchiveError> {
        let checkpoint = &computed.checkpoint;
        let paid = paid.into_iter().map(|Redemption { sender, sequence, asset, amount, .. }| PaidOrder {
            account: sender,
            sequence,
            asset,
            amount,
        });
        let queued = queued.into_iter().map(|(account, sequence, digest)| QueuedOrder { account, sequence, digest });
        // Also of accounts that owe since an earlier recovery.
        let owing = base.read(|stored| {
            let mut owing = Vec::new();
            for leaf in computed.part.merged(stored)? {
                match leaf? {
                    Leaf::Balance(account, asset, balance) if balance < Balance::ZERO => {
                        owing.push(Debt { account, asset, balance });
                    }
                    _ => {}
                }
            }
            Ok(owing)
        })?;
        let left_out = left_out.into_iter().map(|LeftOut { account, sequence, digest, reason }| LeftOutOrder {
            account,
            sequence,
            digest,
            reason: reason.to_string(),
        });
        let orders = computed.segment.entries.iter().filter(|entry| matches!(entry, SegmentEntry::Executed(_)));
        Ok(Self {
            checkpoint: domain.checkpoint_digest(checkpoint),
            number: checkpoint.number,
            base: base.checkpoint.number,
            epoch: checkpoint.epoch,
            up_to: checkpoint.up_to.0,
            adopted,
            accounts: computed.state.accounts,
            folders,
            certificates,
            orders: orders.count() as u64,
            paid: paid.collect(),
            queued: queued.collect(),
            owing,
            left_out: left_out.collect(),
            invalid: invalid.count,
            invalid_named: invalid.named,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "checkpoint {} of epoch {}, number {}", self.checkpoint, self.epoch, self.number)?;
        writeln!(
            f,
            "made from checkpoint {}, events up to {}, and {} certificates, of which {} count",
            self.base, self.up_to, self.certificates, self.orders
        )?;
        let Folders { read, quorum } = self.folders;
        let settled =
            if read < quorum { "some of what was settled may be missing" } else { "all that was settled is known" };
        writeln!(f, "data folders of {read} members, where {quorum} are a quorum: {settled}")?;
        for PaidOrder { account, sequence, asset, amount } in &self.paid {
            writeln!(f, "debited without an order: {amount} of {asset} from {account}, number {sequence}")?;
        }
        for QueuedOrder { account, sequence, digest } in &self.queued {
            writeln!(
                f,
                "queued by keys that were out, and not debited: {digest}, number {sequence} of {account}; release it, unless \
                 its owner orders it again"
            )?;
        }
        for Debt { account, asset, balance } in &self.owing {
            writeln!(f, "owes: {account} has {balance} of {asset}; certificates that paid it are missing")?;
        }
        for LeftOutOrder { account, sequence, reason, .. } in &self.left_out {
            writeln!(f, "left out: number {sequence} of {account}: {reason}")?;
        }
        for invalid in &self.invalid_named {
            writeln!(f, "invalid: {invalid}")?;
        }
        match self.adopted {
            Some(adopted) if adopted == self.checkpoint => write!(f, "the contract has adopted it"),
            Some(adopted) => write!(f, "the contract has adopted another one: {adopted}"),
            None => write!(f, "the contract has adopted none yet"),
        }
    }
}
