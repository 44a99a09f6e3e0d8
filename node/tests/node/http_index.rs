//! Transfers by digest and deposits by index, over HTTP.

use fastpay_core::{AccountId, ShardId, TransactionIndex};
use fastpay_node::authority::index::{Index, NEWEST_TRANSFERS};
use fastpay_rpc::http::Retry;
use fastpay_rpc::json::{self, Decimal, Hex};
use fastpay_testkit::{TestAccount, TestCommittee, payment};

use crate::http_scene::{HttpServed, Said};
use crate::scene::{FORGETFUL, Shards, deposits_after, eventually, eventually_async, folders};

const NONE: TransactionIndex = TransactionIndex(0);

async fn deposit(served: &HttpServed, deposits: &[(AccountId, u128)]) {
    let deposits = deposits_after(NONE, deposits);
    assert!(served.shards.deposit_sink().apply(NONE, &deposits, deposits.last().unwrap().index).await);
}

fn by_digest(committee: &TestCommittee, order: &fastpay_core::TransferOrder) -> String {
    format!("/v1/transfers/{}", Hex(committee.domain.transfer_digest(&order.transfer).0))
}

/// Asks until the index has caught up.
async fn found(served: &HttpServed, path: &str) -> Said {
    eventually_async("it is found", || async { served.get(path).await.status == 200 }).await;
    served.get(path).await
}

/// Asks for the newest transfers until this one is the first.
async fn newest(served: &HttpServed, first: &fastpay_core::TransferOrder) -> Vec<json::NewTransfer> {
    let digest = Hex(served.shards.committee.domain.transfer_digest(&first.transfer).0);
    let list = async || served.get("/v1/transfers").await.good::<json::NewTransfers>().transfers;
    eventually_async("it is the first", || async { list().await.first().is_some_and(|first| first.digest == digest) })
        .await;
    list().await
}

