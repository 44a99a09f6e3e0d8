//! Stuck accounts: requests of owners without ETH are brought within a budget, and what authorities sign about any
//! request is brought to the contract, once, whatever restarts.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy::primitives::U256;
use alloy::primitives::utils::parse_ether;
use fastpay_core::{
    AccountKey, Amount, Asset, Deposit, Memo, Payment, SequenceNumber, TransactionIndex, TransferOrder, UnlockEvent,
    UnlockEventKind,
};
use fastpay_ethereum::{Call, UnlockState};
use fastpay_relayer::{Refusal, RefusalCode, Relayer, State, Taken, UnlockConfig, serve_wallets};
use fastpay_testkit::anvil::{LyingNode, Mining};
use fastpay_testkit::fake::Role;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::scene::{ETHER, Scene};

const DAY_MS: u64 = 86_400_000;
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn owner(number: u8) -> AccountKey {
    AccountKey::ed25519([number; 32])
}

/// Authorities that know deposits of the owners 1, 2, ….
fn fund(scene: &Scene, owners: u8) {
    for number in 1..=owners {
        let (index, recipient) = (TransactionIndex(number.into()), owner(number).account());
        let deposit = Deposit { index, recipient, asset: Asset::ETHER, amount: Amount(ETHER) };
        scene.authorities.iter().for_each(|authority| authority.deposit(&deposit));
    }
}

fn order(scene: &Scene, key: &AccountKey, amount: u128, sequence: u64) -> TransferOrder {
    let (sender, recipient) = (key.account(), owner(99).account());
    let (asset, amount, sequence) = (Asset::ETHER, Amount(amount), SequenceNumber(sequence));
    let payment = Payment { sender, recipient, asset, amount, sequence, memo: Memo::ZERO };
    key.order(&scene.primary.domain(), payment.into())
}

/// Two orders of the owner's first number, with two authorities locked on each.
fn equivocate(scene: &Scene, key: &AccountKey) {
    for (number, authority) in scene.authorities.iter().enumerate() {
        authority.lock(&order(scene, key, if number < 2 { 1 } else { 2 }, 0));
    }
}

/// The authorities follow the chain to the request, whose event is the one after those of `known` deposits.
fn freeze(scene: &Scene, key: &AccountKey, known: u64) {
    let (after, index) = (TransactionIndex(known), TransactionIndex(known + 1));
    let (account, sequence, kind) = (key.account(), SequenceNumber(0), UnlockEventKind::Requested(0));
    let event = UnlockEvent { after, index, account, sequence, kind };
    scene.authorities.iter().for_each(|authority| authority.follow_unlock(&event));
}

async fn round(relayer: &mut Relayer) {
    relayer.tick(false).await.unwrap();
    relayer.unlock_round().await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
}

async fn work_until(relayer: &mut Relayer, done: impl Fn(&State) -> bool) {
    for _ in 0..1_500 {
        round(relayer).await;
        if done(relayer.state()) {
            return;
        }
    }
    panic!("{:?}", relayer.state());
}

/// The relayer's answer to a request signed by its owner or another account.
async fn ask_signed_by(
    relayer: &mut Relayer,
    key: &AccountKey,
    by: &AccountKey,
    sequence: u64,
) -> Result<Taken, Refusal> {
    let (desk, sequence) = (relayer.unlock_desk().unwrap(), SequenceNumber(sequence));
    let domain = relayer_domain(relayer);
    let (account, authorization) = (key.account(), by.sign_unlock_request(&domain, sequence));
    let asked = tokio::spawn(async move { desk.ask(CLIENT, account, sequence, authorization).await });
    while !asked.is_finished() {
        round(relayer).await;
    }
    asked.await.unwrap()
}

fn relayer_domain(relayer: &Relayer) -> fastpay_core::Domain {
    fastpay_core::Domain::new(relayer.state().chain_id, relayer.state().contract)
}

async fn ask(relayer: &mut Relayer, key: &AccountKey, sequence: u64) -> Result<Taken, Refusal> {
    ask_signed_by(relayer, key, key, sequence).await
}

async fn refused(relayer: &mut Relayer, key: &AccountKey, sequence: u64) -> RefusalCode {
    ask(relayer, key, sequence).await.unwrap_err().code
}

