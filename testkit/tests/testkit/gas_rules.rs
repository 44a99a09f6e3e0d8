//! The cost and the success of payouts under today's gas rules and under those announced for Amsterdam (EIP-8037,
//! EIP-8038), with the real bytecode in revm. The gas allowances of a deployed contract cannot be changed.
//!
//! `cargo test -p fastpay-testkit --test testkit gas_rules -- --nocapture` prints the figures of docs/CONTRACT.md.

use alloy::primitives::{Address, B256, Bytes, TxKind, U256, hex, keccak256};
use alloy::signers::SignerSync;
use alloy::sol_types::{SolCall, SolValue};
use fastpay_ethereum::IFastPay::{
    claimOfCall, depositEtherCall, redeemBatchCall, redeemCall, redemptionBatchVoteDigestCall, redemptionVoteDigestCall,
};
use fastpay_ethereum::{
    AssetCap, ContractAuthority as Authority, ContractRedemption as Redemption, PrivateKeySigner, SafetyParameters,
};
use fastpay_testkit::anvil::creation_code;
use revm::context::result::ExecutionResult;
use revm::context::{Context, TxEnv};
use revm::database::{CacheDB, EmptyDB};
use revm::primitives::hardfork::SpecId;
use revm::state::{AccountInfo, Bytecode};
use revm::{ExecuteCommitEvm, MainBuilder, MainContext};

const RELAYER: Address = Address::repeat_byte(0x4e);
const TODAY: SpecId = SpecId::OSAKA;
/// The maximum gas of a transaction (EIP-7825).
const TRANSACTION_GAS_MAX: u64 = 1 << 24;
/// The maximum gas of a payout of ETH in a batch, if its payee spends its whole allowance.
const PAYOUT_GAS_MAX: u64 = 140_000;

/// Writes one storage slot for the first time.
const NOTES: [u8; 4] = hex!("345f5500");
/// Behind `PROXY`: the same, and logs the receipt.
const NOTES_AND_LOGS: [u8; 13] = hex!("345f55345f525f60205fa10000");
/// Delegates to the implementation that a slot names, and fails if that fails.
const PROXY: [u8; 16] = hex!("5f5f5f5f6001545af415600e57005bfe");
/// Burns all its gas.
const BURNS: [u8; 1] = hex!("fe");
/// Spends gas until fewer than 2,000 are left, and accepts.
const SPENDS: [u8; 11] = hex!("5b6107d05a116000570000");

/// A chain with a FastPay contract of four members, 1,000 ETH in it.
struct Chain {
    database: CacheDB<EmptyDB>,
    rules: SpecId,
    contract: Address,
    nonce: u64,
    keys: Vec<PrivateKeySigner>,
}

impl Chain {
    /// Deployed under today's rules, used under `rules`.
    fn new(rules: SpecId) -> Self {
        let mut chain = Self::deployed(4).0;
        chain.rules = rules;
        chain.call(&depositEtherCall { recipient: B256::repeat_byte(1) }, 1_000_000_000_000_000_000_000);
        chain
    }

    /// With that many members, under today's rules. Also gives the gas that each of its two transactions is paid for.
    fn deployed(members: u8) -> (Self, [u64; 2]) {
        let mut database = CacheDB::new(EmptyDB::default());
        let rich = AccountInfo { balance: U256::from(10).pow(U256::from(24)), ..AccountInfo::default() };
        database.insert_account_info(RELAYER, rich);
        let keys: Vec<_> =
            (1..=members).map(|n| PrivateKeySigner::from_bytes(&B256::with_last_byte(n)).unwrap()).collect();
        let contract = RELAYER.create(1);
        let mut chain = Self { database, rules: TODAY, contract, nonce: 0, keys };
        let authorities: Vec<_> = (1..=members)
            .zip(&chain.keys)
            .map(|(n, key)| Authority { votingKey: B256::with_last_byte(n), redemptionKey: key.address() })
            .collect();
        let parameters = SafetyParameters {
            pauseDuration: 86_400,
            pauseCooldown: 604_800,
            outflowWindow: 86_400,
            outflowShare: 10_000,
            outflowDelay: 21 * 86_400,
            votesValidity: 1_209_600,
            unlockWindow: 604_800,
        };
        let council = (contract, Address::ZERO).abi_encode_params();
        let fastpay = (authorities, Address::ZERO, RELAYER.create(0), parameters, Vec::<AssetCap>::new());
        let gas = [("Council.sol/Council.json", council), ("FastPay.sol/FastPay.json", fastpay.abi_encode_params())]
            .map(|(artifact, arguments)| {
                let code = creation_code(artifact, &arguments);
                chain.send(TxKind::Create, code, 0, TRANSACTION_GAS_MAX).tx_gas_used()
            });
        (chain, gas)
    }

