//! Transactions are sent once and reach finality on a real chain: stuck, forgotten, reorganised or
//! resumed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy::primitives::{Address, U256};
use alloy::signers::SignerSync;
use alloy::sol_types::SolValue;
use fastpay_core::{AccountId, Amount, Asset, Authority, AuthorityName, Committee, Epoch, TransactionIndex};
use fastpay_ethereum::{
    Call, Finality, Offer, Primary, PrimaryConfig, PrimaryError, PrivateKeySigner, Progress, SendError, Sender,
    SenderConfig, Status, Submission, Token,
};
use fastpay_testkit::anvil::{Anvil, LyingNode, Mining};
use serde_json::{Value, json};

const ALICE: AccountId = AccountId([0xa1; 32]);

fn committee() -> Committee {
    let member = |byte| Authority { name: AuthorityName([byte; 32]), redemption_key: Address::repeat_byte(byte) };
    Committee::new(Epoch(0), (1..=4).map(member).collect()).unwrap()
}

struct Scene {
    anvil: Anvil,
    contract: Address,
}

impl Scene {
    async fn new() -> Self {
        let anvil = Anvil::start(Mining::Manual);
        let contract = anvil.deploy(&committee()).await;
        anvil.mine(2).await;
        Self { anvil, contract }
    }

    async fn sender(&self) -> Sender {
        self.anvil.sender(self.contract, self.anvil.rich_key(0), Finality::Finalized).await
    }

    fn deposit(&self, wei: u128) -> Call {
        Call::deposit_ether(self.contract, ALICE, Amount(wei))
    }

    async fn deposits(&self) -> TransactionIndex {
        self.anvil.primary(self.contract, Finality::Finalized).await.last_transaction_index().await.unwrap()
    }
}

/// A submission that is being confirmed, and what it reported.
struct Confirmation {
    stored: Arc<Mutex<Vec<Submission>>>,
    seen: Arc<Mutex<Vec<Progress>>>,
    task: tokio::task::JoinHandle<Result<fastpay_ethereum::Inclusion, SendError>>,
}

impl Confirmation {
    fn start(sender: Sender, submission: Submission) -> Self {
        let stored = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (to_store, to_see) = (stored.clone(), seen.clone());
        let task = tokio::spawn(async move {
            let mut store = |submission: &Submission| {
                to_store.lock().unwrap().push(submission.clone());
                Ok(())
            };
            sender.confirm(submission, &mut store, &mut |progress| to_see.lock().unwrap().push(progress)).await
        });
        Self { stored, seen, task }
    }