/// Has a payment confirmed.
async fn pay(served: &HttpServed, from: &TestAccount, to: &TestAccount, sequence: u64) -> fastpay_core::TransferOrder {
    let committee = &served.shards.committee;
    let order = from.sign(&committee.domain, payment(from.id(), to.id(), 1, sequence));
    let certificate = json::Certificate::from(&committee.certificate(&order));
    served.post("/v1/certificates", &certificate).await.good::<json::Confirmed>();
    order
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_transfers_of_all_shards_are_listed_newest_first_and_no_others() {
    let owners: Vec<_> = (0..8).map(TestAccount::numbered).collect();
    let served = HttpServed::start(2).await;
    deposit(&served, &owners.iter().map(|owner| (owner.id(), 10)).collect::<Vec<_>>()).await;
    found(&served, "/v1/deposits/8").await;
    let none: json::NewTransfers = served.get("/v1/transfers").await.good();
    assert_eq!(none.transfers, []);
    // A vote is not a confirmation.
    let order = owners[0].sign(&served.shards.committee.domain, payment(owners[0].id(), owners[1].id(), 1, 0));
    served.post("/v1/orders", &json::TransferOrder::from(&order)).await.good::<json::VoteAnswer>();
    let mut expected = Vec::new();
    for sequence in 0..3 {
        for (from, to) in owners.iter().zip(owners.iter().cycle().skip(1)) {
            let order = pay(&served, from, to, sequence).await;
            let (sender, sequence) = (from.id().into(), Decimal(sequence));
            let digest = Hex(served.shards.committee.domain.transfer_digest(&order.transfer).0);
            expected.insert(0, json::NewTransfer { sender, sequence, digest });
            assert_eq!(newest(&served, &order).await[..], expected[..expected.len().min(NEWEST_TRANSFERS)]);
        }
    }
    assert!(expected.len() > NEWEST_TRANSFERS);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_is_found_by_its_digest_and_a_deposit_by_its_index() {
    let (alice, bob) = (TestAccount::ethereum(0), TestAccount::ed25519(1));
    let served = HttpServed::start(2).await;
    deposit(&served, &[(alice.id(), 10), (bob.id(), 20)]).await;
    let committee = &served.shards.committee;
    for (index, (account, amount)) in (1_u64..).zip([(alice.id(), 10), (bob.id(), 20)]) {
        let deposit: json::Deposit = found(&served, &format!("/v1/deposits/{index}")).await.good();
        assert_eq!((deposit.recipient, deposit.amount), (account.into(), Decimal(amount)));
    }
    for (account, other, sequence) in [(&alice, &bob, 0), (&bob, &alice, 0), (&alice, &bob, 1)] {
        let order = account.sign(&committee.domain, payment(account.id(), other.id(), 1, sequence));
        let certificate = committee.certificate(&order);
        // A vote is not a confirmation.
        served.post("/v1/orders", &json::TransferOrder::from(&order)).await.good::<json::VoteAnswer>();
        served.get(&by_digest(committee, &order)).await.problem("not-found");
        let confirmed = served.post("/v1/certificates", &json::Certificate::from(&certificate)).await;
        confirmed.good::<json::Confirmed>();
        let transfer: json::ConfirmedTransfer = found(&served, &by_digest(committee, &order)).await.good();
        assert_eq!((transfer.sender, transfer.sequence), (account.id().into(), Decimal(sequence)));
        assert_eq!(transfer.certificate, (&certificate).into());
    }
    eventually_async("the index has it all", || async {
        let none = served.get(&format!("/v1/transfers/0x{}", "07".repeat(32))).await.problem("not-found");
        none.retry == Retry::AfterChange && none.retry_after_ms.is_none()
    })
    .await;
    for wrong in ["/v1/deposits/0", "/v1/deposits/3", "/v1/deposits/18446744073709551615"] {
        served.get(wrong).await.problem("not-found");
    }
    for wrong in ["/v1/deposits/-1", "/v1/deposits/x", "/v1/transfers/0x12", "/v1/transfers/7"] {
        served.get(wrong).await.problem("malformed");
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_is_behind_says_so() {
    let alice = TestAccount::ethereum(0);
    let mut served = HttpServed::start(1).await;
    deposit(&served, &[(alice.id(), 10)]).await;
    found(&served, "/v1/deposits/1").await;
    let indexer = served.indexer.take();
    tokio::task::spawn_blocking(|| drop(indexer)).await.unwrap();
    let more = deposits_after(TransactionIndex(1), &[(alice.id(), 5)]);
    assert!(served.shards.deposit_sink().apply(TransactionIndex(1), &more, TransactionIndex(2)).await);
    let problem = served.get("/v1/deposits/2").await.problem("not-found");
    assert_eq!(problem.retry, Retry::Later);
    assert!(problem.detail.contains("bytes behind"), "{}", problem.detail);
    served.get("/v1/deposits/1").await.good::<json::Deposit>();
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_has_failed_says_so_and_does_not_ask_to_wait() {
    let alice = TestAccount::ethereum(0);
    let served = HttpServed::start(1).await;
    deposit(&served, &[(alice.id(), 10)]).await;
    found(&served, "/v1/deposits/1").await;
    eventually_async("it is up to date", || async {
        served.get("/metrics").await.body.contains("fastpay_index_behind_bytes 0\n")
    })
    .await;
    // What it would go on from is gone.
    for segment in std::fs::read_dir(folders(&served.shards.folder, ShardId(0)).journal).unwrap() {
        let path = segment.unwrap().path();
        let zeros = vec![0; std::fs::metadata(&path).unwrap().len().try_into().unwrap()];
        std::fs::write(path, zeros).unwrap();
    }
    let more = deposits_after(TransactionIndex(1), &[(alice.id(), 5)]);
    assert!(served.shards.deposit_sink().apply(TransactionIndex(1), &more, TransactionIndex(2)).await);
    eventually_async("it has failed", || async {
        served.get("/metrics").await.body.contains("fastpay_index_failed 1\n")
    })
    .await;
    for path in ["/v1/deposits/2", "/v1/transfers"] {
        let problem = served.get(path).await.problem("not-found");
        assert_eq!((problem.retry, problem.retry_after_ms), (Retry::AfterChange, None));
        assert!(problem.detail.contains("its index has failed"), "{}", problem.detail);
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_index_another_authority_is_asked() {
    let served = HttpServed::without_index(1).await;
    for path in ["/v1/deposits/1", "/v1/transfers"] {
        let problem = served.get(path).await.problem("not-found");
        assert!(problem.detail.contains("no index"), "{}", problem.detail);
    }
    served.end().await;
}

#[test]
fn an_index_continues_where_it_was_and_is_rebuilt_if_it_does_not_fit() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let shards = Shards::start(folder.path(), 2, FORGETFUL);
    let owners: Vec<_> = (0..4).map(TestAccount::numbered).collect();
    let place = elsewhere.path().join("index");
    let start =
        |shards: &Shards| Index::start(place.clone(), shards.committee.domain, shards.histories.clone()).unwrap();
    let all_found = |index: &Index, up_to: u64| {
        eventually("the index has it all", || index.bytes_behind() == 0);
        assert!((1..=up_to).all(|number| index.deposit(TransactionIndex(number)).unwrap().is_some()));
        assert_eq!(index.deposit(TransactionIndex(up_to + 1)).unwrap(), None);
    };
    let (index, indexer) = start(&shards);
    shards.deposit(&owners.iter().map(|owner| (owner.id(), 5)).collect::<Vec<_>>());
    all_found(&index, 4);
    drop((index, indexer));
    // What happened meanwhile is taken in later.
    shards.deposit(&owners.iter().map(|owner| (owner.id(), 5)).collect::<Vec<_>>());
    let (index, indexer) = start(&shards);
    all_found(&index, 8);
    for (from, to) in [(0, 1), (2, 3)] {
        let (from, to) = (&owners[from], &owners[to]);
        shards.pay(&from.sign(&shards.committee.domain, payment(from.id(), to.id(), 1, 0)));
        eventually("it is listed", || index.newest().first().is_some_and(|newest| newest.sender == from.id()));
    }
    let newest = index.newest();
    assert_eq!(newest.iter().map(|newest| newest.sender).collect::<Vec<_>>(), [owners[2].id(), owners[0].id()]);
    drop((index, indexer));
    // What is listed is on disk as well, and what is read once more is not listed twice.
    let (index, indexer) = start(&shards);
    eventually("it is listed", || !index.newest().is_empty());
    all_found(&index, 8);
    assert_eq!(index.newest(), newest);
    drop((index, indexer));

    // Lost, damaged, or of a later time than the journals: made anew.
    std::fs::remove_dir_all(&place).unwrap();
    let (index, indexer) = start(&shards);
    all_found(&index, 8);
    drop((index, indexer));
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("version"), "not a store").unwrap();
    let (index, indexer) = start(&shards);
    all_found(&index, 8);
    drop((index, indexer));
    let younger = tempfile::tempdir().unwrap();
    let others = Shards::start(younger.path(), 2, FORGETFUL);
    others.deposit(&[(owners[0].id(), 1)]);
    let (index, indexer) = start(&others);
    all_found(&index, 1);
    drop((index, indexer));
    for shards in [shards, others] {
        shards.stop();
    }
}
