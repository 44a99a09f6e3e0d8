//! Deposits and redemptions on a real chain: whatever moment a command dies in, its repetition does not pay
//! twice; every sort of token finds its way.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy::primitives::{Address, TxKind, U256};
use alloy::sol_types::{SolCall, SolValue};
use fastpay_core::{AccountId, AccountKey, Amount, Asset, SequenceNumber, TransactionIndex, Transfer};
use fastpay_ethereum::{
    Call, Finality, Payout, Primary, PrimaryConfig, Progress, SendError, Sender, SenderConfig, SpendingState,
    Submission, Token, certified_redemption,
};
use fastpay_testkit::anvil::{Anvil, CHAIN_ID, Mining, rich_key};
use fastpay_testkit::{TestAccount, TestCommittee, redemption};
use fastpay_wallet::folder::{Errand, Folder, TransactionState};
use fastpay_wallet::{AnyPrimary, ChainAccount, Claim, ErrorKind, WalletError};

alloy::sol! {
    function mint(address to, uint256 amount) external;
    function transfer(address to, uint256 amount) external returns (bool);
    function setMood(uint8 mood) external;
}

struct Scene {
    anvil: Anvil,
    committee: TestCommittee,
    contract: Address,
    home: tempfile::TempDir,
    key: AccountKey,
}

impl Scene {
    async fn new(mining: Mining) -> Self {
        let anvil = Anvil::start(mining);
        let committee = TestCommittee::new(4);
        let contract = anvil.deploy(&committee.committee).await;
        // Votes must be for this chain and contract.
        let domain = fastpay_core::Domain::new(fastpay_testkit::anvil::CHAIN_ID, contract);
        let committee = TestCommittee::with(4, domain, fastpay_core::Epoch(0));
        let key = AccountKey::ethereum(rich_key(1).to_bytes().0).unwrap();
        Self { anvil, committee, contract, home: tempfile::tempdir().unwrap(), key }
    }

    async fn primary(&self) -> Primary {
        self.anvil.primary(self.contract, Finality::Confirmations(0)).await
    }

    /// As a new process would have it.
    async fn account(&self) -> ChainAccount {
        self.account_of(1).await
    }

    async fn account_of(&self, key: u32) -> ChainAccount {
        let config = SenderConfig { poll_interval_ms: 20, ..SenderConfig::default() };
        let (folder, key) = (Folder::new(self.home.path()), AccountKey::ethereum(rich_key(key).to_bytes().0).unwrap());
        ChainAccount::new(&folder, self.primary().await, "test", &key, config).unwrap()
    }

    async fn token(&self, artifact: &str) -> Asset {
        let address = self.anvil.deploy_artifact(&format!("WeirdTokens.sol/{artifact}.json"), &[]).await;
        let call = mintCall { to: rich_key(1).address(), amount: U256::from(1_000_000) };
        self.call(8, address, call.abi_encode()).await;
        Asset(address)
    }

    async fn call(&self, key: u32, to: Address, data: Vec<u8>) {
        let key = rich_key(key);
        let params = serde_json::json!([key.address(), "latest"]);
        let nonce: alloy::primitives::U64 = self.anvil.request("eth_getTransactionCount", params).await;
        let hash = self.anvil.send_raw(&key, nonce.to(), TxKind::Call(to), U256::ZERO, data.into()).await;
        self.anvil.mined_receipt(hash).await;
    }

    async fn deposits(&self) -> u64 {
        self.primary().await.last_transaction_index().await.unwrap().0
    }

    fn states(&self) -> Vec<(Errand, TransactionState)> {
        let entries = Folder::new(self.home.path()).transactions(rich_key(1).address()).entries().unwrap();
        entries.into_iter().map(|entry| (entry.errand, entry.state)).collect()
    }
}

fn recipient() -> AccountId {
    TestAccount::numbered(4).id()
}

#[tokio::test]
async fn a_deposit_that_was_written_down_and_never_sent_is_sent_once() {
    let scene = Scene::new(Mining::Each).await;
    let amount = Amount(1000);
    let sender = Sender::new(scene.primary().await, rich_key(1), SenderConfig::default());
    let call = Call::deposit_ether(scene.contract, recipient(), amount);
    let submission = sender.prepare(call).await.unwrap();
    let journal = Folder::new(scene.home.path()).transactions(rich_key(1).address());
    let after = TransactionIndex(0);
    let errand = Errand::Deposit { recipient: recipient(), asset: Asset::ETHER, amount, after };
    journal.lock(Duration::ZERO).await.unwrap().create(errand, submission).unwrap();
    assert_eq!(scene.deposits().await, 0);

    let finished = scene.account().await.deposit(recipient(), Asset::ETHER, amount).await.unwrap();
    assert!(finished.resumed);
    assert_eq!(scene.deposits().await, 1);
    // Now it is finished, the same command is a new deposit.
    assert!(!scene.account().await.deposit(recipient(), Asset::ETHER, amount).await.unwrap().resumed);
    assert_eq!(scene.deposits().await, 2);
}

