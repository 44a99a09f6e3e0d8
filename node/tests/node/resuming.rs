//! A command follows the transaction that an earlier one stored beside the announcement, and nothing else that stands
//! there.

use std::path::Path;

use fastpay_core::PrimaryAddress;
use fastpay_ethereum::{Call, Finality, Offer, Sender, Submission};
use fastpay_node::operator::committee::{CommitteeError, State};
use fastpay_testkit::anvil::{GUARDIAN_KEY, Rotation};
use serde_json::{Value, json};

use crate::committee::signers;
use crate::replacing::{DAY, Files, SENDER, TERMS};

const STRANGER: PrimaryAddress = PrimaryAddress::repeat_byte(0x55);

/// A sender with one of the chain's rich keys.
async fn sender(files: &Files, key: u32) -> Sender {
    let contract = files.scene.now.domain.contract();
    files.scene.anvil.sender(contract, files.scene.anvil.rich_key(key), Finality::Confirmations(0)).await
}

/// A signed transaction with this call, which is not sent.
async fn signed(sender: &Sender, call: Call, gas: u64) -> Submission {
    let offer = Offer { gas_max: gas, ..sender.current_offer().await.unwrap() };
    sender.prepare_within(call, &offer, gas).await.unwrap()
}

fn store(path: &Path, submission: &Submission) {
    std::fs::write(path, serde_json::to_vec(submission).unwrap()).unwrap();
}

/// Why the command refuses what is stored.
fn refused<T: std::fmt::Debug>(files: &Files, outcome: Result<T, CommitteeError>) -> String {
    match outcome.unwrap_err() {
        CommitteeError::OtherTransaction { path, found } if path == files.transaction() => found,
        error => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planted_transaction_is_not_signed_and_a_step_of_another_announcement_not_sent() {
    let files = Files::new().await;
    files.propose(&TERMS).await.unwrap();
    let votes = files.signed_by(&[0, 1, 2]).await;
    let rotation = Rotation::new(
        files.scene.now.domain.contract(),
        signers(&files.scene.now),
        signers(&files.scene.now.rotated_to(5)),
        files.scene.anvil.time_s().await + DAY,
    );
    let (sender, path) = (sender(&files, SENDER).await, files.transaction());
    let transfer = |to: PrimaryAddress, wei: u64| Call { to, data: Default::default(), value: wei.try_into().unwrap() };
    let planted = Submission { attempts: Vec::new(), ..signed(&sender, transfer(STRANGER, 7), 30_000).await };
    let own = Call::mature(rotation.council(), files.propose(&TERMS).await.unwrap().1.id);
    let wrong = [
        (planted, "signed"),
        (signed(&sender, transfer(STRANGER, 0), 30_000).await, "no step"),
        (signed(&sender, transfer(rotation.council(), 7), 30_000).await, "no step"),
        (signed(&sender, transfer(rotation.council(), 0), 30_000).await, "no step"),
        (signed(&sender, rotation.announce(), 3_000_000).await, "(Announce) of another announcement"),
        (signed(&sender, rotation.endorse(), 3_000_000).await, "(Endorse) of another announcement"),
        (signed(&sender, own, 3_000_000).await, "another step of this announcement (Mature)"),
    ];
    for (submission, words) in wrong {
        store(&path, &submission);
        let found = refused(&files, files.announce(&votes).await);
        assert!(found.contains(words), "{found}");
        assert!(path.exists());
    }
    assert_eq!(
        (files.sent(SENDER).await, sender.primary().ether_balance(STRANGER).await.unwrap().is_zero()),
        (0, true)
    );
    std::fs::remove_file(&path).unwrap();
    assert_eq!(files.announce(&votes).await.unwrap().state, State::Announced);
    // The guardian's and the installing command refuse what the others send.
    store(&path, &signed(&self::sender(&files, GUARDIAN_KEY).await, rotation.announce(), 3_000_000).await);
    let found = refused(&files, files.endorse(GUARDIAN_KEY).await);
    assert!(found.contains("(Announce) of another"), "{found}");
    store(&path, &signed(&sender, rotation.endorse(), 3_000_000).await);
    let found = refused(&files, files.install(&[]).await);
    assert!(found.contains("(Endorse) of another"), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_nonce_of_a_stored_transaction_that_no_node_takes_is_used_again() {
    let files = Files::new().await;
    let id = files.announced().await;
    let sender = sender(&files, SENDER).await;
    let before = files.sent(SENDER).await;
    // It was prepared where blocks were larger.
    let council = fastpay_testkit::anvil::council_of(files.scene.now.domain.contract());
    store(&files.transaction(), &signed(&sender, Call::mature(council, id), 16_000_000).await);
    let _: Value = files.scene.anvil.request("evm_setBlockGasLimit", json!(["0x7a1200"])).await;
    let patience = crate::scene::PATIENCE;
    let there = tokio::time::timeout(patience, files.install(&[])).await.unwrap().unwrap();
    assert_eq!((there.state, files.sent(SENDER).await), (State::Matured, before + 1));
    assert!(!files.transaction().exists());
}