    fn send(&mut self, kind: TxKind, data: Bytes, value: u128, gas_limit: u64) -> ExecutionResult {
        let transaction = TxEnv {
            caller: RELAYER,
            kind,
            data,
            value: U256::from(value),
            gas_limit,
            nonce: self.nonce,
            ..TxEnv::default()
        };
        self.nonce += 1;
        let context = Context::mainnet().with_db(&mut self.database).modify_cfg_chained(|rules| {
            rules.set_spec_and_mainnet_gas_params(self.rules);
        });
        let result = context.build_mainnet().transact_commit(transaction).unwrap();
        assert!(result.is_success(), "{result:?}");
        result
    }

    /// Sends a call, with the limit that a relayer sets: for all that its payouts may take. Gives the gas that is paid for.
    fn call<C: SolCall>(&mut self, call: &C, value: u128) -> u64 {
        // Under Amsterdam's rules what is above EIP-7825's limit is for state alone.
        let limit = if self.rules == TODAY { TRANSACTION_GAS_MAX } else { 4 * TRANSACTION_GAS_MAX };
        self.send(TxKind::Call(self.contract), call.abi_encode().into(), value, limit).tx_gas_used()
    }

    fn view<C: SolCall>(&mut self, call: &C) -> C::Return {
        let result = self.send(TxKind::Call(self.contract), call.abi_encode().into(), 0, TRANSACTION_GAS_MAX);
        C::abi_decode_returns(result.output().unwrap()).unwrap()
    }

    /// The votes of the first three members.
    fn votes(&self, digest: B256) -> Bytes {
        let vote = |(member, key): (u8, &PrivateKeySigner)| {
            [&[member][..], &key.sign_hash_sync(&digest).unwrap().as_bytes()].concat()
        };
        (0..3).zip(&self.keys).flat_map(vote).collect()
    }

    fn order(n: u64, recipient: Address, sequence: u64) -> Redemption {
        Redemption {
            sender: keccak256(n.to_be_bytes()),
            recipient,
            asset: Address::ZERO,
            amount: 123_456_789_000_000_000,
            fee: 0,
            sequence,
            memo: B256::ZERO,
        }
    }

    fn redeem(&mut self, redemption: Redemption) -> u64 {
        let digest = self.view(&redemptionVoteDigestCall { epoch: 0, redemption: redemption.clone() });
        let votes = self.votes(digest);
        self.call(&redeemCall { redemption, epoch: 0, votes }, 0)
    }

    /// A batch to a hundred recipients, from accounts seen before. Gives the gas of each.
    fn redeem_batch(&mut self, recipients: &[Address]) -> u64 {
        for n in 0..100 {
            self.redeem(Self::order(n, Address::repeat_byte(0xee), 1));
        }
        let redemptions: Vec<_> =
            (0..100).zip(recipients).map(|(n, recipient)| Self::order(n, *recipient, 77)).collect();
        let digest = self.view(&redemptionBatchVoteDigestCall { epoch: 0, redemptions: redemptions.clone() });
        let votes = self.votes(digest);
        self.call(&redeemBatchCall { redemptions, epoch: 0, votes }, 0) / 100
    }

    /// A contract with this code, and 1 wei so that it is no new account.
    fn payee(&mut self, n: u64, code: &[u8]) -> Address {
        let address = Address::from_word(keccak256([&n.to_be_bytes()[..], code].concat()));
        let code = Bytecode::new_raw(Bytes::copy_from_slice(code));
        self.database.insert_account_info(
            address,
            AccountInfo { balance: U256::from(1), nonce: 1, ..AccountInfo::from_bytecode(code) },
        );
        address
    }

