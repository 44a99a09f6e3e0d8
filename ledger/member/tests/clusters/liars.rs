//! One lying member in each cluster.

use std::time::{Duration, Instant};

use fastpay_ledger_statement::Condition;

use super::{ledger, newest, pause, put, until_member_0_leads, value};

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
async fn what_a_member_alters_in_a_group_is_refused_and_another_members_copy_is_taken() {
    let (_folder, mut net) = ledger(&[1], &[2]);
    for cluster in [1, 2] {
        net.start(cluster, 0, Some("groups")).unwrap();
    }
    net.start_and_wait().await.unwrap();
    let client = net.client();
    // While there is nothing to fetch, each member asks one after the other, so the liar's turn comes.
    for turn in 0..40 {
        let text = turn.to_string();
        put(&client, Some(1), "a", &text, Condition::Always).await.unwrap();
        assert_eq!(newest(&client, Some(1), "a").await.unwrap().1, value(&text));
        if net.logs().contains("the group is not under the header's root") {
            return;
        }
        pause(700).await;
    }
    panic!("no altered group was met in forty turns");
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