#[tokio::test]
async fn a_deposit_of_another_chain_is_neither_sent_nor_given_up() {
    let scene = Scene::new(Mining::Each).await;
    let amount = Amount(1000);
    let sender = Sender::new(scene.primary().await, rich_key(1), SenderConfig::default());
    let submission = sender.prepare(Call::deposit_ether(scene.contract, recipient(), amount)).await.unwrap();
    let folder = Folder::new(scene.home.path());
    let transactions = folder.transactions(rich_key(1).address());
    let errand = Errand::Deposit { recipient: recipient(), asset: Asset::ETHER, amount, after: TransactionIndex(0) };
    transactions.lock(Duration::ZERO).await.unwrap().create(errand, submission.clone()).unwrap();

    // The same key and contract address on another chain; the second time around, the nonce is used there.
    let other = CHAIN_ID + 1;
    let _: serde_json::Value = scene.anvil.request("anvil_setChainId", serde_json::json!([other])).await;
    let account = async || {
        let (chain_id, finality) = (other, Finality::Confirmations(0));
        let config = PrimaryConfig { chain_id, finality, ..scene.anvil.config(scene.contract) };
        let sender = SenderConfig { poll_interval_ms: 20, ..SenderConfig::default() };
        ChainAccount::new(&folder, Primary::connect(config).await.unwrap(), "test", &scene.key, sender).unwrap()
    };
    for _ in 0..2 {
        let outcomes = [
            account().await.finish_pending().await.map(drop),
            account().await.deposit(recipient(), Asset::ETHER, amount).await.map(drop),
            account().await.claim(&Claim::default()).await.map(drop),
        ];
        for outcome in outcomes {
            let Err(WalletError::Send(error)) = outcome else { panic!("{outcome:?}") };
            assert!(matches!(error, SendError::OtherChain { chain_id, .. } if chain_id == other), "{error}");
            assert!(!error.is_retryable());
            assert_eq!(WalletError::Send(error).kind(), ErrorKind::Config);
        }
        assert_eq!(scene.states()[0].1, TransactionState::Pending);
        assert_eq!(account().await.primary().last_transaction_index().await.unwrap().0, 0);
        let params = serde_json::json!([rich_key(1).address(), "0x5"]);
        let _: serde_json::Value = scene.anvil.request("anvil_setNonce", params).await;
    }
    let sender = Sender::new(account().await.primary().clone(), rich_key(1), SenderConfig::default());
    assert!(matches!(sender.raised(&submission).await, Err(SendError::OtherChain { .. })));

    // One that ended elsewhere gives no nonce here.
    let far = Submission { nonce: 70, ..submission };
    let journal = transactions.lock(Duration::ZERO).await.unwrap();
    journal.finish(0, TransactionState::Superseded).unwrap();
    let number = journal.create(scene.states()[0].0.clone(), far).unwrap().number;
    journal.finish(number, TransactionState::Superseded).unwrap();
    drop(journal);
    let finished = account().await.deposit(recipient(), Asset::ETHER, amount).await.unwrap();
    assert_eq!((finished.entry.submission.nonce, finished.resumed), (5, false));
}

