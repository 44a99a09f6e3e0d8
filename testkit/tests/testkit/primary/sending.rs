//! The real sender against pools that drop transactions, fee spikes, used nonces and reorganizations.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy::primitives::U256;
use alloy::sol_types::SolCall;
use fastpay_core::{AccountKey, Amount, Asset};
use fastpay_ethereum::{
    Call, IToken, Inclusion, PrimaryError, Progress, SendError, Sender, SenderConfig, Status, Submission,
};
use fastpay_testkit::anvil::rich_key;
use fastpay_testkit::primary::{ChainConfig, Fate, SLOT_S, Weather};
use fastpay_wallet::folder::Folder;
use fastpay_wallet::{ChainAccount, Finished};
use tokio::task::JoinHandle;

use super::scene::{ALICE, Scene};

const GWEI: u64 = 1_000_000_000;

alloy::sol! {
    function transfer(address to, uint256 value) external returns (bool);
}

fn deposit(scene: &Scene, wei: u128) -> Call {
    Call::deposit_ether(scene.contract.address(), ALICE, Amount(wei))
}

/// A running submission, and its stored states.
struct Submitting {
    stored: Arc<Mutex<Vec<Submission>>>,
    task: JoinHandle<Result<Inclusion, SendError>>,
}

impl Submitting {
    fn start(sender: Sender, submission: Submission) -> Self {
        let stored = Arc::new(Mutex::new(Vec::new()));
        let to_store = stored.clone();
        let task = tokio::spawn(async move {
            let mut store = |submission: &Submission| {
                to_store.lock().unwrap().push(submission.clone());
                Ok(())
            };
            sender.confirm(submission, &mut store, &mut |_: Progress| ()).await
        });
        Self { stored, task }
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_every_pool_forgets_is_sent_again() {
    let scene = Scene::new(1);
    let sender = scene.sender(0);
    let submission = sender.prepare(deposit(&scene, 5)).await.unwrap();
    sender.broadcast(&submission).await.unwrap();
    assert_eq!(sender.status(&submission).await.unwrap(), Status::Pending { known: true });
    assert!(scene.primary.forget(submission.attempts[0].hash));
    assert_eq!(sender.status(&submission).await.unwrap(), Status::Pending { known: false });
    let submitting = Submitting::start(sender, submission);
    pass(3).await;
    scene.primary.mine(3);
    assert!(submitting.task.await.unwrap().unwrap().success);
    assert_eq!(scene.funded(), [(1, 5)]);
}

#[tokio::test(start_paused = true)]
async fn a_spike_of_fees_is_followed_up_to_the_cap_and_waited_out_above_it() {
    let scene = Scene::new(1);
    let sender = scene.sender(0);
    let submission = sender.prepare(deposit(&scene, 5)).await.unwrap();
    let offered = submission.attempts[0].fees.max_fee_per_gas;
    let submitting = Submitting::start(sender, submission);
    pass(1).await;
    scene.primary.set_next_base_fee(250 * GWEI);
    for _ in 0..4 {
        scene.primary.mine(1);
        pass(SLOT_S).await;
    }
    assert_eq!(scene.funded(), [], "the base fee is above the first offer");
    while !submitting.task.is_finished() {
        scene.primary.mine(1);
        pass(SLOT_S).await;
    }
    let inclusion = submitting.task.await.unwrap().unwrap();
    let attempts = submitting.stored.lock().unwrap().last().unwrap().attempts.clone();
    let taken = attempts.iter().find(|attempt| attempt.hash == inclusion.hash).unwrap();
    assert!(taken.fees.max_fee_per_gas > offered, "a better offer was taken");
    assert_eq!(scene.funded(), [(1, 5)]);
    let thrifty = SenderConfig { max_fee_cap_gwei: 5, ..SenderConfig::default() };
    let sender = Sender::new(scene.connect(), rich_key(2), thrifty);
    scene.primary.set_next_base_fee(9 * GWEI);
    scene.primary.mine(1);
    let error = sender.prepare(deposit(&scene, 5)).await.unwrap_err();
    assert!(matches!(error, SendError::FeesTooHigh { cap_gwei: 5, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_taken_nonce_is_noticed_when_it_is_final() {
    let scene = Scene::new(1);
    let sender = scene.sender(0);
    let submission = sender.prepare(deposit(&scene, 5)).await.unwrap();
    let key = rich_key(0);
    scene.primary.send_at(&key, submission.nonce, key.address().into(), U256::ZERO, Default::default());
    scene.primary.mine(1);
    assert_eq!(sender.status(&submission).await.unwrap(), Status::Pending { known: false }, "that may still change");
    scene.primary.finalize();
    let error = sender.confirm(submission, &mut |_| Ok(()), &mut |_| ()).await.unwrap_err();
    assert!(matches!(error, SendError::Superseded { nonce: 0, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_deposit_whose_block_goes_comes_again_and_once() {
    for fate in [Fate::Again, Fate::Later, Fate::Lost] {
        let scene = Scene::new(1);
        let sender = scene.sender(0);
        let submission = sender.prepare(deposit(&scene, 5)).await.unwrap();
        let submitting = Submitting::start(sender, submission);
        pass(1).await;
        scene.primary.mine(1);
        assert_eq!(scene.funded(), [(1, 5)]);
        scene.primary.reorganise(1, |_| fate);
        assert_eq!(scene.funded().len(), usize::from(fate == Fate::Again), "{fate:?}");
        while !submitting.task.is_finished() {
            pass(SLOT_S).await;
            scene.primary.mine(1);
        }
        assert!(submitting.task.await.unwrap().unwrap().success);
        assert_eq!(scene.funded(), [(1, 5)], "{fate:?}");
    }
}

/// Its gas is estimated where the token's slots are in use already, and they are not any more when it comes.
#[tokio::test(start_paused = true)]
async fn a_deposit_that_a_reorganisation_makes_the_first_has_gas_enough() {
    let scene = Scene::new(1);
    let (token, contract) = (scene.token(), scene.contract.address());
    let transfer = transferCall { to: rich_key(2).address(), value: U256::from(100) };
    scene.primary.send(&rich_key(9), Call { to: token.0, value: U256::ZERO, data: transfer.abi_encode().into() });
    let approve = IToken::approveCall { spender: contract, value: U256::MAX };
    scene.primary.send(&rich_key(2), Call { to: token.0, value: U256::ZERO, data: approve.abi_encode().into() });
    scene.primary.mine(1);
    scene.primary.finalize();
    scene.contract.deposit_token(&rich_key(9), ALICE, token, Amount(7));
    scene.primary.mine(1);
    let sender = scene.sender(2);
    let submission = sender.prepare(Call::deposit_token(contract, ALICE, token, Amount(5))).await.unwrap();
    scene.primary.reorganise(1, |_| Fate::Lost);
    assert_eq!(scene.funded(), [], "the other deposit is gone");
    let submitting = Submitting::start(sender, submission);
    pass(1).await;
    scene.primary.mine(1);
    scene.primary.finalize();
    assert!(submitting.task.await.unwrap().unwrap().success);
    assert_eq!(scene.funded(), [(1, 5)]);
}

/// What `fastpay deposit` does, with a folder that knows what it did before.
async fn deposit_with_wallet(scene: &Scene, home: &Path, wei: u128) -> Finished {
    let key = AccountKey::ethereum(rich_key(1).to_bytes().0).unwrap();
    let folder = Folder::new(home);
    let account = ChainAccount::new(&folder, scene.connect(), "test", &key, SenderConfig::default()).unwrap();
    let task = tokio::spawn(async move { account.deposit(ALICE, Asset::ETHER, Amount(wei)).await });
    for _ in 0..100 {
        pass(SLOT_S).await;
        if task.is_finished() {
            break;
        }
        scene.primary.mine(1);
    }
    task.await.unwrap().unwrap()
}

/// The nodes do not know of the first deposit yet: they would give its nonce away again, and the same deposit with
/// the same fees would be the same transaction, which is final already.
#[tokio::test(start_paused = true)]
async fn a_wallets_second_deposit_through_nodes_that_lag_is_a_second_one() {
    let scene = Scene::new(1);
    let home = tempfile::tempdir().unwrap();
    let first = deposit_with_wallet(&scene, home.path(), 5).await;
    scene.nodes.iter().for_each(|node| node.behave(|behaviour| behaviour.lag = 4));
    let second = deposit_with_wallet(&scene, home.path(), 5).await;
    assert_ne!(first.inclusion.hash, second.inclusion.hash);
    assert!(!second.resumed);
    assert_eq!(scene.funded(), [(1, 5), (2, 5)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_would_revert_is_not_sent_and_the_reason_is_reported() {
    let scene = Scene::new(1);
    let nothing = scene.sender(0).prepare(deposit(&scene, 0)).await.unwrap_err();
    assert!(nothing.to_string().contains("deposit more than zero"), "{nothing}");
    let pauper = fastpay_ethereum::PrivateKeySigner::from_bytes(&[3; 32].into()).unwrap();
    let sender = Sender::new(scene.connect(), pauper, SenderConfig::default());
    let error = sender.prepare(deposit(&scene, 5)).await.unwrap_err();
    assert!(matches!(error, SendError::Primary(PrimaryError::InsufficientFunds)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn whatever_the_weather_every_deposit_is_made_once() {
    for seed in 0..24 {
        let config = ChainConfig { finalized_depth: 4, ..ChainConfig::default() };
        let scene = Scene::with(config, seed);
        let mut weather = Weather::new(scene.primary.clone(), scene.nodes.clone(), seed);
        let call = deposit(&scene, 1_000 + u128::from(seed));
        let submission = scene.sender(0).prepare(call).await.unwrap();
        let submitting = Submitting::start(scene.sender(0), submission);
        for slot in 0.. {
            assert!(slot < 2_000, "seed {seed}: it never comes to an end");
            let time_s = scene.primary.time_s() + SLOT_S;
            if slot < 40 {
                weather.slot(time_s)
            } else {
                weather.calm_slot(time_s)
            }
            pass(SLOT_S).await;
            if slot >= 40 && submitting.task.is_finished() {
                break;
            }
        }
        let inclusion = submitting.task.await.unwrap().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(inclusion.success, "seed {seed}");
        assert_eq!(
            scene.primary.receipt(inclusion.hash).unwrap().block_hash,
            Some(inclusion.block_hash),
            "seed {seed}"
        );
        assert_eq!(scene.funded(), [(1, 1_000 + u128::from(seed))], "seed {seed}");
    }
}

/// One node is ahead and leaves in the middle of the questions; the other one lags behind the transaction.
#[tokio::test(start_paused = true)]
async fn what_two_nodes_know_in_part_is_not_put_together() {
    let scene = Scene::new(1);
    let sender = scene.sender(0);
    let submission = sender.prepare(deposit(&scene, 5)).await.unwrap();
    sender.broadcast(&submission).await.unwrap();
    scene.primary.mine(1);
    scene.primary.finalize();
    assert!(matches!(sender.status(&submission).await.unwrap(), Status::Final(_)));
    scene.nodes[0].behave(|behaviour| behaviour.delay_ms = 1_000..=1_000);
    scene.nodes[1].behave(|behaviour| behaviour.lag = 3);
    let first = scene.nodes[0].clone();
    tokio::spawn(async move {
        // It has told which block is final and that the nonce is used there, and not yet where the transaction is.
        tokio::time::sleep(Duration::from_millis(3_500)).await;
        first.behave(|behaviour| behaviour.away = true);
    });
    assert!(matches!(sender.status(&submission).await.unwrap(), Status::Pending { .. }));
    scene.nodes.iter().for_each(fastpay_testkit::primary::SimulatedNode::recover);
    assert!(matches!(sender.status(&submission).await.unwrap(), Status::Final(_)));
}
