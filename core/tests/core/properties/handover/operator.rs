//! Somebody who runs an authority: its folder outlives its keys.

use std::collections::BTreeMap;
use std::num::NonZero;

use fastpay_core::handover::Stale;
use fastpay_core::{
    AccountId, Authority, AuthorityKeys, Deposit, Epoch, Installation, Record, ShardId, ShardLayout,
    SynchronizationOrder, TransactionIndex, TransferOrder,
};
use fastpay_testkit::{TestShard, authority_keys};

/// A number of an account.
pub type Slot = (AccountId, u64);

/// An event of the contract's order: a deposit, or the installation of the next epoch.
#[derive(Clone)]
pub enum Event {
    Deposit(Deposit),
    Installed(Epoch),
}

fn empty() -> TestShard {
    TestShard::new(ShardId(0), ShardLayout::new(NonZero::new(1).expect("one is not zero")), true)
}

/// See the module header. An operator is honest in epochs in which its name is not among the faulty.
pub struct Operator {
    pub shard: TestShard,
    pub keys: AuthorityKeys,
    /// Signs for this epoch: its node takes up epochs apart from its shard.
    pub signs_in: Epoch,
    /// The epochs in which its folder began: the first one, or those that it joined.
    pub begun: Vec<Epoch>,
    /// Whether its folder was restored from a copy.
    pub stale: Stale,
    /// An older copy of its folder.
    pub copy: Option<TestShard>,
}

impl Operator {
    pub fn new(key: u64) -> Self {
        let shard = empty();
        let (keys, signs_in, begun, stale) = (authority_keys(key), Epoch(0), Vec::new(), Stale::No);
        Self { shard, keys, signs_in, begun, stale, copy: None }
    }

    /// Its folder is lost in this epoch. It goes on with the copy, or with an empty folder.
    pub fn lose_folder(&mut self, epoch: Epoch) {
        self.shard = self.copy.take().unwrap_or_else(empty);
        self.stale = Stale::UpTo(epoch);
    }

    pub fn public(&self) -> Authority {
        self.keys.public()
    }

    /// The newest epoch whose installation it has followed.
    pub fn epoch(&self) -> Epoch {
        self.shard.ledger().unlocks.epoch()
    }

    /// Follows the contract's order to its end.
    pub fn follow(&mut self, events: &[Event]) {
        let from = usize::try_from(self.shard.ledger().synchronized.0).expect("few events");
        for (at, event) in events.iter().enumerate().skip(from) {
            let (after, index) = (TransactionIndex(at as u64), TransactionIndex(at as u64 + 1));
            let followed = match event.clone() {
                Event::Deposit(deposit) => {
                    self.shard.synchronize(&SynchronizationOrder { after, up_to: index, deposit: Some(deposit) })
                }
                Event::Installed(epoch) => {
                    let (compromised_since, voidable_at) = (epoch, 0);
                    let installation = Installation { after, index, epoch, compromised_since, voidable_at };
                    self.shard.follow_installation(&installation)
                }
            };
            followed.expect("events come in their order");
        }
    }

    /// The orders that it executed, by their place.
    pub fn executed(&self) -> BTreeMap<Slot, TransferOrder> {
        let records = self.shard.journal().records().filter_map(|(_, record)| match record {
            Record::Confirmation { certificate, .. } => Some(certificate),
            _ => None,
        });
        let slot = |order: &TransferOrder| (order.transfer.sender(), order.transfer.sequence().0);
        records.map(|certificate| (slot(&certificate.order), certificate.order.clone())).collect()
    }
}
