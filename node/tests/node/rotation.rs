//! A change of the committee while an authority serves, and votes for batches of redemptions.

use std::sync::Arc;

use fastpay_client::{ClientError, ShardClient};
use fastpay_core::{
    AccountId, Amount, Asset, Committees, Deposit, Epoch, Installation, PrimaryAddress, Redemption, SequenceNumber,
    TransactionIndex,
};
use fastpay_node::authority::network::NetworkLimits;
use fastpay_node::authority::shard::{Command, OrderStep};
use fastpay_node::authority::voter_status::VoterStatus;
use fastpay_rpc::proto::shard_client::ShardClient as Grpc;
use fastpay_rpc::proto::submit_response::Response;
use fastpay_rpc::proto::{self, redemption_batch_response};
use fastpay_rpc::{BatchAnswer, REDEMPTION_BATCH_MAX, Refusal, request_bytes_max};
use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption};
use tokio::sync::oneshot;
use tonic::Code;

use crate::network::{Served, answers, ask, refusal};
use crate::scene::voter_status;

/// All parts learn of the next committee.
fn rotate(served: &Served, committees: &[&TestCommittee]) {
    served.shards.voter_status.send_replace(Arc::new(voter_status(committees)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_outlive_a_rotation_and_certificates_of_every_epoch_are_confirmed() {
    let served = Served::start(1).await;
    let (first, domain) = (served.shards.committee.clone(), served.shards.committee.domain);
    let second = first.rotated();
    let (alice, bob) = (TestAccount::ed25519(0), TestAccount::ethereum(1));
    served.deposit(&[(alice.id(), 100)]).await;
    let here = served.client(0);
    let order = |amount, sequence| alice.sign(&domain, payment(alice.id(), bob.id(), amount, sequence));

    let (epoch, before) = here.order(&order(10, 0)).await.unwrap();
    assert_eq!(epoch, Epoch(0));
    // Another authority may have seen the rotation before this one.
    let early = second.certificate(&order(10, 0));
    let unknown = Refusal::UnknownEpoch(Epoch(1));
    assert!(unknown.is_retryable());
    assert_eq!(here.confirm(&early).await, Err(ClientError::Refused(unknown)));

    rotate(&served, &[&first, &second]);
    let (epoch, after) = here.order(&order(10, 0)).await.unwrap();
    assert_eq!(epoch, Epoch(1));
    let verified = first.verified(&order(10, 0));
    after.clone().verify(&domain, &second.committee, &verified).unwrap();
    assert_ne!(before.authority, after.authority);
    let pending = Refusal::OrderPending(Box::new(order(10, 0)));
    assert_eq!(here.order(&order(20, 0)).await, Err(ClientError::Refused(pending)), "the lock is still there");

    // Certificates of either epoch, in any order, also for what is confirmed already.
    assert_eq!(here.confirm(&first.certificate(&order(10, 0))).await, Ok((Some(Epoch(1)), SequenceNumber(1))));
    assert_eq!(here.confirm(&early).await, Ok((Some(Epoch(1)), SequenceNumber(1))));
    assert_eq!(here.confirm(&second.certificate(&order(5, 1))).await, Ok((Some(Epoch(1)), SequenceNumber(2))));
    assert_eq!(here.confirm(&first.certificate(&order(6, 2))).await, Ok((Some(Epoch(1)), SequenceNumber(3))));
    // Under the other committee's votes neither is one.
    let swapped = fastpay_core::Certificate { epoch: Epoch(0), ..second.certificate(&order(7, 3)) };
    assert!(matches!(here.confirm(&swapped).await, Err(ClientError::Refused(Refusal::Invalid(_)))));

    let status = here.status().await.unwrap();
    assert_eq!((status.epoch, status.authority), (Epoch(1), second.keys[0].public().name));
    assert_eq!(status.committee, second.committee.members());
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_member_locks_nothing_and_still_confirms() {
    let served = Served::start(1).await;
    let (first, domain) = (served.shards.committee.clone(), served.shards.committee.domain);
    let second = first.rotated();
    let (alice, bob) = (TestAccount::ed25519(0), TestAccount::ethereum(1));
    served.deposit(&[(alice.id(), 100)]).await;
    let here = served.client(0);
    let mut committees = Committees::new(first.committee.clone()).unwrap();
    committees.install(second.committee.clone()).unwrap();
    let keys = Arc::new(first.keys[0].clone());
    let names = [keys.public().name];
    served
        .shards
        .voter_status
        .send_replace(Arc::new(VoterStatus::new(committees, vec![keys], &names.as_slice().into()).unwrap()));

    let order = |sequence| alice.sign(&domain, payment(alice.id(), bob.id(), 10, sequence));
    let refused = Refusal::NotVoting(Epoch(1));
    assert!(!refused.is_retryable());
    assert_eq!(here.order(&order(0)).await, Err(ClientError::Refused(refused.clone())));
    assert_eq!(here.account(alice.id()).await.unwrap().pending, None);
    let batch = here.vote_redemption_batch(&[(alice.id(), SequenceNumber(0))]).await;
    assert_eq!(batch, Err(ClientError::Refused(refused)));
    for (sequence, committee) in [(0, &second), (1, &first)] {
        let confirmed = here.confirm(&committee.certificate(&order(sequence))).await;
        assert_eq!(confirmed, Ok((Some(Epoch(1)), SequenceNumber(sequence + 1))));
    }
    assert_eq!(here.status().await.unwrap().authority, first.keys[0].public().name);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_committee_that_is_known_before_its_installation_is_followed_gets_no_votes_yet_and_its_certificates_count() {
    let served = Served::start(1).await;
    let (first, domain) = (served.shards.committee.clone(), served.shards.committee.domain);
    let second = first.rotated();
    let (alice, bob) = (TestAccount::ed25519(0), TestAccount::ethereum(1));
    served.deposit(&[(alice.id(), 100)]).await;
    let here = served.client(0);
    let order = |sequence| alice.sign(&domain, payment(alice.id(), bob.id(), 10, sequence));
    served.shards.voter_status.send_replace(Arc::new(voter_status(&[&first, &second]).ahead(true)));

    let refused = Refusal::UnknownEpoch(Epoch(1));
    assert!(refused.is_retryable());
    assert_eq!(here.order(&order(0)).await, Err(ClientError::Refused(refused)));
    assert_eq!(here.account(alice.id()).await.unwrap().pending, None);
    let batch = here.vote_redemption_batch(&[(alice.id(), SequenceNumber(0))]).await;
    assert_eq!(batch, Err(ClientError::Refused(Refusal::UnknownEpoch(Epoch(1)))));
    // It has not followed the events before the installation.
    assert_eq!(here.confirm(&second.certificate(&order(0))).await, Ok((Some(Epoch(0)), SequenceNumber(1))));
    served.shards.voter_status.send_replace(Arc::new(voter_status(&[&first, &second])));
    assert_eq!(here.order(&order(1)).await.unwrap().0, Epoch(1));
    served.end().await;
}

/// Redemptions of accounts of both shards, confirmed, and one payment before them.
async fn redeemed(served: &Served) -> Vec<Redemption> {
    let (committee, domain) = (&served.shards.committee, served.shards.committee.domain);
    let owners = [served.shards.account_in(0, 0), served.shards.account_in(1, 0), served.shards.account_in(0, 1)];
    served.deposit(&owners.each_ref().map(|owner| (owner.id(), 100))).await;
    let paid = owners[0].sign(&domain, payment(owners[0].id(), owners[1].id(), 1, 0));
    served.client(0).confirm(&committee.certificate(&paid)).await.unwrap();
    let mut redemptions = Vec::new();
    for (number, first) in [(0_usize, 1), (1, 0), (2, 0)] {
        for sequence in [first, first + 1] {
            let owner = &owners[number];
            let recipient = PrimaryAddress::repeat_byte(u8::try_from(number).unwrap() + 1);
            let wanted = redemption(owner.id(), recipient, 10, sequence);
            let certificate = committee.certificate(&owner.sign(&domain, wanted.clone()));
            served.client(number % 2).confirm(&certificate).await.unwrap();
            redemptions.push(wanted);
        }
    }
    redemptions
}

fn names(redemptions: &[Redemption]) -> Vec<(AccountId, SequenceNumber)> {
    redemptions.iter().map(|redemption| (redemption.sender, redemption.sequence)).collect()
}

/// Asks for a vote, which must be good under this committee.
async fn assert_voted(client: &ShardClient, committee: &TestCommittee, redemptions: &[Redemption]) {
    let answer = client.vote_redemption_batch(&names(redemptions)).await.unwrap();
    let BatchAnswer::Vote { epoch, vote } = answer else { panic!("{answer:?}") };
    assert_eq!((epoch, vote.authority), (committee.committee.epoch(), committee.keys[0].public().name));
    let digest = committee.domain.redemption_batch_vote_digest(epoch, redemptions);
    vote.verify(&committee.committee, digest).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_shard_certifies_what_all_shards_have_confirmed_in_every_epoch() {
    let served = Served::start(2).await;
    let first = served.shards.committee.clone();
    let mut redemptions = redeemed(&served).await;
    for port in [0, 1] {
        assert_voted(&served.client(port), &first, &redemptions).await;
        assert_voted(&served.client(port), &first, &redemptions[3..4]).await;
        // In the order of the request, and as often as it names one: the contract pays it once.
        redemptions.reverse();
        redemptions.push(redemptions[2].clone());
        assert_voted(&served.client(port), &first, &redemptions).await;
    }
    let second = first.rotated();
    rotate(&served, &[&first, &second]);
    assert_voted(&served.client(1), &second, &redemptions).await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_confirmed_here_as_a_redemption_is_named_and_nothing_is_signed() {
    let served = Served::start(2).await;
    let redemptions = redeemed(&served).await;
    let owner = redemptions[0].sender;
    // A payment, a number that is not used, an account that nobody knows, and numbers beyond everything.
    let bad = [
        (owner, SequenceNumber(0)),
        (owner, SequenceNumber(3)),
        (TestAccount::ed25519(99).id(), SequenceNumber(0)),
        (owner, SequenceNumber(u64::MAX)),
    ];
    let mut asked = names(&redemptions[..2]);
    asked.extend(bad);
    asked.extend(names(&redemptions[2..]));
    for port in [0, 1] {
        let answer = served.client(port).vote_redemption_batch(&asked).await;
        assert_eq!(answer, Ok(BatchAnswer::Missing(vec![2, 3, 4, 5])));
    }
    // A vote for an order is no confirmation.
    let domain = served.shards.committee.domain;
    let alice = served.shards.account_in(0, 0);
    let wanted = alice.sign(&domain, redemption(alice.id(), PrimaryAddress::repeat_byte(7), 1, 3));
    served.client(0).order(&wanted).await.unwrap();
    let locked = [(alice.id(), wanted.transfer.sequence())];
    assert_eq!(served.client(1).vote_redemption_batch(&locked).await, Ok(BatchAnswer::Missing(vec![0])));
    served.end().await;
}

/// All shards follow the contract over the installation of a committee.
async fn install(served: &Served, index: u64, epoch: u64, compromised_since: u64) {
    let (after, index) = (TransactionIndex(index - 1), TransactionIndex(index));
    let (epoch, compromised_since) = (Epoch(epoch), Epoch(compromised_since));
    let installation = Installation { after, index, epoch, compromised_since, voidable_at: 0 };
    for shard in [0, 1] {
        let (reply, applied) = oneshot::channel();
        let handle = served.shards.handle_of(&served.shards.account_in(shard, 0).id());
        handle.try_send(Command::Synchronize(vec![OrderStep::Installation(installation)], reply)).unwrap();
        assert_eq!(applied.await.unwrap(), index);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redemptions_of_a_compromised_epoch_are_certified_again_only_if_covered() {
    let served = Served::start(2).await;
    let (first, domain) = (served.shards.committee.clone(), served.shards.committee.domain);
    let [second, third] = [first.rotated(), first.rotated().rotated()];
    let mut redemptions = redeemed(&served).await;
    // Stolen keys certify what an account does not hold.
    let thief = served.shards.account_in(1, 1);
    let stolen = redemption(thief.id(), PrimaryAddress::repeat_byte(9), 50, 0);
    served.client(1).confirm(&first.certificate(&thief.sign(&domain, stolen.clone()))).await.unwrap();
    redemptions.insert(2, stolen);
    assert_voted(&served.client(0), &first, &redemptions).await;

    // Nobody has said yet whether the epoch that ended is sound.
    rotate(&served, &[&first, &second]);
    let uncovered = Ok(BatchAnswer::Uncovered(vec![2]));
    assert_eq!(served.client(0).vote_redemption_batch(&names(&redemptions)).await, uncovered);
    install(&served, 4, 1, 1).await;
    assert_voted(&served.client(0), &second, &redemptions).await;
    // It was not.
    rotate(&served, &[&first, &second, &third]);
    install(&served, 5, 2, 0).await;
    for port in [0, 1] {
        assert_eq!(served.client(port).vote_redemption_batch(&names(&redemptions)).await, uncovered);
        let honest: Vec<_> = redemptions.iter().filter(|one| one.sender != thief.id()).cloned().collect();
        assert_voted(&served.client(port), &third, &honest).await;
    }
    // What the account received arrives.
    let (index, recipient) = (TransactionIndex(6), thief.id());
    let deposit = Deposit { index, recipient, asset: Asset::ETHER, amount: Amount(50) };
    assert!(served.shards.deposit_sink().apply(TransactionIndex(5), &[deposit], index).await);
    assert_voted(&served.client(0), &third, &redemptions).await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_none_or_too_many_or_of_no_accounts_is_malformed() {
    let served = Served::start(1).await;
    let name = |bytes: usize| proto::TransferName { sender: vec![1; bytes].into(), sequence: 0 };
    let request = |names: Vec<proto::TransferName>| proto::RedemptionBatchRequest { redemptions: names };
    let mut grpc = Grpc::connect(format!("http://{}", served.addresses[0])).await.unwrap();
    for names in [Vec::new(), vec![name(32); REDEMPTION_BATCH_MAX + 1], vec![name(32), name(31)]] {
        let answer = grpc.vote_redemption_batch(request(names)).await.unwrap().into_inner().response.unwrap();
        let redemption_batch_response::Response::Refused(refused) = answer else { panic!("{answer:?}") };
        assert!(matches!(Refusal::try_from(refused), Ok(Refusal::Malformed(_))));
    }
    let most = grpc.vote_redemption_batch(request(vec![name(32); REDEMPTION_BATCH_MAX])).await.unwrap();
    let Some(redemption_batch_response::Response::Missing(missing)) = most.into_inner().response else {
        panic!("none of them is there")
    };
    assert_eq!(missing.positions.len(), REDEMPTION_BATCH_MAX);
    let too_long = grpc.vote_redemption_batch(request(vec![name(32); 4 * REDEMPTION_BATCH_MAX])).await.unwrap_err();
    assert_eq!(too_long.code(), Code::OutOfRange);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_may_be_as_long_as_the_largest_committee_needs_once_it_is_known() {
    let served = Served::with(1, NetworkLimits::default(), None).await;
    let (first, domain) = (served.shards.committee.clone(), served.shards.committee.domain);
    let larger = first.rotated_to(100);
    let alice = TestAccount::ed25519(0);
    let mut long = ask(1, &alice.sign(&domain, payment(alice.id(), TestAccount::ed25519(2).id(), 1, 0)));
    if let Some(proto::submit_request::Request::Order(order)) = &mut long.request
        && let Some(proto::transfer_order::Transfer::Payment(payment)) = &mut order.transfer
    {
        payment.memo = vec![0; request_bytes_max(3) + 1].into();
    }
    let (none, end) = answers(served.stream(vec![long.clone()]).await).await;
    assert_eq!((none, end.unwrap_err().code()), (Vec::new(), Code::OutOfRange));
    rotate(&served, &[&first, &larger]);
    let (read, end) = answers(served.stream(vec![long]).await).await;
    end.unwrap();
    let [(1, response @ Response::Refused(_))] = &read[..] else { panic!("{read:?}") };
    assert!(matches!(refusal(response), Refusal::Malformed(_)));
    served.end().await;
}
