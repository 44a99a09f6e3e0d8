//! Members that are killed, whole clusters that are, and disks that forget or lie.

use fastpay_ledger_statement::{ClusterId, Condition, Outcome};

use super::{heights, newest, one_cluster, pause, put, stored, value};

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_goes_on_without_a_follower_and_without_its_leader() {
    let (_folder, mut net) = one_cluster().await;
    let client = net.client();
    put(&client, None, "a", "1", Condition::Absent).await.unwrap();
    let leader = client.status(ClusterId(1)).await.unwrap()[0].1.clone().unwrap().leader as u8;
    for (killed, text) in [((leader + 1) % 4, "2"), (leader, "3")] {
        net.kill(1, killed);
        put(&client, None, "a", text, Condition::Always).await.unwrap();
        let height = heights(&net, 1).await.into_iter().flatten().max().unwrap();
        net.start(1, killed, None).unwrap();
        net.wait_for(1, &[killed], height).await.unwrap();
    }
    assert_eq!(newest(&client, None, "a").await.unwrap().1, value("3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_cluster_that_is_killed_under_load_goes_on_where_it_was() {
    let (_folder, mut net) = one_cluster().await;
    let client = net.client();
    for turn in 0..3 {
        for at in 0..5 {
            put(&client, None, &format!("{turn}.{at}"), "kept", Condition::Absent).await.unwrap();
        }
        let writing = put(&client, None, "under way", "1", Condition::Always);
        let killing = async {
            pause(turn * 7).await;
            net.kill_cluster(1);
        };
        // It may be carried out or not.
        let (_, ()) = tokio::join!(tokio::time::timeout(std::time::Duration::from_millis(200), writing), killing);
        net.start_cluster(1).unwrap();
        net.wait_for(1, &[0, 1, 2, 3], 1).await.unwrap();
        for at in 0..5 {
            let name = format!("{turn}.{at}");
            assert_eq!(newest(&client, None, &name).await.unwrap().1, value("kept"), "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_without_its_votes_signs_nothing_until_two_heights_later() {
    let (_folder, mut net) = one_cluster().await;
    net.kill(1, 3);
    std::fs::remove_file(net.member_folder(1, 3).join("votes")).unwrap();
    // Without a third other member no quorum can name the height.
    net.kill(1, 2);
    net.start(1, 3, None).unwrap();
    pause(3_000).await;
    let status = net.client().status(ClusterId(1)).await.unwrap();
    assert!(!status[3].1.clone().unwrap().votes, "{status:?}");
    let stopped = heights(&net, 1).await;
    pause(1_500).await;
    assert_eq!(heights(&net, 1).await, stopped, "two voters are no quorum");
    net.start(1, 2, None).unwrap();
    let height = stopped.into_iter().flatten().max().unwrap();
    net.wait_for(1, &[0, 1, 2, 3], height + 2).await.unwrap();
    assert!(net.log(1, 3).contains("the file of votes is missing"));
    assert!(net.member_folder(1, 3).join("votes").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_with_a_damaged_log_follows_and_then_votes_again() {
    let (_folder, mut net) = one_cluster().await;
    // The height is under way while another member is away: nothing is decided without a third voter.
    net.kill(1, 2);
    net.kill(1, 1);
    pause(1_500).await;
    net.kill(1, 3);
    let log = net.member_folder(1, 3).join("engine.log");
    let mut content = std::fs::read(&log).unwrap();
    assert!(content.len() > 100, "it has voted at this height");
    content[30] ^= 4;
    std::fs::write(&log, content).unwrap();
    for _ in 0..2 {
        net.start(1, 3, None).unwrap();
        pause(1_500).await;
        assert!(!net.client().status(ClusterId(1)).await.unwrap()[3].1.clone().unwrap().votes);
        net.kill(1, 3);
    }
    for member in 1..4 {
        net.start(1, member, None).unwrap();
    }
    let height = heights(&net, 1).await[0].unwrap();
    net.wait_for(1, &[0, 1, 2, 3], height + 2).await.unwrap();
    assert!(net.log(1, 3).contains("the engine's log lacks votes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_store_is_damaged_asks_the_others_for_what_it_lacks() {
    let (_folder, mut net) = one_cluster().await;
    let client = net.client();
    let Outcome::Written(_) = put(&client, None, "a", "1", Condition::Always).await.unwrap() else { panic!() };
    let decided = net.member_folder(1, 0).join("decided");
    for eighth in 0..8 {
        net.kill(1, 0);
        let mut content = std::fs::read(&decided).unwrap();
        let at = content.len() * eighth / 8;
        content[at] ^= 1;
        std::fs::write(&decided, content).unwrap();
        let height = heights(&net, 1).await.into_iter().flatten().max().unwrap();
        net.start(1, 0, None).unwrap();
        net.wait_for(1, &[0], height).await.unwrap();
    }
    assert!(net.log(1, 0).contains("is damaged on disk"));
    assert_eq!(stored(&client, "a").await.unwrap().value, value("1"), "the first member is asked first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_started_once() {
    let (_folder, mut net) = one_cluster().await;
    let log = net.log(1, 0);
    net.start(1, 0, None).unwrap();
    pause(1_000).await;
    assert!(!net.is_running(1, 0));
    assert!(net.log(1, 0)[log.len()..].contains("another process runs this member"));
}