    async fn until(&self, what: &str, condition: impl Fn(&[Submission], &[Progress]) -> bool) {
        for _ in 0..6_000 {
            if condition(&self.stored.lock().unwrap(), &self.seen.lock().unwrap()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{what} did not happen; seen {:?}", self.seen.lock().unwrap());
    }
}

fn included(_: &[Submission], seen: &[Progress]) -> bool {
    seen.iter().any(|progress| matches!(progress, Progress::Included { .. }))
}

fn submitted(_: &[Submission], seen: &[Progress]) -> bool {
    seen.iter().any(|progress| matches!(progress, Progress::Submitted { .. }))
}

#[tokio::test]
async fn a_deposit_is_simulated_submitted_included_and_final() {
    let anvil = Anvil::start(Mining::EveryMs(100));
    let contract = anvil.deploy(&committee()).await;
    let primary = anvil.primary(contract, Finality::Finalized).await;
    // It raises its offer only after a minute.
    let sender = Sender::new(primary, anvil.rich_key(0), SenderConfig { poll_interval_ms: 30, ..Default::default() });
    let mut seen = Vec::new();
    let call = Call::deposit_ether(contract, ALICE, Amount(5));
    let inclusion = sender.send_and_wait(call, &mut |progress| seen.push(progress)).await.unwrap();
    let block_number = inclusion.block_number;
    assert!(matches!(seen[0], Progress::Simulated { gas } if gas > 21_000));
    assert_eq!(seen[1], Progress::Submitted { hash: inclusion.hash });
    let (last, waiting) = seen[2..].split_last().unwrap();
    assert!(
        waiting
            .iter()
            .all(|progress| matches!(progress, Progress::Included { block_number: of, .. } if *of == block_number)),
        "{seen:?}"
    );
    assert_eq!(*last, Progress::Final { block_number });
    assert!(sender.primary().final_head().await.unwrap().number() >= block_number);
    assert_eq!(sender.primary().total_balance(Asset::ETHER).await.unwrap(), U256::from(5));
}

#[tokio::test]
async fn the_blocks_until_it_is_final_are_counted_down() {
    let scene = Scene::new().await;
    let sender = scene.anvil.sender(scene.contract, scene.anvil.rich_key(0), Finality::Confirmations(3)).await;
    let submission = sender.prepare(scene.deposit(5)).await.unwrap();
    let confirmation = Confirmation::start(sender, submission);
    confirmation.until("submission", submitted).await;
    for blocks_left in (1..=3).rev() {
        scene.anvil.mine(1).await;
        let is_told = |seen: &[Progress]| {
            seen.iter().any(|told| matches!(told, Progress::Included { blocks_left: left, .. } if *left == blocks_left))
        };
        confirmation.until("a block", |_, seen| is_told(seen)).await;
    }
    scene.anvil.mine(1).await;
    confirmation.task.await.unwrap().unwrap();
    // Each once, however often the node is asked.
    let seen = confirmation.seen.lock().unwrap();
    let blocks_left = seen.iter().filter_map(|told| match told {
        Progress::Included { blocks_left, .. } => Some(*blocks_left),
        _ => None,
    });
    let blocks_left: Vec<_> = blocks_left.collect();
    // The final head is read before the receipt, so the block may be mined in between.
    assert!(blocks_left == [3, 2, 1] || blocks_left == [4, 3, 2, 1], "{seen:?}");
}

#[tokio::test]
async fn a_call_that_would_revert_is_not_sent_and_the_reason_is_reported() {
    let scene = Scene::new().await;
    let sender = scene.sender().await;
    let mut silent = |_| ();
    let check = |error: SendError, words: &str| {
        assert!(error.to_string().contains(words), "{error}");
        assert!(!error.is_retryable());
    };
    let to_nobody = Call::deposit_ether(scene.contract, AccountId::ZERO, Amount(5));
    check(sender.send_and_wait(to_nobody, &mut silent).await.unwrap_err(), "recipient is zero");
    let nothing = sender.send_and_wait(scene.deposit(0), &mut silent).await.unwrap_err();
    check(nothing, "deposit more than zero");
    let claim = Call::claim(scene.contract, Asset::ETHER, Address::repeat_byte(4), U256::from(1));
    check(sender.send_and_wait(claim, &mut silent).await.unwrap_err(), "nothing of");
    let no_token = Call::deposit_token(scene.contract, ALICE, Asset(Address::repeat_byte(3)), Amount(1));
    check(sender.send_and_wait(no_token, &mut silent).await.unwrap_err(), "there is no token at");
    let pauper = scene.anvil.sender(scene.contract, PrivateKeySigner::random(), Finality::Finalized).await;
    let error = pauper.send_and_wait(scene.deposit(5), &mut silent).await.unwrap_err();
    assert!(matches!(error, SendError::Primary(PrimaryError::InsufficientFunds)), "{error}");
}

#[tokio::test]
async fn a_stuck_transaction_is_replaced_by_a_better_one_and_happens_once() {
    let scene = Scene::new().await;
    let sender = scene.sender().await;
    let submission = sender.prepare(scene.deposit(5)).await.unwrap();
    let confirmation = Confirmation::start(sender, submission);
    confirmation.until("a second offer", |stored, _| stored.len() >= 3).await;
    scene.anvil.mine(1).await;
    confirmation.until("inclusion", included).await;
    scene.anvil.mine(2).await;
    let stored = confirmation.stored.clone();
    let inclusion = confirmation.task.await.unwrap().unwrap();
    let attempts = stored.lock().unwrap().last().unwrap().attempts.clone();
    assert!(attempts.iter().any(|attempt| attempt.hash == inclusion.hash));
    assert_ne!(attempts[0].hash, inclusion.hash, "the better offer was taken");
    for pair in attempts.windows(2) {
        assert!(pair[1].fees.max_fee_per_gas * 8 >= pair[0].fees.max_fee_per_gas * 9);
    }
    assert_eq!(scene.deposits().await, TransactionIndex(1));
}

#[tokio::test]
async fn offers_stop_at_the_cap() {
    let scene = Scene::new().await;
    let config = SenderConfig { max_fee_cap_gwei: 5, poll_interval_ms: 20, stuck_after_ms: 40, ..Default::default() };
    let primary = scene.anvil.primary(scene.contract, Finality::Finalized).await;
    let sender = Sender::new(primary.clone(), scene.anvil.rich_key(0), config.clone());
    let submission = sender.prepare(scene.deposit(5)).await.unwrap();
    let confirmation = Confirmation::start(sender, submission);
    let waits = |_: &[Submission], seen: &[Progress]| {
        seen.iter().any(|p| matches!(p, Progress::Waiting { reason } if reason.contains("at its cap")))
    };
    confirmation.until("the cap", waits).await;
    confirmation.task.abort();
    let _: Value = scene.anvil.request("anvil_setNextBlockBaseFeePerGas", json!([U256::from(9_000_000_000u64)])).await;
    scene.anvil.mine(1).await;
    let sender = Sender::new(primary, scene.anvil.rich_key(1), config);
    let error = sender.prepare(scene.deposit(5)).await.unwrap_err();
    assert!(matches!(error, SendError::FeesTooHigh { cap_gwei: 5, .. }) && error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_reorganisation_before_finality_is_survived() {
    let scene = Scene::new().await;
    let sender = scene.sender().await;
    let submission = sender.prepare(scene.deposit(5)).await.unwrap();
    let nonce = submission.nonce;
    let confirmation = Confirmation::start(sender, submission);
    confirmation.until("submission", submitted).await;
    scene.anvil.mine(1).await;
    confirmation.until("inclusion", included).await;
    let before = confirmation.seen.lock().unwrap().len();
    scene.anvil.reorganise(1).await;
    assert_eq!(scene.deposits().await, TransactionIndex(0), "the deposit vanished");
    confirmation.until("another submission", |_, seen| submitted(&[], &seen[before..])).await;
    scene.anvil.mine(1).await;
    confirmation.until("another inclusion", |_, seen| included(&[], &seen[before..])).await;
    scene.anvil.mine(2).await;
    let stored = confirmation.stored.clone();
    assert!(confirmation.task.await.unwrap().unwrap().success);
    assert!(stored.lock().unwrap().iter().all(|submission| submission.nonce == nonce));
    assert_eq!(scene.deposits().await, TransactionIndex(1));
}

#[tokio::test]
async fn a_transaction_that_the_node_forgets_is_sent_again() {
    let scene = Scene::new().await;
    let sender = scene.sender().await;
    let submission = sender.prepare(scene.deposit(5)).await.unwrap();
    sender.broadcast(&submission).await.unwrap();
    assert_eq!(sender.status(&submission).await.unwrap(), Status::Pending { known: true });
    let _: Value = scene.anvil.request("anvil_dropAllTransactions", json!([])).await;
    assert_eq!(sender.status(&submission).await.unwrap(), Status::Pending { known: false });
    let confirmation = Confirmation::start(sender, submission);
    confirmation.until("submission", submitted).await;
    scene.anvil.mine(1).await;
    confirmation.until("inclusion", included).await;
    scene.anvil.mine(2).await;
    confirmation.task.await.unwrap().unwrap();
    assert_eq!(scene.deposits().await, TransactionIndex(1));
}

#[tokio::test]
async fn a_stored_submission_is_resumed_at_any_point_and_happens_once() {
    let scene = Scene::new().await;
    let submission = scene.sender().await.prepare(scene.deposit(5)).await.unwrap();
    let stored = serde_json::to_string(&submission).unwrap();
    // Restarted before the broadcast, after it, after the inclusion, and after the end.
    for step in 0..4 {
        let submission: Submission = serde_json::from_str(&stored).unwrap();
        let confirmation = Confirmation::start(scene.sender().await, submission);
        if step < 3 {
            confirmation.until("submission", submitted).await;
            confirmation.task.abort();
            if step == 1 {
                scene.anvil.mine(1).await;
            } else if step == 2 {
                scene.anvil.mine(3).await;
            }
        } else {
            assert!(confirmation.task.await.unwrap().unwrap().success);
        }
    }
    assert_eq!(scene.deposits().await, TransactionIndex(1));
    let stranger = scene.anvil.sender(scene.contract, scene.anvil.rich_key(1), Finality::Finalized).await;
    let error = stranger.broadcast(&submission).await.unwrap_err();
    assert!(matches!(error, SendError::OtherKey { .. }), "{error}");
}

#[tokio::test]
async fn a_nonce_taken_by_another_transaction_is_noticed() {
    let scene = Scene::new().await;
    let sender = scene.sender().await;
    let submission = sender.prepare(scene.deposit(5)).await.unwrap();
    let key = scene.anvil.rich_key(0);
    let other = scene.anvil.send_raw(&key, submission.nonce, key.address().into(), U256::ZERO, Default::default());
    scene.anvil.mined_receipt(other.await).await;
    scene.anvil.mine(2).await;
    let error = sender.confirm(submission, &mut |_| Ok(()), &mut |_| ()).await.unwrap_err();
    assert!(matches!(error, SendError::Superseded { nonce: 0, .. }) && !error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_transaction_that_reverts_on_the_chain_is_reported() {
    let scene = Scene::new().await;
    let token = scene.anvil.deploy_artifact("DemoToken.sol/DemoToken.json", &token_arguments()).await;
    let owner = scene.anvil.rich_key(9);
    let sender = scene.anvil.sender(scene.contract, owner.clone(), Finality::Finalized).await;
    let approve = Token::new(sender.primary().clone(), token).approve(U256::from(10));
    let approval = sender.prepare(approve).await.unwrap();
    sender.broadcast(&approval).await.unwrap();
    scene.anvil.mine(1).await;
    let deposit = Call::deposit_token(scene.contract, ALICE, Asset(token), Amount(10));
    let submission = sender.prepare(deposit).await.unwrap();
    // Between simulation and inclusion the allowance goes.
    let revoke = Token::new(sender.primary().clone(), token).approve(U256::ZERO);
    scene.anvil.send_raw(&owner, submission.nonce, token.into(), U256::ZERO, revoke.data).await;
    scene.anvil.mine(1).await;
    let offer = sender.current_offer().await.unwrap();
    let late = sender.prepare_within(submission.call, &offer, submission.gas_limit).await.unwrap();
    sender.broadcast(&late).await.unwrap();
    scene.anvil.mine(3).await;
    let error = sender.confirm(late, &mut |_| Ok(()), &mut |_| ()).await.unwrap_err();
    assert!(matches!(error, SendError::RevertedOnChain { .. }) && !error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_trial_sees_the_price_of_gas_that_the_transaction_will_see() {
    let scene = Scene::new().await;
    let sender = scene.sender().await;
    let callee = Address::repeat_byte(0xab);
    // Reverts where gas costs nothing.
    let _: Value = scene.anvil.request("anvil_setCode", json!([callee, "0x3a60095760006000fd5b00"])).await;
    let call = Call { to: callee, value: U256::ZERO, data: Default::default() };
    let submission = sender.prepare(call.clone()).await.unwrap();
    // Burns what it gets: told as a revert, whatever the node calls it.
    let _: Value = scene.anvil.request("anvil_setCode", json!([callee, "0x5b600056"])).await;
    let error = sender.prepare(call).await.unwrap_err();
    assert!(matches!(error, SendError::Primary(PrimaryError::Reverted(_))), "{error}");
    assert!(submission.gas_limit < 200_000);
}

#[tokio::test]
async fn unsendable_transactions_are_not_prepared_and_rejected_ones_are_reported() {
    let scene = Scene::new().await;
    let sender = scene.sender().await;
    let offer = sender.current_offer().await.unwrap();
    let error = sender.prepare_within(scene.deposit(5), &offer, offer.gas_max + 1).await.unwrap_err();
    assert!(matches!(error, SendError::TooMuchGas { .. }) && !error.is_retryable(), "{error}");
    assert!(sender.prepare_within(scene.deposit(5), &offer, offer.gas_max).await.is_ok());
    // As it was prepared once: with more gas than a block has.
    let submission = sender.prepare(scene.deposit(5)).await.unwrap();
    let generous = Offer { gas_max: 31_000_000, ..offer };
    let large = sender.prepare_within(scene.deposit(5), &generous, 31_000_000).await.unwrap();
    let error = sender.broadcast(&large).await.unwrap_err();
    assert!(matches!(error, SendError::Unsendable { .. }) && !error.is_retryable(), "{error}");
    // Nothing is concluded where one of two nodes does not answer, or has an earlier offer.
    let away = LyingNode::start(&scene.anvil.url());
    let config = PrimaryConfig { rpc_urls: vec![scene.anvil.url(), away.url()], ..scene.anvil.config(scene.contract) };
    let both = Sender::new(Primary::connect(config).await.unwrap(), scene.anvil.rich_key(0), SenderConfig::default());
    away.go_away(true);
    assert!(both.broadcast(&large).await.unwrap_err().is_retryable());
    sender.broadcast(&submission).await.unwrap();
    let attempts = [submission.attempts.clone(), large.attempts.clone()].concat();
    sender.broadcast(&Submission { attempts, ..large.clone() }).await.unwrap();
    // Its nonce is the next one's.
    scene.anvil.request::<Value>("anvil_dropAllTransactions", json!([])).await;
    let after = sender.prepare_within(scene.deposit(5), &offer, submission.gas_limit).await.unwrap();
    assert_eq!(after.nonce, large.nonce + 1);
    sender.broadcast(&after).await.unwrap();
    assert_eq!(sender.prepare(scene.deposit(5)).await.unwrap().nonce, large.nonce + 2);
    sender.release(large.nonce);
    assert_eq!(sender.prepare(scene.deposit(5)).await.unwrap().nonce, large.nonce);
}

#[tokio::test]
async fn a_node_that_goes_away_while_a_transaction_is_under_way_costs_only_time() {
    let scene = Scene::new().await;
    let node = LyingNode::start(&scene.anvil.url());
    let config = PrimaryConfig { rpc_urls: vec![node.url()], ..scene.anvil.config(scene.contract) };
    let primary = Primary::connect(config).await.unwrap();
    let config = SenderConfig { poll_interval_ms: 20, ..Default::default() };
    let sender = Sender::new(primary, scene.anvil.rich_key(0), config);
    let submission = sender.prepare(scene.deposit(5)).await.unwrap();
    let confirmation = Confirmation::start(sender, submission);
    confirmation.until("submission", submitted).await;
    node.go_away(true);
    let waits = |_: &[Submission], seen: &[Progress]| seen.iter().any(|p| matches!(p, Progress::Waiting { .. }));
    confirmation.until("a report of it", waits).await;
    scene.anvil.mine(3).await;
    node.go_away(false);
    assert!(confirmation.task.await.unwrap().unwrap().success);
}

fn token_arguments() -> Vec<u8> {
    ("Demo Token", "DEMO", U256::from(6), U256::from(1_000)).abi_encode_params()
}

#[tokio::test]
async fn tokens_are_read_approved_permitted_and_deposited() {
    let anvil = Anvil::start(Mining::EveryMs(100));
    let contract = anvil.deploy(&committee()).await;
    let address = anvil.deploy_artifact("DemoToken.sol/DemoToken.json", &token_arguments()).await;
    let owner = anvil.rich_key(9);
    let sender = anvil.sender(contract, owner.clone(), Finality::Finalized).await;
    let token = Token::new(sender.primary().clone(), address);
    let metadata = token.metadata().await.unwrap();
    assert_eq!((metadata.symbol.as_str(), metadata.decimals), ("DEMO", 6));
    assert_eq!(token.balance_of(owner.address()).await.unwrap(), U256::from(1_000));
    let mut silent = |_| ();
    sender.send_and_wait(token.approve(U256::from(10)), &mut silent).await.unwrap();
    assert_eq!(token.allowance(owner.address()).await.unwrap(), U256::from(10));
    let deposit = Call::deposit_token(contract, ALICE, Asset(address), Amount(10));
    sender.send_and_wait(deposit, &mut silent).await.unwrap();
    let permit = token.permit(owner.address(), U256::from(7), U256::from(u64::MAX)).await.unwrap();
    let signature = owner.sign_hash_sync(&permit.digest).unwrap();
    let deposit =
        Call::deposit_token_with_permit(contract, ALICE, Asset(address), Amount(7), permit.deadline, &signature);
    sender.send_and_wait(deposit, &mut silent).await.unwrap();
    assert_eq!(sender.primary().total_balance(Asset(address)).await.unwrap(), U256::from(17));
}

#[tokio::test]
async fn what_is_no_token_gets_a_typed_error() {
    let scene = Scene::new().await;
    let primary = scene.anvil.primary(scene.contract, Finality::Finalized).await;
    for address in [Address::repeat_byte(1), scene.contract] {
        let token = Token::new(primary.clone(), address);
        let error = token.metadata().await.unwrap_err();
        assert!(matches!(error, PrimaryError::BadToken { .. }), "{error}");
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn what_nobody_signed_is_neither_signed_nor_sent() {
    let scene = Scene::new().await;
    let sender = scene.sender().await;
    let planted = Submission { attempts: Vec::new(), ..sender.prepare(scene.deposit(5)).await.unwrap() };
    let mut stored = 0;
    let mut store = |_: &Submission| {
        stored += 1;
        Ok(())
    };
    let outcomes = [
        sender.broadcast(&planted).await,
        sender.raised(&planted).await.map(drop),
        sender.confirm(planted.clone(), &mut store, &mut |_| ()).await.map(drop),
    ];
    for outcome in outcomes {
        let error = outcome.unwrap_err();
        assert!(matches!(error, SendError::NoAttempt) && !error.is_retryable(), "{error}");
    }
    assert!(!sender.is_own(&planted) && stored == 0);
}
