//! Leaders that leave something out, and leaders that stay [LEDGER 2].

use std::time::{Duration, Instant};

use fastpay_ledger_statement::Condition;

use super::{ledger, one_cluster, pause, put, status_of, until_member_0_leads};

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_leaves_a_request_out_is_replaced_after_five_seconds() {
    let (_folder, mut net) = ledger(&[], &[1]);
    net.start(1, 0, Some("requests")).unwrap();
    net.start_and_wait().await.unwrap();
    // On a busy machine another member may take over before the liar proposes.
    for turn in 0..3 {
        until_member_0_leads(&net).await;
        let begun = Instant::now();
        put(&net.client(), None, "a", &turn.to_string(), Condition::Always).await.unwrap();
        let took = begun.elapsed();
        if net.logs().contains("the proposal leaves out the request") {
            assert!((Duration::from_secs(4)..Duration::from_secs(30)).contains(&took), "{took:?}");
            return;
        }
    }
    panic!("nobody saw that the leader leaves something out: {}", net.logs());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_changes_after_sixty_four_heights() {
    let (_folder, net) = one_cluster().await;
    let client = net.client();
    let mut before = status_of(&net, 0).await;
    let mut changes = Vec::new();
    // A slow round changes the leader too, so one of three turns may end otherwise.
    while changes.len() < 3 {
        put(&client, None, "a", "1", Condition::Always).await.unwrap();
        let now = status_of(&net, 0).await;
        if now.height / 64 > before.height / 64 {
            changes.push((before.leader, now.leader));
            if now.leader == (before.leader + 1) % 4 {
                return;
            }
        }
        before = now;
    }
    panic!("the next member does not lead after 64 heights: {changes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_cluster_waits() {
    let (_folder, net) = one_cluster().await;
    let (begun, used, height) = (Instant::now(), net.processor_time().unwrap(), status_of(&net, 0).await.height);
    pause(6_000).await;
    let used = net.processor_time().unwrap() - used;
    let heights = status_of(&net, 0).await.height - height;
    let took = begun.elapsed().as_secs_f64();
    let (rate, share) = (heights as f64 / took, used.as_secs_f64() / took);
    println!("{rate:.2} heights and {share:.2} s of processor time a second");
    assert!((0.2..2.5).contains(&rate), "{rate} heights a second");
    assert!((0.001..0.5).contains(&share), "{share} s of processor time a second");
}