/// Somebody else brings a request, with this authorization.
async fn request_by_others(scene: &Scene, key: &AccountKey, authorization: Vec<u8>) {
    let (council, bond) = (scene.primary.council().await.unwrap(), scene.primary.unlock_bond().await.unwrap());
    let call = Call::request_unlock(council, key.account(), SequenceNumber(0), authorization, bond);
    let (payer, nonce) = (scene.anvil.rich_key(6), 0);
    let hash = scene.anvil.send_raw(&payer, nonce, call.to.into(), call.value, call.data).await;
    scene.anvil.mined_receipt(hash).await;
}

async fn state_of(scene: &Scene, key: &AccountKey) -> UnlockState {
    scene.primary.unlock_state(key.account(), SequenceNumber(0)).await.unwrap()
}

#[tokio::test]
async fn what_a_request_costs_is_charged_on_disk_before_it_is_sent() {
    let mut scene = Scene::new(Mining::EveryMs(100)).await;
    let node = LyingNode::start(&scene.anvil.url());
    scene.config.primary.rpc_urls = vec![node.url()];
    fund(&scene, 1);
    equivocate(&scene, &owner(1));
    let (sent, data_dir) = (Arc::new(Mutex::new(Vec::new())), scene.config.data_dir.clone());
    let seen = sent.clone();
    node.lie(move |method, _, _| {
        if method == "eth_sendRawTransaction" {
            let state = State::read(&data_dir).unwrap();
            let is_request = state.bundles.iter().any(|bundle| bundle.unlock.is_some());
            seen.lock().unwrap().push((is_request, state.unlock.spent_wei));
        }
    });
    let mut relayer = scene.relayer().await;
    ask(&mut relayer, &owner(1), 0).await.unwrap();
    let spent = relayer.state().unlock.spent_wei;
    assert!(spent > parse_ether("0.005").unwrap(), "{spent}");
    assert_eq!(*sent.lock().unwrap(), [(true, spent)]);
}

#[tokio::test]
async fn a_request_of_an_owner_without_ether_is_brought_and_its_number_voided_by_all() {
    let scene = Scene::new(Mining::EveryMs(100)).await;
    fund(&scene, 1);
    equivocate(&scene, &owner(1));
    let mut relayer = scene.relayer().await;
    let sent = ask(&mut relayer, &owner(1), 0).await.unwrap();
    assert!(matches!(sent, Taken::Sent { .. }), "{sent:?}");
    let again = ask(&mut relayer, &owner(1), 0).await;
    let is_mined = matches!(again, Ok(Taken::Requested { .. }));
    assert!(again == Ok(sent) || is_mined, "the same again sends nothing: {again:?}");
    let spent = relayer.state().unlock.spent_wei;
    assert!(spent > parse_ether("0.005").unwrap() && spent < parse_ether("0.006").unwrap(), "{spent}");
    work_until(&mut relayer, |state| state.bundles.is_empty() && state.unlock.open.len() == 1).await;
    let requested = ask(&mut relayer, &owner(1), 0).await.unwrap();
    assert!(matches!(requested, Taken::Requested { .. }), "{requested:?}");
    assert_eq!(refused(&mut relayer, &owner(1), 1).await, RefusalCode::OneAtATime);
    freeze(&scene, &owner(1), 1);
    work_until(&mut relayer, |state| state.unlock.open.is_empty() && state.bundles.is_empty()).await;
    assert_eq!(state_of(&scene, &owner(1)).await, UnlockState::Voided);
    assert_eq!(relayer.state().unlock.spent_wei, spent, "the bond that came back paid for the gas");
    assert_eq!(scene.transactions().await, 2);
    assert_eq!(refused(&mut relayer, &owner(1), 0).await, RefusalCode::Spent);
    let counted = relayer.metrics().text();
    for line in ["unlock_requested_total 1", "unlock_voided_total 1", "unlock_upheld_total 0", "unlock_open 0"] {
        assert!(counted.lines().any(|counted| counted == format!("fastpay_relayer_{line}")), "{line}: {counted}");
    }
}

