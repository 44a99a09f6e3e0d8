//! Members that are killed, whole clusters that are, and disks that forget or lie.

use std::process::{Command, Stdio};

use fastpay_ledger_member::engine::{MemberAddress, own_casts};
use fastpay_ledger_statement::{ClusterId, Condition, Outcome};

use super::{highest, newest, one_cluster, pause, put, status_of, statuses, stored, until, value};

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_goes_on_without_a_follower_and_without_its_leader() {
    let (_folder, mut net) = one_cluster().await;
    let client = net.client();
    put(&client, None, "a", "1", Condition::Absent).await.unwrap();
    let leader = status_of(&net, 0).await.leader as u8;
    for (killed, text) in [((leader + 1) % 4, "2"), (leader, "3")] {
        net.kill(1, killed);
        put(&client, None, "a", text, Condition::Always).await.unwrap();
        let height = highest(&net).await;
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
    let height = until(30, "members 0, 1 and 3 at one height", async || {
        let all = statuses(&net).await;
        let [first, second, last] = [0, 1, 3].map(|member| all[member].clone());
        let (height, last) = (first?.height, last?);
        assert!(!last.votes, "{last:?}");
        (second?.height == height && last.height == height).then_some(height)
    })
    .await;
    pause(1_500).await;
    for member in [0, 1] {
        assert_eq!(status_of(&net, member).await.height, height, "two voters are no quorum");
    }
    net.start(1, 2, None).unwrap();
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
    let log = |member| net.member_folder(1, member).join("engine.log");
    let voter = MemberAddress(net.client().layout().members(ClusterId(1)).unwrap().keys()[3]);
    until(30, "a vote of member 3 that it has logged, recorded and sent", async || {
        let [(own, casts), (of, sent)] =
            [3, 0].map(|member| own_casts(&log(member), voter).unwrap()).map(Option::unwrap_or_default);
        (own == of && !casts.is_empty() && !sent.is_empty()).then_some(())
    })
    .await;
    let log = log(3);
    net.kill(1, 3);
    let mut content = std::fs::read(&log).unwrap();
    content[30] ^= 4;
    std::fs::write(&log, content).unwrap();
    for _ in 0..2 {
        net.start(1, 3, None).unwrap();
        assert!(!status_of(&net, 3).await.votes);
        net.kill(1, 3);
    }
    for member in 1..4 {
        net.start(1, member, None).unwrap();
    }
    let height = status_of(&net, 0).await.height;
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
        let height = highest(&net).await;
        net.start(1, 0, None).unwrap();
        net.wait_for(1, &[0], height).await.unwrap();
    }
    assert!(net.log(1, 0).contains("is damaged on disk"));
    assert_eq!(stored(&client, "a").await.unwrap().value, value("1"), "the first member is asked first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_started_once() {
    let (_folder, mut net) = one_cluster().await;
    assert!(net.start(1, 0, None).is_err(), "it would run on unseen");
    let mut second = Command::new(env!("CARGO_BIN_EXE_fastpay-ledger"))
        .arg("run")
        .arg(net.member_folder(1, 0))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(30), async {
        loop {
            match second.try_wait().unwrap() {
                Some(status) => return status,
                None => pause(100).await,
            }
        }
    })
    .await;
    let _ = second.kill();
    let output = second.wait_with_output().unwrap();
    assert!(!ended.unwrap().success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("another process runs this member"), "{said}");
    status_of(&net, 0).await;
}
