//! One lying member in each cluster.

use std::time::{Duration, Instant};

use fastpay_ledger_client::Bulk;
use fastpay_ledger_statement::{Condition, Outcome};

use super::{get, ledger, newest, pause, put, until_member_0_leads, value};

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_lies_about_messages_gets_no_vote_and_is_replaced() {
    let (_folder, mut net) = ledger(&[], &[1]);
    net.start(1, 0, Some("outputs")).unwrap();
    net.start_and_wait().await.unwrap();
    let client = net.client();
    // On a busy machine another member may take over before the liar proposes.
    for turn in 0..3 {
        until_member_0_leads(&net).await;
        let text = turn.to_string();
        put(&client, None, "a", &text, Condition::Always).await.unwrap();
        assert_eq!(newest(&client, None, "a").await.unwrap().1, value(&text));
        if net.log(1, 1).contains("the inputs lead to other messages than the header names") {
            return;
        }
    }
    panic!("member 1 saw no lie: {}", net.log(1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_sends_a_torn_payload_is_replaced() {
    let (_folder, mut net) = ledger(&[], &[1]);
    net.start(1, 0, Some("torn")).unwrap();
    net.start_and_wait().await.unwrap();
    let client = net.client();
    // On a busy machine another member may take over before the liar proposes.
    for turn in 0..3 {
        until_member_0_leads(&net).await;
        let text = turn.to_string();
        put(&client, None, "a", &text, Condition::Always).await.unwrap();
        assert_eq!(newest(&client, None, "a").await.unwrap().1, value(&text));
        if net.log(1, 1).contains("sent another payload than its header names") {
            return;
        }
    }
    panic!("member 1 saw no torn payload: {}", net.log(1, 1));
}

/// The ways to alter what is certified, as the liar's log names them, and what receivers say of each.
const ALTERATIONS: [(&str, &str); 16] = [
    ("LeftOut", "is not under the header's root"),
    ("Repeated", "is not under the header's root"),
    ("Altered", "is not under the header's root"),
    ("OtherTree", "is not under the header's root"),
    ("OtherHeight", "is not its precommit for this header in this round"),
    ("OtherRound", "is not its precommit for this header in this round"),
    ("OtherReceiver", "the group is for"),
    ("OtherDeployment", "deployment"),
    ("TooFewVoters", "exactly 3 are a quorum"),
    ("RepeatedVoter", "is repeated or not in the order"),
    ("UnknownVoter", "which should have voted, does not exist"),
    ("ForgedVote", "is not its precommit for this header in this round"),
    ("Prevote", "is not its precommit for this header in this round"),
    ("OtherVote", "is not its precommit for this header in this round"),
    ("ForeignCertificate", "is not its precommit for this header in this round"),
    ("Replay", "was taken before"),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_a_member_alters_in_a_group_is_refused_and_another_members_copy_is_taken() {
    let (_folder, mut net) = ledger(&[1], &[2]);
    for cluster in [1, 2] {
        net.start(cluster, 0, Some("groups")).unwrap();
    }
    net.start_and_wait().await.unwrap();
    let client = net.client();
    // Coordinator and shard each meet every lie of the other's liar.
    for turn in 0..400 {
        let text = turn.to_string();
        put(&client, Some(1), "a", &text, Condition::Always).await.unwrap();
        assert_eq!(newest(&client, Some(1), "a").await.unwrap().1, value(&text));
        let told = |cluster| {
            let liar = net.log(cluster, 0);
            ALTERATIONS.iter().all(|(name, _)| liar.matches(&format!("of this turn: {name}")).count() >= 2)
        };
        if told(1) && told(2) {
            for (liars, receivers) in [(1, 2), (2, 1)] {
                let said: String = (0..4).map(|member| net.log(receivers, member)).collect();
                for (name, why) in ALTERATIONS {
                    assert!(said.contains(why), "cluster {receivers} of the lie {name} of cluster {liars}: {said}");
                }
            }
            return;
        }
    }
    panic!("not every lie was told: {}", net.log(1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_member_alters_in_an_answer_is_refused_by_clients() {
    use fastpay_ledger_client::api::proto::SubmitRequest;
    use fastpay_ledger_client::api::proto::ledger_client::LedgerClient;
    use fastpay_ledger_statement::{AnswerProof, ClusterId, StatementVerifier, Wire};

    let (_folder, mut net) = ledger(&[], &[1]);
    net.start(1, 0, Some("answers")).unwrap();
    net.start_and_wait().await.unwrap();
    let client = std::sync::Arc::new(net.client());
    let cluster = ClusterId(1);
    put(&client, None, "a", "true", Condition::Always).await.unwrap();
    let (members, channels) = client.cluster(cluster).unwrap();
    let mut liar = LedgerClient::new(channels[0].1.clone());
    let mut reasons = String::new();
    for _ in 0..2 * ALTERATIONS.len() {
        let request = get("a");
        let reply = liar.submit(SubmitRequest { request: request.encode() }).await.unwrap().into_inner();
        let proof = AnswerProof::decode(&reply.answer).unwrap();
        let verified =
            proof.verify(&request, client.partition(), members, &mut StatementVerifier::default(), &mut rand::rng());
        reasons += &format!("{}\n", verified.expect_err("it was altered"));
    }
    for (name, _) in ALTERATIONS {
        assert!(net.log(1, 0).contains(&format!("of this turn: {name}")), "{name}");
    }
    for why in ["under the header's root", "its precommit", "exactly 3", "is repeated", "does not exist", "is for"] {
        assert!(reasons.contains(why), "{why}: {reasons}");
    }
    // Who asks the liar first for many has the answers of the next member.
    assert_eq!(newest(&client, None, "a").await.unwrap().1, value("true"));
    let mut bulk = Bulk::new(client.clone(), cluster, 0);
    bulk.send((0..100).map(|_| get("a")).collect()).await;
    while bulk.waiting() > 0 {
        for (_, answer) in bulk.settled().await.unwrap().answered {
            assert!(matches!(answer.result, Ok(Outcome::Found { value: found, .. }) if found == value("true")));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_withholds_groups_delays_them_by_seconds_at_most() {
    let (_folder, mut net) = ledger(&[1], &[2]);
    for cluster in [1, 2] {
        net.start(cluster, 0, Some("withholding")).unwrap();
    }
    net.start_and_wait().await.unwrap();
    let client = net.client();
    for turn in 0..4 {
        let (text, begun) = (turn.to_string(), Instant::now());
        put(&client, Some(1), "a", &text, Condition::Always).await.unwrap();
        assert_eq!(newest(&client, Some(1), "a").await.unwrap().1, value(&text));
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        pause(600).await;
    }
}
