//! Votes about numbers that are to be unlocked, over HTTP: each answer, and each problem.

use std::sync::Arc;

use fastpay_core::{
    AccountId, AuthorityName, Certificate, Committees, ContractVote, Digest, EcdsaSignature, Epoch, SequenceNumber,
    TransactionIndex, UnlockEvent, UnlockEventKind, UnlockVote,
};
use fastpay_node::authority::rollback::{RollbackProtection, VoteFloors};
use fastpay_node::authority::shard::{ChainTime, Command, OrderStep};
use fastpay_node::authority::voter_status::VoterStatus;
use fastpay_rpc::http::Retry;
use fastpay_rpc::json::{self, Decimal, Hex};
use fastpay_testkit::{TestAccount, payment};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::http_scene::{HttpServed, Said};
use crate::scene::voter_status;

const VOTES: &str = "/v1/unlocks/votes";
/// When a request that is read now may be voided by a quorum, by the chain's clock.
const VOIDABLE_AT: u64 = 2_000;

struct Stage {
    served: HttpServed,
    order: u64,
}

impl Stage {
    async fn new() -> Self {
        Self { served: HttpServed::start(1).await, order: 0 }
    }

    /// The contract says something about the first number of an account.
    async fn event(&mut self, account: AccountId, kind: UnlockEventKind) {
        let (after, index) = (TransactionIndex(self.order), TransactionIndex(self.order + 1));
        let event = UnlockEvent { after, index, account, sequence: SequenceNumber(0), kind };
        let (reply, applied) = oneshot::channel();
        let steps = vec![OrderStep::Unlock(event)];
        self.served.shards.handle_of(&account).try_send(Command::Synchronize(steps, reply)).unwrap();
        assert_eq!(applied.await.unwrap(), index);
        self.order += 1;
    }

    async fn ask(&self, account: AccountId, sequence: u64, unanimous: bool) -> Said {
        self.served.post(VOTES, &number(account, sequence, unanimous)).await
    }

    /// That the answer is a vote of the first authority of the committee, for this.
    fn check(&self, answer: &json::UnlockVote, account: AccountId, expected: UnlockVote) {
        let (epoch, authority, signature) = match answer {
            json::UnlockVote::Void { epoch, authority, signature }
            | json::UnlockVote::Certificate { epoch, authority, signature, .. } => (epoch, authority, signature),
        };
        let committee = &self.served.shards.committee;
        let vote = ContractVote { authority: AuthorityName(authority.0), signature: EcdsaSignature(signature.0) };
        let digest = expected.digest(&committee.domain, Epoch(epoch.0), account, SequenceNumber(0));
        vote.verify(&committee.committee, digest).unwrap();
    }

    fn certificate(&self, of: &TestAccount) -> Certificate {
        let committee = &self.served.shards.committee;
        let pay = payment(of.id(), TestAccount::ed25519(9).id(), 1, 0);
        committee.certificate(&of.sign(&committee.domain, pay))
    }

    async fn confirm(&self, certificate: &Certificate) -> Said {
        self.served.post("/v1/certificates", &json::Certificate::from(certificate)).await
    }
}

