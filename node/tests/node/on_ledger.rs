//! A whole authority whose Primary is a ledger. The ledger is scripted: its rules and certificates are real.

use std::path::Path;

use fastpay_client::ClientError;
use fastpay_core::{
    AccountKey, Amount, Asset, AuthorityKeys, Balance, ContractVote, Epoch, PrimaryAddress, SequenceNumber, UnlockVote,
};
use fastpay_ledger_client::scripted::{COMMITTEE, ScriptedLedger};
use fastpay_ledger_statement::{Action, Time, UnlockRequest};
use fastpay_node::authority::config::{Config, Overrides};
use fastpay_node::authority::keys::KeyFiles;
use fastpay_node::operator::setup::{self, LedgerKind, PrimarySection, SetupError};
use fastpay_program::Clock;
use fastpay_rpc::{Refusal, UnlockAnswer};
use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption};

use crate::authority::{Running, free_ports, get};
use crate::scene::eventually_async;

fn bank() -> AccountKey {
    AccountKey::ed25519([1; 32])
}

fn init(folder: &Path, name: &str, ledger: &Path, committee: &TestCommittee) -> Result<Config, SetupError> {
    let (listen, http) = free_ports(2);
    let config = folder.join(format!("{name}.toml"));
    let (kind, file) = (LedgerKind::Ledger, ledger.to_path_buf());
    let request = setup::Request {
        config: config.clone(),
        data: folder.join(name),
        endpoints: None,
        keys: KeyFiles::in_folder(folder),
        shards: 2.try_into().unwrap(),
        listen,
        http,
        primary: Some(PrimarySection::Ledger { kind, file, committee: COMMITTEE }),
        genesis: None,
    };
    setup::init(request, committee.keys[0].public().name)?;
    Ok(Config::read(&config, Overrides::default()).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_credits_what_a_ledger_funds_and_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let now = Time(Clock::system().now_ms() - 60_000);
    let mut ledger = ScriptedLedger::start(&TestCommittee::new(4).committee, &bank(), now).await;
    let committee = TestCommittee::with(4, ledger.history().domain(), Epoch(0));
    let missing = init(folder.path(), "nowhere", &folder.path().join("ledger.toml"), &committee).unwrap_err();
    assert!(matches!(missing, SetupError::Ledger(_)), "{missing}");
    let file = ledger.write(folder.path());
    let config = init(folder.path(), "data", &file, &committee).unwrap();
    let keys = committee.keys[0].clone();
    let (alice, bob) = (TestAccount::numbered(0), TestAccount::numbered(1));
    let order = alice.sign(&committee.domain, payment(alice.id(), bob.id(), 10, 0));

    let running = Running::ready(config.clone(), keys.clone()).await;
    ledger.history().fund(&bank(), &[(alice.id(), 100)]);
    let balance = async |running: &Running, account: &TestAccount, expected: u128| {
        let shard = running.client.shard_of(&account.id()).clone();
        eventually_async("the balance is right", || async {
            let state = shard.account(account.id()).await.unwrap();
            state.balance(Asset::ETHER) == Balance::from(Amount(expected))
        })
        .await;
    };
    balance(&running, &alice, 100).await;
    let shard = running.client.shard_of(&alice.id());
    shard.order(&order).await.unwrap();
    let confirmed = shard.confirm(&committee.certificate(&order)).await;
    assert_eq!(confirmed, Ok((Some(Epoch(0)), SequenceNumber(1))));
    balance(&running, &bob, 10).await;
    let (_, status) = get(running.http, "/v1/status").await.unwrap();
    assert!(status.contains(&format!("{:?}", committee.domain.contract()).to_lowercase()), "{status}");
    assert!(status.contains("\"restored\":false"), "{status}");
    running.stop().await.unwrap();

    // It starts, and votes, while the ledger is away; then it follows on.
    (0..4).for_each(|member| ledger.kill(member));
    let running = Running::begin(config.clone(), vec![keys.clone()]);
    eventually_async("it serves", || async { get(running.http, "/health").await.is_some() }).await;
    balance(&running, &alice, 90).await;
    let paid = redemption(alice.id(), PrimaryAddress::repeat_byte(9), 20, 1);
    let order = alice.sign(&committee.domain, paid.clone());
    let shard = running.client.shard_of(&alice.id());
    shard.order(&order).await.unwrap();
    shard.confirm(&committee.certificate(&order)).await.unwrap();
    balance(&running, &alice, 70).await;
    for member in 0..4 {
        ledger.revive(member).await;
    }
    ledger.history().redeem(&bank(), &committee.keys, Epoch(0), &paid).unwrap();
    ledger.history().fund(&bank(), &[(alice.id(), 5)]);
    balance(&running, &alice, 75).await;
    eventually_async("it is ready", || async {
        get(running.http, "/ready").await.is_some_and(|(code, _)| code == 200)
    })
    .await;

    // What waits is listed: certified here, and not paid by the ledger.
    let waiting = async |running: &Running, expected: &[&str]| {
        eventually_async("the list is right", || async {
            let Some((200, list)) = get(running.http, "/v1/redemptions/waiting").await else { return false };
            let list: serde_json::Value = serde_json::from_str(&list).unwrap();
            let numbers = list["redemptions"].as_array().unwrap().iter();
            numbers.map(|waiting| waiting["redemption"]["sequence"].as_str().unwrap()).eq(expected.iter().copied())
        })
        .await;
    };
    let next = redemption(alice.id(), PrimaryAddress::repeat_byte(9), 5, 2);
    let order = alice.sign(&committee.domain, next.clone());
    let shard = running.client.shard_of(&alice.id());
    shard.order(&order).await.unwrap();
    shard.confirm(&committee.certificate(&order)).await.unwrap();
    running.stop().await.unwrap();
    let running = Running::ready(config.clone(), keys.clone()).await;
    waiting(&running, &["2"]).await;
    running.stop().await.unwrap();
    ledger.history().redeem(&bank(), &committee.keys, Epoch(0), &next).unwrap();
    let running = Running::ready(config, keys.clone()).await;
    waiting(&running, &[]).await;
    running.stop().await.unwrap();

    // Another folder for the same keys may lack votes: the ledger says that the committee is in use.
    let again = init(folder.path(), "again", &file, &committee).unwrap();
    let running = Running::ready(again, keys).await;
    balance(&running, &alice, 105).await;
    let (_, status) = get(running.http, "/v1/status").await.unwrap();
    assert!(status.contains("\"restored\":true"), "{status}");
    running.stop().await.unwrap();
}

/// The ledger freezes a number, and decides about it; the authority votes by what it knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_number_is_voided_or_upheld_by_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let now = Time(Clock::system().now_ms() - 60_000);
    let ledger = ScriptedLedger::start(&TestCommittee::new(4).committee, &bank(), now).await;
    let committee = TestCommittee::with(4, ledger.history().domain(), Epoch(0));
    let config = init(folder.path(), "data", &ledger.write(folder.path()), &committee).unwrap();
    let (alice, bob) = (TestAccount::numbered(0), TestAccount::numbered(1));
    let running = Running::ready(config, committee.keys[0].clone()).await;
    ledger.history().fund(&bank(), &[(alice.id(), 100)]);
    let shard = running.client.shard_of(&alice.id()).clone();
    let balance = async |expected: u128| {
        eventually_async("the balance is right", || async {
            shard.account(alice.id()).await.unwrap().balance(Asset::ETHER) == Balance::from(Amount(expected))
        })
        .await;
    };
    balance(100).await;
    let request = |sequence| {
        let (account, sequence) = (alice.id(), SequenceNumber(sequence));
        let authorization = alice.key.authorize(committee.domain.unlock_request_digest(account, sequence));
        let request = UnlockRequest { committee: COMMITTEE, account, sequence, authorization };
        ledger.history().act(&bank(), Action::RequestUnlock(request)).unwrap();
    };
    let answer = async |sequence: u64, is_void: bool| {
        let name = (alice.id(), SequenceNumber(sequence));
        let mut last = None;
        for _ in 0..600 {
            let answer = shard.vote_unlock(name, true).await;
            match &answer {
                Ok(UnlockAnswer::Void { vote, .. }) if is_void => return vote.clone(),
                Ok(UnlockAnswer::Certificate { vote, .. }) if !is_void => return vote.clone(),
                _ => last = Some(answer),
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("no vote on number {sequence}: {last:?}");
    };
    // The vote of the authority, and those of the others, whom this test stands for.
    let votes = |own: ContractVote, sequence: u64, vote: UnlockVote| -> Vec<ContractVote> {
        let (domain, sequence) = (&committee.domain, SequenceNumber(sequence));
        let sign = |keys: &AuthorityKeys| vote.sign(keys, domain, Epoch(0), alice.id(), sequence);
        let own_name = committee.keys[0].public().name;
        let mut votes: Vec<_> = committee.keys.iter().map(sign).collect();
        let place = votes.iter().position(|vote| vote.authority == own_name).unwrap();
        votes[place] = own;
        votes.truncate(vote.needed(&committee.committee));
        votes
    };
    let account = alice.id();

    // The authority has voted for an order of number 0, and nobody knows a certificate.
    let pay = |amount, sequence| alice.sign(&committee.domain, payment(account, bob.id(), amount, sequence));
    shard.order(&pay(10, 0)).await.unwrap();
    request(0);
    let void = votes(answer(0, true).await, 0, UnlockVote::Void { unanimous: true });
    let frozen = shard.order(&pay(10, 0)).await;
    assert_eq!(frozen, Err(ClientError::Refused(Refusal::Frozen(SequenceNumber(0)))));
    let (sequence, unanimous) = (SequenceNumber(0), true);
    let action = Action::Void { committee: COMMITTEE, account, sequence, unanimous, votes: void };
    ledger.history().act(&bank(), action).unwrap();
    eventually_async("number 1 is next", || async {
        shard.account(account).await.unwrap().next_sequence == SequenceNumber(1)
    })
    .await;
    balance(100).await;

    // A certificate of number 1 is shown after the request. It is kept and attested, and executed once it is upheld.
    request(1);
    let frozen = ClientError::Refused(Refusal::Frozen(SequenceNumber(1)));
    eventually_async("number 1 is frozen", || async { shard.order(&pay(10, 1)).await == Err(frozen.clone()) }).await;
    let certificate = committee.certificate(&pay(10, 1));
    assert_eq!(shard.confirm(&certificate).await, Err(frozen.clone()));
    let digest = committee.domain.transfer_digest(&certificate.order.transfer);
    let attesting = votes(answer(1, false).await, 1, UnlockVote::Certificate(digest));
    balance(100).await;
    let sequence = SequenceNumber(1);
    let action = Action::Uphold { committee: COMMITTEE, account, sequence, digest, votes: attesting };
    ledger.history().act(&bank(), action).unwrap();
    balance(90).await;
    assert_eq!(shard.account(account).await.unwrap().next_sequence, SequenceNumber(2));
    running.stop().await.unwrap();
}
