//! A committee without a Primary [FP §3]: who its members are and what the accounts hold at the
//! start, from a file. Used in tests and benches.

use alloy_primitives::{Address, keccak256};
use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};

use crate::amount::{Amount, Asset, Epoch, TransactionIndex};
use crate::committee::{Authority, Committee, CommitteeError};
use crate::identity::AccountId;
use crate::record::Deposit;
use crate::statement::Domain;

/// The initial balance of an account.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GenesisBalance {
    /// The account.
    pub account: AccountId,
    /// The asset; the native one where it is not given.
    #[serde(default)]
    pub asset: Asset,
    /// The amount, in the asset's smallest unit.
    pub amount: Amount,
}

/// The beginning of a stand-alone committee.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Genesis {
    /// The members.
    pub committee: Vec<Authority>,
    /// Initial balances, credited like deposits in this order.
    pub balances: Vec<GenesisBalance>,
}

impl Genesis {
    /// The committee, in epoch 0.
    ///
    /// # Errors
    /// As [`Committee::new`].
    pub fn committee(&self) -> Result<Committee, CommitteeError> {
        Committee::new(Epoch(0), self.committee.clone())
    }

    /// The domain of everything signed for this committee. Chain 0 is none, and the contract's place
    /// is taken by a hash of the genesis, so that nothing signed for one is valid under another.
    #[must_use]
    pub fn domain(&self) -> Domain {
        let encoded = borsh::to_vec(self).expect("writing to memory does not fail");
        let hash = keccak256(encoded);
        Domain::new(0, Address::from_word(hash))
    }

    /// The balances as deposits, numbered from 1.
    pub fn deposits(&self) -> impl Iterator<Item = Deposit> {
        (1..).zip(&self.balances).map(|(index, balance)| Deposit {
            index: TransactionIndex(index),
            recipient: balance.account,
            asset: balance.asset,
            amount: balance.amount,
        })
    }
}