#[tokio::test]
async fn a_deposit_killed_while_it_waited_for_its_block_is_not_repeated() {
    let scene = Scene::new(Mining::Manual).await;
    let submitted = Arc::new(Mutex::new(false));
    let heard = submitted.clone();
    let account = scene.account().await.with_listener(Arc::new(move |_, progress| {
        *heard.lock().unwrap() |= matches!(progress, Progress::Submitted { .. });
    }));
    let killed = tokio::spawn(async move { account.deposit(recipient(), Asset::ETHER, Amount(5)).await.map(drop) });
    while !*submitted.lock().unwrap() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    killed.abort();
    assert!(killed.await.unwrap_err().is_cancelled());
    assert!(matches!(scene.states()[..], [(Errand::Deposit { .. }, TransactionState::Pending)]));
    scene.anvil.mine(1).await;

    // Another deposit first finishes that one.
    let account = scene.account().await;
    let other = tokio::spawn(async move { account.deposit(recipient(), Asset::ETHER, Amount(6)).await.map(drop) });
    while !other.is_finished() {
        scene.anvil.mine(1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    other.await.unwrap().unwrap();
    assert_eq!(scene.deposits().await, 2);
    assert!(scene.states().iter().all(|(_, state)| matches!(state, TransactionState::Final(_))));
}

#[tokio::test]
async fn an_unfinished_claim_is_reported_as_it_was_sent() {
    let scene = Scene::new(Mining::Each).await;
    let sender = Sender::new(scene.primary().await, rich_key(1), SenderConfig::default());
    // Stands for the claim of a command that died: what counts is what was written down.
    let submission = sender.prepare(Call::deposit_ether(scene.contract, recipient(), Amount(1))).await.unwrap();
    let journal = Folder::new(scene.home.path()).transactions(rich_key(1).address());
    let (first, second) = (Address::repeat_byte(1), Address::repeat_byte(2));
    let owner = rich_key(1).address();
    let errand = Errand::Claim { owner, asset: Asset::ETHER, to: first, amount: U256::from(7) };
    journal.lock(Duration::ZERO).await.unwrap().create(errand.clone(), submission).unwrap();
    let all = Claim { to: Some(second), ..Claim::default() };
    let finished = scene.account().await.claim(&all).await.unwrap();
    assert!(finished.resumed);
    assert_eq!(finished.entry.errand, errand);
}

#[tokio::test]
async fn a_claim_is_collected_in_parts_elsewhere_and_by_anybody_for_its_owner() {
    let scene = Scene::new(Mining::Each).await;
    let (owner, elsewhere) = (rich_key(1).address(), Address::repeat_byte(7));
    let account = AccountId::from_ethereum(owner);
    let asset = scene.token("MoodyToken").await;
    scene.account().await.deposit(account, asset, Amount(300)).await.unwrap();
    let transfer = fastpay_core::Redemption { asset, ..redemption(account, owner, 100, 0) };
    let order = scene.key.order(&scene.committee.domain, Transfer::Redemption(transfer.clone()));
    let certificate = scene.committee.certified(&order);
    let certified = certified_redemption(certificate.certificate(), &scene.committee.committee).unwrap();
    // The token refuses, and is in a better mood later.
    scene.call(8, asset.0, setMoodCall { mood: 6 }.abi_encode()).await;
    scene.account().await.redeem(&transfer, Call::redeem(scene.contract, certified)).await.unwrap();
    scene.call(8, asset.0, setMoodCall { mood: 0 }.abi_encode()).await;
    let token = Token::new(scene.primary().await, asset.0);
    let held = async |of| token.balance_of(of).await.unwrap();
    let before = held(owner).await;
    let claim = |amount: Option<u128>| Claim { asset, amount: amount.map(Amount), ..Claim::default() };

    scene.account().await.claim(&claim(Some(30))).await.unwrap();
    assert_eq!(held(owner).await, before + U256::from(30));
    scene.account().await.claim(&Claim { to: Some(elsewhere), ..claim(Some(20)) }).await.unwrap();
    assert_eq!(held(elsewhere).await, U256::from(20));
    let stranger = scene.account_of(2).await;
    let stolen = Claim { owner: Some(owner), to: Some(elsewhere), ..claim(None) };
    assert_eq!(stranger.claim(&stolen).await.unwrap_err().kind(), ErrorKind::Argument);
    let finished = stranger.claim(&Claim { owner: Some(owner), ..claim(None) }).await.unwrap();
    assert_eq!(finished.entry.errand, Errand::Claim { owner, asset, to: owner, amount: U256::from(50) });
    assert_eq!(held(owner).await, before + U256::from(80));
    assert!(scene.primary().await.claim_of(owner, asset).await.unwrap().is_zero());
}

#[tokio::test]
async fn two_commands_with_one_key_take_turns() {
    let scene = Scene::new(Mining::Each).await;
    let (one, other) = (scene.account().await, scene.account().await);
    let (first, second) = tokio::join!(
        one.deposit(recipient(), Asset::ETHER, Amount(1)),
        other.deposit(recipient(), Asset::ETHER, Amount(2))
    );
    assert_ne!(first.unwrap().entry.submission.nonce, second.unwrap().entry.submission.nonce);
    assert_eq!(scene.deposits().await, 2);
}

#[tokio::test]
async fn tokens_are_deposited_by_permit_or_else_by_approval() {
    let scene = Scene::new(Mining::Each).await;
    let arguments = ("Demo".to_owned(), "DEMO".to_owned(), U256::from(6), U256::from(1000));
    let demo = scene.anvil.deploy_artifact("DemoToken.sol/DemoToken.json", &arguments.abi_encode_params()).await;
    let call = transferCall { to: rich_key(1).address(), amount: U256::from(500) };
    scene.call(9, demo, call.abi_encode()).await;

    scene.account().await.deposit(recipient(), Asset(demo), Amount(300)).await.unwrap();
    assert_eq!(scene.states().len(), 1, "one transaction, by permit");
    for (artifact, arrives) in [("PhantomPermitToken", 300_u64), ("FeeToken", 297)] {
        let before = scene.states().len();
        let asset = scene.token(artifact).await;
        scene.account().await.deposit(recipient(), asset, Amount(300)).await.unwrap();
        assert_eq!(scene.states().len(), before + 2, "{artifact}: an approval and a deposit");
        assert_eq!(scene.primary().await.total_balance(asset).await.unwrap(), U256::from(arrives), "{artifact}");
        // The approval was for this deposit only.
        let token = Token::new(scene.primary().await, asset.0);
        assert_eq!(token.allowance(rich_key(1).address()).await.unwrap(), U256::ZERO, "{artifact}");
    }
}

#[tokio::test]
async fn what_the_contract_would_refuse_is_not_sent() {
    let scene = Scene::new(Mining::Each).await;
    let error = scene.account().await.deposit(AccountId::ZERO, Asset::ETHER, Amount(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Primary, "{error}");
    let error = scene.account().await.claim(&Claim::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Primary, "{error}");
    let error = scene.account().await.deposit(recipient(), Asset::ETHER, Amount(u128::MAX)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Funds, "{error}");
    assert!(scene.states().is_empty());
    let ed25519 = TestAccount::ed25519(0).key;
    let folder = Folder::new(scene.home.path());
    let refused = ChainAccount::new(&folder, scene.primary().await, "k", &ed25519, SenderConfig::default());
    assert!(matches!(refused.map(drop), Err(WalletError::Key(_))));
}

#[tokio::test]
async fn a_user_alone_redeems_once() {
    let scene = Scene::new(Mining::Each).await;
    let owner = AccountId::from_ethereum(rich_key(1).address());
    scene.account().await.deposit(owner, Asset::ETHER, Amount(100)).await.unwrap();
    let transfer = Transfer::Redemption(redemption(owner, Address::repeat_byte(9), 40, 0));
    let certificate = scene.committee.certified(&scene.key.order(&scene.committee.domain, transfer));
    let account = scene.account().await;
    let certified = certified_redemption(certificate.certificate(), &scene.committee.committee).unwrap();
    let Transfer::Redemption(redemption) = certificate.transfer() else { panic!() };
    let call = Call::redeem(scene.contract, certified);
    let finished = account.redeem(redemption, call.clone()).await.unwrap();
    assert!(finished.is_some());
    assert_eq!(scene.primary().await.total_balance(Asset::ETHER).await.unwrap(), U256::from(60));
    assert!(account.redeem(redemption, call).await.unwrap().is_none());
    let (primary, patience) = (scene.primary().await, Duration::from_secs(60));
    assert_eq!(primary.payout(owner, SequenceNumber(0)).await.unwrap(), Payout::Done);
    let any = AnyPrimary::Contract(Box::new(primary.clone()));
    fastpay_wallet::wait_for_redemption(&any, owner, SequenceNumber(0), patience).await.unwrap();
    // Who brought it is in the contract's log, to be read by anybody; of what nobody brought there is nothing.
    let spendings = primary.spendings(owner, [0, 1].map(SequenceNumber).into()).await.unwrap();
    let paid = spendings[&SequenceNumber(0)];
    let inclusion = finished.unwrap().inclusion;
    assert_eq!(paid.state, SpendingState::Paid { relayer: rich_key(1).address() });
    assert_eq!((paid.digest, paid.transaction), (certificate.digest(), inclusion.hash));
    assert_eq!(paid.block_number, inclusion.block_number);
    assert_eq!(spendings.len(), 1);
    for (sequence, expected) in [(0, Some(paid)), (1, None)] {
        assert_eq!(primary.final_spending_by(0, owner, SequenceNumber(sequence)).await.unwrap(), expected);
    }
}