#[tokio::test]
async fn what_is_not_signed_by_the_owner_or_not_stuck_costs_nothing() {
    let mut scene = Scene::new(Mining::EveryMs(100)).await;
    fund(&scene, 5);
    equivocate(&scene, &owner(1));
    // A quorum can still finish the order of the second owner; the third's is executed.
    scene.authorities.iter().take(3).for_each(|authority| authority.lock(&order(&scene, &owner(2), 1, 0)));
    let certificate = scene.certify_order(&order(&scene, &owner(3), 1, 0));
    scene.authorities.iter().for_each(|authority| authority.confirm(&certificate));
    // One authority has executed an order of the fifth owner, whom two others know by another one.
    let certificate = scene.certify_order(&order(&scene, &owner(5), 1, 0));
    scene.authorities[0].confirm(&certificate);
    scene.authorities[1].lock(&order(&scene, &owner(5), 1, 0));
    scene.authorities[2].lock(&order(&scene, &owner(5), 2, 0));
    let mut relayer = scene.relayer().await;
    let strange = ask_signed_by(&mut relayer, &owner(1), &owner(2), 0).await.unwrap_err();
    assert_eq!(strange.code, RefusalCode::NotOwner);
    let desk = relayer.unlock_desk().unwrap();
    let mut damaged = owner(1).sign_unlock_request(&scene.primary.domain(), SequenceNumber(0));
    damaged[90] ^= 1;
    let bad = desk.ask(CLIENT, owner(1).account(), SequenceNumber(0), damaged).await.unwrap_err();
    assert_eq!(bad.code, RefusalCode::NotOwner);
    assert_eq!(refused(&mut relayer, &owner(1), 1).await, RefusalCode::NotNext);
    assert_eq!(refused(&mut relayer, &owner(2), 0).await, RefusalCode::NotStuck);
    assert_eq!(refused(&mut relayer, &owner(3), 0).await, RefusalCode::Spent);
    assert_eq!(refused(&mut relayer, &owner(4), 0).await, RefusalCode::NotStuck);
    assert_eq!(refused(&mut relayer, &owner(5), 0).await, RefusalCode::Spent);
    // The relayer has shown it to the others, so its owner finds it whatever the first one hides.
    let executed = scene.authorities.iter().filter(|authority| authority.next_sequence(owner(5).account()) == 1);
    assert!(executed.count() >= 3);
    scene.pause().await;
    let paused = ask(&mut relayer, &owner(1), 0).await.unwrap_err();
    assert_eq!(paused.code, RefusalCode::Paused);
    assert!(paused.retry_after.unwrap() > Duration::from_secs(60), "{paused:?}");
    assert_eq!((scene.transactions().await, relayer.state().unlock.spent_wei), (0, U256::ZERO));
    drop(relayer);
    scene.config.unlock = UnlockConfig::OFF;
    assert!(scene.relayer().await.unlock_desk().is_none());
}

#[tokio::test]
async fn a_certificate_of_retired_keys_that_one_authority_shows_keeps_no_owner_locked() {
    let scene = Scene::new(Mining::EveryMs(100)).await;
    fund(&scene, 1);
    scene.authorities[0].confirm(&scene.certify_order(&order(&scene, &owner(1), 1, 0)));
    scene.retire_keys().await;
    for (authority, amount) in scene.authorities.iter().zip(1..4).skip(1) {
        authority.lock(&order(&scene, &owner(1), amount, 0));
    }
    let mut relayer = scene.relayer().await;
    let sent = ask(&mut relayer, &owner(1), 0).await.unwrap();
    assert!(matches!(sent, Taken::Sent { .. }), "{sent:?}");
}

#[tokio::test]
async fn a_forged_certificate_that_one_authority_attests_does_not_hide_the_genuine_one() {
    let scene = Scene::new(Mining::EveryMs(100)).await;
    fund(&scene, 1);
    let forged = scene.certify_order(&order(&scene, &owner(1), 2, 0));
    scene.authorities[0].confirm(&forged);
    scene.retire_keys().await;
    let certificate = scene.certify_order(&order(&scene, &owner(1), 1, 0));
    scene.authorities[2].confirm(&certificate);
    request_by_others(&scene, &owner(1), owner(1).sign_unlock_request(&scene.primary.domain(), SequenceNumber(0)))
        .await;
    let mut relayer = scene.relayer().await;
    work_until(&mut relayer, |state| state.totals.unlock_upheld == 1 && state.unlock.open.is_empty()).await;
    assert_eq!(state_of(&scene, &owner(1)).await, UnlockState::Upheld);
    let executed = [1, 2, 3].map(|honest| scene.authorities[honest].balance(owner(99).account()));
    assert_eq!(executed, [1; 3], "the genuine one");
}

