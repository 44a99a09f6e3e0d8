//! A FastPay contract on a simulated chain, which a test reads directly, without the nodes.

use std::ops::RangeInclusive;

use crate::anvil::council_of;
use alloy::eips::{BlockId, BlockNumberOrTag};
use alloy::primitives::{Address, Bytes, U256, keccak256};
use alloy::rpc::types::Filter;
use alloy::sol_types::{SolCall, SolEvent, SolValue};
use fastpay_core::{AccountId, Amount, Asset, SequenceNumber};
use fastpay_ethereum::{Call, IFastPay, IToken, PrivateKeySigner};
use serde_json::json;

use super::SimulatedPrimary;

/// A FastPay contract. Clones refer to the same contract.
#[derive(Clone, Debug)]
pub struct SimulatedContract {
    primary: SimulatedPrimary,
    address: Address,
}

impl SimulatedContract {
    pub(super) fn new(primary: SimulatedPrimary, address: Address) -> Self {
        Self { primary, address }
    }

    /// The contract's address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }

    /// Submits a deposit of ETH, which waits for the next block.
    ///
    /// # Panics
    /// If the pool refuses it.
    pub fn deposit_ether(&self, key: &PrivateKeySigner, recipient: AccountId, amount: Amount) {
        self.primary.send(key, Call::deposit_ether(self.address, recipient, amount));
    }

    /// Submits an approval and a deposit of a token, which wait for the next block.
    ///
    /// # Panics
    /// If the pool refuses them.
    pub fn deposit_token(&self, key: &PrivateKeySigner, recipient: AccountId, asset: Asset, amount: Amount) {
        let approve = IToken::approveCall { spender: self.address, value: U256::from(amount.0) };
        self.primary.send(key, Call { to: asset.0, value: U256::ZERO, data: approve.abi_encode().into() });
        self.primary.send(key, Call::deposit_token(self.address, recipient, asset, amount));
    }

    /// Calls a view of the contract in the newest block.
    ///
    /// # Panics
    /// If it reverts.
    #[must_use]
    pub fn view<C: SolCall>(&self, call: &C) -> C::Return {
        self.view_of(self.address, call, BlockNumberOrTag::Latest)
    }

    /// The address of the contract's council.
    #[must_use]
    pub fn council(&self) -> Address {
        council_of(self.address)
    }

    /// Calls a view of the council in the newest block.
    ///
    /// # Panics
    /// If it reverts.
    #[must_use]
    pub fn view_of_council<C: SolCall>(&self, call: &C) -> C::Return {
        self.view_of(council_of(self.address), call, BlockNumberOrTag::Latest)
    }

    fn view_of<C: SolCall>(&self, to: Address, call: &C, at: BlockNumberOrTag) -> C::Return {
        let request = json!({ "to": to, "data": Bytes::from(call.abi_encode()) });
        let params = [request, json!(BlockId::Number(at))];
        let answer = self.primary.view(|view| view.answer("eth_call", &params));
        let answer = answer.unwrap_or_else(|error| panic!("{}: {error:?}", C::SIGNATURE));
        let data: Bytes = serde_json::from_value(answer).expect("calls return bytes");
        C::abi_decode_returns_validate(&data).expect("the contract is compiled from the same interface")
    }

    /// The contract's own balance of an asset in the newest block.
    #[must_use]
    pub fn holds(&self, asset: Asset) -> U256 {
        if asset == Asset::ETHER {
            return self.primary.balance(self.address);
        }
        self.view_of(asset.0, &IToken::balanceOfCall { account: self.address }, BlockNumberOrTag::Latest)
    }

    /// The amount of an asset that the contract holds for accounts in the newest block.
    #[must_use]
    pub fn total_balance(&self, asset: Asset) -> U256 {
        self.view(&IFastPay::totalBalanceCall { asset: asset.0 })
    }

    /// Whether an order has been redeemed, in the newest block.
    #[must_use]
    pub fn is_redeemed(&self, sender: AccountId, sequence: SequenceNumber) -> bool {
        self.view(&IFastPay::isRedeemedCall { sender: sender.0.into(), sequence: sequence.0 })
    }

    /// Breaks the set of redeemed numbers: every number below a redeemed one in its word counts as redeemed, too. With
    /// this one can see that a test would notice such a contract.
    ///
    /// # Panics
    /// If the set is not where Solidity puts a mapping of mappings.
    pub fn keep_high_water_marks(&self) {
        for event in self.events_in::<IFastPay::Redeemed>(self.primary.block_number()..=self.primary.block_number()) {
            let word = U256::from(event.sequence >> 8);
            let marks = self.view(&IFastPay::redeemedBitmapCall { sender: event.sender, word });
            let mark = U256::ONE << (event.sequence & 0xff);
            // The positions of the marks reveal where the mapping begins.
            let place = |base: u64| {
                let account = keccak256((event.sender, U256::from(base)).abi_encode());
                U256::from_be_bytes(keccak256((word, account).abi_encode()).0)
            };
            let slot = (0..64).map(place).find(|slot| self.primary.storage(self.address, *slot) == marks);
            self.primary.set_storage(self.address, slot.expect("it is there"), marks | (mark - U256::ONE));
        }
    }

    /// All events of one kind that the contract emitted, in order, in the current chain.
    ///
    /// # Panics
    /// If an event is not as declared.
    #[must_use]
    pub fn events<E: SolEvent>(&self) -> Vec<E> {
        self.events_in(0..=self.primary.block_number())
    }

    /// All events of one kind in a range of blocks, which may be empty.
    ///
    /// # Panics
    /// If an event is not as declared.
    #[must_use]
    pub fn events_in<E: SolEvent>(&self, blocks: RangeInclusive<u64>) -> Vec<E> {
        if blocks.is_empty() {
            return Vec::new();
        }
        let filter = Filter::new().address(self.address).event_signature(E::SIGNATURE_HASH).select(blocks);
        let logs = self.primary.view(|view| view.matching_logs(&filter)).expect("a range that is not empty");
        let event = |log: &alloy::rpc::types::Log| E::decode_log(&log.inner).expect("as declared").data;
        logs.iter().map(event).collect()
    }
}