    fn is_paid(&mut self, payee: Address) -> bool {
        self.view(&claimOfCall { owner: payee, asset: Address::ZERO }).is_zero()
    }
}

/// The figures of a set of rules. `account` has redeemed before.
fn figures(rules: SpecId, name: &str) {
    let account = 0;
    let mut chain = Chain::new(rules);
    chain.redeem(Chain::order(account, Address::repeat_byte(0xee), 1));
    let known = chain.redeem(Chain::order(account, Address::repeat_byte(0xee), 2));
    println!("{name}: redeem, recipient and account seen before: {known}");
    println!(
        "{name}: redeem, an account's first order: {}",
        chain.redeem(Chain::order(1, Address::repeat_byte(0xee), 1))
    );
    println!("{name}: redeem, a new recipient: {}", chain.redeem(Chain::order(account, Address::repeat_byte(0xef), 3)));
    println!("{name}: deposit of ETH: {}", chain.call(&depositEtherCall { recipient: B256::repeat_byte(1) }, 1));
    let mut batch = Chain::new(rules);
    let payees: Vec<_> = (0..100).map(|n| batch.payee(n, &[])).collect();
    println!("{name}: batch of 100, each: {}", batch.redeem_batch(&payees));

    let notes = chain.payee(0, &NOTES);
    println!("{name}: redeem to a contract that fills a slot: {}", chain.redeem(Chain::order(account, notes, 4)));
    assert!(chain.is_paid(notes), "{name}: a payee that fills a slot is not paid");

    let implementation = chain.payee(0, &NOTES_AND_LOGS);
    let proxy = chain.payee(0, &PROXY);
    chain.database.insert_account_storage(proxy, U256::from(1), implementation.into_word().into()).unwrap();
    println!("{name}: redeem to a proxy that fills a slot and logs: {}", chain.redeem(Chain::order(account, proxy, 5)));
    assert!(chain.is_paid(proxy), "{name}: a proxy that fills a slot and logs is not paid");
}

/// revm enforces the limits of a transaction's gas (EIP-7825), of a creation's size (EIP-3860) and of a contract's (EIP-170).
#[test]
fn a_committee_of_any_size_can_be_deployed() {
    // Foundry's gas limit is 30 % above its estimate, or what `--gas-estimate-multiplier` says.
    for (members, limit_percent) in [(4, 130), (100, 130), (255, 110)] {
        let (_, gas) = Chain::deployed(members);
        println!("deployment of {members} members: council and contract {gas:?}");
        assert!(gas.iter().all(|gas| gas * limit_percent / 100 <= TRANSACTION_GAS_MAX), "{members} members");
    }
}

#[test]
fn ordinary_payees_are_paid_under_both_sets_of_rules() {
    figures(TODAY, "today");
    figures(SpecId::AMSTERDAM, "Amsterdam");
}

#[test]
fn a_batch_of_a_hundred_fits_however_much_its_payees_spend() {
    for (rules, name) in [(TODAY, "today"), (SpecId::AMSTERDAM, "Amsterdam")] {
        let mut chain = Chain::new(rules);
        let payees: Vec<_> = (0..100).map(|n| chain.payee(n, &SPENDS)).collect();
        let spending = chain.redeem_batch(&payees);
        assert!(payees.iter().all(|payee| chain.is_paid(*payee)), "{name}");
        println!("{name}: batch of 100 to payees that spend their allowance, each: {spending}");

        let mut chain = Chain::new(rules);
        let payees: Vec<_> = (0..100).map(|n| chain.payee(n, &BURNS)).collect();
        let burning = chain.redeem_batch(&payees);
        assert!(payees.iter().all(|payee| !chain.is_paid(*payee)), "{name}");
        println!("{name}: batch of 100 to payees that burn it and get claims, each: {burning}");
        if rules == TODAY {
            assert!(spending <= PAYOUT_GAS_MAX);
            assert!(burning * 100 < TRANSACTION_GAS_MAX);
        }
    }
}