#[tokio::test]
async fn the_gas_of_a_step_that_reverted_is_charged() {
    let scene = Scene::new(Mining::Manual).await;
    fund(&scene, 1);
    scene.authorities[2].confirm(&scene.certify_order(&order(&scene, &owner(1), 1, 0)));
    request_by_others(&scene, &owner(1), owner(1).sign_unlock_request(&scene.primary.domain(), SequenceNumber(0)))
        .await;
    scene.anvil.mine(3).await;
    let mut relayer = scene.relayer().await;
    work_until(&mut relayer, |state| state.bundles.len() == 1).await;
    let submission = relayer.state().bundles[0].submission.clone();
    assert!(relayer.state().unlock.spent_wei.is_zero(), "the bond pays for it");
    // Somebody else is faster.
    let _: Value = scene.anvil.request("anvil_dropTransaction", json!([submission.attempts[0].hash])).await;
    let call = submission.call;
    let hash = scene.anvil.send_raw(&scene.anvil.rich_key(6), 1, call.to.into(), call.value, call.data).await;
    scene.anvil.mined_receipt(hash).await;
    relayer.tick(true).await.unwrap();
    scene.anvil.mine(3).await;
    work_until(&mut relayer, |state| state.bundles.is_empty() && state.unlock.open.is_empty()).await;
    assert!(relayer.metrics().text().contains("fastpay_relayer_reverted_total 1"));
    assert!(!relayer.state().unlock.spent_wei.is_zero());
}

#[tokio::test]
async fn the_budget_of_a_day_is_not_given_twice() {
    let mut scene = Scene::new(Mining::EveryMs(100)).await;
    scene.config.unlock.daily_budget_wei = parse_ether("0.008").unwrap();
    fund(&scene, 2);
    equivocate(&scene, &owner(1));
    equivocate(&scene, &owner(2));
    let now_ms = 20_000 * DAY_MS + 1_000;
    let mut relayer = scene.relayer_at(now_ms);
    assert!(matches!(ask(&mut relayer, &owner(1), 0).await, Ok(Taken::Sent { .. })));
    let second = ask(&mut relayer, &owner(2), 0).await.unwrap_err();
    assert_eq!(second.code, RefusalCode::BudgetSpent);
    let wait = second.retry_after.unwrap();
    assert!(wait <= Duration::from_millis(DAY_MS) && wait > Duration::from_millis(DAY_MS - 60_000), "{wait:?}");
    drop(relayer);
    let mut relayer = scene.relayer_at(now_ms);
    assert_eq!(refused(&mut relayer, &owner(2), 0).await, RefusalCode::BudgetSpent);
    drop(relayer);
    let mut relayer = scene.relayer_at(now_ms + DAY_MS);
    assert!(matches!(ask(&mut relayer, &owner(2), 0).await, Ok(Taken::Sent { .. })));
}

#[tokio::test]
async fn a_request_that_was_under_way_at_a_restart_is_sent_once() {
    let scene = Scene::new(Mining::Manual).await;
    fund(&scene, 1);
    equivocate(&scene, &owner(1));
    let mut relayer = scene.relayer().await;
    let sent = ask(&mut relayer, &owner(1), 0).await.unwrap();
    drop(relayer);
    let mut relayer = scene.relayer().await;
    assert_eq!(ask(&mut relayer, &owner(1), 0).await, Ok(sent));
    scene.anvil.mine(4).await;
    work_until(&mut relayer, |state| state.bundles.is_empty() && state.unlock.open.len() == 1).await;
    assert_eq!((scene.transactions().await, relayer.state().totals.unlock_requested), (1, 1));
    // Without its state it learns of the request from the chain, and that the bond is its own.
    drop(relayer);
    std::fs::remove_dir_all(&scene.config.data_dir).unwrap();
    let mut relayer = scene.relayer().await;
    work_until(&mut relayer, |state| state.unlock.open.iter().any(|open| open.is_ours)).await;
    assert_eq!(scene.transactions().await, 1);
}

