//! Leaders that leave something out, and leaders that stay [LEDGER 2].

use std::time::{Duration, Instant};

use fastpay_ledger_statement::{ClusterId, Condition};

use super::{ledger, one_cluster, pause, put};

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_leaves_a_request_out_is_replaced_after_five_seconds() {
    let (_folder, mut net) = ledger(&[], &[1]);
    net.start(1, 0, Some("requests")).unwrap();
    net.start_and_wait().await.unwrap();
    let begun = Instant::now();
    put(&net.client(), None, "a", "1", Condition::Absent).await.unwrap();
    let took = begun.elapsed();
    assert!((Duration::from_secs(4)..Duration::from_secs(15)).contains(&took), "{took:?}");
    assert!(net.log(1, 1).contains("the proposal leaves out the request"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_changes_after_sixty_four_heights() {
    let (_folder, net) = one_cluster().await;
    let client = net.client();
    let mut leaders = std::collections::BTreeSet::new();
    for at in 0..140 {
        put(&client, None, "a", &at.to_string(), Condition::Always).await.unwrap();
        let status = client.status(ClusterId(1)).await.unwrap()[0].1.clone().unwrap();
        leaders.insert((status.height / 64, status.leader));
    }
    let of_first = leaders.iter().find(|(turn, _)| *turn == 0).unwrap().1;
    let of_second = leaders.iter().find(|(turn, _)| *turn == 1).unwrap().1;
    assert_eq!(of_second, (of_first + 1) % 4, "{leaders:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_cluster_waits() {
    let (_folder, net) = one_cluster().await;
    let before = (net.processor_time(), super::heights(&net, 1).await[0].unwrap());
    pause(6_000).await;
    let (used, heights) = (net.processor_time() - before.0, super::heights(&net, 1).await[0].unwrap() - before.1);
    println!("{heights} heights and {used:?} of processor time in six seconds");
    assert!((2..=14).contains(&heights), "{heights} heights in six seconds");
    assert!(used < Duration::from_secs(3), "{used:?} of processor time in six seconds");
}
