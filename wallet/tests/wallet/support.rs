//! Wallets of fake authorities.

use std::path::Path;

use fastpay_core::{AccountId, AccountKey, Amount, Asset, Memo, SequenceNumber, TransferOrder};
use fastpay_testkit::fake::{FakeCommittee, options};
use fastpay_wallet::folder::Folder;
use fastpay_wallet::{Intent, Wallet};

/// What a wallet does with a committee.
pub trait Wallets {
    fn wallet(&self, home: &Path) -> Wallet;
    fn order(&self, key: &AccountKey, intent: &Intent, sequence: u64) -> TransferOrder;
}

impl Wallets for FakeCommittee {
    fn wallet(&self, home: &Path) -> Wallet {
        Wallet::new(Folder::new(home), self.network(), options())
    }

    fn order(&self, key: &AccountKey, intent: &Intent, sequence: u64) -> TransferOrder {
        key.order(&self.committee.domain, intent.transfer(key.account(), SequenceNumber(sequence)))
    }
}

pub fn pay(recipient: AccountId, amount: u128) -> Intent {
    Intent::Pay { recipient, asset: Asset::ETHER, amount: Amount(amount), memo: Memo::ZERO }
}