#[tokio::test]
async fn a_certificate_that_one_authority_has_is_upheld_for_the_bond_of_others() {
    let scene = Scene::new(Mining::EveryMs(100)).await;
    fund(&scene, 1);
    let certificate = scene.certify_order(&order(&scene, &owner(1), 1, 0));
    scene.authorities[2].confirm(&certificate);
    let mut relayer = scene.relayer().await;
    let before = scene.primary.ether_balance(relayer.address()).await.unwrap();
    request_by_others(&scene, &owner(1), owner(1).sign_unlock_request(&scene.primary.domain(), SequenceNumber(0)))
        .await;
    work_until(&mut relayer, |state| state.totals.unlock_upheld == 1 && state.unlock.open.is_empty()).await;
    assert_eq!(state_of(&scene, &owner(1)).await, UnlockState::Upheld);
    let after = scene.primary.ether_balance(relayer.address()).await.unwrap();
    assert!(after > before + parse_ether("0.004").unwrap(), "{before} {after}");
    assert_eq!((relayer.state().unlock.spent_wei, scene.transactions().await), (U256::ZERO, 1));
}

#[tokio::test]
async fn what_others_asked_for_is_voided_only_where_the_operator_wishes() {
    let mut scene = Scene::new(Mining::EveryMs(100)).await;
    fund(&scene, 1);
    equivocate(&scene, &owner(1));
    request_by_others(&scene, &owner(1), owner(1).sign_unlock_request(&scene.primary.domain(), SequenceNumber(0)))
        .await;
    freeze(&scene, &owner(1), 1);
    let mut relayer = scene.relayer().await;
    work_until(&mut relayer, |state| state.unlock.open.iter().any(|open| open.tries > 0)).await;
    let open = &relayer.state().unlock.open[0];
    assert!(open.waits_for.contains("4 vote to void"), "{open:?}");
    assert_eq!((open.is_ours, scene.transactions().await), (false, 0));
    drop(relayer);
    scene.config.unlock.void_others = true;
    let mut relayer = scene.relayer().await;
    work_until(&mut relayer, |state| state.unlock.open.is_empty() && state.bundles.is_empty()).await;
    assert_eq!(state_of(&scene, &owner(1)).await, UnlockState::Voided);
    assert!(!relayer.state().unlock.spent_wei.is_zero(), "nobody pays for this gas");
}

#[tokio::test]
async fn numbers_that_are_never_decided_keep_no_owner_waiting() {
    let scene = Scene::new(Mining::EveryMs(100)).await;
    fund(&scene, 1);
    equivocate(&scene, &owner(1));
    let mut relayer = scene.relayer().await;
    round(&mut relayer).await;
    drop(relayer);
    // As an earlier release stored them: far numbers that a stranger asked for, of an account of its own.
    let path = scene.config.data_dir.join("state.json");
    let mut state: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let open = |sequence: u64| {
        json!({
            "account": owner(7).account(), "sequence": sequence, "voidable_from": 0, "is_ours": false, "tries": 0,
            "next_at_ms": 0, "waits_for": "",
        })
    };
    state["unlock"]["open"] = (5..1_005).map(open).collect();
    std::fs::write(&path, state.to_string()).unwrap();
    let mut relayer = scene.relayer().await;
    assert_eq!(relayer.state().unlock.open.len(), 1_000);
    let sent = ask(&mut relayer, &owner(1), 0).await.unwrap();
    assert!(matches!(sent, Taken::Sent { .. }), "{sent:?}");
    work_until(&mut relayer, |state| state.bundles.is_empty() && state.unlock.open.len() == 1_001).await;
    freeze(&scene, &owner(1), 1);
    work_until(&mut relayer, |state| state.bundles.is_empty() && state.unlock.open.len() == 1_000).await;
    assert_eq!(state_of(&scene, &owner(1)).await, UnlockState::Voided);
}

#[tokio::test]
async fn a_strangers_request_is_not_followed_and_the_owners_costs_no_bond_after_it() {
    let scene = Scene::new(Mining::EveryMs(100)).await;
    fund(&scene, 1);
    equivocate(&scene, &owner(1));
    request_by_others(&scene, &owner(1), vec![7; 96]).await;
    let mut relayer = scene.relayer().await;
    let sent = ask(&mut relayer, &owner(1), 0).await.unwrap();
    assert!(matches!(sent, Taken::Sent { .. }), "{sent:?}");
    assert!(relayer.state().unlock.spent_wei < parse_ether("0.001").unwrap(), "no bond is asked for");
    work_until(&mut relayer, |state| state.bundles.is_empty() && state.unlock.open.len() == 1).await;
    assert_eq!(relayer.state().totals.unlock_requested, 1);
}

