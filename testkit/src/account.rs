//! Account owners and the transfers that they sign.

use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Domain, Memo, Output, Outputs, Payment, Payout, PrimaryAddress, Redemption,
    SequenceNumber, Transfer, TransferOrder,
};

use crate::secret;

/// The owner of an account.
#[derive(Clone, Debug)]
pub struct TestAccount {
    /// The owner's key.
    pub key: AccountKey,
}

impl TestAccount {
    /// The Ed25519 account with this number.
    #[must_use]
    pub fn ed25519(number: u64) -> Self {
        Self { key: AccountKey::ed25519(secret(1, number)) }
    }

    /// The Ethereum account with this number.
    #[must_use]
    pub fn ethereum(number: u64) -> Self {
        Self { key: AccountKey::ethereum(secret(2, number)).expect("test secrets are valid keys") }
    }

    /// The account with this number: Ed25519 if it is even, Ethereum if it is odd.
    #[must_use]
    pub fn numbered(number: u64) -> Self {
        if number.is_multiple_of(2) { Self::ed25519(number) } else { Self::ethereum(number) }
    }

    /// The account's address.
    #[must_use]
    pub fn id(&self) -> AccountId {
        self.key.account()
    }

    /// Signs a transfer as an order.
    #[must_use]
    pub fn sign(&self, domain: &Domain, transfer: impl Into<Transfer>) -> TransferOrder {
        self.key.order(domain, transfer.into())
    }
}

/// The key of account 0.
#[must_use]
pub fn alice() -> AccountKey {
    TestAccount::numbered(0).key
}

/// The key of account 1.
#[must_use]
pub fn bob() -> AccountKey {
    TestAccount::numbered(1).key
}

/// The key of account 2.
#[must_use]
pub fn carol() -> AccountKey {
    TestAccount::numbered(2).key
}

/// A payment of ETH without memo. Other fields: `Payment { memo, ..payment(…) }`.
#[must_use]
pub fn payment(sender: AccountId, recipient: AccountId, amount: u128, sequence: u64) -> Payment {
    Payment {
        sender,
        recipient,
        asset: Asset::ETHER,
        amount: Amount(amount),
        sequence: SequenceNumber(sequence),
        memo: Memo::ZERO,
    }
}

/// A payout of ETH without memos. Other fields: `Payout { memo, ..payout(…) }`.
///
/// # Panics
/// If the outputs do not form a valid payout.
#[must_use]
pub fn payout(sender: AccountId, outputs: &[(AccountId, u128)], sequence: u64) -> Payout {
    let output = |(recipient, amount): &(AccountId, u128)| Output {
        recipient: *recipient,
        amount: Amount(*amount),
        memo: Memo::ZERO,
    };
    let outputs = Outputs::new(outputs.iter().map(output).collect()).expect("outputs of a payout");
    Payout { sender, asset: Asset::ETHER, outputs, sequence: SequenceNumber(sequence), memo: Memo::ZERO }
}

/// A redemption of ETH without fee and memo. Other fields: `Redemption { fee, ..redemption(…) }`.
#[must_use]
pub fn redemption(sender: AccountId, recipient: PrimaryAddress, amount: u128, sequence: u64) -> Redemption {
    Redemption {
        sender,
        recipient,
        asset: Asset::ETHER,
        amount: Amount(amount),
        fee: Amount::ZERO,
        sequence: SequenceNumber(sequence),
        memo: Memo::ZERO,
    }
}
