//! All accounts after one block. Copies are cheap because they share what did not change, so every block keeps its own
//! state and a reorganisation only returns to an older one.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use alloy::primitives::{Address, B256, U256, map::AddressMap};
use revm::DatabaseRef;
use revm::bytecode::Bytecode;
use revm::state::{Account as Touched, AccountInfo};

use super::block::Block;

/// One account of Ethereum.
#[derive(Clone, Debug, Default)]
struct Account {
    info: AccountInfo,
    storage: BTreeMap<U256, U256>,
}

/// All accounts.
#[derive(Clone, Debug, Default)]
pub(super) struct WorldState {
    accounts: BTreeMap<Address, Arc<Account>>,
}

impl WorldState {
    pub(super) fn balance(&self, owner: Address) -> U256 {
        self.accounts.get(&owner).map_or(U256::ZERO, |account| account.info.balance)
    }

    pub(super) fn nonce(&self, owner: Address) -> u64 {
        self.accounts.get(&owner).map_or(0, |account| account.info.nonce)
    }

    pub(super) fn code(&self, owner: Address) -> Bytecode {
        self.accounts.get(&owner).and_then(|account| account.info.code.clone()).unwrap_or_default()
    }

    pub(super) fn storage(&self, owner: Address, slot: U256) -> U256 {
        self.accounts.get(&owner).and_then(|account| account.storage.get(&slot)).copied().unwrap_or_default()
    }

    pub(super) fn set_balance(&mut self, owner: Address, wei: U256) {
        Arc::make_mut(self.accounts.entry(owner).or_default()).info.balance = wei;
    }

    pub(super) fn set_storage(&mut self, owner: Address, slot: U256, value: U256) {
        Arc::make_mut(self.accounts.entry(owner).or_default()).storage.insert(slot, value);
    }

    /// Applies the changes of a transaction.
    pub(super) fn apply(&mut self, changes: AddressMap<Touched>) {
        for (address, touched) in changes {
            if !touched.is_touched() {
                continue;
            }
            if touched.is_selfdestructed() || touched.info.is_empty() {
                self.accounts.remove(&address);
                continue;
            }
            let account = Arc::make_mut(self.accounts.entry(address).or_default());
            if touched.is_created() {
                account.storage.clear();
            }
            for (slot, value) in &touched.storage {
                if value.present_value.is_zero() {
                    account.storage.remove(slot);
                } else {
                    account.storage.insert(*slot, value.present_value);
                }
            }
            // Code that was not loaded is unchanged.
            let code = touched.info.code.clone().or_else(|| account.info.code.take());
            account.info = AccountInfo { code, ..touched.info };
        }
    }
}

/// The state that a transaction reads: the accounts, and the blocks before its own.
#[derive(Debug)]
pub(super) struct EvmDatabase<'a> {
    pub(super) state: &'a WorldState,
    pub(super) branch: &'a [Arc<Block>],
}

impl DatabaseRef for EvmDatabase<'_> {
    type Error = Infallible;

    fn basic_ref(&self, address: Address) -> Result<Option<AccountInfo>, Infallible> {
        Ok(self.state.accounts.get(&address).map(|account| account.info.clone()))
    }

    fn code_by_hash_ref(&self, _: B256) -> Result<Bytecode, Infallible> {
        // Every account is loaded together with its code.
        Ok(Bytecode::default())
    }

    fn storage_ref(&self, address: Address, slot: U256) -> Result<U256, Infallible> {
        Ok(self.state.storage(address, slot))
    }

    fn block_hash_ref(&self, number: u64) -> Result<B256, Infallible> {
        let block = usize::try_from(number).ok().and_then(|number| self.branch.get(number));
        Ok(block.map(|block| block.hash()).unwrap_or_default())
    }
}