#[tokio::test]
async fn what_cannot_be_checked_or_paid_now_is_refused_for_now() {
    let scene = Scene::new(Mining::EveryMs(100)).await;
    fund(&scene, 1);
    equivocate(&scene, &owner(1));
    let mut relayer = scene.relayer().await;
    for authority in &scene.authorities[..2] {
        authority.play(Role::Down);
    }
    assert_eq!(refused(&mut relayer, &owner(1), 0).await, RefusalCode::Unavailable);
    for authority in &scene.authorities[..2] {
        authority.play(Role::Honest);
    }
    let poor = json!([relayer.address(), parse_ether("0.001").unwrap()]);
    let _: Value = scene.anvil.request("anvil_setBalance", poor).await;
    let poor = ask(&mut relayer, &owner(1), 0).await.unwrap_err();
    assert!(poor.code == RefusalCode::Unavailable && poor.detail.contains("too little ETH"), "{poor:?}");
    // No round of the relayer takes what waits.
    let desk = relayer.unlock_desk().unwrap();
    let authorization = owner(1).sign_unlock_request(&scene.primary.domain(), SequenceNumber(0));
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..17 {
        let (desk, authorization) = (desk.clone(), authorization.clone());
        asked.spawn(async move { desk.ask(CLIENT, owner(1).account(), SequenceNumber(0), authorization).await });
    }
    let busy = asked.join_next().await.unwrap().unwrap().unwrap_err();
    assert!(busy.code == RefusalCode::Busy && busy.retry_after.is_some(), "{busy:?}");
}

#[tokio::test]
async fn the_port_answers_with_typed_problems() {
    let scene = Scene::new(Mining::Manual).await;
    fund(&scene, 1);
    equivocate(&scene, &owner(1));
    let mut relayer = scene.relayer().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_stop, stop) = tokio::sync::watch::channel(false);
    tokio::spawn(serve_wallets(listener, relayer.quotes(), relayer.unlock_desk(), stop));
    let send = move |method: &'static str, content_type: &'static str, body: String| async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let request = format!(
            "{method} /v1/unlocks HTTP/1.1\r\nHost: relayer\r\nOrigin: https://wallet.example\r\nContent-Type: \
             {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_ascii_lowercase(), serde_json::from_str::<Value>(body).unwrap_or_default())
    };
    let request = |by: &AccountKey| {
        let authorization = by.sign_unlock_request(&scene.primary.domain(), SequenceNumber(0));
        let authorization = alloy::primitives::Bytes::from(authorization);
        json!({ "account": owner(1).account(), "sequence": "0", "authorization": authorization }).to_string()
    };
    let (status, head, _) = send("OPTIONS", "", String::new()).await;
    assert!(status == 204 && head.contains("access-control-allow-headers: content-type"), "{head}");
    for (content_type, body, status, code) in [
        ("text/plain", request(&owner(1)), 415, "unsupported-media-type"),
        ("application/json", "{}".into(), 400, "malformed"),
        ("application/json", " ".repeat(2_000), 413, "too-large"),
        ("application/json", request(&owner(2)), 403, "not-owner"),
    ] {
        let (found, head, problem) = send("POST", content_type, body).await;
        assert_eq!((found, &problem["code"]), (status, &json!(code)), "{problem}");
        assert!(head.contains("access-control-allow-origin: *") && head.contains("problem+json"), "{head}");
        assert_eq!(problem["type"], json!(format!("urn:fastpay:problem:{code}")));
    }
    let asked = tokio::spawn(send("POST", "application/json", request(&owner(1))));
    while !asked.is_finished() {
        round(&mut relayer).await;
    }
    let (status, _, answer) = asked.await.unwrap();
    assert_eq!((status, &answer["state"]), (202, &json!("sent")), "{answer}");
    assert!(answer["transaction"].as_str().unwrap().starts_with("0x"), "{answer}");
}
