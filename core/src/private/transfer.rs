//! A private transfer, and the rules that it can break all by itself.

use alloy_primitives::{B256, Keccak256, hex};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::amount::{Amount, Asset, Memo, SequenceNumber};
use crate::identity::AccountId;
use crate::statement::Domain;
use crate::transfer::{Payment, Receipt};

/// The order of the scalar field of BLS12-381, in big-endian bytes.
const MODULUS: [u8; 32] = hex!("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001");

/// Whether the bytes are a field element in canonical form: a big-endian number below the field's order.
#[must_use]
pub fn is_element(bytes: &[u8; 32]) -> bool {
    *bytes < MODULUS
}

/// Whether a payment to the pool with this memo makes a coin. The memo is the coin's inner part, a hash: an element
/// other than 0, which wallets write where the user gives no memo.
#[must_use]
pub fn is_deposit_memo(memo: &Memo) -> bool {
    *memo != Memo::ZERO && is_element(&memo.0)
}

/// What a transfer shows in place of the account or the coin that it replaces. Each is spent once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Nullifier(pub B256);

impl Nullifier {
    /// The account whose numbers the nullifier takes: keccak256 of `fastpay/nullifier` and its bytes, with the last four
    /// bytes of [`AccountId::PRIVATE_POOL`], so that all of them are in the pool's shard. It has no key.
    #[must_use]
    pub fn account(&self) -> AccountId {
        let mut hash = Keccak256::new();
        hash.update(b"fastpay/nullifier");
        hash.update(self.0);
        let mut account = hash.finalize().0;
        if let (Some(tail), Some(pool)) = (account.last_chunk_mut::<4>(), AccountId::PRIVATE_POOL.0.last_chunk()) {
            *tail = *pool;
        }
        AccountId(account)
    }
}

/// A private transfer. Owner, payee and the amount paid are hidden in the commitments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct PrivateTransfer {
    /// The version of the committee's coin keys under which it is proved.
    pub committee: u64,
    /// The version of the rules under which it is proved.
    pub rules: u64,
    /// The asset.
    pub asset: Asset,
    /// The nullifier of the account that is replaced.
    pub account_spent: Nullifier,
    /// The number that the transfer takes of that nullifier: 0, or the one after those that the contract voided.
    pub sequence: SequenceNumber,
    /// The nullifier of the coin that is claimed.
    pub coin_spent: Nullifier,
    /// The commitment of the new account.
    pub account: B256,
    /// The commitment of the coin that is made.
    pub coin: B256,
    /// The amount that leaves the pool, in the asset's smallest unit.
    pub amount_out: Amount,
    /// The account that gets it; zero if nothing leaves.
    pub recipient: AccountId,
    /// A memo for the recipient; zero if nothing leaves.
    pub memo: Memo,
    /// The hash of the two notes: [`crate::private::notes_hash`].
    pub notes_hash: Digest,
}

impl PrivateTransfer {
    /// The numbers that it takes, both or neither: the account nullifier's and the coin nullifier's, which has one.
    #[must_use]
    pub fn taken(&self) -> [(AccountId, SequenceNumber); 2] {
        [(self.account_spent.account(), self.sequence), (self.coin_spent.account(), SequenceNumber(0))]
    }

    /// The payment by which an amount leaves the pool; none if nothing does. Its name is the number of the account
    /// nullifier, which is taken once.
    #[must_use]
    pub fn withdrawal(&self) -> Option<Receipt> {
        let Self { asset, recipient, amount_out: amount, memo, .. } = *self;
        let [(sender, sequence), _] = self.taken();
        let payment = Payment { sender, recipient, asset, amount, sequence, memo };
        (amount != Amount::ZERO).then_some(Receipt { payment, output: Some(0) })
    }

    /// The rules that a transfer can break all by itself.
    pub(crate) fn check(&self, domain: &Domain) -> Result<(), InvalidPrivateTransfer> {
        let Self { account_spent, coin_spent, account, coin, .. } = self;
        if ![account_spent.0, coin_spent.0, *account, *coin].iter().all(|bytes| is_element(&bytes.0)) {
            return Err(InvalidPrivateTransfer::NotAnElement);
        }
        if account_spent.account() == coin_spent.account() {
            return Err(InvalidPrivateTransfer::EqualNullifiers);
        }
        if self.amount_out == Amount::ZERO {
            let is_empty = self.recipient == AccountId::ZERO && self.memo == Memo::ZERO;
            return if is_empty { Ok(()) } else { Err(InvalidPrivateTransfer::NothingLeaves) };
        }
        let nobodys = [AccountId::ZERO, AccountId::PRIVATE_POOL, AccountId::from_ethereum(domain.contract())];
        if nobodys.contains(&self.recipient) { Err(InvalidPrivateTransfer::Recipient) } else { Ok(()) }
    }
}

/// A transfer that nobody may order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPrivateTransfer {
    /// A nullifier or a commitment is no field element in canonical form: it would be another's second encoding.
    #[error("a nullifier or commitment is not a field element in canonical form")]
    NotAnElement,
    /// Account and coin have the same nullifier, or nullifiers with one account.
    #[error("the nullifiers of account and coin are the same")]
    EqualNullifiers,
    /// A recipient or a memo, where nothing leaves the pool.
    #[error("nothing leaves the pool, so recipient and memo must be zero")]
    NothingLeaves,
    /// Money leaves the pool for the pool, the zero address or the contract, none of which can spend.
    #[error("the recipient cannot spend: it is the pool, the zero address or the contract")]
    Recipient,
    /// The notes are others than those that were ordered.
    #[error("the notes are not those that the transfer names")]
    Notes,
}