fn number(account: AccountId, sequence: u64, unanimous: bool) -> Value {
    json!({"account": account.to_string(), "sequence": sequence.to_string(), "unanimous": unanimous})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_without_a_certificate_is_voted_void() {
    let mut stage = Stage::new().await;
    let alice = TestAccount::ethereum(0).id();
    let early = stage.ask(alice, 0, true).await.problem("not-requested");
    assert_eq!((early.retry, early.expected_sequence), (Retry::Later, Some(Decimal(0))));
    stage.event(alice, UnlockEventKind::Requested(VOIDABLE_AT)).await;
    let open = stage.ask(alice, 0, false).await.problem("window-open");
    assert_eq!((open.retry, open.voidable_at), (Retry::Later, Some(Decimal(VOIDABLE_AT))));
    let ahead = stage.ask(alice, 1, true).await.problem("sequence-too-high");
    assert_eq!(ahead.expected_sequence, Some(Decimal(0)));

    let at_once: json::UnlockVote = stage.ask(alice, 0, true).await.good();
    stage.check(&at_once, alice, UnlockVote::Void { unanimous: true });
    assert!(matches!(at_once, json::UnlockVote::Void { .. }));
    assert_eq!(stage.ask(alice, 0, true).await.good::<json::UnlockVote>(), at_once, "the same, however often");
    let time = ChainTime { block_time: VOIDABLE_AT, unlock_window: 1_000_000 };
    stage.served.shards.handle_of(&alice).try_send(Command::ChainTime(time)).unwrap();
    let after_the_window: json::UnlockVote = stage.ask(alice, 0, false).await.good();
    stage.check(&after_the_window, alice, UnlockVote::Void { unanimous: false });

    stage.event(alice, UnlockEventKind::Voided).await;
    for number in [0, 1] {
        let code = if number == 0 { "voided" } else { "not-requested" };
        let problem = stage.ask(alice, number, true).await.problem(code);
        assert_eq!(problem.expected_sequence, Some(Decimal(1)));
    }
    stage.served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_is_known_is_attested_and_shown() {
    let mut stage = Stage::new().await;
    let [paid, stuck, upheld] = [0, 1, 2].map(TestAccount::ethereum);
    // Executed, and kept because the number is frozen.
    let certificates = [stage.certificate(&paid), stage.certificate(&stuck)];
    stage.confirm(&certificates[0]).await.good::<json::Confirmed>();
    stage.event(stuck.id(), UnlockEventKind::Requested(VOIDABLE_AT)).await;
    stage.confirm(&certificates[1]).await.problem("frozen");
    for (owner, certificate) in [&paid, &stuck].into_iter().zip(&certificates) {
        for unanimous in [true, false] {
            let answer: json::UnlockVote = stage.ask(owner.id(), 0, unanimous).await.good();
            let digest = stage.served.shards.committee.domain.transfer_digest(&certificate.order.transfer);
            stage.check(&answer, owner.id(), UnlockVote::Certificate(digest));
            let json::UnlockVote::Certificate { certificate: shown, .. } = answer else { panic!("no certificate") };
            assert_eq!(*shown, json::Certificate::from(certificate));
        }
    }

    let other = Digest::repeat_byte(7);
    stage.event(upheld.id(), UnlockEventKind::Requested(VOIDABLE_AT)).await;
    stage.event(upheld.id(), UnlockEventKind::Upheld(other)).await;
    let problem = stage.ask(upheld.id(), 0, true).await.problem("overruled");
    assert_eq!(problem.upheld, Some(Hex(other.0)));
    stage.served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_may_not_vote_about_a_number_says_why() {
    let mut stage = Stage::new().await;
    let alice = TestAccount::ethereum(0).id();
    stage.event(alice, UnlockEventKind::Requested(VOIDABLE_AT)).await;
    for bad in [json!({}), json!({"account": alice.to_string(), "sequence": "0"})] {
        stage.served.post(VOTES, &bad).await.problem("malformed");
    }

    let folder = tempfile::tempdir().unwrap();
    let (protection, _questions) = RollbackProtection::new(VoteFloors::open(folder.path()).unwrap());
    let first = stage.served.shards.committee.clone();
    let protected = voter_status(&[&first]).with_rollback_protection(Some(Arc::new(protection)));
    stage.served.shards.voter_status.send_replace(Arc::new(protected));
    stage.ask(alice, 0, true).await.problem("catching-up");

    let mut committees = Committees::new(first.committee.clone()).unwrap();
    committees.install(first.rotated().committee).unwrap();
    let keys = Arc::new(first.keys[0].clone());
    let names = [keys.public().name];
    let retired = VoterStatus::new(committees, vec![keys], &names.as_slice().into()).unwrap();
    stage.served.shards.voter_status.send_replace(Arc::new(retired));
    assert_eq!(stage.ask(alice, 0, true).await.problem("not-voting").epoch, Some(Decimal(1)));

    for handle in stage.served.shards.handles.values() {
        handle.try_send(Command::Stop).unwrap();
    }
    stage.served.shards.voter_status.send_replace(Arc::new(voter_status(&[&first])));
    stage.ask(alice, 0, true).await.problem("stopping");
    stage.served.end().await;
}
