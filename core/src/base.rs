//! The base of a journal: what stands at its beginning in place of the records that a checkpoint of the committee made
//! needless. `fastpay-node rebase` writes it; docs/PROTOCOL.md, "Checkpoints", has what it keeps and why.
//!
//! ```text
//!  journal = Checkpoint ‖ Totals* ‖ { Account ‖ Balances* }* ‖ { Received, Unpaid, certificates executed beyond the cut }* ‖ Number* ‖ locks ‖ …
//! ```
//! Accounts hold the state after everything that the authority had executed, so certificates that follow in the base
//! move no value again ([`crate::Effect::Included`]).
//!
//! Invariant: what is before the base is named as pruned, and never as absent. The entries of a history that were pruned
//! all point to the base record of their account.

use std::collections::BTreeMap;
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::account::Balances;
use crate::amount::{Asset, Epoch, SequenceNumber, TransactionIndex};
use crate::certificate::Certificate;
use crate::history::{JournalPosition, Link};
use crate::identity::AccountId;
use crate::ledger::AssetTotals;
use crate::record::Chain;
use crate::transfer::{Receipt, Redemption};
use crate::unlock::Unlock;

/// The most assets in one record of a base. Anybody can make tokens and deposit them, and a record of a journal is
/// bounded: what a shard or an account holds of more assets goes on in the next record.
pub const ASSETS_PER_RECORD_MAX: usize = 4_000;

/// A record of a journal's base.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Base {
    /// The shard's state apart from accounts and numbers. The first record of the journal.
    Checkpoint(BaseLedger),
    /// The shard's totals of more assets, for auditors.
    Totals(Vec<(Asset, AssetTotals)>),
    /// The state of an account, and how many entries of each of its histories are pruned.
    Account(BaseAccount),
    /// The account's balances of more assets.
    Balances {
        /// The account.
        account: AccountId,
        /// The balances.
        balances: Balances,
    },
    /// A payment that an account received and that its history still lists.
    Received {
        /// The payment, to the account whose entry this is.
        receipt: Receipt,
        /// The digest of the payout of which it is an output, if it is one.
        payout: Option<Digest>,
        /// The link in the recipient's history of received payments.
        link: Link,
    },
    /// An executed redemption that the contract has not paid.
    Unpaid {
        /// The redemption.
        redemption: Redemption,
        /// Its certificate, and the link in the shard's redemption log. None if this authority has not executed it.
        logged: Option<(Arc<Certificate>, Link)>,
    },
    /// What is known of a number, as [`crate::ledger::Unlocks`] keeps it.
    Number {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// What is known of it.
        unlock: Unlock,
    },
}

/// A shard's ledger at its base.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct BaseLedger {
    /// The number of the committee's checkpoint.
    pub number: u64,
    /// The checkpoint's digest.
    pub checkpoint: Digest,
    /// The number of the data folder's generation.
    pub generation: u64,
    /// All events of the contract up to this index are applied.
    pub synchronized: TransactionIndex,
    /// The epoch of the newest of these events.
    pub epoch: Epoch,
    /// Earlier epochs whose keys were out: from the first on, below the second.
    pub compromised: Vec<(Epoch, Epoch)>,
    /// How many entries of the redemption log are pruned.
    pub redemptions: u64,
}

/// An account at the base of its shard's journal.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct BaseAccount {
    /// The account.
    pub account: AccountId,
    /// The number of the committee's checkpoint.
    pub checkpoint: u64,
    /// V: the numbers below are pruned.
    pub next: SequenceNumber,
    /// How many received payments are pruned from its list.
    pub received: u64,
    /// How many deposits are pruned from its list.
    pub deposits: u64,
    /// Its balances after everything that the authority had executed: of the first [`ASSETS_PER_RECORD_MAX`] assets.
    pub balances: Balances,
}

/// What a shard's ledger remembers of the base of its journal.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LedgerBase {
    /// The number of the committee's checkpoint.
    pub number: u64,
    /// The checkpoint's digest.
    pub checkpoint: Digest,
    /// The number of the data folder's generation.
    pub generation: u64,
    /// The deposits up to this index are pruned.
    pub synchronized: TransactionIndex,
    /// The redemptions that the contract had not paid at the base.
    pub unpaid: BTreeMap<(AccountId, SequenceNumber), Unpaid>,
}

/// An executed redemption that the contract had not paid at the base.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Unpaid {
    /// The redemption.
    pub redemption: Redemption,
    /// The redemption's record, if the certificate stands in it.
    pub certificate: Option<JournalPosition>,
}

/// An entry of a history is pruned: it is in the archive of a checkpoint of the committee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this authority keeps entries from number {first} on; earlier ones are in the committee's archive, up to checkpoint \
     {checkpoint}"
)]
pub struct Pruned {
    /// The number of the checkpoint up to which the archive has what is pruned.
    pub checkpoint: u64,
    /// The first entry of the history that is not pruned.
    pub first: u64,
}

impl Base {
    /// What is pruned of a history, if its pruned entries point to this record.
    #[must_use]
    pub fn pruned(&self, chain: Chain) -> Option<Pruned> {
        match (self, chain) {
            (Self::Checkpoint(ledger), Chain::Redemptions) => {
                Some(Pruned { checkpoint: ledger.number, first: ledger.redemptions })
            }
            (Self::Account(account), chain) => {
                let first = match chain {
                    Chain::Sent => account.next.0,
                    Chain::Received(_) => account.received,
                    Chain::Deposits => account.deposits,
                    Chain::Redemptions => return None,
                };
                Some(Pruned { checkpoint: account.checkpoint, first })
            }
            _ => None,
        }
    }
}
